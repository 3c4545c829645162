//! Dialect A: each refusal says what its client can do next. Source: draft-arcp-01, 6.3, 10.4 and 18.1.

use serde_json::{Value, json};

use crate::a::{invoke, is_end, open, opened_with};
use crate::support::{Home, Peer};

/// What answers a message, in lines.
async fn refused(peer: &mut Peer, message: Value) -> String {
    let kind = message["type"].as_str().unwrap_or_default().to_owned();
    let id = peer.send(message).await;
    let answer = peer.until_it(|told| told["correlation_id"] == json!(id)).await.pop().unwrap();
    let payload = &answer["payload"];
    let (code, message) = (payload["code"].as_str().unwrap(), payload["message"].as_str().unwrap());
    let why = payload["reason"].as_str().map(|reason| format!(" ({reason})")).unwrap_or_default();
    let step = payload["details"]["next_step"].as_str().unwrap();
    format!("{kind}: {code}{why}: {message}\n  {step}\n")
}

fn message(kind: &str, payload: Value) -> Value {
    json!({ "arcp": "1.0", "type": kind, "payload": payload })
}

fn of_job(job: &Value, message: Value) -> Value {
    let mut message = message;
    message["job_id"] = job.clone();
    message
}

fn cancel(target: &str, id: &Value) -> Value {
    message("cancel", json!({ "target": target, "target_id": id }))
}

fn handoff(job: &Value, target: &str, runtime: Value) -> Value {
    of_job(job, message("agent.handoff", json!({ "target": target, "runtime": runtime })))
}

/// What is refused in any session.
fn of_nothing() -> Vec<Value> {
    let none = json!("job_none");
    vec![
        message("session.open", json!({})),
        message("workflow.start", json!({ "workflow": "x" })),
        json!({ "arcp": "1.0", "type": "unheard.of", "payload": {} }),
        json!({ "arcp": "2.0", "type": "ping", "payload": {} }),
        json!({ "arcp": "1.0", "type": "cancel", "payload": {} }),
        json!({ "arcp": "1.0", "type": "ping", "payload": {}, "session_id": "sess_other" }),
        cancel("job", &none),
        cancel("session", &json!("sess_other")),
        message("interrupt", json!({ "target": "job", "target_id": "job_none" })),
        message("interrupt", json!({ "target": "session", "target_id": "sess_other" })),
        of_job(&none, message("permission.request", json!({ "permission": "fs.write" }))),
        of_job(&none, message("permission.request", json!({ "permission": "trust.elevate.trusted" }))),
        message("permission.request", wish()),
        of_job(&none, message("permission.request", wish())),
        message("permission.deny", json!({})),
        message("lease.refresh", json!({ "lease_id": "lease_none" })),
        message("lease.revoked", json!({ "lease_id": "lease_none", "reason": "over" })),
        message("unsubscribe", json!({ "subscription_id": "sub_none" })),
        message("subscribe", json!({ "filter": { "session_id": ["sess_none"] } })),
        message("subscribe", json!({ "since": { "after_message_id": "m" } })),
        message("subscribe", json!({ "filter": { "types": ["x".repeat(300)] } })),
        message("backpressure", json!({ "desired_rate_per_second": 1 })),
        message("artifact.fetch", json!({ "artifact_id": "art_none" })),
        message("artifact.put", json!({ "media_type": "" })),
        message("artifact.put", json!({ "media_type": "text/plain" })),
        message("artifact.put", json!({ "media_type": "text/plain", "data": "?" })),
        message("artifact.put", json!({ "media_type": "text/plain", "data": "YQ==", "size": 2 })),
        message("artifact.put", json!({ "media_type": "text/plain", "data": "YQ==", "sha256": "00" })),
        message("resume", json!({ "after_message_id": "m" })),
        message("tool.invoke", json!({ "tool": "fortran" })),
        quorum(json!({ "quorum": "many" }), message("tool.invoke", json!({ "tool": "fsharp" }))),
        quorum(json!({ "quorum": 2 }), message("agent.delegate", json!({ "target": "pi", "task": "x" }))),
        schedule("tool.invoke", json!({ "every": "daily" })),
        schedule("ping", json!({ "after": 1 })),
        message(
            "agent.delegate",
            json!({
                "target": "pi", "task": "x", "context": { "shared_memory_ref": "art_none" },
            }),
        ),
    ]
}

fn wish() -> Value {
    json!({ "permission": "trust.elevate.trusted", "operation": "fs.write", "resource": "/project/**" })
}

fn quorum(field: Value, mut message: Value) -> Value {
    message["extensions"] = json!({ "arcpx.mainstay.quorum.v1": field });
    message
}

fn schedule(kind: &str, when: Value) -> Value {
    message("job.schedule", json!({ "when": when, "job": { "type": kind, "payload": { "tool": "fsharp" } } }))
}

async fn opened(home: &Home) -> (Peer, String) {
    let mut open = open("secret");
    for capability in ["permissions", "interrupt", "agent_handoff"] {
        open["payload"]["capabilities"][capability] = json!(true);
    }
    open["payload"]["capabilities"]["extensions"] = json!(["arcpx.mainstay.quorum.v1"]);
    opened_with(home, open).await
}

#[tokio::test]
async fn each_refusal_says_what_can_be_done_next() {
    let home = Home::new().await;
    let (mut peer, session) = opened(&home).await;
    let (mut other, target) = opened(&home).await;
    let mut said = String::new();
    for wrong in of_nothing() {
        said += &refused(&mut peer, wrong).await;
    }
    invoke(&mut peer, home.code("wait")).await;
    let job = peer.first("job.started").await["job_id"].clone();
    let runtime = json!({ "kind": "mainstay", "fingerprint": "sha256:0" });
    for wrong in [
        message("agent.handoff", json!({ "target": target })),
        handoff(&job, &target, json!({ "fingerprint": "sha256:0" })),
        handoff(&job, &target, json!("sha256:0")),
        handoff(&job, &target, json!({ "kind": "other", "fingerprint": "sha256:0" })),
        handoff(&job, &target, json!({ "kind": "mainstay" })),
        handoff(&job, &target, json!({ "kind": "mainstay", "fingerprint": "sha256:1" })),
        handoff(&job, "sess_none", runtime.clone()),
        handoff(&job, &session, runtime.clone()),
        handoff(&Value::Null, &target, runtime.clone()),
        handoff(&json!("job_none"), &target, runtime.clone()),
        cancel("stream", &json!("str_none")),
    ] {
        said += &refused(&mut peer, wrong).await;
    }
    said += &refused(&mut other, cancel("job", &job)).await;
    said += &refused(&mut other, handoff(&job, &session, runtime.clone())).await;
    peer.send(cancel("job", &job)).await;
    peer.until_it(is_end).await;
    for wrong in [
        cancel("job", &job),
        handoff(&job, &target, runtime),
        of_job(&job, message("permission.request", wish())),
        message("interrupt", json!({ "target": "job", "target_id": job })),
    ] {
        said += &refused(&mut peer, wrong).await;
    }
    let said = said.replace(&session, "sess_1").replace(&target, "sess_2");
    insta::assert_snapshot!(said.replace(job.as_str().unwrap(), "job_1"));
}
