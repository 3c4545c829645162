//! Dialect A: a job is handed over to another session. Source: draft-arcp-01, 8.3 and 14.

use serde_json::{Value, json};

use crate::a::{ask, invoke, is_end, open, opened, opened_with, resumed};
use crate::support::{Home, Peer};

/// A client with a session that takes jobs of others and hands its own over, and the name of that.
async fn opened_for_handoff(home: &Home, token: &str) -> (Peer, String) {
    let mut open = open(token);
    open["payload"]["capabilities"]["agent_handoff"] = json!(true);
    opened_with(home, open).await
}

/// Hands a job over; gives what answers that.
async fn hand_off(peer: &mut Peer, job: &Value, target: &str, runtime: Value) -> Value {
    let payload = json!({ "target": target, "runtime": runtime });
    let handoff = json!({ "arcp": "1.0", "type": "agent.handoff", "job_id": job, "payload": payload });
    let id = peer.send(handoff).await;
    peer.until_it(|envelope| envelope["correlation_id"] == json!(id)).await.pop().unwrap()
}

fn runtime() -> Value {
    json!({ "kind": "mainstay", "fingerprint": "sha256:0" })
}

/// Hands a job over, and gives all that is told up to the answer.
async fn handed_off(peer: &mut Peer, job: &Value, target: &str) -> Vec<Value> {
    let payload = json!({ "target": target, "runtime": runtime() });
    let handoff = json!({ "arcp": "1.0", "type": "agent.handoff", "job_id": job, "payload": payload });
    let id = peer.send(handoff).await;
    peer.until_it(|envelope| envelope["correlation_id"] == json!(id)).await
}

/// Which of these messages open and close streams of the job.
fn of_streams(told: &[Value], job: &Value) -> Vec<String> {
    let of_job = told.iter().filter(|envelope| envelope["job_id"] == *job);
    let kinds = of_job.filter_map(|envelope| envelope["type"].as_str());
    kinds.filter(|kind| ["stream.open", "stream.close"].contains(kind)).map(str::to_owned).collect()
}

/// The same of what an observer is told.
fn of_observed_streams(told: &[Value], job: &Value) -> Vec<String> {
    let observed = told.iter().filter(|envelope| envelope["type"] == "subscribe.event");
    let events: Vec<_> = observed.map(|envelope| envelope["payload"]["event"].clone()).collect();
    of_streams(&events, job)
}

/// Starts a job that goes on until it is stopped.
async fn begun(home: &Home, peer: &mut Peer) -> Value {
    invoke(peer, home.code("wait")).await;
    peer.first("job.started").await["job_id"].clone()
}

async fn cancel(peer: &mut Peer, job: &Value) {
    ask(peer, "cancel", json!({ "target": "job", "target_id": job })).await;
}

#[tokio::test]
async fn a_job_that_is_handed_over_is_controlled_by_the_other_session_and_told_to_it() {
    let home = Home::new().await;
    let (mut first, from) = opened_for_handoff(&home, "secret").await;
    let (mut second, to) = opened_for_handoff(&home, "secret").await;
    let job = begun(&home, &mut first).await;
    cancel(&mut second, &job).await;
    assert_eq!(second.first("cancel.refused").await["payload"]["reason"], "not_yours");
    let answer = hand_off(&mut first, &job, &to, runtime()).await;
    assert_eq!(answer["type"], "ack", "{answer}");
    cancel(&mut first, &job).await;
    assert_eq!(first.first("cancel.refused").await["payload"]["reason"], "not_yours");
    drop(first);
    let handed = second.first("event.emit").await;
    assert_eq!((&handed["session_id"], &handed["job_id"]), (&json!(to), &job));
    assert_eq!(
        handed["payload"],
        json!({
            "type": "arcpx.mainstay.handoff.v1",
            "data": { "from": from, "to": to, "state": "running" },
        })
    );
    assert_eq!(second.first("stream.open").await["payload"]["kind"], "text");
    cancel(&mut second, &job).await;
    let mut told = second.until_it(is_end).await;
    let end = told.pop().unwrap();
    assert_eq!(
        (&end["type"], &end["session_id"], &end["job_id"]),
        (&json!("job.cancelled"), &json!(to), &job)
    );
    assert!(told.iter().any(|envelope| envelope["type"] == "cancel.accepted"));
    // What is told again is the same, from every message on.
    let mut again = resumed(&home, &to, handed["id"].as_str().unwrap()).await;
    assert_eq!(again.until_it(is_end).await.pop().unwrap(), end);
}

#[tokio::test]
async fn a_session_without_a_connection_is_told_of_the_job_and_its_end_under_the_next_daemon() {
    let mut home = Home::new().await;
    let (mut first, from) = opened_for_handoff(&home, "secret").await;
    let (mut second, to) = opened_for_handoff(&home, "secret").await;
    ask(&mut second, "ping", json!({})).await;
    let pong = second.first("pong").await["id"].clone();
    drop(second);
    let runs = begun(&home, &mut first).await;
    let sent = json!({
        "arcp": "1.0", "type": "tool.invoke", "id": "again",
        "payload": { "tool": "fsharp", "arguments": home.code("wait") },
    });
    first.send(sent.clone()).await;
    let waits = first.first("job.accepted").await;
    assert_eq!(waits["payload"]["state"], "queued");
    let waits = waits["job_id"].clone();
    for job in [&runs, &waits] {
        assert_eq!(hand_off(&mut first, job, &to, runtime()).await["type"], "ack");
    }
    // What it sends again is answered, and not its own again.
    first.send(sent).await;
    assert_eq!(first.first("job.accepted").await["job_id"], waits);
    cancel(&mut first, &waits).await;
    assert_eq!(first.first("cancel.refused").await["payload"]["reason"], "not_yours");
    ask(&mut first, "ping", json!({})).await;
    let last = first.first("pong").await["id"].clone();
    drop(first);
    home.restart().await;
    let mut second = resumed(&home, &to, pong.as_str().unwrap()).await;
    let mut told = second.until_it(is_end).await;
    assert!(told.iter().any(|envelope| envelope["job_id"] == runs), "{told:#?}");
    cancel(&mut second, &waits).await;
    told.extend(second.until_it(|envelope| is_end(envelope) && envelope["job_id"] == waits).await);
    let handed = told.iter().filter(|envelope| envelope["type"] == "event.emit");
    let handed: Vec<_> = handed.map(|envelope| envelope["payload"]["data"]["from"].clone()).collect();
    assert_eq!(handed, [json!(from), json!(from)]);
    // The first is told nothing more of either.
    let mut first = resumed(&home, &from, last.as_str().unwrap()).await;
    ask(&mut first, "ping", json!({})).await;
    let told = first.until("pong").await;
    assert!(told.iter().all(|envelope| envelope["job_id"].is_null()), "{told:#?}");
}

#[tokio::test]
async fn a_handoff_to_another_runtime_or_principal_or_of_the_job_of_another_is_refused() {
    let home = Home::new().await;
    let (mut first, from) = opened_for_handoff(&home, "secret").await;
    let (mut second, to) = opened_for_handoff(&home, "secret").await;
    let (mut hers, her_session) = opened_for_handoff(&home, "hers").await;
    let (_plain, plain) = opened(&home).await;
    let job = begun(&home, &mut first).await;
    for other in [json!({ "kind": "mainstay" }), json!({ "kind": "mainstay", "fingerprint": "sha256:1" })] {
        let nack = hand_off(&mut first, &job, &to, other).await;
        assert_eq!(
            (&nack["type"], &nack["payload"]["code"]),
            (&json!("nack"), &json!("FAILED_PRECONDITION"))
        );
        assert!(nack["payload"]["details"]["next_step"].is_string(), "{nack}");
    }
    for (target, code) in [
        (her_session.as_str(), "NOT_FOUND"),
        ("sess_none", "NOT_FOUND"),
        (&plain, "FAILED_PRECONDITION"),
        (&from, "FAILED_PRECONDITION"),
    ] {
        let nack = hand_off(&mut first, &job, target, runtime()).await;
        assert_eq!(nack["payload"]["code"], code, "{nack}");
    }
    assert_eq!(hand_off(&mut second, &job, &from, runtime()).await["payload"]["code"], "PERMISSION_DENIED");
    let (_also_hers, also_hers) = opened_for_handoff(&home, "hers").await;
    assert_eq!(hand_off(&mut hers, &job, &also_hers, runtime()).await["payload"]["code"], "NOT_FOUND");
    assert_eq!(
        hand_off(&mut first, &Value::Null, &to, runtime()).await["payload"]["code"],
        "INVALID_ARGUMENT"
    );
    // It is the first session's still.
    cancel(&mut first, &job).await;
    assert_eq!(first.until_it(is_end).await.pop().unwrap()["type"], "job.cancelled");
    assert_eq!(hand_off(&mut first, &job, &to, runtime()).await["payload"]["code"], "FAILED_PRECONDITION");
}

#[tokio::test]
async fn streams_close_for_who_gives_a_job_and_open_once_for_who_is_told_of_them() {
    let home = Home::new().await;
    let (mut first, from) = opened_for_handoff(&home, "secret").await;
    let (mut second, to) = opened_for_handoff(&home, "secret").await;
    ask(&mut second, "subscribe", json!({})).await;
    second.first("subscribe.accepted").await;
    let job = begun(&home, &mut first).await;
    let told = handed_off(&mut first, &job, &to).await;
    assert_eq!(of_streams(&told, &job), ["stream.open", "stream.close"]);
    let closed = told.iter().find(|envelope| envelope["type"] == "stream.close").unwrap();
    assert_eq!((&closed["session_id"], &closed["job_id"]), (&json!(from), &job));
    let mut told = second.until("stream.open").await;
    // It is given back, and given again.
    let back = handed_off(&mut second, &job, &from).await;
    assert_eq!(of_streams(&back, &job), ["stream.close"]);
    assert_eq!(of_streams(&handed_off(&mut first, &job, &to).await, &job), ["stream.open", "stream.close"]);
    cancel(&mut second, &job).await;
    told.extend(back);
    told.extend(second.until_it(is_end).await);
    assert_eq!(of_streams(&told, &job), ["stream.open", "stream.close", "stream.open", "stream.close"]);
    assert_eq!(of_observed_streams(&told, &job), ["stream.open", "stream.close"], "{told:#?}");
}

#[tokio::test]
async fn who_submitted_a_job_under_the_same_key_holds_it_no_more_once_it_is_handed_over() {
    let home = Home::new().await;
    let (mut first, _) = opened_for_handoff(&home, "secret").await;
    let (mut second, session) = opened_for_handoff(&home, "secret").await;
    let (mut third, to) = opened_for_handoff(&home, "secret").await;
    let arguments = home.code("wait");
    let invoke = json!({
        "arcp": "1.0", "type": "tool.invoke", "idempotency_key": "k",
        "payload": { "tool": "fsharp", "arguments": arguments },
    });
    first.send(invoke.clone()).await;
    let job = first.first("job.started").await["job_id"].clone();
    second.send(invoke.clone()).await;
    assert_eq!(second.first("job.accepted").await["job_id"], job);
    assert_eq!(handed_off(&mut first, &job, &to).await.pop().unwrap()["type"], "ack");
    for submits_again in [false, true] {
        if submits_again {
            second.send(invoke.clone()).await;
            assert_eq!(second.first("job.accepted").await["job_id"], job);
        }
        cancel(&mut second, &job).await;
        assert_eq!(second.first("cancel.refused").await["payload"]["reason"], "not_yours");
    }
    ask(&mut second, "ping", json!({})).await;
    let last = second.first("pong").await["id"].clone();
    drop(second);
    let mut second = resumed(&home, &session, last.as_str().unwrap()).await;
    cancel(&mut second, &job).await;
    assert_eq!(second.first("cancel.refused").await["payload"]["reason"], "not_yours");
    cancel(&mut third, &job).await;
    assert_eq!(third.until_it(is_end).await.pop().unwrap()["type"], "job.cancelled");
    // What has ended is told to whoever submits it again.
    second.send(invoke).await;
    assert_eq!(second.until_it(is_end).await.pop().unwrap()["job_id"], job);
}

#[tokio::test]
async fn a_job_is_taken_back_from_a_session_that_was_closed_as_it_was_handed_over() {
    let home = Home::new().await;
    let (mut first, _) = opened_for_handoff(&home, "secret").await;
    let (mut second, to) = opened_for_handoff(&home, "secret").await;
    let job = begun(&home, &mut first).await;
    let payload = json!({ "target": to, "runtime": runtime() });
    let handoff =
        json!({ "arcp": "1.0", "type": "agent.handoff", "id": "h", "job_id": job, "payload": payload });
    first.send(handoff.clone()).await;
    first.first("ack").await;
    ask(&mut second, "session.close", json!({})).await;
    second.first("session.close").await;
    home.change_stored(&to, |stored| stored["isClosed"] = json!(true)).await;
    for _ in 0..2 {
        first.send(handoff.clone()).await;
        assert_eq!(first.first("nack").await["payload"]["code"], "NOT_FOUND");
    }
    cancel(&mut first, &job).await;
    assert_eq!(first.until_it(is_end).await.pop().unwrap()["type"], "job.cancelled");
}

#[tokio::test]
async fn a_session_holds_a_job_however_its_handover_meets_the_end_of_the_other_session() {
    let home = Home::new().await;
    let (mut first, _) = opened_for_handoff(&home, "secret").await;
    for _ in 0..10 {
        let (mut second, to) = opened_for_handoff(&home, "secret").await;
        ask(&mut second, "ping", json!({})).await;
        let last = second.first("pong").await["id"].clone();
        let job = begun(&home, &mut first).await;
        let (answer, ()) = tokio::join!(hand_off(&mut first, &job, &to, runtime()), async {
            ask(&mut second, "session.close", json!({})).await;
            second.first("session.close").await;
        });
        let mut second = match answer["type"] == "ack" {
            true => Some(resumed(&home, &to, last.as_str().unwrap()).await),
            false => None,
        };
        let holder = second.as_mut().unwrap_or(&mut first);
        cancel(holder, &job).await;
        assert_eq!(holder.until_it(is_end).await.pop().unwrap()["type"], "job.cancelled", "{answer}");
    }
}

#[tokio::test]
async fn a_session_that_begins_anew_knows_who_holds_a_job_that_was_handed_over() {
    let home = Home::new().await;
    let (mut first, from) = opened_for_handoff(&home, "secret").await;
    let (mut second, to) = opened_for_handoff(&home, "secret").await;
    let job = begun(&home, &mut first).await;
    assert_eq!(hand_off(&mut first, &job, &to, runtime()).await["type"], "ack");
    second.first("stream.open").await;
    for (peer, session) in [(&mut first, &from), (&mut second, &to)] {
        // It was never told this message.
        let after = json!({ "after_message_id": "evt_01KR5S0000000000FFFFFFFFFF" });
        let resume = json!({ "arcp": "1.0", "type": "resume", "session_id": session, "payload": after });
        peer.send(resume).await;
        assert_eq!(peer.first("nack").await["payload"]["code"], "DATA_LOSS");
    }
    cancel(&mut first, &job).await;
    assert_eq!(first.first("cancel.refused").await["payload"]["reason"], "not_yours");
    cancel(&mut second, &job).await;
    let end = second.until_it(is_end).await.pop().unwrap();
    assert_eq!((&end["type"], &end["job_id"]), (&json!("job.cancelled"), &job));
}
