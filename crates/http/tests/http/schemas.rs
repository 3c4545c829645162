//! The documents of the API: they are what is served, and what is served is what they say.

use std::path::Path;

use jsonschema::Validator;
use mainstay_model::{CommandId, SessionKind};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Home, answer};

/// Set, the files are written instead of compared.
const UPDATE: &str = "MAINSTAY_UPDATE_SCHEMAS";

#[test]
fn the_documents_are_those_in_docs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    for (name, document) in mainstay_http::schemas() {
        let (path, written) = (folder.join(name), serde_json::to_string_pretty(&document).unwrap() + "\n");
        if std::env::var_os(UPDATE).is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &written).unwrap();
        }
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            there == written,
            "docs/schema/{name} is not what the types say; `{UPDATE}=1 cargo nextest run -p mainstay-gateway --test http the_documents` writes it"
        );
    }
}

/// What a schema of the OpenAPI document allows.
fn validator(document: &Value, schema: &Value) -> Validator {
    let whole = json!({ "allOf": [schema], "components": document["components"] });
    jsonschema::draft202012::new(&whole).unwrap()
}

#[tokio::test]
async fn what_is_answered_is_as_the_document_says() {
    let home = Home::new().await;
    let (_, document) = answer(home.get("/openapi.json")).await;
    let session = home.session("demo").await;
    let fork =
        answer(home.post("/sessions/demo/fork", &json!({}))).await.1["session"].as_str().unwrap().to_owned();
    let mut asked = 0;
    for (method, at, path, body) in [
        ("post", "/exec", "/exec".to_owned(), json!({ "code": "let a = 3" })),
        ("post", "/exec", "/exec".to_owned(), json!({ "code": "failwith \"x\"" })),
        ("post", "/exec", "/exec".to_owned(), json!({ "code": "unused" })),
        ("post", "/diagnostics", "/diagnostics".to_owned(), json!({ "code": "unused" })),
        ("post", "/completions", "/completions".to_owned(), json!({ "code": "na" })),
        ("post", "/sessions/{session}/rename", format!("/sessions/{session}/rename"), json!({ "name": "x" })),
        ("post", "/merge", format!("/merge?session={fork}"), json!({ "from": session, "entries": [[0, 2]] })),
        ("post", "/sessions", "/sessions".to_owned(), json!({ "workingDirectory": home.folder() })),
        ("get", "/sessions", "/sessions".to_owned(), json!(null)),
        ("get", "/sessions/{session}", format!("/sessions/{session}"), json!(null)),
        ("get", "/sessions/{session}/entries", format!("/sessions/{session}/entries"), json!(null)),
        ("get", "/sessions/{session}/lineage", format!("/sessions/{session}/lineage"), json!(null)),
        (
            "get",
            "/sessions/{session}/events/recent",
            format!("/sessions/{session}/events/recent"),
            json!(null),
        ),
        ("get", "/daemon", "/daemon".to_owned(), json!(null)),
        ("get", "/kinds", "/kinds".to_owned(), json!(null)),
        ("post", "/import", "/import".to_owned(), json!({ "file": "{}" })),
        ("get", "/asks", "/asks".to_owned(), json!(null)),
        ("get", "/search", "/search?q=let".to_owned(), json!(null)),
        (
            "post",
            "/history",
            "/history".to_owned(),
            json!({ "id": session, "at": "2026-02-13T13:29:20Z", "text": "let a = 3" }),
        ),
        ("get", "/history", "/history?q=let".to_owned(), json!(null)),
        ("get", "/history/{number}", "/history/1".to_owned(), json!(null)),
        ("get", "/commands/{command}", "/commands/nothing".to_owned(), json!(null)),
        ("post", "/cancel", "/cancel".to_owned(), json!({})),
        ("post", "/exec", "/exec".to_owned(), json!({})),
    ] {
        let request = match method {
            "post" => home.post(&path, &body),
            _ => home.get(&path),
        };
        let (status, told) = answer(request).await;
        let response = &document["paths"][at][method]["responses"][status.as_str()];
        let response = match response["$ref"].as_str() {
            Some(reference) => document.pointer(reference.trim_start_matches('#')).unwrap(),
            None => response,
        };
        let media = if status.is_success() { "application/json" } else { "application/problem+json" };
        let schema = &response["content"][media]["schema"];
        assert!(schema.is_object(), "{method} {at} answers {status}, which is in no document: {told}");
        let wrong: Vec<_> =
            validator(&document, schema).iter_errors(&told).map(|error| error.to_string()).collect();
        assert!(wrong.is_empty(), "{method} {path}: {wrong:?} in {told}");
        asked += 1;
    }
    assert_eq!(asked, 24);
}

#[test]
fn the_patterns_of_names_take_what_names_are_made_of() {
    let document = &mainstay_http::schemas()["openapi.json"];
    let taken = |name: &str, text: &str| {
        let schema = json!({ "$ref": format!("#/components/schemas/{name}") });
        validator(document, &schema).is_valid(&json!(text))
    };
    for text in
        ["a", "", "a b", "é·x", "a\tb", "a\u{85}b", "x\u{7f}", "fsharp-10.1:x_y", "anon:1", "\u{2003}"]
    {
        assert_eq!(taken("CommandId", text), CommandId::new(text).is_ok(), "command {text:?}");
        assert_eq!(taken("SessionKind", text), SessionKind::new(text).is_ok(), "kind {text:?}");
    }
}

#[tokio::test]
async fn what_streams_tell_is_as_their_schema_says() {
    let home = Home::new().await;
    home.session("demo").await;
    for code in ["printfn \"x\"", "failwith \"x\"", "unused", "let a = 3"] {
        answer(home.post("/exec", &json!({ "code": code }))).await;
    }
    answer(home.post("/diagnostics", &json!({ "code": "unused" }))).await;
    let schema = mainstay_http::schemas()["signals.json"].clone();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let last = |told: &Value| {
        told["event"]["kind"] == "evalCompleted" && told["event"]["body"]["bindings"][0]["name"] == "a"
    };
    let mut events = home.stream("/events").await;
    let mut all = Vec::new();
    loop {
        let told = events.next().await.unwrap();
        let is_last = last(&told) || told["event"]["body"]["result"]["bindings"][0]["name"] == "a";
        all.push(told);
        if is_last {
            break;
        }
    }
    for path in ["/status", "/diagnostics", "/completions", "/eval"] {
        all.push(home.stream(path).await.next().await.unwrap());
    }
    let mut evals = home.stream("/eval?after=1").await;
    for _ in 0..4 {
        all.extend(evals.until(|told| told.get("evalResult").is_some()).await);
    }
    for told in &all {
        assert!(validator.is_valid(told), "{told}");
    }
    assert!(!validator.is_valid(&json!({ "event": { "seq": 1 } })), "it is no schema that allows anything");
}

#[tokio::test]
async fn the_document_names_the_daemons_own_address_and_the_bodies_that_must_be_there() {
    let home = Home::new().await;
    let (_, document) = answer(home.get("/openapi.json")).await;
    assert_eq!(document["servers"], json!([{ "url": format!("http://127.0.0.1:{}", home.port) }]));
    let is_required = |path: &str| &document["paths"][path]["post"]["requestBody"]["required"];
    for (path, required) in [("/exec", true), ("/settings", true), ("/reset", false), ("/fork", false)] {
        assert_eq!(is_required(path), required, "{path}");
    }
    home.session("demo").await;
    let reset = home.request(Method::POST, "/sessions/demo/reset").bearer_auth("secret");
    assert_eq!(answer(reset.header("Prefer", "wait=20")).await.0, 200);
}

#[tokio::test]
async fn what_the_document_says_is_there() {
    let home = Home::new().await;
    home.session("demo").await;
    let (_, document) = answer(home.get("/openapi.json")).await;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            if path == "/shutdown" {
                continue;
            }
            let path = path
                .replace("{session}", "nothing")
                .replace("{ask}", "nothing")
                .replace("{command}", "nothing");
            let method: Method = method.to_uppercase().parse().unwrap();
            let request = home.request(method.clone(), &path).bearer_auth("secret");
            let response = request.send().await.unwrap();
            let status = response.status().as_u16();
            let is_there = response.headers()["content-type"] != "application/problem+json" || {
                let problem: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
                !problem["title"].as_str().unwrap().contains("at this path") && status != 405
            };
            assert!(is_there, "{method} {path} is not there");
        }
    }
}
