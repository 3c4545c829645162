//! Dialect A: permissions that hold for a time. Source: draft-arcp-01, 15.4 and 15.5.

use mainstay_model::grant::{AskedOperation, OperationKind};
use mainstay_model::{AskId, JobSpec, Limits};
use mainstay_test_support::scripted_agent::Given;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::a::{ask, is_end, open, opened_with};
use crate::support::{AgentHome, Home, PATIENCE, Peer};

async fn opened(home: &Home) -> Peer {
    let mut open = open("secret");
    open["payload"]["capabilities"]["permissions"] = json!(true);
    opened_with(home, open).await.0
}

/// An agent with a job of this client, which is asked about everything.
async fn begun(home: &mut AgentHome, peer: &mut Peer) {
    let arguments = json!({ "prompt": "go", "working_directory": home.home.folder() });
    ask(peer, "tool.invoke", json!({ "tool": "pi", "arguments": arguments })).await;
    peer.first("job.accepted").await;
    home.script.work().await;
}

/// The agent is about to write a file.
async fn writes(home: &AgentHome, check: u128, target: &str) {
    let (kind, target) = (OperationKind::FS_WRITE, target.to_owned());
    let operation = AskedOperation { kind, target, is_recursive: false };
    home.script.check(AskId::from_uuid(Uuid::from_u128(check)), operation).await;
}

/// What the agent is told about something that it is about to do.
async fn told(home: &mut AgentHome) -> Value {
    let next = tokio::time::timeout(PATIENCE, home.script.next()).await;
    match next.expect("the agent is told nothing") {
        Given::Answered(_, Ok(value)) => value,
        other => panic!("{other:?}"),
    }
}

async fn reply(peer: &mut Peer, kind: &str, question: &Value, payload: Value) -> String {
    peer.send(json!({ "arcp": "1.0", "type": kind, "correlation_id": question["id"], "payload": payload }))
        .await
}

/// Gives a permission for a time, and returns the lease.
async fn granted(home: &mut AgentHome, peer: &mut Peer, payload: Value) -> Value {
    writes(home, 1, "/project/a").await;
    let question = peer.first("permission.request").await;
    reply(peer, "permission.grant", &question, payload).await;
    let lease = peer.first("lease.granted").await;
    assert_eq!(lease["correlation_id"], question["id"]);
    assert_eq!(told(home).await, "once");
    lease["payload"].clone()
}

#[tokio::test]
async fn a_permission_for_a_time_is_a_lease_and_what_it_covers_is_not_asked_about() {
    let mut home = AgentHome::new().await;
    let mut peer = opened(&home.home).await;
    begun(&mut home, &mut peer).await;
    let payload = json!({ "permission": "fs.write", "resource": "/project/**", "lease_seconds": 300 });
    let lease = granted(&mut home, &mut peer, payload).await;
    assert_eq!(
        [&lease["permission"], &lease["resource"], &lease["operation"]],
        [&json!("fs.write"), &json!("/project/**"), &json!("fs.write")]
    );
    writes(&home, 2, "/project/b/c").await;
    assert_eq!(told(&mut home).await, Value::Null, "nobody is asked");
    let id = ask(&mut peer, "lease.refresh", json!({ "lease_id": lease["lease_id"] })).await;
    assert_eq!(peer.first("ack").await["correlation_id"], id);
    let extended = peer.first("lease.extended").await["payload"].clone();
    assert_eq!(extended["lease_id"], lease["lease_id"]);
    assert!(extended["expires_at"].as_str() > lease["expires_at"].as_str(), "{extended}");
    // Another client of the same principal takes it back, and holds nothing itself.
    let mut other = opened(&home.home).await;
    ask(&mut other, "lease.refresh", json!({ "lease_id": lease["lease_id"] })).await;
    assert_eq!(other.first("nack").await["payload"]["code"], "PERMISSION_DENIED");
    let revocation = json!({ "lease_id": lease["lease_id"], "reason": "that was enough" });
    ask(&mut other, "lease.revoked", revocation.clone()).await;
    other.first("ack").await;
    assert_eq!(peer.first("lease.revoked").await["payload"], revocation);
    writes(&home, 3, "/project/b/c").await;
    let question = peer.first("permission.request").await;
    assert_eq!(question["payload"]["requested_lease_seconds"], 300);
    reply(&mut peer, "permission.deny", &question, json!({})).await;
    assert_eq!(told(&mut home).await, "no");
    ask(&mut peer, "lease.refresh", json!({ "lease_id": lease["lease_id"] })).await;
    assert_eq!(peer.first("nack").await["payload"]["code"], "NOT_FOUND");
    home.script.done().await;
    peer.until_it(is_end).await;
}

#[tokio::test]
async fn what_is_allowed_once_is_no_lease_and_a_permission_for_something_else_is_refused() {
    let mut home = AgentHome::new().await;
    let mut peer = opened(&home.home).await;
    begun(&mut home, &mut peer).await;
    writes(&home, 1, "/project/a").await;
    let question = peer.first("permission.request").await;
    for wrong in [
        json!({ "permission": "fs.read", "lease_seconds": 60 }),
        json!({ "operation": "fs.read" }),
        json!({ "resource": "/etc/**", "lease_seconds": 60 }),
        json!({ "resource": "/etc/passwd" }),
        json!({ "expires_at": "2001-01-01T00:00:00Z" }),
    ] {
        reply(&mut peer, "permission.grant", &question, wrong.clone()).await;
        assert_eq!(peer.first("nack").await["payload"]["code"], "INVALID_ARGUMENT", "{wrong}");
    }
    reply(&mut peer, "permission.grant", &question, json!({})).await;
    let answered = peer.until("ack").await;
    assert!(answered.iter().all(|envelope| envelope["type"] != "lease.granted"), "{answered:?}");
    assert_eq!(told(&mut home).await, "once");
    writes(&home, 2, "/project/a").await;
    peer.first("permission.request").await;
    for unknown in ["lease_1", "lease_0_0"] {
        ask(&mut peer, "lease.refresh", json!({ "lease_id": unknown })).await;
        assert_eq!(peer.first("nack").await["payload"]["code"], "NOT_FOUND");
    }
}

#[tokio::test]
async fn a_job_gives_a_task_to_another_with_no_more_than_it_may_do_itself() {
    let mut home = AgentHome::new().await;
    let mut peer = opened(&home.home).await;
    let arguments = json!({ "prompt": "go", "working_directory": home.home.folder() });
    ask(&mut peer, "tool.invoke", json!({ "tool": "pi", "arguments": arguments })).await;
    let parent = peer.first("job.accepted").await;
    home.script.work().await;
    let delegate = |kinds: Value| {
        let context = json!({ "permissions_inherited": kinds });
        let payload = json!({ "target": "fsharp", "task": "1 + 1", "context": context });
        json!({ "arcp": "1.0", "type": "agent.delegate", "job_id": parent["payload"]["job_id"], "payload": payload })
    };
    peer.send(delegate(json!(["fs.read", "Reading"]))).await;
    assert_eq!(peer.first("nack").await["payload"]["code"], "INVALID_ARGUMENT");
    let id = peer.send(delegate(json!(["filesystem.read"]))).await;
    let emitted = peer.first("event.emit").await;
    assert_eq!(
        (&emitted["job_id"], &emitted["payload"]["type"]),
        (&parent["payload"]["job_id"], &json!("arcpx.mainstay.delegate.v1"))
    );
    let child = peer.first("job.accepted").await;
    assert_eq!(child["correlation_id"], id);
    assert_eq!(child["payload"]["job_id"], emitted["payload"]["data"]["job_id"]);
    assert_eq!(child["trace_id"], parent["trace_id"], "it belongs to the same trace");
    assert_eq!(peer.until_it(is_end).await.pop().unwrap()["payload"]["value"]["value"], "2");
    home.script.done().await;
    peer.until_it(is_end).await;
    peer.send(delegate(json!([]))).await;
    assert_eq!(peer.first("nack").await["payload"]["code"], "FAILED_PRECONDITION", "it runs no more");
    // What was decided is told again, and a job that was no delegation does not become one.
    let mut again = delegate(json!(["filesystem.read"]));
    again["id"] = json!(id);
    peer.send(again).await;
    assert_eq!(peer.first("job.accepted").await["payload"]["job_id"], child["payload"]["job_id"]);
    let mut plain = json!({ "target": "fsharp", "task": "1 + 1" });
    plain = json!({ "arcp": "1.0", "type": "agent.delegate", "idempotency_key": "k", "payload": plain });
    peer.send(plain.clone()).await;
    peer.until_it(|told| is_end(told) && told["correlation_id"] != id).await;
    plain["job_id"] = parent["payload"]["job_id"].clone();
    peer.send(plain).await;
    assert_eq!(peer.first("nack").await["payload"]["code"], "ALREADY_EXISTS");
}

#[tokio::test]
async fn an_agent_is_given_the_memory_that_it_shares_with_its_task() {
    let mut home = AgentHome::new().await;
    let mut peer = opened(&home.home).await;
    let put = json!({ "media_type": "text/plain", "data": "YW5zd2VyOiA0Mg==" });
    ask(&mut peer, "artifact.put", put).await;
    let memory = peer.first("artifact.ref").await["payload"]["artifact_id"].clone();
    let delegate = |target: &str, memory: &Value| {
        let context = json!({ "shared_memory_ref": memory });
        json!({ "target": target, "task": "1 + 1", "context": context })
    };
    ask(&mut peer, "agent.delegate", delegate("fsharp", &json!("art_nobody"))).await;
    assert_eq!(peer.first("nack").await["payload"]["code"], "NOT_FOUND");
    ask(&mut peer, "agent.delegate", delegate("fsharp", &memory)).await;
    assert_eq!(
        peer.until_it(is_end).await.pop().unwrap()["payload"]["value"]["value"],
        "2",
        "code stays as it is"
    );
    let reference = json!({ "artifact_id": memory });
    let id = ask(&mut peer, "agent.delegate", delegate("pi", &reference)).await;
    let job = peer.first("job.accepted").await["payload"]["job_id"].clone();
    let JobSpec::Turn { prompt } = home.script.work().await else { panic!("no turn") };
    let told = format!("1 + 1\n\nShared memory (text/plain, {}):\nanswer: 42", memory.as_str().unwrap());
    assert_eq!(prompt.text, told);
    // A task that is sent again is answered by what is stored, though its memory is kept no more.
    home.script.done().await;
    peer.until_it(is_end).await;
    ask(&mut peer, "artifact.release", json!({ "artifact_id": memory })).await;
    peer.first("ack").await;
    let again =
        |payload: Value| json!({ "arcp": "1.0", "type": "agent.delegate", "id": id, "payload": payload });
    peer.send(again(delegate("pi", &reference))).await;
    assert_eq!(peer.first("job.accepted").await["payload"]["job_id"], job);
    peer.until_it(is_end).await;
    let mut other = delegate("pi", &reference);
    other["task"] = json!("2 + 2");
    peer.send(again(other)).await;
    assert_eq!(peer.first("nack").await["payload"]["code"], "NOT_FOUND");
}

#[tokio::test]
async fn a_delegated_job_names_the_job_that_gave_it_its_task_and_is_stopped_with_it() {
    let mut home = AgentHome::new().await;
    let mut peer = opened(&home.home).await;
    let arguments = json!({ "prompt": "go", "working_directory": home.home.folder() });
    ask(&mut peer, "tool.invoke", json!({ "tool": "pi", "arguments": arguments })).await;
    let parent = peer.first("job.accepted").await["payload"]["job_id"].clone();
    home.script.work().await;
    let payload = json!({ "target": "fsharp", "task": "wait" });
    peer.send(json!({ "arcp": "1.0", "type": "agent.delegate", "job_id": parent, "payload": payload })).await;
    let child = peer.first("job.accepted").await["payload"]["job_id"].clone();
    let (mut watcher, _) = crate::b::opened(&home.home).await;
    watcher.send(json!({ "type": "session.list_jobs", "payload": {} })).await;
    let listed = watcher.first("session.jobs").await["payload"]["jobs"].clone();
    let parents: Vec<_> =
        listed.as_array().unwrap().iter().map(|job| (&job["job_id"], &job["parent_job_id"])).collect();
    assert_eq!(parents, [(&parent, &Value::Null), (&child, &parent)]);
    watcher.send(json!({ "type": "job.subscribe", "payload": { "job_id": child, "history": true } })).await;
    let subscribed = watcher.first("job.subscribed").await;
    assert_eq!(subscribed["payload"]["parent_job_id"], parent);
    ask(&mut peer, "cancel", json!({ "target": "job", "target_id": parent })).await;
    let end = watcher.until_it(crate::b::is_end).await.pop().unwrap();
    assert_eq!((&end["job_id"], &end["payload"]["code"]), (&child, &json!("CANCELLED")), "{end}");
    assert_eq!(end["payload"]["details"]["code"], "parent_ended");
    let ended = peer.until_it(|told| told["type"] == "job.cancelled" && told["job_id"] == child).await;
    let message = ended.last().unwrap()["payload"]["message"].clone();
    assert!(message.as_str().unwrap().contains("was cancelled"), "{message}");
}

#[tokio::test]
async fn a_task_whose_job_is_refused_gives_its_part_of_the_budget_back() {
    let mut home = AgentHome::with_limits(Limits { lane_commands: 1, ..Limits::default() }).await;
    let (mut submitter, _) = crate::b::opened(&home.home).await;
    let input = json!({ "prompt": "go", "working_directory": home.home.folder() });
    let lease = json!({ "agent.delegate": ["*"], "cost.budget": ["USD:8"] });
    let payload = json!({ "agent": "pi", "input": input, "lease_request": lease });
    submitter.send(json!({ "type": "job.submit", "payload": payload })).await;
    let parent = submitter.first("job.accepted").await["payload"]["job_id"].clone();
    home.script.work().await;
    let mut peer = opened(&home.home).await;
    let waits = json!({ "target": "fsharp", "task": "wait" });
    for _ in 0..2 {
        ask(&mut peer, "agent.delegate", waits.clone()).await;
        peer.first("job.accepted").await;
    }
    peer.send(json!({ "arcp": "1.0", "type": "agent.delegate", "job_id": parent, "payload": waits })).await;
    let refused = peer.first("nack").await;
    assert_eq!(refused["payload"]["details"]["code"], "lane_full", "{refused}");
    let left = |told: &Value| told["payload"]["body"]["name"] == "cost.budget.remaining";
    let given = submitter.until_it(left).await.pop().unwrap();
    assert_eq!(given["payload"]["body"]["value"], json!(4));
    let returned = submitter.until_it(left).await.pop().unwrap();
    assert_eq!(returned["payload"]["body"]["value"], json!(8));
}

#[tokio::test]
async fn a_task_has_the_folder_or_the_session_that_it_names() {
    let home = AgentHome::new().await.home;
    let mut peer = opened(&home).await;
    let folder = format!("{}/sub", home.folder());
    std::fs::create_dir(&folder).unwrap();
    let task = json!({ "target": "fsharp", "task": "1 + 1", "working_directory": folder });
    for _ in 0..2 {
        ask(&mut peer, "agent.delegate", task.clone()).await;
        peer.until_it(is_end).await;
    }
    assert_eq!(home.folders().await, [home.folder(), folder]);
    let unknown = json!({ "target": "fsharp", "task": "1 + 1", "session": "nobody" });
    ask(&mut peer, "agent.delegate", unknown).await;
    assert_eq!(peer.first("nack").await["payload"]["code"], "NOT_FOUND");
    let relative = json!({ "target": "fsharp", "task": "1 + 1", "working_directory": "sub" });
    ask(&mut peer, "agent.delegate", relative).await;
    assert_eq!(peer.first("nack").await["payload"]["code"], "INVALID_ARGUMENT");
}

#[tokio::test]
async fn a_task_that_would_wait_for_the_job_that_gives_it_is_refused_at_once() {
    let mut home = AgentHome::new().await;
    let mut peer = opened(&home.home).await;
    let arguments = json!({ "prompt": "go", "working_directory": home.home.folder() });
    ask(&mut peer, "tool.invoke", json!({ "tool": "pi", "arguments": arguments })).await;
    let parent = peer.first("job.accepted").await["payload"]["job_id"].clone();
    home.script.work().await;
    let delegate = |target: &str, task: &str, folder: &str| {
        let payload = json!({ "target": target, "task": task, "working_directory": folder });
        json!({ "arcp": "1.0", "type": "agent.delegate", "job_id": parent, "payload": payload })
    };
    peer.send(delegate("pi", "help", &home.home.folder())).await;
    let refused = peer.first("nack").await["payload"].clone();
    assert_eq!(refused["code"], "FAILED_PRECONDITION");
    let step = refused["details"]["next_step"].as_str().unwrap();
    assert!(step.starts_with("Name another `session` or `working_directory`"), "{step}");
    let folder = format!("{}/sub", home.home.folder());
    std::fs::create_dir(&folder).unwrap();
    peer.send(delegate("pi", "help", &folder)).await;
    peer.first("job.accepted").await;
}
