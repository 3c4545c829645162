//! Signed JWTs as bearer tokens (RFC 7519), checked as RFC 8725 advises. Pure: keys and the time are given.
//!
//! An issuer has a list of algorithms, an audience and keys. The issuer that the token names says which keys count; of those only the keys of the
//! token's algorithm do, so that no token chooses how its own signature is checked. A token without an end is refused.

use jsonwebtoken::dangerous::insecure_decode;
use jsonwebtoken::{Validation, decode, decode_header};
use mainstay_model::Timestamp;
use serde_json::{Map, Value};

use crate::jwt_key::{JwtKey, SignatureAlgorithm};

/// The largest token that is looked at, in bytes.
const TOKEN_BYTES: usize = 16 * 1024;
/// The largest subject, and the largest name of a group, in bytes.
const NAME_BYTES: usize = 1024;
/// The most groups of a token that count.
const GROUPS: usize = 1000;

/// Who signs tokens, and what a token must say.
#[derive(Clone, Debug)]
pub struct Issuer {
    /// The name by which the settings know it.
    pub name: String,
    /// What its tokens have as `iss`.
    pub issuer: String,
    /// What its tokens must have among their `aud`.
    pub audience: String,
    /// The algorithms with which its tokens may be signed.
    pub algorithms: Vec<SignatureAlgorithm>,
    /// The keys that verify its signatures.
    pub keys: Vec<JwtKey>,
    /// The claim that says whom a token is for.
    pub subject_claim: String,
    /// The claim that lists the groups of the subject.
    pub groups_claim: String,
    /// By how many seconds its clock may differ from this one.
    pub leeway_sec: u32,
}

/// What a good token says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// Whom the token is for.
    pub subject: String,
    /// The groups that the subject is in.
    pub groups: Vec<String>,
    /// When the token is good no longer, with the leeway.
    pub expires_at: Timestamp,
}

/// Why a token is not good. It is for the daemon's log; a client is told no more than that its token is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JwtRefusal {
    /// It is no signed JWT.
    #[error("it is no signed JWT")]
    Malformed,
    /// Its issuer is none that is configured.
    #[error("its issuer is not configured")]
    UnknownIssuer,
    /// Its algorithm is not allowed for its issuer.
    #[error("its algorithm is not allowed for its issuer")]
    Algorithm,
    /// It wants something to be understood that is not.
    #[error("it has critical headers that are not understood")]
    Critical,
    /// The issuer has no key of its name and algorithm.
    #[error("its issuer has no such key")]
    UnknownKey,
    /// No key verifies its signature.
    #[error("its signature is wrong")]
    Signature,
    /// A claim that it must have is missing or has another type.
    #[error("its claim `{0}` is missing or malformed")]
    Claim(&'static str),
    /// It is for somebody else.
    #[error("it is for another audience")]
    Audience,
    /// It is too old.
    #[error("it has expired")]
    Expired,
    /// It is not good yet.
    #[error("it is not valid yet")]
    TooEarly,
    /// Its issuer does not say that it is good.
    #[error("its issuer does not say that it is good")]
    Inactive,
    /// It does not say whose it is, and several issuers are asked about such tokens.
    #[error("it does not name its issuer, as in `ISSUER:TOKEN`, and more than one could have issued it")]
    Unnamed,
    /// Its subject is no principal.
    #[error("its subject is no principal, and in no group that is one")]
    Nobody,
}

/// Whether a text could be a signed JWT, and not another kind of token.
pub fn is_jwt(token: &str) -> bool {
    // An object in JSON always begins so in base64.
    token.starts_with("eyJ") && token.len() <= TOKEN_BYTES && token.split('.').count() == 3
}

/// What a token says of its issuer, which nobody has verified.
pub(crate) fn claimed_issuer(token: &str) -> Result<String, JwtRefusal> {
    if !is_jwt(token) {
        return Err(JwtRefusal::Malformed);
    }
    let claims = insecure_decode::<Map<String, Value>>(token).map_err(|_| JwtRefusal::Malformed)?.claims;
    Ok(text(&claims, "iss").ok_or(JwtRefusal::Claim("iss"))?.to_owned())
}

impl Issuer {
    /// What a token says that this issuer has signed for this daemon, at this time.
    ///
    /// # Errors
    /// [`JwtRefusal`].
    pub fn verify(&self, token: &str, now: Timestamp) -> Result<Claims, JwtRefusal> {
        self.verify_with(&[], token, now)
    }

    /// The same, where the issuer has these keys too.
    ///
    /// # Errors
    /// [`JwtRefusal`].
    pub(crate) fn verify_with(
        &self,
        published: &[JwtKey],
        token: &str,
        now: Timestamp,
    ) -> Result<Claims, JwtRefusal> {
        if !is_jwt(token) {
            return Err(JwtRefusal::Malformed);
        }
        let claims = self.signed_claims(published, token)?;
        if text(&claims, "iss") != Some(&self.issuer) {
            return Err(JwtRefusal::UnknownIssuer);
        }
        self.check(&claims, now)
    }

    /// What the issuer says of a token that it was asked about. It need not say that it is itself.
    ///
    /// # Errors
    /// [`JwtRefusal`].
    pub(crate) fn check_introspected(
        &self,
        claims: &Map<String, Value>,
        now: Timestamp,
    ) -> Result<Claims, JwtRefusal> {
        match claims.get("iss") {
            Some(issuer) if issuer.as_str() != Some(&self.issuer) => Err(JwtRefusal::UnknownIssuer),
            Some(_) | None => self.check(claims, now),
        }
    }

    /// Checks what is said of a token by whom that is believed.
    fn check(&self, claims: &Map<String, Value>, now: Timestamp) -> Result<Claims, JwtRefusal> {
        if !is_for(claims, &self.audience)? {
            return Err(JwtRefusal::Audience);
        }
        let (now, leeway) = (now.as_second(), i64::from(self.leeway_sec));
        let until = date(claims, "exp")?.ok_or(JwtRefusal::Claim("exp"))?.saturating_add(leeway);
        let expires_at = Timestamp::from_second(until).map_err(|_| JwtRefusal::Claim("exp"))?;
        if until <= now {
            return Err(JwtRefusal::Expired);
        }
        for claim in ["nbf", "iat"] {
            if date(claims, claim)?.is_some_and(|from| from.saturating_sub(leeway) > now) {
                return Err(JwtRefusal::TooEarly);
            }
        }
        let subject = text(claims, &self.subject_claim).filter(|subject| is_name(subject));
        let subject = subject.ok_or(JwtRefusal::Claim("subject"))?.to_owned();
        Ok(Claims { subject, groups: groups(claims.get(&self.groups_claim)), expires_at })
    }

    /// The claims of a token whose signature is good.
    fn signed_claims(&self, published: &[JwtKey], token: &str) -> Result<Map<String, Value>, JwtRefusal> {
        // Algorithms that the library does not know, `none` among them, are no header for it.
        let header = decode_header(token).map_err(|_| JwtRefusal::Algorithm)?;
        let allowed = self.algorithms.iter().find(|algorithm| algorithm.of_library() == header.alg);
        let algorithm = *allowed.ok_or(JwtRefusal::Algorithm)?;
        if header.crit.is_some() {
            return Err(JwtRefusal::Critical);
        }
        let keys = self.keys_of(published, algorithm, header.kid.as_deref());
        if keys.is_empty() {
            return Err(JwtRefusal::UnknownKey);
        }
        // The library has no clock to check by here, and checks the audience otherwise than this.
        let mut validation = Validation::new(algorithm.of_library());
        validation.required_spec_claims.clear();
        (validation.validate_exp, validation.validate_aud) = (false, false);
        let verified = keys.iter().find_map(|key| decode(token, &key.key, &validation).ok());
        Ok(verified.ok_or(JwtRefusal::Signature)?.claims)
    }

    /// The keys that may have signed: those of the token's algorithm with the name that the token gives. Keys without a name may have any.
    fn keys_of<'a>(
        &'a self,
        published: &'a [JwtKey],
        algorithm: SignatureAlgorithm,
        id: Option<&str>,
    ) -> Vec<&'a JwtKey> {
        let of_algorithm = self.keys.iter().chain(published).filter(|key| key.algorithm == algorithm);
        let is_it = |key: &&JwtKey| id.is_none() || key.id.is_none() || key.id.as_deref() == id;
        of_algorithm.filter(is_it).collect()
    }
}

fn text<'a>(claims: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    claims.get(name).and_then(Value::as_str)
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_BYTES
}

/// A time, where the claim is there: seconds since 1970, maybe with a fraction, which is cut off.
fn date(claims: &Map<String, Value>, name: &'static str) -> Result<Option<i64>, JwtRefusal> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    let seconds = value.as_i64().or_else(|| {
        let seconds = value.as_f64().filter(|seconds| seconds.abs() < 1e15)?;
        #[allow(
            clippy::cast_possible_truncation,
            reason = "it is small enough, and the fraction does not count"
        )]
        Some(seconds as i64)
    });
    seconds.map(Some).ok_or(JwtRefusal::Claim(name))
}

/// Whether the audience is one of those that the claim names: one, or a list.
fn is_for(claims: &Map<String, Value>, audience: &str) -> Result<bool, JwtRefusal> {
    match claims.get("aud") {
        Some(Value::String(one)) => Ok(one == audience),
        Some(Value::Array(all)) => Ok(all.iter().any(|one| one.as_str() == Some(audience))),
        _ => Err(JwtRefusal::Claim("aud")),
    }
}

/// The groups that a claim names: a list, or a text with spaces between them, as `scope` has them.
fn groups(claim: Option<&Value>) -> Vec<String> {
    let named: Vec<&str> = match claim {
        Some(Value::String(text)) => text.split_whitespace().collect(),
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    named.into_iter().filter(|name| is_name(name)).take(GROUPS).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
