//! Tokens of an issuer that exists only in tests: JWTs signed with a secret that everybody knows.

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::json;

/// What the issuer's tokens have as `iss`.
pub const ISSUER: &str = "https://issuer.test";
/// Whom its tokens are for.
pub const AUDIENCE: &str = "mainstay";
/// The secret that it signs with, by HS256.
pub const SECRET: &str = "everybody knows this secret of a test";

/// A token for a subject in these groups, which is good until this second.
pub fn signed_token(subject: &str, groups: &[&str], until: i64) -> String {
    let claims = json!({ "iss": ISSUER, "aud": AUDIENCE, "sub": subject, "groups": groups, "exp": until });
    encode(&Header::new(Algorithm::HS256), &claims, &EncodingKey::from_secret(SECRET.as_bytes())).unwrap()
}
