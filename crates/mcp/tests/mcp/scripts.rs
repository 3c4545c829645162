//! Files that are run, what ran when, and the projects there are.

use serde_json::{Value, json};

use crate::support::Home;

#[tokio::test]
async fn a_script_runs_as_code_that_is_sent_and_is_known_by_its_file() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let script = home.path().join("setup.fsx");
    std::fs::write(&script, "\u{feff}let x = 3").unwrap();
    let reply = agent.call("load_script", json!({ "path": script })).await;
    assert!(!reply.is_error, "{reply:?}");
    assert_eq!(reply.structured["bindings"][0]["name"], json!("x"));
    let session = home.session().await;
    let events = home.local().events(session, Default::default(), 100).await.unwrap();
    let requested = serde_json::to_value(&events).unwrap();
    let requested =
        requested.as_array().unwrap().iter().find(|event| event["kind"] == "evalRequested").unwrap();
    assert_eq!(requested["body"]["file"], json!(script));
    assert_eq!(requested["body"]["code"], json!("let x = 3"));
    let events = agent.call("get_recent_events", json!({ "since": 0, "count": 50 })).await;
    assert!(events.text.contains(&format!("{}: let x = 3", script.display())), "{events:?}");
}

#[tokio::test]
async fn a_file_that_is_no_script_is_refused_and_nothing_is_created() {
    let home = Home::with(mainstay_model::Limits { code_bytes: 8, ..Default::default() }).await;
    let agent = home.agent().await;
    let file = |name: &str, bytes: &[u8]| {
        let path = home.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    for (path, code) in [
        (file("missing.fsx", b"") + "x", "invalid_argument"),
        ("relative.fsx".to_owned(), "invalid_argument"),
        (home.path().display().to_string(), "invalid_argument"),
        (file("bytes.fsx", b"\xff\xfe"), "invalid_argument"),
        (file("long.fsx", b"123456789"), "code_too_large"),
    ] {
        let refused = agent.call("load_script", json!({ "path": path })).await;
        assert_eq!((refused.is_error, &refused.structured["code"]), (true, &json!(code)), "{path}");
    }
    let ada = home.agent_of("ada").await;
    let refused = ada.call("load_script", json!({ "path": file("own.fsx", b"1 + 1") })).await;
    assert_eq!(refused.structured["code"], json!("not_permitted"));
    assert_eq!(agent.call("list_sessions", json!({})).await.structured, json!({ "sessions": [] }));
}

/// What a timeline says without its times.
fn lines(answer: &Value) -> Vec<(String, Option<String>)> {
    let line = |eval: &Value| {
        (eval["ending"].as_str().unwrap().to_owned(), eval["line"].as_str().map(str::to_owned))
    };
    answer["evals"].as_array().unwrap().iter().map(line).collect()
}

#[tokio::test]
async fn a_timeline_says_what_ran_page_by_page() {
    let home = Home::new().await;
    let agent = home.agent().await;
    for code in ["1 + 1", "oops", "\nprintfn \"a\"\n1"] {
        agent.send(code).await;
    }
    let line = |ending: &str, line: &str| (ending.to_owned(), Some(line.to_owned()));
    let all = [line("completed", "1 + 1"), line("failed", "oops"), line("failed", "printfn \"a\"")];
    let newest = agent.call("get_eval_timeline", json!({ "count": 2 })).await;
    assert_eq!(lines(&newest.structured), all[1..]);
    assert_eq!(newest.structured.get("more"), None);

    let mut seen = Vec::new();
    let mut since = json!(0);
    for more in [true, true, false] {
        let page = agent.call("get_eval_timeline", json!({ "since": since, "count": 1 })).await.structured;
        seen.extend(lines(&page));
        assert_eq!(page.get("more").is_some(), more, "{page}");
        since = page["cursor"].clone();
    }
    assert_eq!(seen, all);
    let none = agent.call("get_eval_timeline", json!({ "since": since })).await.structured;
    assert_eq!((&none["evals"], &none["cursor"]), (&json!([]), &since));

    let running = agent.begin("send_code", json!({ "code": "wait" })).await;
    home.reaches("Evaluating").await;
    let page = agent.call("get_eval_timeline", json!({ "since": since })).await.structured;
    assert_eq!(lines(&page), [line("running", "wait")]);
    agent.call("cancel_eval", json!({})).await;
    running.await_response().await.unwrap();
    let page = agent.call("get_eval_timeline", json!({ "since": since })).await.structured;
    assert_eq!(lines(&page), [line("cancelled", "wait")]);
    assert!(page["evals"][0]["ms"].is_u64() && page["evals"][0]["by"] == json!("mcp:tester"), "{page}");
}

#[tokio::test]
async fn projects_are_found_without_a_session() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let folder = home.folder("work");
    std::fs::write(format!("{folder}/Shop.fsproj"), "").unwrap();
    let found = agent.call("get_available_projects", json!({})).await;
    assert_eq!(found.structured, json!({ "folder": folder, "projects": ["Shop.fsproj"] }));
    let refused = agent.call("get_available_projects", json!({ "folder": "nowhere" })).await;
    assert_eq!(refused.structured["code"], json!("invalid_argument"));
    assert_eq!(agent.call("list_sessions", json!({})).await.structured, json!({ "sessions": [] }));
}

#[tokio::test]
async fn a_notebook_runs_cell_by_cell_and_goes_on_where_it_ended() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let file = home.path().join("steps.fsx");
    std::fs::write(&file, "let x = 3\n// %%\nfail\n// %%\n1 + 1\n").unwrap();
    let reply = agent.call("run_notebook", json!({ "path": file })).await;
    assert!(reply.is_error, "{reply:?}");
    let cells = reply.structured["cells"].as_array().unwrap();
    let ran: Vec<_> = cells.iter().map(|cell| (&cell["cell"], &cell["eval"]["success"])).collect();
    assert_eq!(ran, [(&json!(1), &json!(true)), (&json!(2), &json!(false))], "{reply:?}");
    assert_eq!(reply.structured["notRun"], json!([3]));
    std::fs::write(&file, "let x = 3\n// %%\nlet y = 4\n// %%\n1 + 1\n").unwrap();
    let reply = agent.call("run_notebook", json!({ "path": file })).await;
    assert!(!reply.is_error, "{reply:?}");
    let cells = reply.structured["cells"].as_array().unwrap();
    let before: Vec<_> = cells.iter().map(|cell| cell["ranBefore"] == json!(true)).collect();
    assert_eq!(before, [true, false, false], "{reply:?}");
    let alone = agent.call("run_notebook", json!({ "path": file, "cell": 4 })).await;
    assert_eq!((alone.is_error, &alone.structured["code"]), (true, &json!("invalid_argument")));
}
