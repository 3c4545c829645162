//! Dialect A: questions that several principals must answer the same. Source: draft-arcp-01, 12.3 and 21.

use mainstay_model::grant::{AskedOperation, OperationKind};
use mainstay_model::{AskId, Question};
use mainstay_test_support::scripted_agent::Given;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::a::{ask, is_end, open, opened_with};
use crate::support::{AgentHome, Home, PATIENCE, Peer};

const QUORUM: &str = "arcpx.mainstay.quorum.v1";

/// A client with this token, which says that it knows the extension.
async fn opened(home: &Home, token: &str) -> Peer {
    let mut open = open(token);
    open["payload"]["capabilities"]["permissions"] = json!(true);
    open["payload"]["capabilities"]["extensions"] = json!([QUORUM, "com.acme.flow.v2"]);
    opened_with(home, open).await.0
}

/// Begins a job whose questions need the same answer of so many.
async fn invoke(peer: &mut Peer, tool: &str, arguments: Value, quorum: Value) -> String {
    peer.send(json!({
        "arcp": "1.0", "type": "tool.invoke", "payload": { "tool": tool, "arguments": arguments },
        "extensions": { QUORUM: quorum },
    }))
    .await
}

/// Answers a question, and returns what is said of the answer.
async fn reply(peer: &mut Peer, kind: &str, question: &Value, payload: Value) -> Value {
    let message = json!({
        "arcp": "1.0", "type": kind, "correlation_id": question["id"], "payload": payload,
    });
    let id = peer.send(message).await;
    let ack = peer.first("ack").await;
    assert_eq!(ack["correlation_id"], id);
    ack["payload"].clone()
}

async fn told(home: &mut AgentHome) -> Value {
    let next = tokio::time::timeout(PATIENCE, home.script.next()).await;
    match next.expect("the agent is told nothing") {
        Given::Answered(_, Ok(value)) => value,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn two_people_must_allow_the_same_and_each_is_told_how_it_stands() {
    let mut home = AgentHome::new().await;
    let (mut peer, mut bob) = (opened(&home.home, "secret").await, opened(&home.home, "his").await);
    let arguments = json!({ "prompt": "go", "working_directory": home.home.folder() });
    invoke(&mut peer, "pi", arguments, json!({ "quorum": 2 })).await;
    peer.first("job.accepted").await;
    home.script.work().await;

    let target = "/project/a".to_owned();
    let operation = AskedOperation { kind: OperationKind::FS_WRITE, target, is_recursive: false };
    home.script.check(AskId::from_uuid(Uuid::from_u128(1)), operation).await;
    let question = peer.first("permission.request").await;
    assert_eq!(question["extensions"], json!({ QUORUM: { "quorum": 2 } }));
    let lease = json!({ "resource": "/project/**", "lease_seconds": 300 });
    let counted = json!({ "details": { "votes": 1, "missing": 1 } });
    assert_eq!(reply(&mut bob, "permission.grant", &question, lease).await, counted);
    let blocked = peer.first("job.progress").await["payload"].clone();
    assert_eq!(
        blocked,
        json!({ "message": "bob (arcp:test) answered; 1 more must answer the same", "state": "blocked" })
    );
    // Bob thinks better of it, and allows only what was asked.
    let once = json!({ "lease_seconds": 60 });
    assert_eq!(reply(&mut bob, "permission.grant", &question, once).await, counted);
    let wide = json!({ "resource": "/project/**", "lease_seconds": 300 });
    peer.send(json!({
        "arcp": "1.0", "type": "permission.grant", "correlation_id": question["id"], "payload": wide,
    }))
    .await;
    let granted = peer.first("lease.granted").await["payload"].clone();
    assert_eq!(granted["resource"], "/project/a", "both have allowed no more");
    assert_eq!(told(&mut home).await, "once");

    home.script.ask(AskId::from_uuid(Uuid::from_u128(2)), Question::text("Sure?")).await;
    let question = peer.first("human.input.request").await;
    assert_eq!(question["extensions"], json!({ QUORUM: { "quorum": 2 } }));
    let answer = json!({ "value": "yes", "responded_by": "phone" });
    assert_eq!(reply(&mut bob, "human.input.response", &question, answer.clone()).await, counted);
    assert_eq!(reply(&mut bob, "human.input.response", &question, answer).await, counted, "one vote each");
    peer.send(json!({
        "arcp": "1.0", "type": "human.input.response", "correlation_id": question["id"],
        "payload": { "value": "yes" },
    }))
    .await;
    let over = peer.first("human.input.cancelled").await;
    assert_eq!((&over["correlation_id"], &over["payload"]["reason"]), (&question["id"], &json!("answered")));
    assert_eq!(told(&mut home).await, "yes");
    home.script.done().await;
    peer.until_it(is_end).await;
}

#[tokio::test]
async fn code_of_a_kernel_waits_for_as_many_too() {
    let home = Home::new().await;
    let (mut peer, mut bob) = (opened(&home, "secret").await, opened(&home, "his").await);
    invoke(&mut peer, "fsharp", home.code("number"), json!({ "quorum": 2 })).await;
    let question = peer.first("human.input.request").await;
    let counted = json!({ "details": { "votes": 1, "missing": 1 } });
    assert_eq!(reply(&mut bob, "human.input.response", &question, json!({ "value": 7 })).await, counted);
    peer.send(json!({
        "arcp": "1.0", "type": "human.input.response", "correlation_id": question["id"],
        "payload": { "value": 7.0 },
    }))
    .await;
    assert_eq!(peer.until_it(is_end).await.pop().unwrap()["type"], "job.completed");
}

#[tokio::test]
async fn whoever_may_answer_is_asked_and_told_who_did() {
    let home = Home::new().await;
    let (mut peer, mut bob) = (opened(&home, "secret").await, opened(&home, "his").await);
    invoke(&mut peer, "fsharp", home.code("number"), json!({ "quorum": 2 })).await;
    let question = peer.first("human.input.request").await;
    let asked = bob.first("human.input.request").await;
    assert_eq!((&asked["payload"], &asked["extensions"]), (&question["payload"], &question["extensions"]));
    // A session that comes later is asked as well, and knows the question by an id of its own.
    let mut late = opened(&home, "his").await;
    let again = late.first("human.input.request").await;
    assert_ne!(again["id"], asked["id"]);
    let counted = json!({ "details": { "votes": 1, "missing": 1 } });
    let answer = json!({ "value": 7, "responded_by": "phone" });
    assert_eq!(reply(&mut late, "human.input.response", &again, answer).await, counted);
    let blocked = peer.first("job.progress").await["payload"]["message"].clone();
    assert_eq!(blocked, "bob (phone) answered; 1 more must answer the same");
    // Who has voted is not asked any more, and who may not drive the session never.
    for token in ["his", "hers"] {
        let mut other = opened(&home, token).await;
        ask(&mut other, "ping", json!({})).await;
        assert_eq!(other.next().await.unwrap()["type"], "pong", "{token}");
    }
    peer.send(json!({
        "arcp": "1.0", "type": "human.input.response", "correlation_id": question["id"],
        "payload": { "value": 7 },
    }))
    .await;
    assert_eq!(peer.first("human.input.cancelled").await["payload"]["responded_by"], "arcp:test");
    for (told, id) in [
        (bob.first("human.input.cancelled").await, &asked["id"]),
        (late.first("human.input.cancelled").await, &again["id"]),
    ] {
        assert_eq!(
            (&told["correlation_id"], &told["payload"]["responded_by"]),
            (id, &json!("local (arcp:test)"))
        );
    }
}

#[tokio::test]
async fn a_session_goes_on_behind_a_question_that_it_was_asked_beside_its_jobs() {
    let home = Home::new().await;
    let mut peer = opened(&home, "secret").await;
    invoke(&mut peer, "fsharp", home.code("number"), json!({ "quorum": 2 })).await;
    peer.first("human.input.request").await;
    let (mut bob, session) = opened_with(&home, open("his")).await;
    let asked = bob.first("human.input.request").await["id"].clone();
    drop(bob);
    let mut open = open("his");
    open["session_id"] = json!(session);
    let (mut bob, _) = opened_with(&home, open).await;
    let resume = json!({ "after_message_id": asked });
    bob.send(json!({ "arcp": "1.0", "type": "resume", "session_id": session, "payload": resume })).await;
    let told = bob.until("human.input.request").await;
    assert!(told.iter().all(|envelope| envelope["type"] != "nack"), "{told:?}");
    assert_ne!(told.last().unwrap()["id"], asked);
}

#[tokio::test]
async fn who_subscribes_while_a_question_waits_is_told_it_and_its_votes() {
    let home = Home::new().await;
    let (mut peer, mut bob) = (opened(&home, "secret").await, opened(&home, "his").await);
    invoke(&mut peer, "fsharp", home.code("number"), json!({ "quorum": 2 })).await;
    let question = peer.first("human.input.request").await;
    let counted = json!({ "details": { "votes": 1, "missing": 1 } });
    assert_eq!(reply(&mut bob, "human.input.response", &question, json!({ "value": 7 })).await, counted);
    let (mut other, _) = crate::b::opened(&home).await;
    other.send(json!({ "type": "job.subscribe", "payload": { "job_id": question["job_id"] } })).await;
    other.first("job.subscribed").await;
    let mut told = Vec::new();
    for _ in 0..3 {
        told.push(other.first("job.event").await["payload"].clone());
    }
    let kinds: Vec<_> = told.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["status", "x-mainstay.ask", "x-mainstay.vote"]);
    assert_eq!(told[1]["body"]["quorum"], 2);
    assert_eq!((&told[2]["body"]["by"], &told[2]["body"]["missing"]), (&json!("bob"), &json!(1)));
    peer.send(json!({
        "arcp": "1.0", "type": "human.input.response", "correlation_id": question["id"],
        "payload": { "value": 7 },
    }))
    .await;
    let rest = other.until_it(crate::b::is_end).await;
    assert_eq!(rest.last().unwrap()["type"], "job.result");
}

#[tokio::test]
async fn a_quorum_that_was_not_agreed_on_or_cannot_be_is_refused() {
    let home = Home::new().await;
    let code = home.code("1 + 1");
    let mut peer = opened(&home, "secret").await;
    for wrong in
        [json!(2), json!({}), json!({ "quorum": "2" }), json!({ "quorum": 0 }), json!({ "quorum": 17 })]
    {
        invoke(&mut peer, "fsharp", code.clone(), wrong.clone()).await;
        assert_eq!(peer.first("nack").await["payload"]["code"], "INVALID_ARGUMENT", "{wrong}");
    }
    let task = json!({ "target": "fsharp", "task": "1 + 1" });
    let extensions = json!({ QUORUM: { "quorum": 2 } });
    let delegate = json!({
        "arcp": "1.0", "type": "agent.delegate", "payload": task, "extensions": extensions,
    });
    peer.send(delegate).await;
    assert_eq!(peer.first("nack").await["payload"]["code"], "UNIMPLEMENTED");

    let (mut other, _) = opened_with(&home, open("secret")).await;
    invoke(&mut other, "fsharp", code.clone(), json!({ "quorum": 2 })).await;
    assert_eq!(other.first("nack").await["payload"]["code"], "UNIMPLEMENTED");
    ask(&mut other, "tool.invoke", json!({ "tool": "fsharp", "arguments": code })).await;
    other.until_it(is_end).await;
}
