//! Files that a session's code uses and that have changed since: what is said of them, and how they are taken in.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::resources::text;
use crate::support::{Agent, Home, Reply};

/// Writes a file so that it is not the one it was.
pub(crate) fn write(path: &Path, content: &str) {
    let new = path.with_extension("new");
    fs::write(&new, content).unwrap();
    fs::rename(new, path).unwrap();
}

/// An agent whose session has taken in a file, and used it.
async fn using(home: &Home, path: &Path) -> Agent {
    write(path, "1");
    let agent = home.agent().await;
    for code in ["let x = 3", &format!("refer {}", path.display()), "use lib.txt"] {
        let reply = agent.send(code).await;
        assert!(!reply.is_error, "{reply:?}");
    }
    agent
}

async fn refreshed(agent: &Agent, arguments: serde_json::Value) -> Reply {
    agent.call("refresh_session", arguments).await
}

#[tokio::test]
async fn a_refresh_runs_again_what_used_a_file_that_has_changed() {
    let home = Home::new().await;
    let path = home.path().join("lib.txt");
    let agent = using(&home, &path).await;
    let nothing = refreshed(&agent, json!({})).await;
    assert_eq!((nothing.is_error, &nothing.structured["due"]), (false, &json!(false)));
    assert!(nothing.text.starts_with("nothing was out of date\nReady [session "), "{nothing:?}");

    write(&path, "2");
    let dry = refreshed(&agent, json!({ "dryRun": true })).await;
    assert_eq!(dry.structured["changed"], json!(["lib.txt"]));
    assert!(dry.structured["would"].as_str().unwrap().starts_with("3 of 3 submissions"), "{dry:?}");
    assert_eq!(
        refreshed(&agent, json!({ "dryRun": true })).await.structured,
        dry.structured,
        "it did nothing"
    );

    let done = refreshed(&agent, json!({})).await;
    assert!(!done.is_error, "{done:?}");
    assert!(done.structured["ran"].as_str().unwrap().starts_with("3 submissions ran again"), "{done:?}");
    assert_eq!(done.structured["differs"].as_array().unwrap().len(), 1, "{done:?}");
    assert_eq!(refreshed(&agent, json!({})).await.structured["due"], json!(false));
    let all = refreshed(&agent, json!({ "all": true })).await;
    assert!(all.structured["ran"].as_str().unwrap().starts_with("3 submissions ran again"), "{all:?}");
}

#[tokio::test]
async fn nothing_is_refreshed_where_what_code_used_is_gone() {
    let home = Home::new().await;
    let path = home.path().join("lib.txt");
    let agent = using(&home, &path).await;
    fs::remove_file(&path).unwrap();
    let refused = refreshed(&agent, json!({ "all": true })).await;
    assert_eq!((refused.is_error, &refused.structured["gone"]), (true, &json!(["lib.txt"])));
    assert_eq!(agent.send("names").await.structured["value"], json!("\"x\""), "all is as it was");
}

#[tokio::test]
async fn a_session_at_rest_takes_in_what_has_changed_when_it_starts() {
    let home = Home::new().await;
    let path = home.path().join("lib.txt");
    let agent = using(&home, &path).await;
    agent.call("stop_session", json!({})).await;
    write(&path, "2");
    let dry = refreshed(&agent, json!({ "dryRun": true })).await;
    assert_eq!(
        (&dry.structured["state"], &dry.structured["changed"]),
        (&json!("Uninitialized"), &json!(["lib.txt"]))
    );
    let done = refreshed(&agent, json!({})).await;
    assert_eq!((&done.structured["state"], done.is_error), (&json!("Ready"), false));
    assert_eq!(done.structured["differs"].as_array().unwrap().len(), 1, "{done:?}");
}

#[tokio::test]
async fn an_agents_conversation_is_not_refreshed() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let talk = crate::refusals::import_conversation(&home, &agent).await;
    let refused = refreshed(&agent, json!({ "sessionId": talk })).await;
    assert_eq!(refused.structured["code"], json!("not_of_kind"));
}

#[tokio::test]
async fn what_rests_on_a_file_that_has_changed_says_so_in_every_answer_until_it_is_refreshed() {
    let home = Home::new().await;
    let path = home.path().join("lib.txt");
    let agent = using(&home, &path).await;
    let tools = [
        ("send_code", json!({ "code": "use lib.txt" })),
        ("check_code", json!({ "code": "1 + 1" })),
        ("get_completions", json!({ "code": "List.m" })),
        ("explore_type", json!({ "name": "Dog" })),
        ("explore_namespace", json!({ "name": "Dog" })),
        ("find_symbols", json!({ "text": "Dog" })),
        ("get_values", json!({})),
        ("run_tests", json!({})),
        ("list_tests", json!({})),
    ];
    for (tool, arguments) in &tools {
        assert_eq!(agent.call(tool, arguments.clone()).await.structured.get("stale"), None, "{tool}");
    }
    write(&path, "2");
    for (tool, arguments) in &tools {
        let reply = agent.call(tool, arguments.clone()).await;
        assert_eq!(reply.structured["stale"], json!({ "changed": ["lib.txt"] }), "{tool}");
        let line = "stale: the session has lib.txt as it was before it changed; call refresh_session\n";
        assert!(reply.text.starts_with(line), "{tool}: {}", reply.text);
    }
    fs::remove_file(&path).unwrap();
    assert_eq!(agent.call("get_values", json!({})).await.structured["stale"], json!({ "gone": ["lib.txt"] }));
    write(&path, "3");
    refreshed(&agent, json!({})).await;
    for (tool, arguments) in &tools {
        assert_eq!(agent.call(tool, arguments.clone()).await.structured.get("stale"), None, "{tool}");
    }
}

#[tokio::test]
async fn what_is_read_again_of_a_cell_whose_file_has_changed_is_marked() {
    let home = Home::new().await;
    let path = home.path().join("lib.txt");
    let agent = using(&home, &path).await;
    agent.send("printfn \"rests on nothing\"").await;
    let session = home.session().await;
    let transcript = format!("mainstay://session/{session}/transcript");
    let cell = format!("mainstay://session/{session}/cell/3");
    let uses = json!({ "words": "\"use lib\"" });
    let (mark, remark) = ("\n*stale: something it used has changed since*\n", "(stale): ");
    for address in [&transcript, &cell] {
        assert!(!text(&agent, address).await.contains(mark));
    }
    assert!(!agent.call("search_sessions", uses.clone()).await.text.contains(remark));
    write(&path, "2");
    let told = text(&agent, &transcript).await;
    let marked: Vec<bool> = told.split("### Cell ").skip(1).map(|cell| cell.contains(mark)).collect();
    assert_eq!(marked.last(), Some(&false), "{told}");
    assert!(marked[2], "{told}");
    assert!(text(&agent, &cell).await.ends_with(mark));
    let found = agent.call("search_sessions", uses).await;
    assert!(found.text.contains(remark), "{}", found.text);
}
