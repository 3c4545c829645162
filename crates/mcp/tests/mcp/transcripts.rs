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
    let first = agent.call("get_status", json!({})).await.structured["sessionId"].clone();
    let file = home.path().join("work.jsonl").display().to_string();
    let mut story = String::new();
    let mut second = first.clone();
    for (tool, arguments) in [
        ("fork_session", json!({ "entries": 1 })),
        ("send_code", json!({ "code": "names" })),
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

#[tokio::test]
async fn entries_of_another_session_run_in_the_one_in_use_up_to_the_first_that_fails() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let from = agent.call("create_session", json!({ "name": "ideas" })).await.session();
    for code in ["let x = 3", "1 + 1", "let y = 4", "nonsense", "let z = 5"] {
        agent.send(code).await;
    }
    agent.call("create_session", json!({ "name": "lab" })).await;
    let value = |reply: &crate::support::Reply| reply.structured["value"].clone();

    // The entries of an input and its output are two.
    let picked = agent.call("cherry_pick", json!({ "from": "ideas", "entry": 6 })).await;
    assert_eq!((picked.is_error, &picked.structured["ran"][0]["entry"]), (false, &json!(5)), "{picked:?}");
    assert_eq!(value(&agent.send("names").await), json!("\"y\""));
    let with_context = json!({ "from": from, "entry": 5, "context": 4 });
    let picked = agent.call("cherry_pick", with_context).await;
    let ran: Vec<_> = picked.structured["ran"].as_array().unwrap().iter().map(|ran| &ran["entry"]).collect();
    assert_eq!(ran, [&json!(1), &json!(3), &json!(5)]);

    let merged = agent.call("merge_session", json!({ "from": "ideas", "entries": "1,7-9" })).await;
    assert!(merged.is_error, "{merged:?}");
    assert_eq!(merged.structured["success"], json!(false));
    assert_eq!(merged.structured["ran"][1]["eval"]["success"], json!(false));
    assert_eq!(merged.structured["notRun"], json!([9]));
    assert!(merged.text.contains("\nnot run: 9\nfailed [session "), "{merged:?}");
}

#[tokio::test]
async fn a_merge_that_is_sent_again_runs_nothing_twice() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let from = agent.send("tick").await.session();
    agent.call("create_session", json!({})).await;
    let merge = json!({ "from": from, "entries": "1", "idempotencyKey": "once" });
    let first = agent.call("merge_session", merge.clone()).await;
    let again = agent.call("merge_session", merge).await;
    assert_eq!(first.structured["ran"], again.structured["ran"]);
    assert_eq!(first.structured["ran"][0]["eval"]["bindings"][0]["name"], json!("tick"));
}

#[tokio::test]
async fn entries_can_be_put_into_the_middle_of_a_transcript() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let from = agent.send("let x = 3").await.session();
    agent.call("create_session", json!({})).await;
    agent.send("let y = 4").await;
    let put = agent.call("merge_session", json!({ "from": from, "entries": "1", "at": 0 })).await;
    assert!(!put.is_error, "{put:?}");
    assert_eq!(put.structured["inserted"], json!({ "entries": 2, "at": 0, "state": "Ready" }));
    assert_eq!(agent.send("names").await.structured["value"], json!("\"x y\""));
}

#[tokio::test]
async fn what_names_no_entries_is_refused_and_nothing_runs() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let from = agent.send("let x = 3").await.session();
    for (tool, arguments) in [
        ("merge_session", json!({ "from": from, "entries": "4-3" })),
        ("merge_session", json!({ "from": from, "entries": "77" })),
        ("cherry_pick", json!({ "from": from, "entry": 0 })),
    ] {
        let refused = agent.call(tool, arguments).await;
        assert_eq!(refused.structured["code"], json!("invalid_argument"), "{refused:?}");
    }
    let unknown = agent.call("cherry_pick", json!({ "from": "nobody", "entry": 1 })).await;
    assert_eq!(unknown.structured["code"], json!("session_not_found"));
}
