//! Dialect A: jobs that are trusted with more for a time. Source: draft-arcp-01, 15.6.

use mainstay_model::grant::{AskedOperation, OperationKind};
use mainstay_model::{AskId, Limits};
use mainstay_test_support::scripted_agent::Given;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::a::{ask, is_end, open, opened_with};
use crate::support::{AgentHome, Home, PATIENCE, Peer};

async fn opened(home: &Home, token: &str) -> Peer {
    let mut open = open(token);
    open["payload"]["capabilities"]["permissions"] = json!(true);
    opened_with(home, open).await.0
}

/// Bob has an agent with a job that is asked about everything; this is the job.
async fn begun(home: &mut AgentHome, peer: &mut Peer) -> Value {
    let session = home.home.only_session().await;
    let arguments = json!({ "prompt": "go", "session": session });
    ask(peer, "tool.invoke", json!({ "tool": "pi", "arguments": arguments })).await;
    let job = peer.first("job.accepted").await["payload"]["job_id"].clone();
    home.script.work().await;
    job
}

fn wish() -> Value {
    json!({
        "permission": "trust.elevate.trusted", "operation": "filesystem.write", "resource": "/project/**",
        "requested_lease_seconds": 300, "reason": "the build writes there",
    })
}

fn with(field: &str, value: Value) -> Value {
    let mut wish = wish();
    wish[field] = value;
    wish
}

fn request(job: &Value, payload: Value) -> Value {
    json!({ "arcp": "1.0", "type": "permission.request", "job_id": job, "payload": payload })
}

async fn reply(peer: &mut Peer, kind: &str, question: &Value, payload: Value) -> Value {
    let message = json!({
        "arcp": "1.0", "type": kind, "correlation_id": question["id"], "payload": payload,
    });
    let id = peer.send(message).await;
    let said = peer.until_it(|told| told["correlation_id"] == id).await;
    said.last().unwrap().clone()
}

/// The next step of a refusal with this code.
fn refused_with<'a>(refused: &'a Value, code: &str) -> &'a str {
    assert_eq!(refused["payload"]["code"], code, "{refused}");
    refused["payload"]["details"]["next_step"].as_str().unwrap()
}

/// What the agent is told about a file that it is about to write.
async fn told(home: &mut AgentHome, check: u128, target: &str) -> Value {
    let (kind, target) = (OperationKind::FS_WRITE, target.to_owned());
    let operation = AskedOperation { kind, target, is_recursive: false };
    home.script.check(AskId::from_uuid(Uuid::from_u128(check)), operation).await;
    let next = tokio::time::timeout(PATIENCE, home.script.next()).await;
    match next.expect("the agent is told nothing") {
        Given::Answered(_, Ok(value)) => value,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn who_may_do_everything_trusts_a_job_with_more_for_a_time_and_that_is_on_record() {
    let mut home = AgentHome::new().await;
    let (mut bob, mut user) = (opened(&home.home, "his").await, opened(&home.home, "secret").await);
    let job = begun(&mut home, &mut bob).await;
    let mut other = opened(&home.home, "his").await;
    let id = other.send(request(&job, wish())).await;
    let question = bob.first("permission.request").await;
    let asked = &question["payload"];
    assert_eq!(
        [&asked["permission"], &asked["operation"], &asked["resource"], &asked["requested_lease_seconds"]],
        [&json!("trust.elevate.trusted"), &json!("fs.write"), &json!("/project/**"), &json!(300)]
    );
    let reason = asked["reason"].as_str().unwrap();
    assert!(reason.contains("bob") && reason.contains("the build writes there"), "{reason}");
    for answer in ["permission.grant", "permission.deny"] {
        let refused = reply(&mut bob, answer, &question, json!({})).await;
        let step = refused_with(&refused, "PERMISSION_DENIED");
        assert_eq!(step, "Have a principal with the right to everything answer it.");
    }
    let own = reply(&mut other, "permission.grant", &question, json!({})).await;
    let step = refused_with(&own, "PERMISSION_DENIED");
    assert_eq!(step, "Have a principal with the right to everything answer it, through another session.");
    for wrong in [json!({ "resource": "/**" }), json!({ "permission": "fs.write" })] {
        let refused = reply(&mut user, "permission.grant", &question, wrong).await;
        assert_eq!(refused["payload"]["code"], "INVALID_ARGUMENT", "{refused}");
    }
    let given = json!({ "permission": "trust.elevate.trusted", "lease_seconds": 60 });
    assert_eq!(reply(&mut user, "permission.grant", &question, given).await["type"], "ack");

    let granted = other.first("lease.granted").await;
    assert_eq!(
        (&granted["correlation_id"], &granted["payload"]["permission"]),
        (&json!(id), &asked["permission"])
    );
    let of_job = bob.first("lease.granted").await;
    assert_eq!(of_job["payload"], granted["payload"], "the session that has the job is told, too");
    let log = bob.first("log").await;
    assert_eq!((&log["job_id"], &log["payload"]["level"]), (&job, &json!("warn")));
    let metric = bob.first("metric").await["payload"].clone();
    assert_eq!((&metric["name"], &metric["value"]), (&json!("trust.elevated"), &json!(60)));
    assert_eq!(metric["dims"]["lease_id"], granted["payload"]["lease_id"]);
    assert_eq!(told(&mut home, 1, "/project/a").await, Value::Null, "nobody is asked");

    let refresh = json!({ "lease_id": granted["payload"]["lease_id"] });
    for peer in [&mut bob, &mut other] {
        ask(peer, "lease.refresh", refresh.clone()).await;
        let refused = peer.first("nack").await;
        assert!(refused_with(&refused, "PERMISSION_DENIED").starts_with("Ask for it anew"), "{refused}");
    }
    // What was decided is told again.
    let mut again = request(&job, wish());
    again["id"] = json!(id);
    other.send(again).await;
    assert_eq!(other.first("lease.granted").await["payload"], granted["payload"]);
    home.script.done().await;
    bob.until_it(is_end).await;
}

#[tokio::test]
async fn what_is_not_allowed_is_denied_to_who_asked() {
    let mut home = AgentHome::with_limits(Limits { ask_ms: 1, ..Limits::default() }).await;
    let mut bob = opened(&home.home, "his").await;
    let job = begun(&mut home, &mut bob).await;
    let id = bob.send(request(&job, wish())).await;
    let denied = bob.first("permission.deny").await;
    assert_eq!(denied["correlation_id"], id);
    assert_eq!(denied["payload"]["reason"], "nobody answered in time");
}

#[tokio::test]
async fn the_user_denies_it_and_does_not_answer_through_the_session_that_asks() {
    let mut home = AgentHome::new().await;
    let (mut user, mut other) = (opened(&home.home, "secret").await, opened(&home.home, "secret").await);
    let job = begun(&mut home, &mut user).await;
    let id = user.send(request(&job, wish())).await;
    let question = user.first("permission.request").await;
    let own = reply(&mut user, "permission.grant", &question, json!({})).await;
    assert_eq!(own["payload"]["code"], "PERMISSION_DENIED", "{own}");
    reply(&mut other, "permission.deny", &question, json!({})).await;
    let denied = user.first("permission.deny").await;
    assert_eq!(
        (&denied["correlation_id"], &denied["payload"]["reason"]),
        (&json!(id), &json!("it was not allowed"))
    );
}

#[tokio::test]
async fn a_job_is_blocked_until_nothing_waits_for_an_answer() {
    let mut home = AgentHome::new().await;
    let mut open = open("his");
    open["payload"]["capabilities"]["permissions"] = json!(true);
    open["payload"]["capabilities"]["heartbeat_interval_seconds"] = json!(1);
    let (mut bob, mut user) = (opened_with(&home.home, open).await.0, opened(&home.home, "secret").await);
    let job = begun(&mut home, &mut bob).await;
    let mut questions = Vec::new();
    for _ in 0..2 {
        bob.send(request(&job, wish())).await;
        questions.push(bob.first("permission.request").await);
    }
    assert_eq!(bob.first("job.heartbeat").await["payload"]["state"], "blocked");
    for (question, state) in questions.iter().zip(["blocked", "running"]) {
        reply(&mut user, "permission.deny", question, json!({})).await;
        assert_eq!(bob.first("job.progress").await["payload"]["state"], state);
    }
}

#[tokio::test]
async fn what_cannot_be_elevated_is_refused() {
    let mut home = AgentHome::new().await;
    let mut bob = opened(&home.home, "his").await;
    let job = begun(&mut home, &mut bob).await;
    for (wrong, code) in [
        (with("permission", json!("trust.elevate.privileged")), "PERMISSION_DENIED"),
        (with("permission", json!("trust.elevate.constrained")), "INVALID_ARGUMENT"),
        (with("permission", json!("trust.elevate.divine")), "INVALID_ARGUMENT"),
        (with("permission", json!("fs.write")), "UNIMPLEMENTED"),
        (with("operation", json!("Writing")), "INVALID_ARGUMENT"),
        (with("operation", Value::Null), "INVALID_ARGUMENT"),
        (with("resource", json!("project")), "INVALID_ARGUMENT"),
        (with("resource", Value::Null), "INVALID_ARGUMENT"),
        (with("requested_lease_seconds", json!(0)), "INVALID_ARGUMENT"),
    ] {
        bob.send(request(&job, wrong.clone())).await;
        let refused = bob.first("nack").await;
        let step = refused_with(&refused, code);
        assert_eq!(
            step.contains("`trusted`"),
            wrong["permission"] == "trust.elevate.privileged",
            "{refused}"
        );
    }
    bob.send(request(&Value::Null, wish())).await;
    assert_eq!(bob.first("nack").await["payload"]["code"], "INVALID_ARGUMENT", "no job is named");
    let mut user = opened(&home.home, "secret").await;
    user.send(request(&job, wish())).await;
    assert_eq!(user.first("nack").await["payload"]["code"], "NOT_FOUND", "it is the job of another");
    let code = home.home.code("wait");
    ask(&mut user, "tool.invoke", json!({ "tool": "fsharp", "arguments": code })).await;
    let code = user.first("job.started").await["job_id"].clone();
    user.send(request(&code, wish())).await;
    let refused = user.first("nack").await["payload"].clone();
    assert_eq!(
        (&refused["code"], &refused["details"]["code"]),
        (&json!("FAILED_PRECONDITION"), &json!("not_elevated"))
    );
    home.script.done().await;
    bob.until_it(is_end).await;
    bob.send(request(&job, wish())).await;
    assert_eq!(bob.first("nack").await["payload"]["code"], "FAILED_PRECONDITION", "it has ended");
}
