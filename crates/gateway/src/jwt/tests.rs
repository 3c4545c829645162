//! What is accepted of tokens, by keys that each test makes.

use jsonwebtoken::{EncodingKey, Header, encode};
use proptest::prelude::*;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, PKCS_RSA_SHA256};
use serde_json::json;

use super::*;

const NOW: i64 = 1_800_000_000;
const SECRET: &[u8] = b"a secret of thirty-two bytes, at least";

/// A key that signs, and the one that verifies.
struct Pair {
    algorithm: SignatureAlgorithm,
    signs: EncodingKey,
    verifies: JwtKey,
    /// What the public knows of it.
    public: Vec<u8>,
}

fn pairs() -> Vec<Pair> {
    type Read = fn(&[u8]) -> jsonwebtoken::errors::Result<EncodingKey>;
    let asymmetric: [(_, _, Read); 3] = [
        (SignatureAlgorithm::RS256, &PKCS_RSA_SHA256, EncodingKey::from_rsa_pem),
        (SignatureAlgorithm::ES256, &PKCS_ECDSA_P256_SHA256, EncodingKey::from_ec_pem),
        (SignatureAlgorithm::EdDSA, &PKCS_ED25519, EncodingKey::from_ed_pem),
    ];
    let mut pairs: Vec<_> = asymmetric
        .into_iter()
        .map(|(algorithm, kind, read)| {
            let made = KeyPair::generate_for(kind).unwrap();
            let public = made.public_key_pem();
            let verifies = JwtKey::of_pem(&public).unwrap();
            assert_eq!(verifies.algorithm, algorithm, "{public}");
            let signs = read(made.serialize_pem().as_bytes()).unwrap();
            Pair { algorithm, signs, verifies, public: public.into_bytes() }
        })
        .collect();
    pairs.push(Pair {
        algorithm: SignatureAlgorithm::HS256,
        signs: EncodingKey::from_secret(SECRET),
        verifies: JwtKey::of_secret(SECRET).unwrap(),
        public: Vec::new(),
    });
    pairs
}

fn issuer(keys: impl IntoIterator<Item = JwtKey>) -> Issuer {
    Issuer {
        name: "corp".to_owned(),
        issuer: "https://id.example".to_owned(),
        audience: "mainstay".to_owned(),
        algorithms: SignatureAlgorithm::ALL.to_vec(),
        keys: keys.into_iter().collect(),
        subject_claim: "sub".to_owned(),
        groups_claim: "groups".to_owned(),
        leeway_sec: 0,
    }
}

fn hmac() -> Issuer {
    issuer([JwtKey::of_secret(SECRET).unwrap()])
}

fn claims() -> Value {
    json!({ "iss": "https://id.example", "aud": "mainstay", "sub": "ada", "exp": NOW + 60 })
}

/// The same claims, with these in their place; null takes one away.
fn but(changes: &Value) -> Value {
    let mut all = claims();
    for (name, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => all.as_object_mut().unwrap().remove(name),
            value => all.as_object_mut().unwrap().insert(name.clone(), value.clone()),
        };
    }
    all
}

fn hs256(claims: &Value) -> String {
    encode(&Header::new(Algorithm::HS256), claims, &EncodingKey::from_secret(SECRET)).unwrap()
}

use jsonwebtoken::Algorithm;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn verify(claims: &Value) -> Result<Claims, JwtRefusal> {
    hmac().verify(&hs256(claims), at(NOW))
}

#[test]
fn a_token_is_good_under_the_key_and_the_algorithm_that_signed_it_and_under_no_other() {
    let pairs = pairs();
    for signing in &pairs {
        let header = Header::new(signing.algorithm.of_library());
        let token = encode(&header, &claims(), &signing.signs).unwrap();
        for verifying in &pairs {
            let found = issuer([verifying.verifies.clone()]).verify(&token, at(NOW));
            match signing.algorithm == verifying.algorithm {
                true => assert_eq!(found.unwrap().subject, "ada"),
                false => assert_eq!(found, Err(JwtRefusal::UnknownKey), "{:?}", verifying.algorithm),
            }
        }
        // With all keys at once it is the same.
        let all = issuer(pairs.iter().map(|pair| pair.verifies.clone()));
        assert_eq!(all.verify(&token, at(NOW)).unwrap().subject, "ada");
        let others = signing.algorithm;
        let algorithms = SignatureAlgorithm::ALL.into_iter().filter(|known| *known != others).collect();
        let narrow = Issuer { algorithms, ..all };
        assert_eq!(narrow.verify(&token, at(NOW)), Err(JwtRefusal::Algorithm));
    }
}

#[test]
fn a_public_key_is_never_a_secret() {
    for pair in pairs().into_iter().filter(|pair| !pair.public.is_empty()) {
        let forms = [pair.public.clone(), pair.verifies.key.try_get_as_bytes().unwrap().to_vec()];
        for public in forms {
            let forged =
                encode(&Header::new(Algorithm::HS256), &claims(), &EncodingKey::from_secret(&public))
                    .unwrap();
            let keys = [pair.verifies.clone(), JwtKey::of_secret(SECRET).unwrap()];
            assert_eq!(issuer(keys).verify(&forged, at(NOW)), Err(JwtRefusal::Signature));
            let alone = issuer([pair.verifies.clone()]);
            assert_eq!(alone.verify(&forged, at(NOW)), Err(JwtRefusal::UnknownKey));
        }
    }
}

#[test]
fn a_token_without_a_signature_is_none() {
    let part = |value: &Value| {
        let made = encode(&Header::new(Algorithm::HS256), value, &EncodingKey::from_secret(SECRET)).unwrap();
        made.split('.').nth(1).unwrap().to_owned()
    };
    let payload = part(&claims());
    for alg in ["none", "None", "NONE", "nOnE", "HS1", ""] {
        let header = part(&json!({ "alg": alg, "typ": "JWT" }));
        for signature in ["", "e30"] {
            let token = format!("{header}.{payload}.{signature}");
            assert_eq!(hmac().verify(&token, at(NOW)), Err(JwtRefusal::Algorithm), "{alg}");
        }
    }
    let header = part(&json!({ "alg": "HS256" }));
    assert_eq!(hmac().verify(&format!("{header}.{payload}."), at(NOW)), Err(JwtRefusal::Signature));
    for nonsense in
        ["", "..", "eyJ", "eyJ..", "eyJh.e30", "secret", &format!("eyJ{}.a.b", "x".repeat(20_000))]
    {
        assert!(hmac().verify(nonsense, at(NOW)).is_err(), "{nonsense:.20}");
    }
}

#[test]
fn a_key_that_the_token_names_is_the_only_one_that_counts() {
    let named =
        |id: &str, secret: &[u8]| JwtKey { id: Some(id.to_owned()), ..JwtKey::of_secret(secret).unwrap() };
    let other = [SECRET, b"!"].concat();
    let keys = [named("old", &other), named("new", SECRET)];
    let of = |id: Option<&str>| {
        let header = Header { kid: id.map(str::to_owned), ..Header::new(Algorithm::HS256) };
        encode(&header, &claims(), &EncodingKey::from_secret(SECRET)).unwrap()
    };
    let verify = |id| issuer(keys.clone()).verify(&of(id), at(NOW)).map(|claims| claims.subject);
    assert_eq!(verify(Some("new")), Ok("ada".to_owned()));
    assert_eq!(verify(None), Ok("ada".to_owned()), "each is tried");
    assert_eq!(verify(Some("old")), Err(JwtRefusal::Signature));
    assert_eq!(verify(Some("gone")), Err(JwtRefusal::UnknownKey));
}

#[test]
fn a_critical_header_is_not_passed_over() {
    let header = Header { crit: Some(vec!["b64".to_owned()]), ..Header::new(Algorithm::HS256) };
    let token = encode(&header, &claims(), &EncodingKey::from_secret(SECRET)).unwrap();
    assert_eq!(hmac().verify(&token, at(NOW)), Err(JwtRefusal::Critical));
}

#[test]
fn a_token_is_good_between_its_times_with_the_leeway() {
    let token = hs256(&but(&json!({ "nbf": NOW, "iat": NOW })));
    for (leeway_sec, from, until) in [(0, NOW, NOW + 60), (30, NOW - 30, NOW + 90)] {
        let issuer = Issuer { leeway_sec, ..hmac() };
        let verify = |second| issuer.verify(&token, at(second)).map(|claims| claims.expires_at);
        assert_eq!(verify(from - 1), Err(JwtRefusal::TooEarly));
        assert_eq!(verify(from), Ok(at(until)));
        assert_eq!(verify(until - 1), Ok(at(until)));
        assert_eq!(verify(until), Err(JwtRefusal::Expired));
    }
}

#[test]
fn claims_that_are_wanted_must_be_there_and_be_what_they_are() {
    for (changes, refusal) in [
        (json!({ "exp": null }), JwtRefusal::Claim("exp")),
        (json!({ "exp": "soon" }), JwtRefusal::Claim("exp")),
        (json!({ "exp": u64::MAX }), JwtRefusal::Claim("exp")),
        (json!({ "exp": 1e300 }), JwtRefusal::Claim("exp")),
        (json!({ "exp": i64::MAX }), JwtRefusal::Claim("exp")),
        (json!({ "nbf": "soon" }), JwtRefusal::Claim("nbf")),
        (json!({ "iat": [] }), JwtRefusal::Claim("iat")),
        (json!({ "iss": null }), JwtRefusal::UnknownIssuer),
        (json!({ "iss": "https://id.example/" }), JwtRefusal::UnknownIssuer),
        (json!({ "aud": null }), JwtRefusal::Claim("aud")),
        (json!({ "aud": 1 }), JwtRefusal::Claim("aud")),
        (json!({ "aud": "other" }), JwtRefusal::Audience),
        (json!({ "aud": ["other", 1, "Mainstay"] }), JwtRefusal::Audience),
        (json!({ "aud": [] }), JwtRefusal::Audience),
        (json!({ "sub": null }), JwtRefusal::Claim("subject")),
        (json!({ "sub": "" }), JwtRefusal::Claim("subject")),
        (json!({ "sub": 7 }), JwtRefusal::Claim("subject")),
    ] {
        assert_eq!(verify(&but(&changes)), Err(refusal), "{changes}");
    }
    for good in [json!({ "aud": ["other", "mainstay"] }), json!({ "exp": NOW as f64 + 0.5 + 1.0 })] {
        assert_eq!(verify(&but(&good)).unwrap().subject, "ada", "{good}");
    }
}

#[test]
fn groups_are_a_list_or_words() {
    for (claim, expected) in [
        (json!({ "groups": ["a", "b c", 7, ""] }), vec!["a", "b c"]),
        (json!({ "groups": "a b" }), vec!["a", "b"]),
        (json!({ "groups": { "a": true } }), vec![]),
        (json!({}), vec![]),
    ] {
        assert_eq!(verify(&but(&claim)).unwrap().groups, expected, "{claim}");
    }
}

#[test]
fn a_set_of_keys_has_those_that_sign_and_no_secrets() {
    let set = json!({ "keys": [
        { "kty": "EC", "crv": "P-256", "kid": "e", "use": "sig", "alg": "ES256",
          "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM" },
        { "kty": "EC", "crv": "P-256", "kid": "for encryption", "use": "enc",
          "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM" },
        { "kty": "OKP", "crv": "Ed25519", "kid": "d", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" },
        { "kty": "RSA", "kid": "r", "alg": "RS256", "n": "AQAB", "e": "AQAB" },
        { "kty": "RSA", "kid": "another algorithm", "alg": "PS512", "n": "AQAB", "e": "AQAB" },
        { "kty": "oct", "kid": "a secret", "k": "YSBzZWNyZXQgb2YgdGhpcnR5LXR3byBieXRlcywgYXQgbGVhc3Q" },
        { "kty": "of the future" },
    ] });
    let keys = JwtKey::of_key_set(set.to_string().as_bytes()).unwrap();
    let named: Vec<_> = keys.iter().map(|key| (key.id.as_deref().unwrap(), key.algorithm)).collect();
    use SignatureAlgorithm::{ES256, EdDSA, RS256};
    assert_eq!(named, [("e", ES256), ("d", EdDSA), ("r", RS256)]);
    let refused = |text: &str| JwtKey::of_key_set(text.as_bytes()).unwrap_err();
    assert_eq!(refused("[]"), KeyError::NoKeySet);
    assert_eq!(refused("{\"keys\": [{ \"kty\": \"oct\", \"k\": \"\" }]}"), KeyError::NoUsableKey);
}

use crate::jwt_key::KeyError;

#[test]
fn a_file_with_another_thing_than_a_public_key_is_no_key() {
    let private = KeyPair::generate_for(&PKCS_ED25519).unwrap().serialize_pem();
    assert_eq!(JwtKey::of_pem(&private).unwrap_err(), KeyError::PrivateKey);
    let certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert_eq!(JwtKey::of_pem(certificate).unwrap_err(), KeyError::NoPublicKey);
    let larger = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap().public_key_pem();
    assert_eq!(JwtKey::of_pem(&larger).unwrap_err(), KeyError::NoPublicKey, "P-384 is none of the four");
    assert_eq!(JwtKey::of_secret(&SECRET[..31]).unwrap_err(), KeyError::ShortSecret);
}

proptest! {
    #[test]
    fn a_token_of_which_anything_was_changed_is_refused(at_byte: proptest::sample::Index, to in "[A-Za-z0-9_.-]") {
        let token = hs256(&claims());
        let index = at_byte.index(token.len());
        let changed = format!("{}{to}{}", &token[..index], &token[index + 1..]);
        // The last character of a part has bits that do not count, and the library refuses those that are not zero.
        prop_assume!(changed != token);
        prop_assert!(hmac().verify(&changed, at(NOW)).is_err(), "{}", changed);
    }

    #[test]
    fn no_text_makes_it_panic(text in ".{0,200}", parts in "eyJ[A-Za-z0-9_-]{0,60}\\.[A-Za-z0-9_-]{0,80}\\.[A-Za-z0-9_-]{0,50}") {
        prop_assert!(hmac().verify(&text, at(NOW)).is_err());
        prop_assert!(hmac().verify(&parts, at(NOW)).is_err());
        prop_assert!(claimed_issuer(&text).is_err());
        claimed_issuer(&parts).ok();
    }

    #[test]
    fn a_token_is_good_exactly_until_its_end(life in -1000i64..1000, leeway_sec in 0u32..600) {
        let token = hs256(&but(&json!({ "exp": NOW + life })));
        let found = Issuer { leeway_sec, ..hmac() }.verify(&token, at(NOW));
        prop_assert_eq!(found.is_ok(), life + i64::from(leeway_sec) > 0);
    }
}
