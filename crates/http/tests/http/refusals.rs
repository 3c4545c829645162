//! Who is let in, and what is not taken: each refused with a typed problem.

use std::time::Duration;

use mainstay_model::Limits;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{Home, answer};

#[tokio::test]
async fn only_who_shows_a_token_from_this_machine_is_let_in() {
    let home = Home::new().await;
    home.session("demo").await;
    for path in ["/sessions", "/status", "/eval", "/asks", "/nowhere"] {
        let (status, _) = answer(home.request(Method::GET, path)).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{path}");
        let (status, _) = answer(home.request(Method::GET, path).bearer_auth("wrong")).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{path}");
        let (status, _) = answer(home.get(path).header("Origin", "http://evil.example")).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}");
        // One address that is ours beside another does not help.
        for own in ["127.0.0.1", "localhost"] {
            let own = format!("{own}:{}", home.daemon.port);
            let both = home.get(path).header("Host", &own).header("Host", "evil.example");
            assert_eq!(answer(both).await.0, StatusCode::FORBIDDEN, "{path}");
            let origins = home.get(path).header("Origin", format!("http://{own}"));
            let origins = origins.header("Origin", "http://evil.example");
            assert_eq!(answer(origins).await.0, StatusCode::FORBIDDEN, "{path}");
        }
        let (status, _) = answer(home.get(path).header("Host", "evil.example")).await;
        assert_eq!(
            status,
            StatusCode::FORBIDDEN,
            "a name that resolves to this machine is not this machine's"
        );
        // A token in an address stays in histories.
        let (status, _) = answer(home.request(Method::GET, &format!("{path}?token=secret"))).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{path}");
    }
    assert_eq!(answer(home.request(Method::GET, "/health")).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_session_of_another_is_not_there() {
    let home = Home::new().await;
    let session = home.session("demo").await;
    let hers = |method, path: &str| home.request(method, path).bearer_auth("hers");
    assert_eq!(answer(hers(Method::GET, "/sessions")).await.1, json!([]));
    let paths = [
        "",
        "/entries",
        "/lineage",
        "/members?name=List",
        "/symbols?text=x",
        "/values",
        "/status",
        "/eval",
        "/events",
        "/diagnostics",
        "/completions",
    ];
    for path in paths {
        let (status, problem) = answer(hers(Method::GET, &format!("/sessions/{session}{path}"))).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::NOT_FOUND, &json!("session_not_found")),
            "{path}"
        );
    }
    let (code, text) = (json!({ "code": "1 + 1" }), json!({ "text": "x" }));
    let plain = ["/cancel", "/reset", "/hard-reset", "/fork", "/stop"].map(|path| (path, json!({})));
    let said = [("/exec", code.clone()), ("/diagnostics", code), ("/prompt", text)];
    for (path, body) in plain.into_iter().chain(said) {
        let body = body.to_string();
        let request = hers(Method::POST, &format!("/sessions/{session}{path}"));
        let (status, problem) = answer(request.header("Content-Type", "application/json").body(body)).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::NOT_FOUND, &json!("session_not_found")),
            "{path}"
        );
    }
    let (status, problem) = answer(hers(Method::POST, "/shutdown")).await;
    assert_eq!((status, &problem["code"]), (StatusCode::FORBIDDEN, &json!("not_permitted")));
}

#[tokio::test]
async fn what_is_not_well_formed_is_a_typed_problem() {
    let home = Home::new().await;
    home.session("demo").await;
    let typed = |body: &'static str, media: &'static str| {
        home.request(Method::POST, "/exec").bearer_auth("secret").header("Content-Type", media).body(body)
    };
    let mut told = Vec::new();
    for (name, request) in [
        ("no JSON", typed("{", "application/json")),
        ("no code", typed("{}", "application/json")),
        ("no field", typed("{\"code\":\"1\",\"timeoutMS\":5}", "application/json")),
        ("a list", typed("[\"1\", null]", "application/json")),
        ("no place", home.get("/events?after=9")),
        ("text", typed("{\"code\":\"1\"}", "text/plain")),
        ("no path", home.get("/nowhere")),
        ("no method", home.get("/exec")),
        ("no number", home.get("/sessions?limit=many")),
        ("no id", home.get("/commands/anon:1")),
        ("our id", home.post("/exec", &json!({ "code": "1", "commandId": "anon:1" }))),
        ("no folder", home.post("/sessions", &json!({ "workingDirectory": "relative" }))),
        ("no words", home.get("/search?q=")),
        ("no text", home.post("/exec", &json!({ "code": "\u{0}" }))),
    ] {
        let (status, problem) = answer(request).await;
        let Value::Object(fields) = &problem else { panic!("{name}: {problem}") };
        let known = ["type", "title", "status", "code", "nextStep"];
        assert!(known.iter().all(|field| fields.contains_key(*field)), "{name}: {problem}");
        told.push(format!("{name}: {} {} — {}", status.as_u16(), problem["code"], problem["title"]));
    }
    insta::assert_snapshot!(told.join("\n"));
}

#[tokio::test]
async fn a_body_is_of_bounded_size_and_must_come_in_time() {
    let home = Home::with(Limits { message_bytes: 1000, request_ms: 200, ..Limits::default() }).await;
    home.session("demo").await;
    let large = json!({ "code": "x".repeat(2000) });
    let (status, problem) = answer(home.post("/exec", &large)).await;
    assert_eq!((status, &problem["code"]), (StatusCode::PAYLOAD_TOO_LARGE, &json!("message_too_large")));

    let mut trickle = home.connect().await;
    let head = home.head("POST /exec") + "Content-Type: application/json\r\nContent-Length: 20\r\n\r\n{";
    trickle.write_all(head.as_bytes()).await.unwrap();
    let mut told = String::new();
    let read = trickle.read_to_string(&mut told);
    // The connection may be kept for another request.
    tokio::time::timeout(Duration::from_secs(5), read).await.ok();
    assert!(told.starts_with("HTTP/1.1 408"), "{told}");
    assert_eq!(
        answer(home.post("/exec", &json!({ "code": "1 + 1" }))).await.1["value"],
        "2",
        "others are served"
    );
}

#[tokio::test]
async fn streams_are_bounded() {
    let home = Home::with(Limits { streams: 1, ..Limits::default() }).await;
    home.session("demo").await;
    let held = home.stream("/status").await;
    let (status, problem) = answer(home.get("/status")).await;
    assert_eq!((status, &problem["code"]), (StatusCode::TOO_MANY_REQUESTS, &json!("too_many_connections")));
    drop(held);
}
