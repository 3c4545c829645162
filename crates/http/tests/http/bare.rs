//! BARE as clients speak it: what is sent is written, and what is answered read, by another implementation with the schema in `docs`.

use std::path::Path;
use std::process::Stdio;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::support::{Home, PATIENCE, answer};

const BARE: &str = "application/bare; version=1";

/// A message, and what it must say.
pub(crate) fn same(kind: &str, bare: &[u8], json: &Value) -> Value {
    let hex: String = bare.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({ "type": kind, "bare": hex, "json": json })
}

/// Has the other implementation read messages, which must say the same, and write others.
pub(crate) async fn other_implementation(compare: &[Value], write: &[Value]) -> Vec<Vec<u8>> {
    let packages = std::env::var("MAINSTAY_TEST_BARE")
        .expect("MAINSTAY_TEST_BARE names a folder with @bare-ts/tools; `cargo xtask test` sets it");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let asked = json!({
        "schema": here.join("../../docs/schema/mainstay.bare"), "folder": folder.path(), "packages": packages,
        "compare": compare, "write": write,
    });
    let mut node = Command::new("node")
        .arg(here.join("tests/http/bare.mjs"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    node.stdin.take().unwrap().write_all(asked.to_string().as_bytes()).await.unwrap();
    let ended = tokio::time::timeout(PATIENCE, node.wait_with_output()).await.unwrap().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let said: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(said["found"], json!([]));
    let written = said["written"].as_array().unwrap().iter().map(|hex| unhex(hex.as_str().unwrap()));
    written.collect()
}

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// One message, written by the other implementation.
async fn written(kind: &str, value: Value) -> Vec<u8> {
    other_implementation(&[], &[json!({ "type": kind, "value": value })]).await.remove(0)
}

#[tokio::test]
async fn another_implementation_reads_the_vectors_in_docs() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/vectors.json");
    let vectors: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(vectors.len() > 30);
    other_implementation(&vectors, &[]).await;
}

#[tokio::test]
async fn a_command_in_bare_is_carried_out_and_answered_in_bare() {
    let home = Home::new().await;
    let session = home.session("demo").await;
    let exec = json!({
        "code": "let a = 3", "file": null, "commandId": "mine", "dependsOn": [], "ifVersion": null, "timeoutMs": null,
    });
    let body = written("Exec", exec).await;
    let send = |prefer: &str, accept: &str| {
        let request = home.request(Method::POST, "/exec").bearer_auth("secret").body(body.clone());
        request.header("Content-Type", BARE).header("Prefer", prefer).header("Accept", accept).send()
    };
    let outcome = send("wait=20", "application/bare").await.unwrap();
    assert_eq!(
        (outcome.status(), &outcome.headers()["content-type"]),
        (StatusCode::OK, &BARE.parse().unwrap())
    );
    let outcome = outcome.bytes().await.unwrap();
    // Sent again it has the first answer, here in JSON.
    let again: Value =
        serde_json::from_str(&send("wait=20", "*/*").await.unwrap().text().await.unwrap()).unwrap();
    assert_eq!((&again["success"], &again["replayed"]), (&json!(true), &json!(true)));
    let mut first = again;
    first["replayed"] = json!(false);
    let accepted = send("", "application/bare").await.unwrap();
    assert_eq!(accepted.status(), StatusCode::ACCEPTED);
    assert_eq!(accepted.headers()["location"], "/commands/mine");
    let accepted = accepted.bytes().await.unwrap();
    let events = first["seq"].as_u64().unwrap();
    let said = json!({ "commandId": "mine", "session": session, "seq": events });
    other_implementation(&[same("EvalView", &outcome, &first), same("Accepted", &accepted, &said)], &[])
        .await;
}

#[tokio::test]
async fn every_answer_says_in_bare_what_it_says_in_json() {
    let home = Home::new().await;
    let (_, document) = answer(home.get("/openapi.json")).await;
    let session = home.session("demo").await;
    answer(home.post("/exec", &json!({ "code": "let a = 3" }))).await;
    let fork =
        answer(home.post("/sessions/demo/fork", &json!({}))).await.1["session"].as_str().unwrap().to_owned();
    let mut compare = Vec::new();
    for (at, path, body) in [
        ("/exec", "/exec".to_owned(), json!({ "code": "show \"it\"", "commandId": "shown" })),
        ("/exec", "/exec".to_owned(), json!({ "code": "failwith \"x\"", "commandId": "raised" })),
        ("/diagnostics", "/diagnostics".to_owned(), json!({ "code": "unused" })),
        ("/completions", "/completions".to_owned(), json!({ "code": "na", "commandId": "asked" })),
        ("/rename", format!("/rename?session={session}"), json!({ "name": "x", "commandId": "renamed" })),
        (
            "/merge",
            format!("/merge?session={fork}"),
            json!({ "from": session, "entries": [[0, 2]], "commandId": "m" }),
        ),
        (
            "/sessions",
            "/sessions".to_owned(),
            json!({ "workingDirectory": home.folder(), "commandId": "new" }),
        ),
    ] {
        // The first submission brings it about; both others are told of it.
        answer(home.post(&path, &body)).await;
        let (status, json) = answer(home.post(&path, &body)).await;
        let bare = home.post(&path, &body).header("Accept", "application/bare").send().await.unwrap();
        assert_eq!(
            (bare.status(), &bare.headers()["content-type"]),
            (status, &BARE.parse().unwrap()),
            "{path}"
        );
        let kind = document["paths"][at]["post"]["responses"][status.as_str()]["x-bare"].as_str().unwrap();
        compare.push(same(kind, &bare.bytes().await.unwrap(), &json));
    }
    other_implementation(&compare, &[]).await;
}

#[tokio::test]
async fn what_is_no_message_is_refused_with_a_problem_in_json() {
    let limits = mainstay_model::Limits { message_bytes: 1000, ..mainstay_model::Limits::default() };
    let home = Home::with(limits).await;
    home.session("demo").await;
    let exec = |media: &str, body: Vec<u8>| {
        let request = home.request(Method::POST, "/exec").bearer_auth("secret").body(body);
        answer(request.header("Content-Type", media).header("Accept", "application/bare"))
    };
    let whole = vec![5, b'1', b' ', b'+', b' ', b'1', 0, 0, 0, 0, 0];
    for (media, body, status, code) in [
        (BARE, whole[..7].to_vec(), 400, "bad_request"),
        (BARE, [whole.as_slice(), &[0]].concat(), 400, "bad_request"),
        (BARE, vec![0xff; 20], 400, "bad_request"),
        (BARE, b"{\"code\": \"1 + 1\"}".to_vec(), 400, "bad_request"),
        (BARE, vec![0; 1001], 413, "message_too_large"),
        ("application/bare; version=2", whole.clone(), 415, "bad_request"),
        ("application/octet-stream", whole.clone(), 415, "bad_request"),
        ("text/plain", whole.clone(), 415, "bad_request"),
        ("application/json", whole.clone(), 400, "bad_request"),
    ] {
        let (answered, problem) = exec(media, body.clone()).await;
        assert_eq!(
            (answered.as_u16(), &problem["code"]),
            (status, &json!(code)),
            "{media} {body:?}: {problem}"
        );
    }
    let (status, problem) = exec(BARE, whole[..7].to_vec()).await;
    assert_eq!((status.as_u16(), &problem["error"]["reason"]), (400, &json!("it ends too soon, at byte 7")));
    assert_eq!(exec(BARE, whole).await.0, StatusCode::ACCEPTED, "it is one");
}

#[tokio::test]
async fn the_schema_is_served() {
    let home = Home::new().await;
    let (status, schema) = answer(home.get("/mainstay.bare")).await;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/mainstay.bare");
    assert_eq!((status, schema), (StatusCode::OK, json!(std::fs::read_to_string(path).unwrap())));
}
