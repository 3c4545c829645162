//! The keys that verify signatures of JWTs: from PEM, from a JSON Web Key Set (RFC 7517), or a shared secret.
//!
//! Each key has one algorithm, which the key itself decides and no token. So a public key of RSA never verifies an HMAC.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The fewest bytes of a shared secret: those of the hash (RFC 7518, 3.2).
const SECRET_BYTES: usize = 32;
/// The most keys of a set.
const KEYS: usize = 100;
/// The bytes of a point of P-256 that is not compressed.
const P256_BYTES: usize = 65;

/// The algorithms with which tokens may be signed (RFC 7518, RFC 8037).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
pub enum SignatureAlgorithm {
    /// A shared secret: HMAC with SHA-256.
    HS256,
    /// RSA with PKCS #1 v1.5 and SHA-256.
    RS256,
    /// ECDSA on P-256 with SHA-256.
    ES256,
    /// EdDSA on the curve Ed25519.
    EdDSA,
}

impl SignatureAlgorithm {
    /// All algorithms that are known here.
    pub const ALL: [Self; 4] = [Self::HS256, Self::RS256, Self::ES256, Self::EdDSA];

    /// The same in the words of the library.
    pub(crate) const fn of_library(self) -> Algorithm {
        match self {
            Self::HS256 => Algorithm::HS256,
            Self::RS256 => Algorithm::RS256,
            Self::ES256 => Algorithm::ES256,
            Self::EdDSA => Algorithm::EdDSA,
        }
    }
}

/// Why a key cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The secret is short enough to be guessed.
    #[error("a shared secret has at least {SECRET_BYTES} bytes")]
    ShortSecret,
    /// The file has a private key, which does not belong here.
    #[error("it has a private key; only the public key belongs here")]
    PrivateKey,
    /// The file has no public key that is known.
    #[error("it has no public key in PEM of RSA, P-256 or Ed25519 (`BEGIN PUBLIC KEY`)")]
    NoPublicKey,
    /// The file has no set of keys.
    #[error("it is no JSON Web Key Set: an object with the list `keys`")]
    NoKeySet,
    /// The set has no key of a known algorithm.
    #[error("none of its keys can verify RS256, ES256 or EdDSA")]
    NoUsableKey,
}

/// A key that verifies signatures of one algorithm.
#[derive(Clone, Debug)]
pub struct JwtKey {
    pub(crate) algorithm: SignatureAlgorithm,
    /// The name by which tokens refer to it, where it has one.
    pub(crate) id: Option<String>,
    pub(crate) key: DecodingKey,
}

impl JwtKey {
    /// A secret that the issuer has too.
    ///
    /// # Errors
    /// [`KeyError::ShortSecret`].
    pub fn of_secret(secret: &[u8]) -> Result<Self, KeyError> {
        if secret.len() < SECRET_BYTES {
            return Err(KeyError::ShortSecret);
        }
        let key = DecodingKey::from_secret(secret);
        Ok(Self { algorithm: SignatureAlgorithm::HS256, id: None, key })
    }

    /// A public key in PEM.
    ///
    /// # Errors
    /// [`KeyError::PrivateKey`], [`KeyError::NoPublicKey`].
    pub fn of_pem(pem: &str) -> Result<Self, KeyError> {
        if pem.contains("PRIVATE KEY") {
            return Err(KeyError::PrivateKey);
        }
        if !pem.contains("PUBLIC KEY") {
            return Err(KeyError::NoPublicKey);
        }
        let bytes = pem.as_bytes();
        let is_point = |key: &DecodingKey| key.try_get_as_bytes().is_ok_and(|key| key.len() == P256_BYTES);
        // The object identifier within says what it is: at most one of these takes it.
        let found = (DecodingKey::from_ec_pem(bytes).ok().filter(is_point))
            .map(|key| (SignatureAlgorithm::ES256, key))
            .or_else(|| DecodingKey::from_ed_pem(bytes).ok().map(|key| (SignatureAlgorithm::EdDSA, key)))
            .or_else(|| DecodingKey::from_rsa_pem(bytes).ok().map(|key| (SignatureAlgorithm::RS256, key)));
        let (algorithm, key) = found.ok_or(KeyError::NoPublicKey)?;
        Ok(Self { algorithm, id: None, key })
    }

    /// The public keys of a JSON Web Key Set that are for signatures of a known algorithm. The others are left out, as RFC 7517 (5) wants it.
    ///
    /// # Errors
    /// [`KeyError::NoKeySet`], [`KeyError::NoUsableKey`].
    pub fn of_key_set(text: &[u8]) -> Result<Vec<Self>, KeyError> {
        let set: Value = serde_json::from_slice(text).map_err(|_| KeyError::NoKeySet)?;
        let keys = set.get("keys").and_then(Value::as_array).ok_or(KeyError::NoKeySet)?;
        let read = |key: &Value| serde_json::from_value::<Jwk>(key.clone()).ok();
        let known: Vec<_> = keys.iter().filter_map(read).filter_map(|key| Self::of_jwk(&key)).collect();
        match known.is_empty() {
            true => Err(KeyError::NoUsableKey),
            false => Ok(known.into_iter().take(KEYS).collect()),
        }
    }

    fn of_jwk(jwk: &Jwk) -> Option<Self> {
        if !matches!(jwk.common.public_key_use, None | Some(PublicKeyUse::Signature)) {
            return None;
        }
        let (algorithm, named) = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => (SignatureAlgorithm::RS256, KeyAlgorithm::RS256),
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
                (SignatureAlgorithm::ES256, KeyAlgorithm::ES256)
            }
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
                (SignatureAlgorithm::EdDSA, KeyAlgorithm::EdDSA)
            }
            // A secret has no place in a set, which is made to be published.
            _ => return None,
        };
        if jwk.common.key_algorithm.is_some_and(|said| said != named) {
            return None;
        }
        let key = DecodingKey::from_jwk(jwk).ok()?;
        Some(Self { algorithm, id: jwk.common.key_id.clone(), key })
    }
}
