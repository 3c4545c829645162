//! Clients that show a token of an issuer: whom they stand for, and until when.

use mainstay_model::Timestamp;

use crate::admission::Admission;
use crate::identities::Identities;
use crate::jwt::{Issuer, JwtRefusal, claimed_issuer};

/// The issuers whose tokens are accepted, and who the principals are that these vouch for.
#[derive(Clone, Debug, Default)]
pub struct Issuers {
    issuers: Vec<Issuer>,
    identities: Identities,
}

impl Issuers {
    /// These issuers; no two have the same `iss`.
    pub fn new(issuers: impl IntoIterator<Item = Issuer>, identities: Identities) -> Self {
        Self { issuers: issuers.into_iter().collect(), identities }
    }

    /// Whether nobody can come in by an issuer.
    pub(crate) fn is_empty(&self) -> bool {
        self.issuers.is_empty() || self.identities.is_empty()
    }

    /// How many principals may come by groups, as far as that is known.
    pub(crate) fn groups(&self) -> usize {
        self.identities.groups()
    }

    /// Whom a token stands for at this time.
    ///
    /// # Errors
    /// [`JwtRefusal`]; what it says is for the log.
    pub fn admit(&self, token: &str, now: Timestamp) -> Result<Admission, JwtRefusal> {
        let claimed = claimed_issuer(token)?;
        let issuer = self.issuers.iter().find(|issuer| issuer.issuer == claimed);
        let issuer = issuer.ok_or(JwtRefusal::UnknownIssuer)?;
        let claims = issuer.verify(token, now)?;
        let access = self.identities.access_of(&issuer.name, &claims.subject, &claims.groups);
        Ok(Admission { access: access.ok_or(JwtRefusal::Nobody)?, expires_at: Some(claims.expires_at) })
    }
}
