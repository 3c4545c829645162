//! Transcripts: forks, search, export and import, as an agent sees them.

use serde_json::{Value, json};

use crate::support::Home;

/// An answer without what changes from run to run.
fn told(home: &Home, tool: &str, reply: &crate::support::Reply, ids: &[&Value]) -> String {
    let mut told = format!(
        "→ {tool}{}\n{}\n{}\n",
        if reply.is_error { " (error)" } else { "" },
        reply.structured,
        reply.text
    );
    for (number, id) in ids.iter().enumerate() {
        told = told.replace(id.as_str().unwrap(), &format!("SESSION{number}"));
    }
    told.replace(&home.path().display().to_string(), "FOLDER")
}

#[tokio::test]
async fn an_agent_forks_finds_and_hands_over_sessions() {
    let home = Home::new().await;
    let agent = home.agent().await;
    agent.send("let x = 3").await;
    agent.send("printfn \"hello\"").await;
    let first = agent.call("get_fsi_status", json!({})).await.structured["sessionId"].clone();
    let file = home.path().join("work.jsonl").display().to_string();
    let mut story = String::new();
    let mut second = first.clone();
    for (tool, arguments) in [
        ("fork_session", json!({ "entries": 1 })),
        ("send_fsharp_code", json!({ "code": "names" })),
        ("search_sessions", json!({ "words": "hel*" })),
        ("export_session", json!({ "sessionId": first })),
        ("export_session", json!({ "sessionId": first, "path": file })),
        ("export_session", json!({ "sessionId": first, "path": "relative" })),
        ("export_session", json!({ "format": "pdf" })),
        ("import_session", json!({ "path": file, "name": "copy" })),
        ("import_session", json!({ "path": "/nothing/there" })),
    ] {
        let reply = agent.call(tool, arguments).await;
        if tool == "fork_session" {
            second = reply.structured["sessionId"].clone();
        }
        let mut ids = vec![&first, &second];
        if let Some(id) = reply.structured.get("sessionId") {
            ids.push(id);
        }
        story.push_str(&told(&home, tool, &reply, &ids));
    }
    insta::assert_snapshot!("transcripts", story);
    let names = agent.send("names").await.structured["value"].clone();
    assert_eq!(names, json!("\"x\""), "the imported session is the one in use, and has its values");
}

#[tokio::test]
async fn files_are_for_who_may_do_everything() {
    let home = Home::on_port(0).await;
    let agent = home.agent_of("ada").await;
    agent.send("let x = 3").await;
    for (tool, arguments) in [
        ("export_session", json!({ "path": "/nowhere/ada.jsonl" })),
        ("import_session", json!({ "path": "/etc/passwd" })),
    ] {
        let reply = agent.call(tool, arguments).await;
        assert_eq!(reply.structured["code"], json!("not_permitted"), "{tool}");
    }
    assert!(!agent.call("export_session", json!({})).await.is_error);
}
