//! A call that a bridge sends again, over another connection.

use mainstay_gateway::local_socket::ClientContext;
use mainstay_mcp::serve_stream;
use mainstay_model::{Access, EventBody, Seq};
use rmcp::model::ServerResult;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::support::{Agent, Home, Reply};

const COMMAND: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

/// Sends one call over a connection of its own, and gives its answer.
async fn send(home: &Home, context: ClientContext, code: &str, meta: Value) -> Value {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (read, write) = tokio::io::split(ours);
    tokio::spawn(serve_stream(read, write, home.of_mcp(), Access::local(), context));
    let (read, mut write) = tokio::io::split(theirs);
    let mut meta = meta;
    meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    meta["io.modelcontextprotocol/clientInfo"] = json!({ "name": "bridged", "version": "1" });
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "send_code", "arguments": { "code": code }, "_meta": meta } });
    write.write_all(format!("{call}\n").as_bytes()).await.unwrap();
    let line = BufReader::new(read).lines().next_line().await.unwrap().unwrap();
    serde_json::from_str::<Value>(&line).unwrap()["result"].clone()
}

fn in_work(home: &Home) -> ClientContext {
    ClientContext { working_directory: Some(home.folder("work")), ..ClientContext::default() }
}

#[tokio::test]
async fn a_repeated_call_runs_once_in_the_session_it_was_about() {
    let home = Home::new().await;
    let first = send(&home, in_work(&home), "1 + 1", json!({ "mainstay/command": COMMAND })).await;
    let session = home.session().await;
    assert_eq!(first["_meta"]["mainstay/session"], json!(session.to_string()));
    let other = home.agent().await;
    other.call("create_session", json!({ "name": "later" })).await;

    let meta = json!({ "mainstay/command": COMMAND, "mainstay/again": true });
    let again = send(&home, in_work(&home), "1 + 1", meta).await;
    let said =
        |answer: &Value| answer["content"][0]["text"].as_str().unwrap().lines().take(2).collect::<String>();
    assert_eq!(said(&again), said(&first));
    let events = home.local().events(session, Seq(0), 100).await.unwrap();
    let evals = events.iter().filter(|event| matches!(event.body, EventBody::EvalRequested { .. }));
    assert_eq!(evals.count(), 1);
}

#[tokio::test]
async fn a_connection_goes_on_in_the_session_that_the_one_before_it_used() {
    let home = Home::new().await;
    send(&home, in_work(&home), "1 + 1", json!({})).await;
    let session = home.session().await;
    home.agent().await.call("create_session", json!({ "name": "later" })).await;
    let context = ClientContext { session: Some(session), ..in_work(&home) };
    let answer = send(&home, context, "1 + 1", json!({ "mainstay/command": COMMAND })).await;
    assert_eq!(answer["_meta"]["mainstay/session"], json!(session.to_string()));
}

#[tokio::test]
async fn a_notebook_that_a_daemon_was_lost_under_is_not_gone_on_with_unasked() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let file = home.path().join("steps.fsx");
    std::fs::write(&file, "tick\n").unwrap();
    let meta = json!({ "mainstay/command": COMMAND, "mainstay/again": true });
    let again = agent.begin_with("run_notebook", json!({ "path": file }), &meta).await;
    let ServerResult::CallToolResult(answer) = again.await_response().await.unwrap() else { panic!() };
    assert_eq!(answer.is_error, Some(true));
    assert!(answer.content[0].as_text().unwrap().text.starts_with("the daemon was lost while this ran."));
    let session = home.session().await;
    assert_eq!(home.local().status(session).await.unwrap().session.evals, 0);
    assert!(!agent.call("run_notebook", json!({ "path": file })).await.is_error);
}

#[tokio::test]
async fn a_fork_that_is_repeated_is_the_fork_that_it_was() {
    let home = Home::new().await;
    let agent = home.agent().await;
    let first = agent.send("let a = 3").await.session();
    let meta = |again: bool| json!({ "mainstay/command": COMMAND, "mainstay/again": again });
    let fork = async |agent: &Agent, again| {
        let call = agent.begin_with("fork_session", json!({}), &meta(again)).await;
        let ServerResult::CallToolResult(answer) = call.await_response().await.unwrap() else { panic!() };
        Reply::from(answer)
    };
    let forked = fork(&agent, false).await;
    assert_ne!(forked.session(), first);
    let original = home.local().resolve(&first).await.unwrap();
    let context = ClientContext { session: Some(original), ..in_work(&home) };
    let next = home.agent_with_context(context).await;
    let again = fork(&next, true).await;
    assert_eq!((again.is_error, again.session()), (false, forked.session()), "{again:?}");
}

#[tokio::test]
async fn only_a_bridge_is_told_of_the_session() {
    let home = Home::new().await;
    let answer = send(&home, in_work(&home), "1 + 1", json!({ "mainstay/command": "nonsense" })).await;
    assert_eq!(answer["_meta"]["mainstay/session"], Value::Null);
}
