//! Dialect A: commands that are to run later.

use mainstay_arcp::Settings;
use mainstay_model::Limits;
use serde_json::{Value, json};

use crate::a::{ask, is_end, open, opened, opened_with, resumed};
use crate::support::{Home, Peer};

/// Has code run later; gives the answer.
async fn schedule(peer: &mut Peer, home: &Home, code: &str, when: Value) -> Value {
    let job = json!({ "type": "tool.invoke", "payload": { "tool": "fsharp", "arguments": home.code(code) } });
    let message = ask(peer, "job.schedule", json!({ "job": job, "when": when })).await;
    let answers = peer.until_it(|envelope| envelope["correlation_id"] == json!(message)).await;
    answers.into_iter().next_back().unwrap()
}

#[tokio::test]
async fn a_job_runs_later_as_one_of_the_session_that_scheduled_it() {
    let home = Home::new().await;
    let (mut peer, session) = opened(&home).await;
    let made = schedule(&mut peer, &home, "1 + 1", json!({ "after": 0 })).await;
    assert_eq!(made["type"], "ack");
    let id = made["payload"]["details"]["schedule_id"].as_str().unwrap();
    let accepted = peer.first("job.accepted").await;
    let job = accepted["job_id"].as_str().unwrap();
    assert!(job.starts_with(&format!("{id}.")), "{job}");
    assert_eq!(
        (&accepted["session_id"], &accepted["correlation_id"]),
        (&json!(session), &made["correlation_id"])
    );
    let end = peer.until_it(is_end).await.pop().unwrap();
    assert_eq!((&end["type"], &end["payload"]["value"]["value"]), (&json!("job.completed"), &json!("2")));
    // It is told again as all that the session was told is.
    let mut again = resumed(&home, &session, made["id"].as_str().unwrap()).await;
    assert_eq!(again.until_it(is_end).await.pop().unwrap(), end);
}

#[tokio::test]
async fn a_schedule_outlives_its_daemon_and_ends_when_it_is_cancelled() {
    let limits = Limits { schedule_interval_ms: 1_000, ..Limits::default() };
    let mut home = Home::with(Settings::default(), limits).await;
    let (mut peer, session) = opened(&home).await;
    let made = schedule(&mut peer, &home, "1 + 1", json!({ "every": "FREQ=SECONDLY" })).await;
    let id = made["payload"]["details"]["schedule_id"].clone();
    let first = peer.until_it(is_end).await.pop().unwrap();
    drop(peer);
    home.restart().await;
    let mut peer = resumed(&home, &session, first["id"].as_str().unwrap()).await;
    let second = peer.until_it(is_end).await.pop().unwrap();
    assert_ne!(second["job_id"], first["job_id"]);
    let (mut other, _) = opened(&home).await;
    ask(&mut other, "cancel", json!({ "target": "job", "target_id": id })).await;
    assert_eq!(other.first("cancel.refused").await["payload"]["reason"], "not_yours");
    ask(&mut peer, "cancel", json!({ "target": "job", "target_id": id })).await;
    peer.first("cancel.accepted").await;
    let ended = peer.until_it(|envelope| envelope["type"] == "job.cancelled").await.pop().unwrap();
    assert_eq!(ended["job_id"], id);
    ask(&mut peer, "cancel", json!({ "target": "job", "target_id": id })).await;
    assert_eq!(peer.first("cancel.refused").await["payload"]["reason"], "no_such_job");
}

#[tokio::test]
async fn what_cannot_be_scheduled_is_refused_and_says_why() {
    let home = Home::new().await;
    let (mut peer, _) = opened(&home).await;
    for (when, code, reason) in [
        (json!({ "every": "now and then" }), "INVALID_ARGUMENT", "is no part of an RRULE"),
        (json!({ "every": "FREQ=SECONDLY" }), "INVALID_ARGUMENT", "schedule-interval-ms"),
        (json!({ "after": 1, "at": "2099-01-01T00:00:00Z" }), "INVALID_ARGUMENT", "exactly one of"),
        (json!({ "after": u64::MAX }), "INVALID_ARGUMENT", "longer than the calendar"),
    ] {
        let refused = schedule(&mut peer, &home, "1 + 1", when).await;
        assert_eq!((&refused["type"], &refused["payload"]["code"]), (&json!("nack"), &json!(code)));
        assert!(refused["payload"]["message"].as_str().unwrap().contains(reason), "{refused}");
    }
    assert_eq!(home.sessions().await, 0, "none was made for them");
    let job = json!({ "type": "session.close", "payload": {} });
    ask(&mut peer, "job.schedule", json!({ "job": job, "when": { "after": 1 } })).await;
    assert_eq!(peer.first("nack").await["payload"]["code"], "UNIMPLEMENTED");
    let delegated = |context: Value| {
        let payload = json!({ "target": "fsharp", "task": "1 + 1", "context": context });
        json!({ "job": { "type": "agent.delegate", "payload": payload }, "when": { "after": 1 } })
    };
    ask(&mut peer, "job.schedule", delegated(json!({ "shared_memory_ref": "art_1" }))).await;
    assert_eq!(peer.first("nack").await["payload"]["code"], "UNIMPLEMENTED");
    ask(&mut peer, "job.schedule", delegated(json!({ "permissions_inherited": ["Reading"] }))).await;
    assert_eq!(peer.first("nack").await["payload"]["code"], "INVALID_ARGUMENT");
    let given = delegated(json!({}));
    peer.send(json!({ "arcp": "1.0", "type": "job.schedule", "job_id": "job_1", "payload": given })).await;
    assert_eq!(peer.first("nack").await["payload"]["code"], "UNIMPLEMENTED");
    let mut without = open("secret");
    without["payload"]["capabilities"] = json!({});
    let (mut peer, _) = opened_with(&home, without).await;
    let refused = schedule(&mut peer, &home, "1 + 1", json!({ "after": 1 })).await;
    assert_eq!(refused["payload"]["code"], "UNIMPLEMENTED");
}
