//! The issuer whose tokens [`signed_token`](crate::signed_token) signs, as a daemon knows it.

use mainstay_gateway::identities::Identities;
use mainstay_gateway::issuers::{Issuers, KnownIssuer};
use mainstay_gateway::jwt::Issuer;
use mainstay_gateway::jwt_key::{JwtKey, SignatureAlgorithm};
use mainstay_model::Access;

use crate::signed_token::{AUDIENCE, ISSUER, SECRET};

/// The name by which the daemon knows the issuer.
pub const NAME: &str = "test";

/// The issuer with these keys. It may sign with every algorithm, and its clock is the daemon's.
pub fn issuer(keys: Vec<JwtKey>) -> Issuer {
    Issuer {
        name: NAME.to_owned(),
        issuer: ISSUER.to_owned(),
        audience: AUDIENCE.to_owned(),
        algorithms: SignatureAlgorithm::ALL.to_vec(),
        keys,
        subject_claim: "sub".to_owned(),
        groups_claim: "groups".to_owned(),
        leeway_sec: 0,
    }
}

/// Its key, which is the secret that everybody knows.
pub fn secret_key() -> JwtKey {
    JwtKey::of_secret(SECRET.as_bytes()).unwrap()
}

/// This issuer alone, whose subject `ada` stands for somebody with this access.
pub fn vouching_for(ada: Access, issuer: impl Into<KnownIssuer>) -> Issuers {
    let ada = (format!("{NAME}:ada").parse().unwrap(), ada);
    Issuers::new([issuer], Identities::new([ada], []))
}

/// The issuer with its secret alone, and what it vouches for: Ada, who has this access.
pub fn signing_for(ada: Access) -> Issuers {
    vouching_for(ada, issuer(vec![secret_key()]))
}
