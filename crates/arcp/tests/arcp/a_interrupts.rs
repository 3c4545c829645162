//! Dialect A: jobs that pause and ask. Source: draft-arcp-01, 10.5.

use mainstay_test_support::scripted_agent::Given;
use serde_json::{Value, json};

use crate::a::{ask, is_end, open, opened_with};
use crate::support::{AgentHome, Home, Peer};

async fn opened(home: &Home) -> Peer {
    let mut open = open("secret");
    open["payload"]["capabilities"]["interrupt"] = json!(true);
    opened_with(home, open).await.0
}

fn interrupt(job: &Value) -> Value {
    json!({ "target": "job", "target_id": job, "prompt": "Ask before you touch production." })
}

/// The code with which the next message is refused.
async fn refusal(peer: &mut Peer, payload: Value) -> String {
    let id = ask(peer, "interrupt", payload).await;
    let nack = peer.first("nack").await;
    assert_eq!(nack["correlation_id"], id);
    nack["payload"]["code"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_agent_that_is_interrupted_asks_and_goes_on_with_what_it_is_told() {
    let mut home = AgentHome::new().await;
    let mut peer = opened(&home.home).await;
    let arguments = json!({ "prompt": "go", "working_directory": home.home.folder() });
    ask(&mut peer, "tool.invoke", json!({ "tool": "pi", "arguments": arguments })).await;
    let job = peer.first("job.accepted").await["job_id"].clone();
    home.script.work().await;
    // Another client of the same principal may do so too.
    let mut other = opened(&home.home).await;
    let id = ask(&mut other, "interrupt", interrupt(&job)).await;
    assert_eq!(other.first("ack").await["correlation_id"], id);
    let Given::Paused(_, pause) = home.script.next().await else { panic!("it is told to pause") };
    assert_eq!(peer.first("job.progress").await["payload"]["state"], "blocked");
    let question = peer.first("human.input.request").await;
    assert_eq!(
        (&question["job_id"], &question["payload"]["prompt"]),
        (&job, &json!("Ask before you touch production."))
    );
    let answer = json!({ "value": "Only the copy." });
    peer.send(json!({
        "arcp": "1.0", "type": "human.input.response", "correlation_id": question["id"], "payload": answer
    }))
    .await;
    peer.first("ack").await;
    let Given::Answered(answered, value) = home.script.next().await else {
        panic!("it is told how to go on")
    };
    assert_eq!((answered, value), (pause, Ok(json!("Only the copy."))));
    home.script.done().await;
    peer.until_it(is_end).await;
    assert_eq!(refusal(&mut peer, interrupt(&job)).await, "FAILED_PRECONDITION", "it has ended");
}

#[tokio::test]
async fn what_cannot_pause_is_not_interrupted() {
    let home = Home::new().await;
    let mut peer = opened(&home).await;
    assert_eq!(refusal(&mut peer, interrupt(&json!("nothing"))).await, "NOT_FOUND");
    let session = json!({ "target": "session", "target_id": "sess_1" });
    assert_eq!(refusal(&mut peer, session).await, "FAILED_PRECONDITION");
    let arguments = json!({ "code": "loop", "working_directory": home.folder() });
    ask(&mut peer, "tool.invoke", json!({ "tool": "fsharp", "arguments": arguments })).await;
    let job = peer.first("job.started").await["job_id"].clone();
    assert_eq!(refusal(&mut peer, interrupt(&job)).await, "FAILED_PRECONDITION", "code is cancelled instead");
}
