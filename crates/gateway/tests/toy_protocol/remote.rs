//! The port that other machines reach: TLS, who is let in, and by which names.

use mainstay_gateway::authorities::Authorities;
use mainstay_gateway::client_certificate::ClientCertificate;
use mainstay_gateway::tls::{ClientAuthority, Tls, TlsError};
use mainstay_gateway::tokens::{TokenHash, Tokens};
use mainstay_model::Principal;
use mainstay_test_support::tls::{Authority, Certificate, connect};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::*;

/// A daemon that other machines reach as `localhost`.
struct Remote {
    home: Home,
    port: u16,
    authority: Authority,
    tls: Tls,
}

impl Remote {
    async fn new(clients: impl FnOnce(&Authority) -> Option<ClientAuthority>) -> Self {
        Self::with(clients, Limits::default()).await
    }

    async fn with(clients: impl FnOnce(&Authority) -> Option<ClientAuthority>, limits: Limits) -> Self {
        let authority = Authority::new();
        let Certificate { pem, key } = authority.machine(&["localhost", "127.0.0.1", "*.example"]);
        let tls = Tls::new(pem.as_bytes(), key.as_bytes(), clients(&authority).as_ref()).unwrap();
        assert_eq!(tls.names(), ["localhost", "127.0.0.1"], "a name that stands for many is none");
        let mut home = Home::with(0, limits).await;
        let access = |name: &str| Access {
            principal: Principal::new(name).unwrap(),
            rights: Rights::Some { see: Vec::new(), drive: Vec::new() },
        };
        let names = [("email:ada@example.com", "ada"), ("cn:bob", "bob"), ("email:bob@example.com", "bob")];
        let certificates = names.map(|(name, principal)| (name.parse().unwrap(), access(principal)));
        let tokens = Tokens::new("secret", [(TokenHash::of("hers"), access("ada"))]);
        home.daemon.tokens =
            Arc::new(tokens.with_issuers(signing_for(ada())).with_certificates(certificates));
        let (listener, address) = port::listen_remote("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let reached = Authorities::remote(tls.names(), address.port());
        let (daemon, protocols, served) = (home.daemon.clone(), home.protocols.clone(), tls.clone());
        tokio::spawn(async move { port::serve_remote(listener, served, reached, &daemon, protocols).await });
        Self { home, port: address.port(), authority, tls }
    }

    /// The status of a request with these headers.
    async fn status(&self, shown: Option<&Certificate>, headers: &str) -> Option<u16> {
        let mut stream = connect(self.port, &self.authority, shown).await.ok()?;
        let host = format!("Host: localhost:{}\r\n", self.port);
        let host = if headers.contains("Host:") { "" } else { &host };
        let request = format!(
            "POST /toy HTTP/1.1\r\n{host}{headers}Content-Length: 5\r\nConnection: close\r\n\r\n1 + 1"
        );
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.ok()?;
        String::from_utf8_lossy(&answer).split(' ').nth(1)?.parse().ok()
    }
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

#[tokio::test]
async fn another_machine_needs_a_token_of_a_principal_and_is_never_the_user_of_the_daemon() {
    let remote = Remote::new(|_| None).await;
    assert_eq!(remote.status(None, &bearer("hers")).await, Some(200));
    assert_eq!(remote.status(None, &bearer(&token_for("ada", 600))).await, Some(200));
    for wrong in [String::new(), bearer("wrong"), bearer(&token_for("ada", -1)), bearer("secret")] {
        assert_eq!(remote.status(None, &wrong).await, Some(401), "{wrong}");
    }
    // Here, the daemon's own token is good.
    let (listener, port) = listening().await;
    let home = Daemon { port, ..remote.home.daemon.clone() };
    tokio::spawn(port::serve(listener, home, remote.home.protocols.clone()));
    assert_eq!(
        post(&format!("http://127.0.0.1:{port}/toy"), Some("secret"), "1 + 1").await.0,
        StatusCode::OK
    );
}

#[tokio::test]
async fn a_request_to_another_name_or_from_a_page_of_another_is_refused() {
    let remote = Remote::new(|_| None).await;
    let of = |host: &str, origin: &str| format!("Host: {host}\r\n{origin}{}", bearer("hers"));
    let own = format!("localhost:{}", remote.port);
    assert_eq!(remote.status(None, &of(&own, "")).await, Some(200));
    assert_eq!(remote.status(None, &of(&own, &format!("Origin: https://{own}\r\n"))).await, Some(200));
    for (host, origin) in [
        ("evil.example", String::new()),
        (own.as_str(), "Origin: https://evil.example\r\n".to_owned()),
        (own.as_str(), format!("Origin: http://{own}\r\n")),
    ] {
        assert_eq!(remote.status(None, &of(host, &origin)).await, Some(403), "{host} {origin}");
    }
}

#[tokio::test]
async fn a_client_that_does_not_speak_tls_gets_nothing() {
    let remote = Remote::new(|_| None).await;
    let address = format!("http://localhost:{}/toy", remote.port);
    let request = reqwest::Client::new().post(&address).bearer_auth("hers").body("1 + 1");
    assert!(request.send().await.is_err());
    let stranger = Authority::new();
    assert!(connect(remote.port, &stranger, None).await.is_err(), "nobody vouches for the daemon");
    assert_eq!(remote.status(None, &bearer("hers")).await, Some(200), "it goes on");
}

#[tokio::test]
async fn a_certificate_stands_for_the_principal_that_has_a_name_of_it() {
    let clients = |is_required| {
        move |authority: &Authority| {
            Some(ClientAuthority {
                pem: authority.pem.clone().into_bytes(),
                revocation_lists: None,
                is_required,
            })
        }
    };
    let remote = Remote::new(clients(false)).await;
    let of = |name: &str, mail: &str| remote.authority.client(name, mail, 600);
    assert_eq!(remote.status(Some(&of("x", "ada@example.com")), "").await, Some(200));
    assert_eq!(remote.status(Some(&of("bob", "bob@example.com")), "").await, Some(200), "both are Bob's");
    for (name, mail) in [("x", "eve@example.com"), ("bob", "ada@example.com"), ("BOB", "x@example.com")] {
        assert_eq!(remote.status(Some(&of(name, mail)), "").await, Some(401), "{name} {mail}");
    }
    // A token that is shown counts, and a wrong one is not made good by a certificate.
    let ada = of("x", "ada@example.com");
    assert_eq!(remote.status(Some(&ada), &bearer("wrong")).await, Some(401));
    assert_eq!(remote.status(Some(&ada), "Sec-Fetch-Site: cross-site\r\n").await, Some(401));
    assert_eq!(remote.status(None, &bearer("hers")).await, Some(200), "a certificate may be missing");
    let stranger = Authority::new().client("bob", "ada@example.com", 600);
    assert_eq!(remote.status(Some(&stranger), "").await, None, "another authority signed it");

    let strict = Remote::new(clients(true)).await;
    assert_eq!(strict.status(None, &bearer("hers")).await, None, "a certificate must be there");
    let ada = strict.authority.client("x", "ada@example.com", 600);
    assert_eq!(strict.status(Some(&ada), "").await, Some(200));
}

/// What an authority signs for clients, and what it has revoked of that.
fn clients(authority: &Authority, revoked: &[&Certificate]) -> ClientAuthority {
    let list = authority.revocation_list(revoked);
    let pem = authority.pem.clone().into_bytes();
    ClientAuthority { pem, revocation_lists: Some(list.into_bytes()), is_required: false }
}

#[tokio::test]
async fn a_certificate_that_is_replaced_is_shown_to_whoever_connects_from_then_on() {
    let (remote, next) = (Remote::new(|_| None).await, Authority::new());
    let mut before = connect(remote.port, &remote.authority, None).await.unwrap();
    let Certificate { pem, key } = next.machine(&["localhost"]);
    remote.tls.replace(&Tls::new(pem.as_bytes(), key.as_bytes(), None).unwrap());
    assert!(connect(remote.port, &remote.authority, None).await.is_err());
    assert!(connect(remote.port, &next, None).await.is_ok());
    let head = format!("POST /toy HTTP/1.1\r\nHost: localhost:{}\r\n{}", remote.port, bearer("hers"));
    before.write_all(format!("{head}Content-Length: 5\r\n\r\n1 + 1").as_bytes()).await.unwrap();
    let mut status = [0; 12];
    before.read_exact(&mut status).await.unwrap();
    assert!(status.ends_with(b"200"), "a connection from before goes on");
}

#[tokio::test]
async fn a_connection_ends_once_the_certificate_of_its_client_is_revoked() {
    // No connection ends since it is idle.
    let limits = Limits { request_ms: 3_600_000, ..Limits::default() };
    let remote = Remote::with(|authority| Some(clients(authority, &[])), limits).await;
    let of = |mail: &str| remote.authority.client("x", mail, 600);
    let (ada, bob) = (of("ada@example.com"), of("bob@example.com"));
    assert_eq!(remote.status(Some(&ada), "").await, Some(200));
    let dial = async |shown| connect(remote.port, &remote.authority, Some(shown)).await.unwrap();
    let (mut hers, mut his) = (dial(&ada).await, dial(&bob).await);
    let head = format!("POST /toy HTTP/1.1\r\nHost: localhost:{}\r\nContent-Length: 5\r\n", remote.port);
    for stream in [&mut hers, &mut his] {
        stream.write_all(format!("{head}\r\n1 + 1").as_bytes()).await.unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.unwrap();
        assert!(status.ends_with(b"200"));
    }
    let Certificate { pem, key } = remote.authority.machine(&["localhost"]);
    let revoked = clients(&remote.authority, &[&ada]);
    remote.tls.replace(&Tls::new(pem.as_bytes(), key.as_bytes(), Some(&revoked)).unwrap());
    // It is not asked for anything, and ends all the same.
    hers.read_to_end(&mut Vec::new()).await.ok();
    assert_eq!(remote.status(Some(&ada), "").await, None);
    assert_eq!(remote.status(Some(&bob), "").await, Some(200));
    his.write_all(format!("{head}Connection: close\r\n\r\n1 + 1").as_bytes()).await.unwrap();
    let mut rest = Vec::new();
    his.read_to_end(&mut rest).await.unwrap();
    assert!(String::from_utf8_lossy(&rest).contains("HTTP/1.1 200"), "his goes on");
}

#[tokio::test]
async fn strangers_have_a_few_connections_and_whoever_shows_credentials_has_more() {
    let limits = Limits { unauthenticated_connections_per_address: 2, ..Limits::default() };
    let remote = Remote::with(|_| None, limits).await;
    let dial = async || connect(remote.port, &remote.authority, None).await.ok();
    let asked = async |stream: &mut TlsStream<TcpStream>, token: &str| {
        let head = format!("POST /toy HTTP/1.1\r\nHost: localhost:{}\r\n{}", remote.port, bearer(token));
        stream.write_all(format!("{head}Content-Length: 5\r\n\r\n1 + 1").as_bytes()).await.unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.unwrap();
        String::from_utf8_lossy(&status[9..]).into_owned()
    };
    let (mut known, mut stranger) = (dial().await.unwrap(), dial().await.unwrap());
    assert!(dial().await.is_none(), "one address has two");
    assert_eq!(asked(&mut stranger, "wrong").await, "401");
    assert!(dial().await.is_none(), "it is a stranger still");
    assert_eq!(asked(&mut known, "hers").await, "200");
    let mut next = dial().await.unwrap();
    assert_eq!(asked(&mut next, "hers").await, "200");
    assert!(dial().await.is_some());
}

#[tokio::test]
async fn strangers_that_have_all_places_make_room_for_whoever_comes_next() {
    let limits = Limits { unauthenticated_connections: 2, request_ms: 3_600_000, ..Limits::default() };
    let remote = Remote::with(|_| None, limits).await;
    let dial = async || connect(remote.port, &remote.authority, None).await.unwrap();
    let (mut oldest, _stranger) = (dial().await, dial().await);
    assert_eq!(remote.status(None, &bearer("hers")).await, Some(200));
    // It ends though it may be silent for long.
    assert!(oldest.read_to_end(&mut Vec::new()).await.is_err());
}

#[test]
fn a_certificate_is_known_by_its_names_and_its_fingerprint() {
    let made = Authority::new().client("bob", "bob@example.com", 600);
    let certificate = ClientCertificate::of_der(&made.der()).unwrap();
    let names: Vec<_> = certificate.names.iter().map(ToString::to_string).collect();
    assert_eq!(names, [certificate.fingerprint.as_str(), "email:bob@example.com", "cn:bob"]);
    assert!(certificate.has_fingerprint(&certificate.fingerprint.to_uppercase()));
    assert!(!certificate.has_fingerprint("sha256:") && !certificate.has_fingerprint(""));
    assert_eq!(ClientCertificate::of_der(b"x"), None);
}

#[test]
fn what_cannot_be_served_says_why() {
    let authority = Authority::new();
    let (one, other) = (authority.machine(&["localhost"]), authority.machine(&["localhost"]));
    let refused = |chain: &str, key: &str, clients: Option<&str>| {
        let clients = clients.map(|pem| ClientAuthority {
            pem: pem.as_bytes().to_vec(),
            revocation_lists: None,
            is_required: true,
        });
        Tls::new(chain.as_bytes(), key.as_bytes(), clients.as_ref()).err()
    };
    assert_eq!(refused(&one.pem, &one.key, Some(&authority.pem)), None);
    assert_eq!(refused("", &one.key, None), Some(TlsError::NoCertificate));
    assert_eq!(refused(&one.pem, &one.pem, None), Some(TlsError::NoKey));
    assert_eq!(refused(&one.pem, &one.key, Some("")), Some(TlsError::NoAuthority));
    let pem = authority.pem.clone().into_bytes();
    let lists = |lists: &str| ClientAuthority {
        pem: pem.clone(),
        revocation_lists: Some(lists.as_bytes().to_vec()),
        is_required: false,
    };
    for wrong in ["", authority.pem.as_str(), "-----BEGIN X509 CRL-----\nAA==\n-----END X509 CRL-----\n"] {
        let tls = Tls::new(one.pem.as_bytes(), one.key.as_bytes(), Some(&lists(wrong)));
        assert_eq!(tls.err(), Some(TlsError::NoRevocationList), "{wrong}");
    }
    assert!(matches!(refused(&one.pem, &other.key, None), Some(TlsError::Mismatch(_))));
}

#[tokio::test]
async fn who_shows_nothing_is_let_in_on_this_machine_alone_and_only_where_that_is_allowed() {
    let rights = Rights::ReadOnly { see: vec!["*".parse().unwrap()] };
    let guest = Access { principal: Principal::new("guest").unwrap(), rights };
    let mut remote = Remote::new(|_| None).await;
    let (listener, port) = listening().await;
    let tokens = Tokens::new("secret", []).with_anonymous(Some(guest));
    remote.home.daemon.tokens = Arc::new(tokens);
    let (daemon, protocols) = (remote.home.daemon.clone(), remote.home.protocols.clone());
    tokio::spawn(port::serve(listener, Daemon { port, ..daemon.clone() }, protocols.clone()));
    let address = format!("http://127.0.0.1:{port}/toy");
    let (status, refused) = post(&address, None, "1 + 1").await;
    assert_eq!(status, StatusCode::FORBIDDEN, "it is let in, and may not create a session: {refused}");
    assert!(refused.contains("not_permitted"), "{refused}");
    assert_eq!(post(&address, Some("wrong"), "1 + 1").await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(post(&address, Some("secret"), "1 + 1").await.0, StatusCode::OK);
    let from_page =
        reqwest::Client::new().post(&address).header("sec-fetch-site", "cross-site").body("1 + 1");
    assert_eq!(from_page.send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
    // The same daemon, from another machine.
    let Certificate { pem, key } = remote.authority.machine(&["localhost"]);
    let tls = Tls::new(pem.as_bytes(), key.as_bytes(), None).unwrap();
    let (listener, address) = port::listen_remote("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let reached = Authorities::remote(tls.names(), address.port());
    tokio::spawn(async move { port::serve_remote(listener, tls, reached, &daemon, protocols).await });
    let elsewhere = Remote { port: address.port(), ..remote };
    assert_eq!(elsewhere.status(None, "").await, Some(401));
}
