//! Sessions as files, and what is there, read at once.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::{Home, answer};

/// A session in which something was said.
async fn told(home: &Home) -> String {
    let session = home.session("demo").await;
    for code in ["let a = 3", "failwith \"x\""] {
        answer(home.post("/exec", &json!({ "code": code }))).await;
    }
    session
}

async fn exported(home: &Home, query: &str) -> String {
    let response = home.get(&format!("/sessions/demo/export{query}")).send().await.unwrap();
    let headers = response.headers();
    assert_eq!(
        (response.status(), &headers["content-type"]),
        (StatusCode::OK, &"text/plain; charset=utf-8".parse().unwrap())
    );
    assert!(headers["content-disposition"].to_str().unwrap().starts_with("attachment; filename="));
    response.text().await.unwrap()
}

#[tokio::test]
async fn a_session_is_exported_and_imported_with_all_that_was_said() {
    let home = Home::new().await;
    let session = told(&home).await;
    assert!(exported(&home, "?format=markdown").await.starts_with("# demo\n"));
    let notebook: Value = serde_json::from_str(&exported(&home, "?format=ipynb").await).unwrap();
    assert!(notebook["cells"][0]["source"].to_string().contains("let a = 3"), "{notebook}");
    for (format, code) in [("docx", "invalid_argument"), ("py", "invalid_argument")] {
        let (status, problem) = answer(home.get(&format!("/export?format={format}"))).await;
        assert_eq!((status, &problem["code"]), (StatusCode::BAD_REQUEST, &json!(code)), "{problem}");
    }

    let file = exported(&home, "").await;
    let import =
        json!({ "file": file, "name": "copy", "commandId": "import", "workingDirectory": home.folder() });
    let response = home.post("/import", &import).send().await.unwrap();
    assert_eq!(
        (response.status(), &response.headers()["preference-applied"]),
        (StatusCode::CREATED, &"wait".parse().unwrap())
    );
    let place = response.headers()["location"].to_str().unwrap().to_owned();
    let made: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    let copy = made["session"]["session"].as_str().unwrap();
    assert_eq!(place, format!("/sessions/{copy}"));
    assert_ne!(copy, session);
    assert_eq!(
        (&made["format"], &made["entries"], &made["leftOut"]),
        (&json!("mainstay"), &json!(4), &json!({}))
    );
    assert_eq!((&made["session"]["name"], &made["session"]["state"]), (&json!("copy"), &json!("Ready")));
    let contents = async |session: &str| {
        let (_, entries) = answer(home.get(&format!("/sessions/{session}/entries"))).await;
        entries
            .as_array()
            .unwrap()
            .iter()
            .map(|placed| placed["entry"]["content"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(contents(copy).await, contents(&session).await);
    // Sent again it gets the same session.
    assert_eq!(answer(home.post("/import", &import)).await.1["session"]["session"], copy);

    for file in ["", "no session file", "{}"] {
        let (status, problem) = answer(home.post("/import", &json!({ "file": file }))).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::BAD_REQUEST, &json!("import_invalid")),
            "{problem}"
        );
    }
    let bare = home.post("/import", &json!({})).header("Content-Type", "application/bare");
    assert!(answer(bare).await.0.is_client_error());
}

#[tokio::test]
async fn a_conversation_of_another_program_is_imported_and_what_is_left_out_is_said() {
    let home = Home::new().await;
    let file = include_str!("../../../formats/tests/samples/claude-code-branches.jsonl");
    let (status, made) = answer(home.post("/import", &json!({ "file": file }))).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    assert_eq!((&made["format"], &made["entries"]), (&json!("claude-code"), &json!(15)));
    assert_eq!(made["leftOut"]["messages of sidechains"], 2);
    assert_eq!((&made["session"]["kind"], &made["session"]["name"]), (&json!("agent"), &json!("A plot")));
}

#[tokio::test]
async fn the_newest_events_are_read_at_once_and_those_behind_one() {
    let home = Home::new().await;
    told(&home).await;
    let kinds = async |query: &str| {
        let (_, events) = answer(home.get(&format!("/sessions/demo/events/recent{query}"))).await;
        let kind =
            |event: &Value| (event["seq"].as_u64().unwrap(), event["kind"].as_str().unwrap().to_owned());
        events.as_array().unwrap().iter().map(kind).collect::<Vec<_>>()
    };
    let all = kinds("").await;
    assert_eq!((all[0].0, all[0].1.as_str()), (1, "sessionCreated"), "{all:?}");
    assert_eq!(all.last().unwrap().1, "evalFailed");
    assert_eq!(kinds("?limit=2").await, all[all.len() - 2..]);
    assert_eq!(kinds("?after=1&limit=2").await, all[1..3]);
    assert_eq!(kinds("?after=9999").await, []);

    let (_, daemon) = answer(home.get("/daemon")).await;
    assert_eq!((&daemon["sessions"], &daemon["live"], &daemon["asks"]), (&json!(1), &json!(1), &json!(0)));
    let (_, hers) = answer(home.request(reqwest::Method::GET, "/daemon").bearer_auth("hers")).await;
    assert_eq!((&hers["sessions"], &hers["version"]), (&json!(0), &daemon["version"]));
}
