//! Credentials that expire while their connection lives. Each test waits for what its client is told, which is bound to come.

use serde_json::{Value, json};

use mainstay_arcp::Settings;
use mainstay_gateway::client_certificate::ClientCertificate;
use mainstay_gateway::tls::{ClientAuthority, Tls};
use mainstay_model::Limits;
use mainstay_test_support::tls::{Authority, Certificate, connect};
use tokio_tungstenite::client_async;

use crate::a::{ask, invoke, is_end, open};
use crate::b::hello;
use crate::support::{Home, Peer, token_for};

/// As long as a connection takes to be opened on a busy machine, and no longer: each test waits so long.
const SHORT: i64 = 4;

fn signed(token: &str) -> Value {
    json!({ "scheme": "signed_jwt", "token": token })
}

fn opening(token: &str) -> Value {
    let mut open = open("");
    open["payload"]["auth"] = signed(token);
    open
}

async fn opened(home: &Home, open: Value) -> (Peer, Value) {
    let mut peer = home.connect().await;
    peer.send(open).await;
    let accepted = peer.first("session.accepted").await;
    (peer, accepted)
}

#[tokio::test]
async fn a_client_that_does_not_refresh_in_time_is_evicted_and_its_jobs_go_on() {
    let home = Home::new().await;
    let (mut peer, accepted) = opened(&home, opening(&token_for("ada", SHORT))).await;
    let until = accepted["payload"]["lease"]["expires_at"].clone();
    invoke(&mut peer, home.code("wait")).await;
    let refresh = peer.first("session.refresh").await;
    assert_eq!(refresh["payload"]["deadline"], until);
    for wrong in
        [signed(&token_for("ada", -1)), signed(&token_for("bob", 600)), json!({ "scheme": "bearer" })]
    {
        let id = ask(&mut peer, "session.authenticate", json!({ "auth": wrong })).await;
        let refused = peer.first("session.unauthenticated").await;
        assert_eq!(
            (&refused["correlation_id"], &refused["payload"]["code"]),
            (&json!(id), &json!("UNAUTHENTICATED"))
        );
    }
    // The daemon's own token is another principal's.
    ask(&mut peer, "session.authenticate", json!({ "auth": { "scheme": "bearer", "token": "secret" } }))
        .await;
    peer.first("session.unauthenticated").await;
    let evicted = peer.first("session.evicted").await;
    assert_eq!(evicted["payload"]["code"], "UNAUTHENTICATED");
    assert_eq!(peer.next().await, None, "the connection is closed");
    let mut again = opening(&token_for("ada", 600));
    again["session_id"] = accepted["session_id"].clone();
    let (mut peer, _) = opened(&home, again).await;
    ask(&mut peer, "resume", json!({})).await;
    home.cancel_jobs().await;
    let told = peer.until_it(is_end).await;
    assert_eq!(told.last().unwrap()["type"], "job.cancelled", "it had gone on until now");
}

#[tokio::test]
async fn a_client_that_refreshes_stays_with_the_rights_of_its_new_credentials() {
    let home = Home::new().await;
    let (mut peer, accepted) = opened(&home, opening(&token_for("ada", SHORT))).await;
    peer.first("session.refresh").await;
    let auth = json!({ "auth": signed(&token_for("ada", SHORT + 2)) });
    let id = ask(&mut peer, "session.authenticate", auth).await;
    let renewed = peer.first("session.accepted").await;
    assert_eq!((&renewed["correlation_id"], &renewed["session_id"]), (&json!(id), &accepted["session_id"]));
    // Those of before would have ended it by the time that it is asked again.
    let told = peer.until("session.refresh").await;
    assert!(told.iter().all(|envelope| envelope["type"] != "session.evicted"), "{told:#?}");
    let auth = json!({ "auth": { "scheme": "bearer", "token": "hers" } });
    ask(&mut peer, "session.authenticate", auth).await;
    peer.first("session.accepted").await;
    invoke(&mut peer, home.code("1")).await;
    peer.until_it(is_end).await;
}

#[tokio::test]
async fn a_client_that_shows_nothing_is_challenged_once() {
    let home = Home::new().await;
    let open = |auth: Value| {
        let mut open = open("");
        open["payload"]["auth"] = auth;
        open
    };
    for auth in [Value::Null, json!({ "scheme": "bearer" }), json!({ "scheme": "signed_jwt" })] {
        let mut peer = home.connect().await;
        let id = peer.send(open(auth.clone())).await;
        let challenge = peer.first("session.challenge").await;
        assert_eq!(challenge["correlation_id"], json!(id), "{auth}");
        assert_eq!(challenge["payload"]["schemes"], json!(["bearer", "signed_jwt", "oauth2"]));
        assert!(challenge["payload"]["expires_at"].is_string());
        // What comes before the acceptance is dropped.
        invoke(&mut peer, home.code("1")).await;
        let auth = json!({ "auth": signed(&token_for("ada", 600)) });
        let id = ask(&mut peer, "session.authenticate", auth).await;
        let told = peer.until("session.accepted").await;
        assert_eq!((told.len(), &told[0]["correlation_id"]), (1, &json!(id)));
        ask(&mut peer, "ping", json!({})).await;
        assert_eq!(peer.next().await.unwrap()["type"], "pong");
    }
    let mut peer = home.connect().await;
    peer.send(open(Value::Null)).await;
    peer.first("session.challenge").await;
    ask(&mut peer, "session.authenticate", json!({ "auth": { "scheme": "bearer" } })).await;
    assert_eq!(peer.next().await.unwrap()["type"], "session.unauthenticated");
    assert_eq!(peer.next().await, None);
}

#[tokio::test]
async fn dialect_b_ends_a_connection_with_its_credentials() {
    let home = Home::new().await;
    let mut peer = home.connect().await;
    peer.send(hello(&token_for("ada", SHORT))).await;
    let welcome = peer.first("session.welcome").await;
    let error = peer.first("session.error").await;
    assert_eq!(error["payload"]["code"], "UNAUTHENTICATED");
    assert_eq!(peer.next().await, None, "the connection is closed");
    let mut again = hello(&token_for("ada", 600));
    again["payload"]["resume"] = json!({
        "session_id": welcome["payload"]["session_id"], "resume_token": welcome["payload"]["resume_token"],
        "last_event_seq": 0,
    });
    let mut peer = home.connect().await;
    peer.send(again).await;
    peer.first("session.welcome").await;
}

#[tokio::test]
async fn a_client_on_another_machine_is_known_by_its_certificate() {
    let (home, authority) = (Home::new().await, Authority::new());
    let port = home.serve_remote(&authority).await;
    let dial = async |shown: Option<&Certificate>| {
        let stream = connect(port, &authority, shown).await.unwrap();
        Peer::of(client_async(format!("wss://localhost:{port}/arcp"), stream).await.unwrap().0)
    };
    let opening = |fingerprint: &str| {
        let mut open = open("");
        open["payload"]["auth"] = json!({ "scheme": "mtls" });
        open["payload"]["client"]["fingerprint"] = json!(fingerprint);
        open
    };
    let ada = authority.client("ada", "ada@example.com", 600);
    let eve = authority.client("eve", "eve@example.com", 600);
    let fingerprint = |made: &Certificate| ClientCertificate::of_der(&made.der()).unwrap().fingerprint;
    for (shown, said) in [
        (Some(&ada), fingerprint(&eve)),
        (Some(&ada), String::new()),
        (Some(&eve), fingerprint(&eve)),
        (None, fingerprint(&ada)),
    ] {
        let mut peer = dial(shown).await;
        peer.send(opening(&said)).await;
        assert_eq!(peer.next().await.unwrap()["type"], "session.unauthenticated", "{said}");
    }
    // The daemon's own token is for the daemon's machine alone.
    let mut peer = dial(None).await;
    peer.send(open("secret")).await;
    assert_eq!(peer.next().await.unwrap()["type"], "session.unauthenticated");
    let mut peer = dial(None).await;
    peer.send(open("hers")).await;
    peer.first("session.accepted").await;
    let mut nothing = open("");
    nothing["payload"]["auth"] = Value::Null;
    let mut peer = dial(Some(&ada)).await;
    peer.send(nothing).await;
    let challenge = peer.first("session.challenge").await;
    assert_eq!(challenge["payload"]["schemes"], json!(["bearer", "signed_jwt", "oauth2", "mtls"]));
    let ada = authority.client("ada", "ada@example.com", SHORT);
    let mut peer = dial(Some(&ada)).await;
    peer.send(opening(&fingerprint(&ada))).await;
    peer.first("session.accepted").await;
    peer.send(json!({ "arcp": "1.0", "type": "tool.invoke", "payload": { "tool": "fsharp", "arguments": home.code("1") } })).await;
    peer.until_it(is_end).await;
    let evicted = peer.first("session.evicted").await;
    assert_eq!(evicted["payload"]["code"], "UNAUTHENTICATED", "the certificate has expired");
}

#[tokio::test]
async fn a_session_ends_once_the_certificate_of_its_client_is_revoked() {
    let (home, authority) = (Home::new().await, Authority::new());
    let (port, served) = home.serve_revocable(&authority).await;
    let ada = authority.client("ada", "ada@example.com", 600);
    let stream = connect(port, &authority, Some(&ada)).await.unwrap();
    let socket = client_async(format!("wss://localhost:{port}/arcp"), stream).await.unwrap().0;
    let mut peer = Peer::of(socket);
    // Its token is good, and the connection is one of the certificate all the same.
    peer.send(hello("hers")).await;
    peer.first("session.welcome").await;
    let Certificate { pem, key } = authority.machine(&["localhost"]);
    let clients = ClientAuthority {
        pem: authority.pem.clone().into_bytes(),
        revocation_lists: Some(authority.revocation_list(&[&ada]).into_bytes()),
        is_required: false,
    };
    served.replace(&Tls::new(pem.as_bytes(), key.as_bytes(), Some(&clients)).unwrap());
    assert_eq!(peer.next().await, None);
}

#[tokio::test]
async fn strangers_on_other_machines_take_no_place_of_clients_with_credentials() {
    let limits = Limits { connections: 2, unauthenticated_connections_per_address: 2, ..Limits::default() };
    let (home, authority) = (Home::with(Settings::default(), limits).await, Authority::new());
    let port = home.serve_remote(&authority).await;
    let dial = async || {
        let stream = connect(port, &authority, None).await.ok()?;
        Some(Peer::of(client_async(format!("wss://localhost:{port}/arcp"), stream).await.unwrap().0))
    };
    let (mut first, mut stranger) = (dial().await.unwrap(), dial().await.unwrap());
    assert!(dial().await.is_none(), "two of one address have shown nothing yet");
    first.send(hello("hers")).await;
    first.first("session.welcome").await;
    let mut second = dial().await.unwrap();
    second.send(open("hers")).await;
    second.first("session.accepted").await;
    // There are as many as may be, and strangers are none of them.
    let mut third = dial().await.unwrap();
    third.send(open("hers")).await;
    assert_eq!(third.first("session.rejected").await["payload"]["code"], "RESOURCE_EXHAUSTED");
    stranger.send(hello("hers")).await;
    let refused = stranger.first("session.error").await;
    assert_eq!(refused["payload"]["details"]["code"], "too_many_connections");
    stranger.next().await;
    drop(first);
    for _ in 0..1000 {
        if dial().await.is_some() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("the place of a client that has left is not free");
}

#[tokio::test]
async fn a_client_without_credentials_must_be_allowed_and_say_so_and_can_only_look() {
    let home = Home::new().await;
    let opening = |says_so: bool| {
        let mut open = open("");
        open["payload"]["auth"] = json!({ "scheme": "none" });
        open["payload"]["capabilities"]["anonymous"] = json!(says_so);
        open
    };
    for (mut peer, says_so) in [(home.connect().await, true), (home.connect_to_open_house().await, false)] {
        peer.send(opening(says_so)).await;
        assert_eq!(peer.next().await.unwrap()["type"], "session.unauthenticated", "{says_so}");
        assert_eq!(peer.next().await, None);
    }
    let mut peer = home.connect_to_open_house().await;
    peer.send(opening(true)).await;
    let accepted = peer.first("session.accepted").await;
    assert_eq!(accepted["payload"]["capabilities"]["anonymous"], true);
    let id = invoke(&mut peer, home.code("1")).await;
    let refused = peer.first("nack").await;
    assert_eq!(
        (&refused["correlation_id"], &refused["payload"]["code"]),
        (&json!(id), &json!("PERMISSION_DENIED"))
    );
    let content = json!({ "media_type": "text/plain", "content_base64": "YQ==" });
    ask(&mut peer, "artifact.put", content).await;
    peer.first("nack").await;
    // A wrong token is no reason to be let in as nobody.
    let mut peer = home.connect_to_open_house().await;
    let mut wrong = opening(true);
    wrong["payload"]["auth"] = json!({ "scheme": "bearer", "token": "wrong" });
    peer.send(wrong).await;
    assert_eq!(peer.next().await.unwrap()["type"], "session.unauthenticated");
}
