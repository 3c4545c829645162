//! Clients that show a token of an issuer: whom they stand for, and until when.

use std::sync::Arc;

use mainstay_model::Timestamp;

use crate::admission::Admission;
use crate::identities::Identities;
use crate::introspection::Introspection;
use crate::jwt::{Claims, Issuer, JwtRefusal, claimed_issuer, is_jwt};
use crate::key_cache::KeyCache;
use crate::peer_network::PeerNetwork;

/// The issuers whose tokens are accepted, and who the principals are that these vouch for.
#[derive(Clone, Default)]
pub struct Issuers {
    issuers: Vec<Arc<KnownIssuer>>,
    identities: Identities,
}

/// An issuer, and how it is asked.
pub struct KnownIssuer {
    /// What its tokens must say, and the keys that are known of it.
    pub issuer: Issuer,
    /// The keys that it publishes.
    pub published: Option<KeyCache>,
    /// How it is asked about tokens, where it is. A signed token must be good by its signature, too, where there are keys.
    pub introspection: Option<Introspection>,
}

impl From<Issuer> for KnownIssuer {
    /// An issuer that is asked nothing.
    fn from(issuer: Issuer) -> Self {
        Self { issuer, published: None, introspection: None }
    }
}

impl KnownIssuer {
    fn has_keys(&self) -> bool {
        !self.issuer.keys.is_empty() || self.published.is_some()
    }

    /// What a token says that this issuer has signed. For a key that is not known the published ones are fetched again.
    async fn verify(&self, token: &str, now: Timestamp) -> Result<Claims, JwtRefusal> {
        let Some(published) = &self.published else { return self.issuer.verify(token, now) };
        let keys = published.keys(now, false).await;
        match self.issuer.verify_with(&keys, token, now) {
            Err(JwtRefusal::UnknownKey) => {
                let keys = published.keys(now, true).await;
                self.issuer.verify_with(&keys, token, now)
            }
            verified => verified,
        }
    }

    /// What the issuer says of a token, where it is asked.
    async fn introspect(&self, token: &str, from: PeerNetwork, now: Timestamp) -> Result<Claims, JwtRefusal> {
        let introspection = self.introspection.as_ref().ok_or(JwtRefusal::Inactive)?;
        let claims = introspection.claims_of(token, from, now).await.ok_or(JwtRefusal::Inactive)?;
        self.issuer.check_introspected(&claims, now)
    }

    async fn claims_of_signed(
        &self,
        token: &str,
        from: PeerNetwork,
        now: Timestamp,
    ) -> Result<Claims, JwtRefusal> {
        match (self.has_keys(), &self.introspection) {
            (true, None) => self.verify(token, now).await,
            (true, Some(_)) => {
                self.verify(token, now).await?;
                self.introspect(token, from, now).await
            }
            (false, _) => self.introspect(token, from, now).await,
        }
    }
}

impl Issuers {
    /// These issuers; no two have the same `iss`.
    pub fn new<I: Into<KnownIssuer>>(issuers: impl IntoIterator<Item = I>, identities: Identities) -> Self {
        Self { issuers: issuers.into_iter().map(|issuer| Arc::new(issuer.into())).collect(), identities }
    }

    /// Whether nobody can come in by an issuer.
    pub(crate) fn is_empty(&self) -> bool {
        self.issuers.is_empty() || self.identities.is_empty()
    }

    /// How many principals may come by groups, as far as that is known.
    pub(crate) fn groups(&self) -> usize {
        self.identities.groups()
    }

    /// The issuer that a client names, where it writes its token as `NAME:TOKEN`, and the token.
    pub(crate) fn addressed<'a>(&self, shown: &'a str) -> (Option<&Arc<KnownIssuer>>, &'a str) {
        let of_known = |(name, token)| {
            let known = self.issuers.iter().find(|known| known.issuer.name == name)?;
            Some((Some(known), token))
        };
        shown.split_once(':').and_then(of_known).unwrap_or((None, shown))
    }

    /// Whether a token could be one of these issuers'.
    pub(crate) fn may_know(&self, shown: &str) -> bool {
        is_jwt(self.addressed(shown).1) || self.issuers.iter().any(|known| known.introspection.is_some())
    }

    /// Whom a token stands for that a client of this network shows at this time. One issuer at most is asked
    /// about it: the one that it names.
    ///
    /// # Errors
    /// [`JwtRefusal`]; what it says is for the log.
    pub async fn admit(
        &self,
        shown: &str,
        from: PeerNetwork,
        now: Timestamp,
    ) -> Result<Admission, JwtRefusal> {
        let (named, token) = self.addressed(shown);
        let is_signed = is_jwt(token);
        let known = if is_signed { self.signer(token)? } else { self.to_be_asked(named)? };
        if named.is_some_and(|named| !Arc::ptr_eq(named, known)) {
            return Err(JwtRefusal::UnknownIssuer);
        }
        let claims = match is_signed {
            true => known.claims_of_signed(token, from, now).await?,
            false => known.introspect(token, from, now).await?,
        };
        self.admitted(known, claims)
    }

    /// The issuer that a signed token names.
    fn signer(&self, token: &str) -> Result<&Arc<KnownIssuer>, JwtRefusal> {
        let claimed = claimed_issuer(token)?;
        let known = self.issuers.iter().find(|known| known.issuer.issuer == claimed);
        known.ok_or(JwtRefusal::UnknownIssuer)
    }

    /// The issuer that is asked about a token which says nothing of its issuer: the one that its client
    /// names, or the only one that is asked at all. With several, each would learn of tokens of the others.
    fn to_be_asked<'a>(
        &'a self,
        named: Option<&'a Arc<KnownIssuer>>,
    ) -> Result<&'a Arc<KnownIssuer>, JwtRefusal> {
        let mut asked = self.issuers.iter().filter(|known| known.introspection.is_some());
        match (named, asked.next(), asked.next()) {
            (Some(named), ..) if named.introspection.is_some() => Ok(named),
            (None, Some(only), None) => Ok(only),
            (None, Some(_), Some(_)) => Err(JwtRefusal::Unnamed),
            (Some(_), ..) | (None, None, _) => Err(JwtRefusal::Malformed),
        }
    }

    fn admitted(&self, known: &KnownIssuer, claims: Claims) -> Result<Admission, JwtRefusal> {
        let access = self.identities.access_of(&known.issuer.name, &claims.subject, &claims.groups);
        Ok(Admission { access: access.ok_or(JwtRefusal::Nobody)?, expires_at: Some(claims.expires_at) })
    }
}
