//! Tokens: the secret that a client shows, and whom it stands for.

use std::collections::{BTreeMap, BTreeSet};

use mainstay_model::{Access, Principal, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::admission::Admission;
use crate::browser_secret;
use crate::client_certificate::ClientCertificate;
use crate::identities::IssuedName;
use crate::issuers::Issuers;
use crate::peer_network::PeerNetwork;

/// What a key is for, so that it is no other's.
const BROWSER_SECRETS: &str = "mainstay 2026-11 secret of a browser";

/// The tokens that are accepted.
#[derive(Clone)]
pub struct Tokens {
    /// Hash of the daemon's own token, of which keys are made.
    own: TokenHash,
    entries: Vec<(TokenHash, Access)>,
    issuers: Issuers,
    certificates: BTreeMap<IssuedName, Access>,
    anonymous: Option<Access>,
}

/// The SHA-256 of a token, as 64 hexadecimal digits: what a configuration has of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TokenHash([u8; 32]);

impl Tokens {
    /// The daemon's own token, which stands for the local principal, and those of others.
    pub fn new(local: &str, others: impl IntoIterator<Item = (TokenHash, Access)>) -> Self {
        let own = TokenHash::of(local);
        let entries = std::iter::once((own.clone(), Access::local())).chain(others).collect();
        Self { own, entries, issuers: Issuers::default(), certificates: BTreeMap::new(), anonymous: None }
    }

    /// The same, and the tokens that these issuers have signed.
    #[must_use]
    pub fn with_issuers(self, issuers: Issuers) -> Self {
        Self { issuers, ..self }
    }

    /// The same, and the certificates that have these names.
    #[must_use]
    pub fn with_certificates(self, certificates: impl IntoIterator<Item = (IssuedName, Access)>) -> Self {
        Self { certificates: certificates.into_iter().collect(), ..self }
    }

    /// The same, where a client of this machine that shows nothing stands for this principal.
    #[must_use]
    pub fn with_anonymous(self, anonymous: Option<Access>) -> Self {
        Self { anonymous, ..self }
    }

    /// Whom a client stands for that shows nothing at all; none where that is not allowed.
    pub fn anonymous(&self) -> Option<Admission> {
        self.anonymous.clone().map(Admission::from)
    }

    /// The same without the daemon's own token, and for nobody who shows nothing: those are for this machine alone.
    pub(crate) fn for_others(&self) -> Self {
        let local = Principal::local();
        let entries = self.entries.iter().filter(|(_, access)| access.principal != local).cloned().collect();
        Self { entries, anonymous: None, ..self.clone() }
    }

    /// Whether anybody but the user of the daemon could come in.
    pub fn has_others(&self) -> bool {
        self.entries.len() > 1 || !self.issuers.is_empty() || !self.certificates.is_empty()
    }

    /// The client whose connection has this certificate, until that expires. None where no principal has a name of it, or several have.
    pub fn admit_certificate(&self, certificate: &ClientCertificate, now: Timestamp) -> Option<Admission> {
        // It was good when the connection began.
        if certificate.expires_at <= now {
            return None;
        }
        let mut found = certificate.names.iter().filter_map(|name| self.certificates.get(name));
        let access = found.next()?;
        if found.any(|other| other.principal != access.principal) {
            tracing::info!("a certificate is refused: it has names of several principals");
            return None;
        }
        Some(Admission { access: access.clone(), expires_at: Some(certificate.expires_at) })
    }

    /// The client of this network that shows this token at this time: one that is known here, or one that an
    /// issuer has signed. None where it is not good; why, only the log says.
    pub async fn admit(&self, shown: &str, from: PeerNetwork, now: Timestamp) -> Option<Admission> {
        if let Some(access) = self.access_of(shown) {
            return Some(access.into());
        }
        self.admit_issued(shown, from, now).await
    }

    /// The client that shows this token of an issuer at this time; none where it is not good, or is no issuer's.
    pub async fn admit_issued(&self, shown: &str, from: PeerNetwork, now: Timestamp) -> Option<Admission> {
        let (_, token) = self.issuers.addressed(shown);
        if !self.issuers.may_know(shown) || self.is_own_secret(shown) || self.is_own_secret(token) {
            return None;
        }
        match self.issuers.admit(shown, from, now).await {
            Ok(admission) => Some(admission),
            Err(refusal) => {
                tracing::info!(%refusal, "a token is refused");
                None
            }
        }
    }

    /// Whether a text is a secret of the daemon, which no issuer is told, also where it lets nobody in: a
    /// token that is known here, or what a browser has.
    fn is_own_secret(&self, shown: &str) -> bool {
        let hash = TokenHash::of(shown);
        let is_known = self.entries.iter().any(|(known, _)| known.is(&hash));
        is_known || self.own.is(&hash) || browser_secret::is_sealed(&self.browser_key(), shown)
    }

    /// Whom a principal's name stands for, where it has a token.
    pub fn access_of_principal(&self, principal: &Principal) -> Option<Access> {
        self.entries.iter().map(|(_, access)| access).find(|access| access.principal == *principal).cloned()
    }

    /// How many principals there are, where each group of an issuer counts as one.
    pub fn principals(&self) -> usize {
        let own: BTreeSet<_> = self.entries.iter().map(|(_, access)| &access.principal).collect();
        own.len() + self.issuers.groups()
    }

    /// A key for one purpose, made of the daemon's own token.
    pub fn key(&self, purpose: &str) -> [u8; 32] {
        blake3::derive_key(purpose, &self.own.0)
    }

    /// The key with which the secrets of browsers are sealed.
    pub(crate) fn browser_key(&self) -> [u8; 32] {
        self.key(BROWSER_SECRETS)
    }

    /// Whom a token stands for that is known here. It takes the same time whatever was shown.
    pub fn access_of(&self, shown: &str) -> Option<Access> {
        let shown = TokenHash::of(shown);
        let mut found = None;
        for (hash, access) in &self.entries {
            if hash.is(&shown) {
                found = Some(access);
            }
        }
        found.cloned()
    }
}

impl TokenHash {
    /// Hashes a token as it was given.
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    /// Compares in a time that does not depend on where they differ.
    fn is(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).fold(0, |all, (a, b)| all | (a ^ b)) == 0
    }
}

impl TryFrom<String> for TokenHash {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong =
            || "a token's SHA-256 has 64 hexadecimal digits; `mainstay principal new` prints one".to_owned();
        if text.len() != 64 || !text.is_ascii() {
            return Err(wrong());
        }
        let mut hash = [0; 32];
        for (index, byte) in hash.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).map_err(|_| wrong())?;
        }
        Ok(Self(hash))
    }
}

impl From<TokenHash> for String {
    fn from(TokenHash(hash): TokenHash) -> Self {
        hash.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_model::Rights;

    fn of(principal: &str) -> Access {
        let rights = Rights::Some { see: Vec::new(), drive: Vec::new() };
        Access { principal: Principal::new(principal).unwrap(), rights }
    }

    #[test]
    fn a_token_stands_for_its_principal_only_as_a_whole() {
        let tokens = Tokens::new("abc", [(TokenHash::of("xyz"), of("ada"))]);
        assert_eq!(tokens.access_of("abc"), Some(Access::local()));
        assert_eq!(tokens.access_of("xyz"), Some(of("ada")));
        for other in ["", "ab", "abcd", "ABC", "xyz "] {
            assert_eq!(tokens.access_of(other), None, "{other}");
        }
    }

    #[test]
    fn a_hash_is_read_back_as_it_was_written() {
        let text = String::from(TokenHash::of("abc"));
        assert_eq!(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(TokenHash::try_from(text.to_uppercase()), Ok(TokenHash::of("abc")));
        for wrong in ["", "ba", &"g".repeat(64), &"é".repeat(32)] {
            assert!(TokenHash::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }
}
