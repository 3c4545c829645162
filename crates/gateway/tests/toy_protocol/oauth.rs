//! Tokens whose issuer is asked: for its keys, and about each token. The issuer is a small server in the test.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::{get, post};
use axum::{Json, Router};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use mainstay_gateway::introspection::Introspection;
use mainstay_gateway::issuers::{Issuers, KnownIssuer};
use mainstay_gateway::jwt::JwtRefusal;
use mainstay_gateway::key_cache::KeyCache;
use mainstay_gateway::outbound::{Address, Outbound};
use mainstay_gateway::peer_network::PeerNetwork;
use mainstay_test_support::signed_token::{AUDIENCE, ISSUER};
use mainstay_test_support::test_issuer::{issuer, secret_key, vouching_for};
use mainstay_test_support::tls::Authority;
use rcgen::{KeyPair, PKCS_ED25519, PublicKeyData};

use tokio::sync::watch;

use super::*;

const LOCAL: PeerNetwork = PeerNetwork::LOCAL;

/// What an issuer serves, and how often it was asked.
#[derive(Default)]
pub(crate) struct Served {
    pub(crate) keys: Mutex<Vec<Value>>,
    pub(crate) keys_asked: AtomicUsize,
    /// What it says of tokens, and of no other.
    pub(crate) tokens: Mutex<Vec<(String, Value)>>,
    pub(crate) tokens_asked: AtomicUsize,
    /// How many questions it leaves without an answer for now: those about tokens that begin with `slow`, and
    /// for its keys where it is told to.
    pub(crate) unanswered: watch::Sender<usize>,
    pub(crate) keys_are_slow: AtomicBool,
    /// Once it is cancelled it answers everything.
    pub(crate) answers: CancellationToken,
}

impl Served {
    async fn be_slow(&self) {
        self.unanswered.send_modify(|count| *count += 1);
        self.answers.cancelled().await;
    }

    /// Waits until so many questions are without an answer.
    pub(crate) async fn are_unanswered(&self, count: usize) {
        self.unanswered.subscribe().wait_for(|unanswered| *unanswered >= count).await.unwrap();
    }

    /// Has it say of a token that it is Ada's until a second after the beginning of time.
    pub(crate) fn say_good(&self, token: &str, until: i64) {
        let said = json!({ "active": true, "aud": AUDIENCE, "sub": "ada", "exp": 1_000_000 + until });
        self.tokens.lock().unwrap().push((token.to_owned(), said));
    }
}

async fn keys(State(served): State<Arc<Served>>) -> Json<Value> {
    served.keys_asked.fetch_add(1, Ordering::SeqCst);
    if served.keys_are_slow.load(Ordering::SeqCst) {
        served.be_slow().await;
    }
    Json(json!({ "keys": *served.keys.lock().unwrap() }))
}

async fn introspect(State(served): State<Arc<Served>>, headers: HeaderMap, body: String) -> Json<Value> {
    served.tokens_asked.fetch_add(1, Ordering::SeqCst);
    // `a client` and `a:secret`, each encoded as in a form.
    assert_eq!(headers["authorization"], "Basic YStjbGllbnQ6YSUzQXNlY3JldA==");
    let token = body.strip_prefix("token=").unwrap().split('&').next().unwrap();
    if token.starts_with("slow") {
        served.be_slow().await;
    }
    let tokens = served.tokens.lock().unwrap();
    let known = tokens.iter().find(|(known, _)| known == token).map(|(_, said)| said.clone());
    Json(known.unwrap_or(json!({ "active": false })))
}

/// Serves an issuer: its address.
pub(crate) async fn serve(served: &Arc<Served>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().route("/keys", get(keys)).route("/introspect", post(introspect));
    let router = router.with_state(Arc::clone(served));
    tokio::spawn(async move { axum_serve(listener, router).await });
    address
}

/// Serves connections one after the other.
async fn axum_serve(listener: TcpListener, router: Router) {
    use hyper_util::rt::TokioIo;
    use hyper_util::service::TowerToHyperService;
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
        );
    }
}

pub(crate) fn outbound() -> Outbound {
    Outbound::trusting(Some(Authority::new().pem.as_bytes())).unwrap()
}

/// This issuer alone, which vouches for Ada.
pub(crate) fn of(issuer: KnownIssuer) -> Issuers {
    vouching_for(ada(), issuer)
}

/// A key: how it signs a token for Ada at a time, and how it is published.
pub(crate) fn key(id: &str) -> (impl Fn(i64) -> String, Value) {
    let pair = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    let x = base64_url(pair.der_bytes());
    let published = json!({ "kty": "OKP", "crv": "Ed25519", "kid": id, "x": x });
    let signs = EncodingKey::from_ed_pem(pair.serialize_pem().as_bytes()).unwrap();
    let header = Header { kid: Some(id.to_owned()), ..Header::new(Algorithm::EdDSA) };
    let sign = move |until: i64| {
        let claims = json!({ "iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": until });
        encode(&header, &claims, &signs).unwrap()
    };
    (sign, published)
}

fn base64_url(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

#[tokio::test]
async fn published_keys_are_fetched_once_and_again_for_one_that_is_not_known() {
    let served = Arc::new(Served::default());
    let address = Address::parse(&format!("{}/keys", serve(&served).await)).unwrap();
    let published = Some(KeyCache::new(address, outbound()));
    let issuers = of(KnownIssuer { published, ..issuer(Vec::new()).into() });
    let ((first, first_key), (second, second_key), (third, _)) = (key("a"), key("b"), key("c"));
    *served.keys.lock().unwrap() = vec![first_key.clone()];
    let asked = || served.keys_asked.load(Ordering::SeqCst);
    let admit =
        async |token: String, now| issuers.admit(&token, LOCAL, at(now)).await.map(|found| found.expires_at);
    let until = 1_000_000 + 10_000;
    assert_eq!(admit(first(until), 0).await, Ok(Some(at(10_000))));
    assert_eq!((admit(first(until), 1).await.is_ok(), asked()), (true, 1));
    // The issuer has a new key: it is asked no more than once a minute, whatever comes.
    served.keys.lock().unwrap().push(second_key);
    assert_eq!((admit(second(until), 2).await, asked()), (Err(JwtRefusal::UnknownKey), 1));
    assert_eq!((admit(second(until), 60).await.is_ok(), asked()), (true, 2));
    assert_eq!((admit(third(until), 61).await, asked()), (Err(JwtRefusal::UnknownKey), 2));
    // A key that is not published any more is good no longer, once that is known.
    served.keys.lock().unwrap().remove(0);
    assert_eq!((admit(first(until), 3600).await.is_ok(), asked()), (true, 2));
    assert_eq!((admit(first(until), 3660).await, asked()), (Err(JwtRefusal::UnknownKey), 3));
    assert!(admit(second(until), 3660).await.is_ok());
}

#[tokio::test]
async fn an_issuer_is_asked_about_a_token_and_what_it_says_counts_for_a_minute_at_most() {
    let served = Arc::new(Served::default());
    let address = Address::parse(&format!("{}/introspect", serve(&served).await)).unwrap();
    let introspection = Introspection::new(address, outbound(), "a client", "a:secret");
    let issuers = of(KnownIssuer { introspection, ..issuer(Vec::new()).into() });
    let asked = || served.tokens_asked.load(Ordering::SeqCst);
    let admit =
        async |token: &str, now| issuers.admit(token, LOCAL, at(now)).await.map(|found| found.expires_at);
    let good = |exp: i64| json!({ "active": true, "aud": AUDIENCE, "sub": "ada", "exp": 1_000_000 + exp });
    let say = |token: &str, said: Value| served.tokens.lock().unwrap().insert(0, (token.to_owned(), said));
    say("good", good(1_000));
    assert_eq!((admit("good", 0).await, asked()), (Ok(Some(at(1_000))), 1));
    say("good", json!({ "active": false }));
    assert_eq!((admit("good", 59).await.is_ok(), asked()), (true, 1));
    assert_eq!((admit("good", 60).await, asked()), (Err(JwtRefusal::Inactive), 2), "it was revoked");
    say("good", good(1_000));
    assert_eq!((admit("good", 69).await, asked()), (Err(JwtRefusal::Inactive), 2));
    assert_eq!((admit("good", 70).await.is_ok(), asked()), (true, 3));
    say("short", good(20));
    assert_eq!((admit("short", 0).await.is_ok(), admit("short", 20).await), (true, Err(JwtRefusal::Expired)));
    for (said, refusal) in [
        (json!({ "aud": "other" }), JwtRefusal::Audience),
        (json!({ "aud": null }), JwtRefusal::Claim("aud")),
        (json!({ "exp": null }), JwtRefusal::Claim("exp")),
        (json!({ "iss": "https://other.test" }), JwtRefusal::UnknownIssuer),
        (json!({ "sub": "eve" }), JwtRefusal::Nobody),
        (json!({ "active": "true" }), JwtRefusal::Inactive),
        (json!({ "active": 1 }), JwtRefusal::Inactive),
    ] {
        let mut all = good(1_000);
        let token = format!("t{}", asked());
        all.as_object_mut().unwrap().extend(said.as_object().unwrap().clone());
        say(&token, all);
        assert_eq!(admit(&token, 0).await, Err(refusal), "{said}");
    }
    let before = asked();
    for nonsense in ["", "a b", "é", "a\nb"] {
        assert_eq!(admit(nonsense, 0).await, Err(JwtRefusal::Inactive), "{nonsense}");
    }
    assert_eq!(asked(), before, "nobody is asked about what is no token");
}

#[tokio::test]
async fn a_signed_token_must_be_good_by_its_signature_before_its_issuer_is_asked() {
    let served = Arc::new(Served::default());
    let address = Address::parse(&format!("{}/introspect", serve(&served).await)).unwrap();
    let introspection = Introspection::new(address, outbound(), "a client", "a:secret");
    let issuers = of(KnownIssuer { introspection, ..issuer(vec![secret_key()]).into() });
    let token = signed_token("ada", &[], 1_001_000);
    let said = json!({ "active": true, "aud": AUDIENCE, "sub": "ada", "exp": 1_000_500 });
    served.tokens.lock().unwrap().push((token.clone(), said));
    assert_eq!(issuers.admit(&token, LOCAL, at(0)).await.unwrap().expires_at, Some(at(500)));
    let forged = format!("{}AA", &token[..token.len() - 2]);
    assert_eq!(issuers.admit(&forged, LOCAL, at(0)).await, Err(JwtRefusal::Signature));
    let other = signed_token("ada", &[], 1_002_000);
    assert_eq!(issuers.admit(&other, LOCAL, at(0)).await, Err(JwtRefusal::Inactive));
    assert_eq!(served.tokens_asked.load(Ordering::SeqCst), 2, "not about what is forged");
}

#[tokio::test]
async fn an_issuer_that_cannot_be_reached_vouches_for_nobody() {
    let (listener, port) = listening().await;
    drop(listener);
    let address = |path: &str| Address::parse(&format!("http://127.0.0.1:{port}/{path}")).unwrap();
    let published = Some(KeyCache::new(address("keys"), outbound()));
    let introspection = Introspection::new(address("introspect"), outbound(), "a client", "a:secret");
    let issuers = of(KnownIssuer { published, introspection, ..issuer(Vec::new()).into() });
    assert_eq!(issuers.admit("opaque", LOCAL, at(0)).await, Err(JwtRefusal::Inactive));
    let (sign, _) = key("a");
    assert_eq!(issuers.admit(&sign(2_000_000), LOCAL, at(0)).await, Err(JwtRefusal::UnknownKey));
}

#[tokio::test]
async fn an_issuer_is_asked_over_tls_only_where_an_authority_vouches_for_it() {
    use mainstay_test_support::tls::Certificate;
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::ServerConfig;
    use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
    use tokio_rustls::rustls::pki_types::pem::PemObject;
    use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

    let (authority, served) = (Authority::new(), Arc::new(Served::default()));
    let Certificate { pem, key: secret } = authority.machine(&["localhost"]);
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(secret.as_bytes()).unwrap(),
        )
        .unwrap();
    let (listener, port) = listening().await;
    let router = Router::new().route("/keys", get(keys)).with_state(Arc::clone(&served));
    tokio::spawn(async move {
        let acceptor = TlsAcceptor::from(Arc::new(config));
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            // One that trusts somebody else goes.
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let service = hyper_util::service::TowerToHyperService::new(router.clone());
            let stream = hyper_util::rt::TokioIo::new(stream);
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(stream, service));
        }
    });
    let (sign, published) = key("a");
    *served.keys.lock().unwrap() = vec![published];
    let admitted = async |trusted: &Authority, name: &str| {
        let address = Address::parse(&format!("https://{name}:{port}/keys")).unwrap();
        let outbound = Outbound::trusting(Some(trusted.pem.as_bytes())).unwrap();
        let published = Some(KeyCache::new(address, outbound));
        let issuers = of(KnownIssuer { published, ..issuer(Vec::new()).into() });
        issuers.admit(&sign(1_001_000), LOCAL, at(0)).await.map(|found| found.access.principal.to_string())
    };
    assert_eq!(admitted(&authority, "localhost").await, Ok("ada".to_owned()));
    assert_eq!(admitted(&Authority::new(), "localhost").await, Err(JwtRefusal::UnknownKey));
    assert_eq!(admitted(&authority, "127.0.0.1").await, Err(JwtRefusal::UnknownKey), "it is another name");
}
