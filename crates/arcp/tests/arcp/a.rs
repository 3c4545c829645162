//! Dialect A: what is told, in which order, and what a client that comes back is told again.

use serde_json::{Value, json};

use crate::support::{Home, Peer, token_for};

pub(crate) fn open(token: &str) -> Value {
    json!({
        "arcp": "1.0", "type": "session.open",
        "payload": {
            "auth": { "scheme": "bearer", "token": token },
            "client": { "kind": "test", "version": "1" },
            "capabilities": {
                "streaming": true, "durable_jobs": true, "human_input": true, "subscriptions": true,
                "checkpoints": true, "artifacts": true, "scheduled_jobs": true,
            },
        },
    })
}

/// A client with a session, and the name of that.
pub(crate) async fn opened(home: &Home) -> (Peer, String) {
    opened_with(home, open("secret")).await
}

pub(crate) async fn opened_with(home: &Home, open: Value) -> (Peer, String) {
    let mut peer = home.connect().await;
    peer.send(open).await;
    let accepted = peer.first("session.accepted").await;
    let session = accepted["payload"]["session_id"].as_str().unwrap().to_owned();
    (peer, session)
}

/// Sends a message of the session.
pub(crate) async fn ask(peer: &mut Peer, kind: &str, payload: Value) -> String {
    peer.send(json!({ "arcp": "1.0", "type": kind, "payload": payload })).await
}

pub(crate) async fn invoke(peer: &mut Peer, arguments: Value) -> String {
    ask(peer, "tool.invoke", json!({ "tool": "fsharp", "arguments": arguments })).await
}

pub(crate) fn is_end(envelope: &Value) -> bool {
    matches!(
        envelope["type"].as_str(),
        Some("job.completed" | "job.failed" | "job.cancelled" | "tool.result" | "tool.error")
    )
}

/// What is told of jobs, which is told again the same.
fn of_jobs(envelopes: &[Value]) -> Vec<Value> {
    let is_of_job = |envelope: &&Value| {
        envelope["id"].as_str().unwrap().starts_with("evt_")
            || envelope["id"].as_str().unwrap().starts_with("ask_")
    };
    envelopes.iter().filter(is_of_job).cloned().collect()
}

/// Comes back to a session, and asks for what came after this message.
pub(crate) async fn resumed(home: &Home, session: &str, after: &str) -> Peer {
    let mut open = open("secret");
    open["session_id"] = json!(session);
    let (mut peer, again) = opened_with(home, open).await;
    assert_eq!(again, session);
    peer.send(json!({
        "arcp": "1.0", "type": "resume", "session_id": session, "payload": { "after_message_id": after },
    }))
    .await;
    peer
}

/// What changes from run to run is replaced.
fn redacted(envelope: &Value) -> Value {
    let mut envelope = envelope.clone();
    for path in [
        "/session_id",
        "/job_id",
        "/trace_id",
        "/timestamp",
        "/stream_id",
        "/correlation_id",
        "/payload/session_id",
        "/payload/job_id",
        "/payload/sequence",
        "/payload/lease/expires_at",
        "/payload/expires_at",
    ] {
        if let Some(value) = envelope.pointer_mut(path) {
            *value = json!("…");
        }
    }
    let kind = envelope["id"].as_str().unwrap().split('_').next().unwrap().to_owned();
    envelope["id"] = json!(format!("{kind}_…"));
    envelope
}

fn transcript(envelopes: &[Value]) -> Vec<Value> {
    envelopes.iter().map(redacted).collect()
}

#[tokio::test]
async fn a_session_is_opened_and_a_tool_invoked() {
    let home = Home::new().await;
    let (mut first, _) = opened(&home).await;
    // A job waits where its session is still to start.
    invoke(&mut first, home.code("1 + 1")).await;
    first.until_it(is_end).await;
    let mut peer = home.connect().await;
    peer.send(open("secret")).await;
    let mut told = peer.until("session.accepted").await;
    ask(&mut peer, "ping", json!({ "nonce": 7 })).await;
    told.extend(peer.until("pong").await);
    invoke(&mut peer, home.code("printfn \"hello\"")).await;
    told.extend(peer.until_it(is_end).await);
    invoke(&mut peer, home.code("failwith \"oops\"")).await;
    told.extend(peer.until_it(is_end).await);
    insta::assert_json_snapshot!(transcript(&told));
}

#[tokio::test]
async fn a_client_without_capabilities_is_told_in_logs_and_results() {
    let home = Home::new().await;
    let mut open = open("secret");
    open["payload"]["capabilities"] = json!({});
    let (mut peer, _) = opened_with(&home, open).await;
    invoke(&mut peer, home.code("printfn \"hello\"")).await;
    let told = peer.until_it(is_end).await;
    let kinds: Vec<_> = told.iter().map(|envelope| envelope["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["job.accepted", "job.started", "log", "tool.result"]);
    assert_eq!(told[3]["correlation_id"], told[0]["correlation_id"]);
    ask(&mut peer, "subscribe", json!({})).await;
    assert_eq!(peer.next().await.unwrap()["payload"]["code"], "UNIMPLEMENTED");
}

#[tokio::test]
async fn who_does_not_show_who_it_is_gets_no_session() {
    let home = Home::new().await;
    let refused = async |auth: Value| {
        let mut open = open("secret");
        open["payload"]["auth"] = auth;
        let mut peer = home.connect().await;
        peer.send(open).await;
        let answer = peer.next().await.unwrap();
        assert_eq!(peer.next().await, None);
        (answer["type"].as_str().unwrap().to_owned(), answer["payload"]["code"].as_str().unwrap().to_owned())
    };
    let pair = |kind: &str, code: &str| (kind.to_owned(), code.to_owned());
    let unauthenticated = pair("session.unauthenticated", "UNAUTHENTICATED");
    assert_eq!(refused(json!({ "scheme": "bearer", "token": "wrong" })).await, unauthenticated);
    assert_eq!(refused(json!({ "scheme": "none" })).await, unauthenticated);
    let signed = |token: &str| json!({ "scheme": "signed_jwt", "token": token });
    for wrong in ["a.b.c", "", "secret", &token_for("ada", -1), &token_for("bob", 600)] {
        assert_eq!(refused(signed(wrong)).await, unauthenticated, "{wrong}");
    }
    for wrong in ["a.b.c", "secret", &token_for("ada", -1)] {
        assert_eq!(refused(json!({ "scheme": "oauth2", "token": wrong })).await, unauthenticated, "{wrong}");
    }
    let invalid = pair("session.rejected", "INVALID_ARGUMENT");
    assert_eq!(refused(json!({ "scheme": "mtls" })).await, invalid);
    assert_eq!(refused(json!({ "scheme": "riddle" })).await, invalid);
}

#[tokio::test]
async fn a_signed_token_opens_a_session_of_its_principal() {
    let home = Home::new().await;
    for scheme in ["signed_jwt", "bearer", "oauth2"] {
        let mut open = open("");
        open["payload"]["auth"] = json!({ "scheme": scheme, "token": token_for("ada", 600) });
        let mut peer = home.connect().await;
        peer.send(open).await;
        let accepted = peer.first("session.accepted").await;
        // It is Ada's, so that her other token comes back to it.
        let mut again = self::open("hers");
        again["session_id"] = accepted["session_id"].clone();
        let mut other = home.connect().await;
        other.send(again).await;
        let found = other.first("session.accepted").await;
        assert_eq!(found["session_id"], accepted["session_id"]);
    }
}

#[tokio::test]
async fn whoever_comes_back_is_told_the_same_again_over_any_cut() {
    let mut home = Home::new().await;
    let (mut peer, session) = opened(&home).await;
    let mut told = Vec::new();
    for code in ["printfn \"a\"", "failwith \"b\"", "1"] {
        invoke(&mut peer, home.code(code)).await;
        told.extend(peer.until_it(is_end).await);
    }
    let told = of_jobs(&told);
    drop(peer);
    let last = told.last().unwrap()["id"].clone();
    for (cut, message) in told.iter().enumerate() {
        if cut == told.len() / 2 {
            home.restart().await;
        }
        let mut peer = resumed(&home, &session, message["id"].as_str().unwrap()).await;
        let rest = match cut + 1 < told.len() {
            true => peer.until_it(|envelope| envelope["id"] == last).await,
            false => Vec::new(),
        };
        assert_eq!(of_jobs(&rest), told[cut + 1..], "behind {cut}");
    }
}

#[tokio::test]
async fn whoever_goes_on_from_an_answer_or_a_checkpoint_is_told_what_came_after_it() {
    let home = Home::new().await;
    let (mut peer, session) = opened(&home).await;
    invoke(&mut peer, home.code("1")).await;
    peer.until_it(is_end).await;
    ask(&mut peer, "checkpoint.create", json!({ "label": "here" })).await;
    let checkpoint = peer.first("ack").await["payload"]["details"]["checkpoint_id"].clone();
    ask(&mut peer, "ping", json!({})).await;
    let pong = peer.first("pong").await["id"].clone();
    invoke(&mut peer, home.code("2")).await;
    let told = of_jobs(&peer.until_it(is_end).await);
    // Over the same connection.
    ask(&mut peer, "resume", json!({ "checkpoint_id": checkpoint })).await;
    assert_eq!(of_jobs(&peer.until_it(is_end).await), told);
    let mut again = resumed(&home, &session, pong.as_str().unwrap()).await;
    assert_eq!(of_jobs(&again.until_it(is_end).await), told);
}

#[tokio::test]
async fn what_is_lost_is_said_and_the_session_goes_on() {
    let home = Home::new().await;
    let (_, session) = opened(&home).await;
    let unknown = ["msg_nobody", "evt_01ARZ3NDEKTSV4RRFFQ69G5FAV", "msg_7ZZZZZZZZZZZZZZZZZZZZZZZZZ"];
    for after in unknown {
        let mut peer = resumed(&home, &session, after).await;
        assert_eq!(peer.first("nack").await["payload"]["code"], "DATA_LOSS", "{after}");
        invoke(&mut peer, home.code("1")).await;
        peer.until_it(is_end).await;
    }
    let (mut peer, _) = opened(&home).await;
    peer.send(json!({ "arcp": "1.0", "type": "resume", "session_id": "sess_other", "payload": {} })).await;
    assert_eq!(peer.first("nack").await["payload"]["code"], "DATA_LOSS");
}

#[tokio::test]
async fn a_session_is_not_found_again_by_another_principal() {
    let home = Home::new().await;
    let (mut mine, session) = opened(&home).await;
    invoke(&mut mine, home.code("1")).await;
    mine.until_it(is_end).await;
    let mut open = open("hers");
    open["session_id"] = json!(session);
    let (mut hers, other) = opened_with(&home, open).await;
    assert_ne!(other, session);
    hers.send(json!({ "arcp": "1.0", "type": "resume", "session_id": session, "payload": {} })).await;
    assert_eq!(hers.next().await.unwrap()["payload"]["code"], "DATA_LOSS");
    ask(&mut hers, "subscribe", json!({ "filter": { "session_id": [session] } })).await;
    assert_eq!(hers.next().await.unwrap()["payload"]["code"], "PERMISSION_DENIED");
}

#[tokio::test]
async fn a_job_gives_signs_of_life_and_is_cancelled() {
    let home = Home::new().await;
    let mut open = open("secret");
    open["payload"]["capabilities"]["heartbeat_interval_seconds"] = json!(1);
    let (mut peer, _) = opened_with(&home, open).await;
    invoke(&mut peer, home.code("wait")).await;
    let job = peer.first("job.started").await["job_id"].clone();
    let first = peer.first("job.heartbeat").await;
    assert_eq!((&first["job_id"], &first["payload"]["state"]), (&job, &json!("running")));
    let second = peer.first("job.heartbeat").await;
    assert!(first["payload"]["sequence"].as_u64() < second["payload"]["sequence"].as_u64());
    let cancel = json!({ "target": "job", "target_id": job, "deadline_ms": 5000 });
    ask(&mut peer, "cancel", cancel.clone()).await;
    assert_eq!(peer.first("cancel.accepted").await["payload"]["deadline_ms"], 5000);
    assert_eq!(peer.until_it(is_end).await.pop().unwrap()["type"], "job.cancelled");
    ask(&mut peer, "cancel", cancel).await;
    assert_eq!(peer.first("cancel.refused").await["payload"]["reason"], "already_terminal");
}

#[tokio::test]
async fn a_job_that_does_not_stop_within_the_deadline_of_its_cancel_is_aborted() {
    let home = Home::new().await;
    for (deadline_ms, kind) in [(Some(5), "job.failed"), (None, "job.cancelled")] {
        let (mut peer, session) = opened(&home).await;
        invoke(&mut peer, home.code("spin")).await;
        let started = peer.first("job.started").await;
        let mut cancel = json!({ "target": "job", "target_id": started["job_id"] });
        if let Some(deadline_ms) = deadline_ms {
            cancel["deadline_ms"] = json!(deadline_ms);
        }
        let asked = ask(&mut peer, "cancel", cancel).await;
        assert_eq!(peer.first("cancel.accepted").await["correlation_id"], json!(asked));
        let end = peer.until_it(is_end).await.pop().unwrap();
        assert_eq!((&end["type"], &end["payload"]["code"]), (&json!(kind), &json!("ABORTED")));
        // What is told again is the same.
        let mut again = resumed(&home, &session, started["id"].as_str().unwrap()).await;
        assert_eq!(again.until_it(is_end).await.pop().unwrap(), end);
    }
}

#[tokio::test]
async fn a_session_that_is_closed_leaves_its_jobs_or_takes_them_along() {
    let home = Home::new().await;
    for (wish, code, last) in [("detach", "number", "job.completed"), ("cancel", "wait", "job.cancelled")] {
        let (mut peer, session) = opened(&home).await;
        let (mut watcher, _) = opened(&home).await;
        ask(&mut watcher, "subscribe", json!({ "filter": { "session_id": [session] } })).await;
        watcher.first("subscribe.accepted").await;
        invoke(&mut peer, home.code(code)).await;
        let asks = |envelope: &Value| {
            envelope["type"] == "human.input.request" || envelope["payload"]["data"] == "waiting\n"
        };
        let question = peer.until_it(asks).await.pop().unwrap()["id"].clone();
        ask(&mut peer, "session.close", json!({ "jobs": wish })).await;
        peer.first("session.close").await;
        assert_eq!(peer.next().await, None);
        if wish == "detach" {
            answer(&mut watcher, &question, json!({ "value": 3 })).await;
        }
        let is_end = |envelope: &Value| is_end(&envelope["payload"]["event"]);
        let end = watcher.until_it(is_end).await.pop().unwrap();
        assert_eq!(end["payload"]["event"]["type"], last);
    }
}

async fn answer(peer: &mut Peer, question: &Value, payload: Value) -> String {
    peer.send(json!({
        "arcp": "1.0", "type": "human.input.response", "correlation_id": question, "payload": payload,
    }))
    .await
}

#[tokio::test]
async fn a_question_is_answered_once_and_every_other_client_is_told_so() {
    let home = Home::new().await;
    let (mut peer, session) = opened(&home).await;
    let (mut other, _) = opened(&home).await;
    ask(&mut other, "subscribe", json!({ "filter": { "session_id": [session] } })).await;
    other.first("subscribe.accepted").await;
    invoke(&mut peer, home.code("number")).await;
    let told = peer.until("human.input.request").await;
    let question = told.last().unwrap();
    assert_eq!(told[told.len() - 2]["payload"]["state"], "blocked");
    let wrapped = |kind: &'static str| move |envelope: &Value| envelope["payload"]["event"]["type"] == kind;
    let seen = other.until_it(wrapped("human.input.request")).await.pop().unwrap();
    assert_eq!(&seen["payload"]["event"], question);
    let wrong = answer(&mut other, &question["id"], json!({ "value": 0 })).await;
    let nack = other.first("nack").await;
    assert_eq!(
        (&nack["correlation_id"], &nack["payload"]["code"]),
        (&json!(wrong), &json!("INVALID_ARGUMENT"))
    );
    let unclaimed = json!({ "value": 7, "responded_by": "x".repeat(201) });
    answer(&mut other, &question["id"], unclaimed).await;
    assert_eq!(
        other.first("nack").await["payload"]["code"],
        "INVALID_ARGUMENT",
        "what is claimed is bounded"
    );
    let right = answer(&mut other, &question["id"], json!({ "value": 7, "responded_by": "phone" })).await;
    assert_eq!(other.first("ack").await["correlation_id"], right);
    let ended = peer.until_it(is_end).await;
    let cancelled = ended.iter().find(|envelope| envelope["type"] == "human.input.cancelled").unwrap();
    assert_eq!(
        (&cancelled["correlation_id"], &cancelled["payload"]),
        (&question["id"], &json!({ "code": "OK", "reason": "answered", "responded_by": "phone" })),
        "the others are told by which way it was answered"
    );
    assert_eq!(ended.last().unwrap()["payload"]["value"]["value"], "7");
    answer(&mut peer, &question["id"], json!({ "value": 8 })).await;
    assert_eq!(peer.first("nack").await["payload"]["code"], "NOT_FOUND");
}

#[tokio::test]
async fn what_cannot_be_read_or_done_is_refused_and_the_session_goes_on() {
    let home = Home::new().await;
    let (mut peer, _) = opened(&home).await;
    peer.send_text("{").await;
    assert_eq!(peer.next().await.unwrap()["payload"]["code"], "INVALID_ARGUMENT");
    peer.send_bytes(b"bytes").await;
    assert_eq!(peer.next().await.unwrap()["payload"]["code"], "UNIMPLEMENTED");
    for kind in mainstay_arcp_protocol::a::MessageType::ALL.iter().map(|kind| kind.name()) {
        // These are taken without an answer, or end the session.
        if ["pong", "ack", "nack", "session.close", "resume"].contains(&kind) {
            continue;
        }
        let id = ask(&mut peer, kind, json!({})).await;
        let answer = peer.next().await.unwrap();
        assert_eq!(answer["correlation_id"], id, "{kind}: {answer}");
        let does = matches!(answer["type"].as_str(), Some("pong" | "ack" | "subscribe.accepted"));
        assert!(does || answer["payload"]["code"].is_string(), "{kind}: {answer}");
    }
    invoke(&mut peer, home.code("1")).await;
    peer.until_it(is_end).await;
}

#[tokio::test]
async fn a_task_that_is_delegated_is_a_job_of_that_agent() {
    let home = Home::new().await;
    let (mut peer, _) = opened(&home).await;
    let context = json!({ "trace_id": "trace-1" });
    ask(&mut peer, "agent.delegate", json!({ "target": "fsharp", "task": "1 + 1", "context": context }))
        .await;
    let end = peer.until_it(is_end).await.pop().unwrap();
    assert_eq!((&end["trace_id"], &end["payload"]["value"]["value"]), (&json!("trace-1"), &json!("2")));
}
