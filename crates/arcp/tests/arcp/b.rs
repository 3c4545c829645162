//! Dialect B: what is told, in which order, and that no number is missing over any cut.

use mainstay_arcp::Settings;
use mainstay_model::Limits;
use serde_json::{Value, json};

use crate::support::{Home, Peer, token_for};

const FEATURES: [&str; 9] = [
    "heartbeat",
    "ack",
    "list_jobs",
    "subscribe",
    "lease_expires_at",
    "cost.budget",
    "model.use",
    "result_chunk",
    "agent_versions",
];

pub(crate) fn hello(token: &str) -> Value {
    json!({
        "type": "session.hello",
        "payload": {
            "client": { "name": "test", "version": "1" },
            "auth": { "scheme": "bearer", "token": token },
            "capabilities": { "encodings": ["json"], "features": FEATURES },
        },
    })
}

/// A client with a session, and what it was welcomed with.
pub(crate) async fn opened(home: &Home) -> (Peer, Value) {
    opened_by(home, "secret").await
}

pub(crate) async fn opened_by(home: &Home, token: &str) -> (Peer, Value) {
    let mut peer = home.connect().await;
    peer.send(hello(token)).await;
    let welcome = peer.first("session.welcome").await;
    (peer, welcome["payload"].clone())
}

pub(crate) async fn submit(peer: &mut Peer, input: Value) -> String {
    peer.send(json!({ "type": "job.submit", "payload": { "agent": "fsharp", "input": input } })).await
}

pub(crate) fn is_end(envelope: &Value) -> bool {
    matches!(envelope["type"].as_str(), Some("job.result" | "job.error"))
}

pub(crate) fn seqs(envelopes: &[Value]) -> Vec<u64> {
    envelopes.iter().filter_map(|envelope| envelope["event_seq"].as_u64()).collect()
}

/// Resumes a session; what it is told up to this number.
pub(crate) async fn resumed(
    home: &Home,
    welcome: &Value,
    last: u64,
    up_to: u64,
) -> (Peer, Value, Vec<Value>) {
    let mut peer = home.connect().await;
    peer.send(json!({
        "type": "session.resume",
        "payload": {
            "session_id": welcome["session_id"],
            "resume_token": welcome["resume_token"],
            "last_event_seq": last,
            "auth": { "scheme": "bearer", "token": "secret" },
        },
    }))
    .await;
    let again = peer.first("session.welcome").await["payload"].clone();
    let told = match last < up_to {
        true => peer.until_it(|envelope| envelope["event_seq"] == up_to).await,
        false => Vec::new(),
    };
    (peer, again, told)
}

/// What changes from run to run is replaced.
fn redacted(envelope: &Value) -> Value {
    let mut envelope = envelope.clone();
    for path in [
        "/id",
        "/session_id",
        "/job_id",
        "/trace_id",
        "/payload/session_id",
        "/payload/resume_token",
        "/payload/accepted_at",
        "/payload/completed_at",
        "/payload/ts",
        "/payload/job_id",
        "/payload/trace_id",
    ] {
        if let Some(value) = envelope.pointer_mut(path) {
            *value = json!("…");
        }
    }
    envelope
}

#[tokio::test]
async fn a_job_is_accepted_told_of_and_ended() {
    let home = Home::new().await;
    let (mut first, _) = opened(&home).await;
    // A job waits where its session is still to start.
    submit(&mut first, home.code("1 + 1")).await;
    first.until_it(is_end).await;
    let (mut peer, _) = opened(&home).await;
    submit(&mut peer, home.code("printfn \"hello\"")).await;
    let mut told = peer.until_it(is_end).await;
    submit(&mut peer, home.code("failwith \"oops\"")).await;
    told.extend(peer.until_it(is_end).await);
    let told: Vec<_> = told.iter().map(redacted).collect();
    insta::assert_json_snapshot!(told);
}

#[tokio::test]
async fn a_client_that_does_not_open_a_session_gets_none() {
    let home = Home::new().await;
    let ping =
        json!({ "type": "session.ping", "payload": { "nonce": "n", "sent_at": "2026-05-13T19:42:13Z" } });
    for first in [ping.to_string(), "{".to_owned(), "[]".to_owned()] {
        let mut peer = home.connect().await;
        peer.send_text(&first).await;
        assert_eq!(peer.next().await.unwrap()["payload"]["code"], "INVALID_REQUEST", "{first}");
        assert_eq!(peer.next().await, None);
    }
    for token in ["", "secre", "rt_", &token_for("ada", -1), &token_for("bob", 600)] {
        let mut peer = home.connect().await;
        peer.send(hello(token)).await;
        let refused = peer.next().await.unwrap();
        assert_eq!(
            (&refused["type"], &refused["payload"]["code"]),
            (&json!("session.error"), &json!("UNAUTHENTICATED"))
        );
        assert_eq!(peer.next().await, None);
    }
}

#[tokio::test]
async fn a_signed_token_opens_a_session_of_its_principal() {
    let home = Home::new().await;
    let mut peer = home.connect().await;
    peer.send(hello(&token_for("ada", 600))).await;
    peer.first("session.welcome").await;
    let mut other = home.connect().await;
    other.send(hello("secret")).await;
    other.first("session.welcome").await;
}

#[tokio::test]
async fn a_page_of_another_site_gets_no_connection() {
    let home = Home::new().await;
    assert_eq!(home.request(&[("origin", "https://example.com")]).await.err(), Some(403));
    assert_eq!(home.request(&[("host", "example.com")]).await.err(), Some(403));
}

#[tokio::test]
async fn a_client_that_says_nothing_is_let_go() {
    let settings = Settings { handshake_ms: 50, ..Settings::default() };
    let home = Home::with(settings, Limits::default()).await;
    assert_eq!(home.connect().await.next().await, None);
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_and_the_session_goes_on() {
    let limits = Limits { message_bytes: 2000, ..Limits::default() };
    let home = Home::with(Settings::default(), limits).await;
    let (mut peer, _) = opened(&home).await;
    let wrong = [
        "nothing".to_owned(),
        "[]".to_owned(),
        json!({ "arcp": "1.1", "type": "session.ping", "payload": {} }).to_string(),
        json!({ "arcp": "2.0", "id": "a", "type": "session.ping", "payload": {} }).to_string(),
        json!({ "arcp": "1.1", "id": "a", "type": "job.dance", "payload": {} }).to_string(),
        json!({ "arcp": "1.1", "id": "a", "type": "session.ping", "payload": {} }).to_string(),
        json!({ "arcp": "1.1", "id": "a", "type": "session.welcome", "payload": {} }).to_string(),
        json!({ "arcp": "1.1", "id": "a", "type": "job.submit", "payload": { "agent": "a b" } }).to_string(),
        "x".repeat(2500),
    ];
    for frame in wrong {
        peer.send_text(&frame).await;
        let refused = peer.next().await.unwrap();
        assert_eq!(refused["payload"]["code"], "INVALID_REQUEST", "{frame}: {refused}");
    }
    peer.send_bytes(b"{}").await;
    assert_eq!(peer.next().await.unwrap()["payload"]["code"], "INVALID_REQUEST");
    // Unknown fields are no mistake.
    peer.send(json!({
        "type": "session.ping", "colour": "red",
        "payload": { "nonce": "n", "sent_at": "2026-05-13T19:42:13Z", "more": 1 },
    }))
    .await;
    assert_eq!(peer.next().await.unwrap()["payload"]["ping_nonce"], "n");
}

#[tokio::test]
async fn a_message_that_comes_twice_runs_once() {
    let home = Home::new().await;
    let (mut peer, _) = opened(&home).await;
    let input = home.code("printfn \"once\"");
    let job =
        json!({ "type": "job.submit", "id": "twice", "payload": { "agent": "fsharp", "input": input } });
    peer.send(job.clone()).await;
    let first = peer.until_it(is_end).await;
    peer.send(job.clone()).await;
    let again = peer.until_it(is_end).await;
    assert_eq!(again[0]["type"], "job.accepted");
    assert_eq!(again[0]["payload"]["job_id"], first[0]["payload"]["job_id"]);
    assert_eq!(again.len(), 2, "nothing but the end is told again: {again:#?}");
    let prints = first.iter().chain(&again).filter(|envelope| envelope["payload"]["kind"] == "log").count();
    assert_eq!(prints, 1);
    // In another session the same id is another job.
    let (mut other, _) = opened(&home).await;
    other.send(job).await;
    let elsewhere = other.until_it(is_end).await;
    assert_ne!(elsewhere[0]["payload"]["job_id"], first[0]["payload"]["job_id"]);
}

#[tokio::test]
async fn numbers_have_no_gap_over_jobs_side_by_side_and_over_any_cut() {
    let mut home = Home::new().await;
    let (mut peer, mut welcome) = opened(&home).await;
    for index in 0..4 {
        submit(&mut peer, home.code_in(&format!("f{}", index % 2), "printfn \"text\"")).await;
    }
    let mut told = Vec::new();
    while told.iter().filter(|envelope| is_end(envelope)).count() < 4 {
        told.extend(peer.until_it(is_end).await);
    }
    told.retain(|envelope| envelope["event_seq"].is_u64());
    let last = told.len() as u64;
    assert_eq!(seqs(&told), (1..=last).collect::<Vec<_>>());
    drop(peer);
    for cut in 0..=last {
        if cut == last / 2 {
            home.restart().await;
        }
        let (again, next, rest) = resumed(&home, &welcome, cut, last).await;
        drop(again);
        assert_eq!(rest, told[cut as usize..], "after {cut}");
        assert_ne!(next["resume_token"], welcome["resume_token"]);
        welcome = next;
    }
}

#[tokio::test]
async fn a_session_is_resumed_again_though_its_client_was_lost_before_it_said_anything() {
    let home = Home::new().await;
    let (mut peer, welcome) = opened(&home).await;
    submit(&mut peer, home.code("printfn \"text\"")).await;
    let mut told = peer.until_it(is_end).await;
    told.retain(|envelope| envelope["event_seq"].is_u64());
    let last = told.len() as u64;
    let mut silent = Vec::new();
    for cut in 0..=last {
        // A client that reads no further than its welcome answers nothing, and its token stays good.
        silent.push(resumed(&home, &welcome, cut, 0).await.0);
    }
    let (_, _, rest) = resumed(&home, &welcome, 0, last).await;
    assert_eq!(rest, told);
}

#[tokio::test]
async fn what_was_subscribed_to_is_told_again_the_same_way() {
    let home = Home::new().await;
    let (mut one, _) = opened(&home).await;
    let (mut other, welcome) = opened(&home).await;
    submit(&mut one, home.code_in("a", "printfn \"a\"")).await;
    let job = one.until_it(is_end).await[0]["payload"]["job_id"].clone();
    let subscribe =
        |history| json!({ "type": "job.subscribe", "payload": { "job_id": job, "history": history } });
    other.send(subscribe(true)).await;
    let described = other.first("job.subscribed").await;
    assert_eq!(described["payload"]["current_status"], "success");
    let mut told = other.until_it(is_end).await;
    submit(&mut other, home.code_in("b", "printfn \"b\"")).await;
    told.extend(other.until_it(is_end).await);
    // Once more, after it was left.
    other.send(json!({ "type": "job.unsubscribe", "payload": { "job_id": job } })).await;
    other.send(subscribe(true)).await;
    told.extend(other.until_it(is_end).await);
    told.retain(|envelope| envelope["event_seq"].is_u64());
    let last = told.len() as u64;
    assert_eq!(seqs(&told), (1..=last).collect::<Vec<_>>());
    drop(other);
    let (_, _, rest) = resumed(&home, &welcome, 0, last).await;
    assert_eq!(rest, told);
}

#[tokio::test]
async fn a_session_is_resumed_by_its_newest_token_and_its_own_principal_alone() {
    let home = Home::new().await;
    let refused = async |token: &str, welcome: &Value, resume_token: &Value| {
        let mut peer = home.connect().await;
        let mut hello = hello(token);
        hello["payload"]["resume"] = json!({
            "session_id": welcome["session_id"], "resume_token": resume_token, "last_event_seq": 0,
        });
        peer.send(hello).await;
        let answer = peer.next().await.unwrap();
        (answer["type"].clone(), answer["payload"]["code"].clone())
    };
    let error = |code: &str| (json!("session.error"), json!(code));
    let (_peer, welcome) = opened(&home).await;
    let token = &welcome["resume_token"];
    assert_eq!(refused("secret", &welcome, &json!("rt_00")).await, error("UNAUTHENTICATED"));
    assert_eq!(refused("hers", &welcome, token).await, error("RESUME_WINDOW_EXPIRED"));
    let (mut peer, _, _) = resumed(&home, &welcome, 0, 0).await;
    peer.send(json!({ "type": "session.list_jobs", "payload": {} })).await;
    peer.first("session.jobs").await;
    assert_eq!(refused("secret", &welcome, token).await, error("UNAUTHENTICATED"), "it was used");
    let (mut peer, welcome) = opened(&home).await;
    peer.send(json!({ "type": "session.close", "payload": {} })).await;
    peer.first("session.closed").await;
    let closed = refused("secret", &welcome, &welcome["resume_token"]).await;
    assert_eq!(closed, error("RESUME_WINDOW_EXPIRED"));
}

#[tokio::test]
async fn jobs_of_another_principal_are_not_there() {
    let home = Home::new().await;
    let (mut mine, _) = opened(&home).await;
    submit(&mut mine, home.code("wait")).await;
    let job = mine.first("job.accepted").await["payload"]["job_id"].clone();
    let (mut hers, _) = opened_by(&home, "hers").await;
    hers.send(json!({ "type": "job.subscribe", "payload": { "job_id": job, "history": true } })).await;
    assert_eq!(hers.next().await.unwrap()["payload"]["code"], "JOB_NOT_FOUND");
    hers.send(json!({ "type": "job.cancel", "job_id": job, "payload": {} })).await;
    assert_eq!(hers.next().await.unwrap()["payload"]["code"], "JOB_NOT_FOUND");
    hers.send(json!({ "type": "session.list_jobs", "payload": {} })).await;
    assert_eq!(hers.next().await.unwrap()["payload"]["jobs"], json!([]));
}

#[tokio::test]
async fn jobs_are_listed_by_status_and_page() {
    let home = Home::new().await;
    let (mut peer, _) = opened(&home).await;
    for _ in 0..3 {
        submit(&mut peer, home.code("1 + 1")).await;
        peer.until_it(is_end).await;
    }
    submit(&mut peer, home.code("wait")).await;
    peer.until_it(|envelope| envelope["payload"]["body"]["phase"] == "running").await;
    let (mut other, _) = opened(&home).await;
    let listed = async |peer: &mut Peer, payload: Value| {
        peer.send(json!({ "type": "session.list_jobs", "payload": payload })).await;
        peer.first("session.jobs").await["payload"].clone()
    };
    let page = listed(&mut peer, json!({ "limit": 3 })).await;
    assert_eq!(page["jobs"].as_array().unwrap().len(), 3);
    let rest = listed(&mut peer, json!({ "limit": 3, "cursor": page["next_cursor"] })).await;
    assert_eq!((rest["jobs"][0]["status"].as_str(), &rest["next_cursor"]), (Some("running"), &Value::Null));
    let done = listed(&mut peer, json!({ "filter": { "status": ["success"], "agent": "fsharp" } })).await;
    assert_eq!(done["jobs"].as_array().unwrap().len(), 3);
    // Another session of the same principal sees what is under way.
    let elsewhere = listed(&mut other, json!({})).await;
    assert_eq!(elsewhere["jobs"][0]["job_id"], rest["jobs"][0]["job_id"]);
    assert_eq!(elsewhere["jobs"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_lease_that_has_expired_or_is_in_no_known_form_is_refused() {
    let home = Home::new().await;
    let (mut peer, _) = opened(&home).await;
    for expires_at in ["2020-01-01T00:00:00Z", "2099-01-01T00:00:00+01:00", "tomorrow"] {
        let payload = json!({
            "agent": "fsharp", "input": home.code("1 + 1"), "lease_constraints": { "expires_at": expires_at },
        });
        let id = peer.send(json!({ "type": "job.submit", "payload": payload })).await;
        let refused = peer.next().await.unwrap()["payload"].clone();
        assert_eq!(refused["code"], "INVALID_REQUEST", "{expires_at}");
        assert_eq!(refused["details"]["request_id"], id);
    }
}

#[tokio::test]
async fn a_session_is_taken_from_a_connection_that_may_be_lost() {
    let home = Home::new().await;
    let (mut peer, welcome) = opened(&home).await;
    submit(&mut peer, home.code("wait")).await;
    let running = |envelope: &Value| envelope["payload"]["body"]["phase"] == "running";
    let seq = peer.until_it(running).await.pop().unwrap()["event_seq"].as_u64().unwrap();
    let (mut again, next, _) = resumed(&home, &welcome, seq, seq).await;
    while peer.next().await.is_some() {}
    // The token of the connection before is used up, and its jobs are the new one's.
    let job = again.until_it(|envelope| envelope["payload"]["kind"] == "log").await.pop().unwrap();
    again.send(json!({ "type": "job.cancel", "job_id": job["job_id"], "payload": {} })).await;
    assert_eq!(again.until_it(is_end).await.pop().unwrap()["payload"]["final_status"], "cancelled");
    assert_ne!(next["resume_token"], welcome["resume_token"]);
}

#[tokio::test]
async fn a_number_that_was_never_given_out_resumes_nothing_and_costs_no_token() {
    let home = Home::new().await;
    let (peer, welcome) = opened(&home).await;
    drop(peer);
    let mut peer = home.connect().await;
    peer.send(json!({
        "type": "session.resume",
        "payload": {
            "session_id": welcome["session_id"],
            "resume_token": welcome["resume_token"],
            "last_event_seq": 9,
            "auth": { "scheme": "bearer", "token": "secret" },
        },
    }))
    .await;
    assert_eq!(peer.next().await.unwrap()["payload"]["code"], "RESUME_WINDOW_EXPIRED");
    assert_eq!(peer.next().await, None);
    resumed(&home, &welcome, 0, 0).await;
}

#[tokio::test]
async fn a_client_that_does_not_answer_is_let_go_and_its_job_goes_on() {
    let settings = Settings { heartbeat_interval_sec: 1, ..Settings::default() };
    let home = Home::with(settings, Limits::default()).await;
    let (mut peer, welcome) = opened(&home).await;
    submit(&mut peer, home.code("wait")).await;
    let mut pings = 0;
    while let Some(envelope) = peer.next().await {
        pings += u32::from(envelope["type"] == "session.ping");
    }
    assert!(pings > 0);
    let (mut again, _, _) = resumed(&home, &welcome, 0, 1).await;
    again.send(json!({ "type": "session.list_jobs", "payload": {} })).await;
    assert_eq!(again.first("session.jobs").await["payload"]["jobs"][0]["status"], "running");
}

#[tokio::test]
async fn who_subscribes_and_leaves_at_once_is_told_nothing() {
    let home = Home::new().await;
    let ((mut one, _), (mut other, _)) = (opened(&home).await, opened(&home).await);
    submit(&mut one, home.code("wait")).await;
    let told = one.until_it(|envelope| envelope["payload"]["kind"] == "log").await;
    let job = told[0]["payload"]["job_id"].clone();
    other.send(json!({ "type": "job.subscribe", "payload": { "job_id": job } })).await;
    other.first("job.subscribed").await;
    other.send(json!({ "type": "job.unsubscribe", "payload": { "job_id": job } })).await;
    let ping = json!({ "nonce": "left", "sent_at": "2026-05-13T19:42:13Z" });
    other.send(json!({ "type": "session.ping", "payload": ping })).await;
    assert_eq!(other.next().await.unwrap()["payload"]["ping_nonce"], "left");
    one.send(json!({ "type": "job.cancel", "job_id": job, "payload": {} })).await;
    one.until_it(is_end).await;
    other.send(json!({ "type": "session.list_jobs", "payload": {} })).await;
    assert_eq!(other.next().await.unwrap()["type"], "session.jobs");
}

#[tokio::test]
async fn history_begins_behind_a_number_of_the_session_that_submitted_the_job() {
    let home = Home::new().await;
    let ((mut one, _), (mut other, _)) = (opened(&home).await, opened(&home).await);
    submit(&mut one, home.code("1 + 1")).await;
    one.until_it(is_end).await;
    submit(&mut one, home.code("printfn \"text\"")).await;
    let told = one.until_it(is_end).await;
    let job = told[0]["payload"]["job_id"].clone();
    let ids = |told: &[Value]| told.iter().map(|envelope| envelope["id"].clone()).collect::<Vec<_>>();
    for from in 1..told.len() {
        let seq = &told[from]["event_seq"];
        let payload = json!({ "job_id": job, "history": true, "from_event_seq": seq });
        other.send(json!({ "type": "job.subscribe", "payload": payload })).await;
        other.first("job.subscribed").await;
        let rest = match from == told.len() - 1 {
            true => Vec::new(),
            false => other.until_it(is_end).await,
        };
        assert_eq!(ids(&rest), ids(&told[from + 1..]), "behind {seq}");
    }
}

#[tokio::test]
async fn a_job_that_waits_ends_in_its_time_too_and_can_be_taken_back() {
    let home = Home::new().await;
    let (mut peer, _) = opened(&home).await;
    submit(&mut peer, home.code("wait")).await;
    peer.until_it(|envelope| envelope["payload"]["kind"] == "log").await;
    let waiting = json!({ "agent": "fsharp", "input": home.code("1 + 1"), "max_runtime_sec": 1 });
    peer.send(json!({ "type": "job.submit", "payload": waiting })).await;
    let ended = peer.until_it(is_end).await.pop().unwrap();
    assert_eq!(ended["payload"]["final_status"], "timed_out", "{ended}");
    submit(&mut peer, home.code("1 + 1")).await;
    let job = peer.first("job.accepted").await["payload"]["job_id"].clone();
    peer.send(json!({ "type": "job.cancel", "job_id": job, "payload": {} })).await;
    let ended = peer.until_it(is_end).await.pop().unwrap();
    assert_eq!((&ended["job_id"], &ended["payload"]["final_status"]), (&job, &json!("cancelled")));
}

#[tokio::test]
async fn a_token_is_good_until_its_successor_has_reached_the_client() {
    let home = Home::new().await;
    let (peer, welcome) = opened(&home).await;
    drop(peer);
    // Connections that are lost with what was sent over them.
    for _ in 0..3 {
        let mut lost = home.connect().await;
        let payload = json!({
            "session_id": welcome["session_id"],
            "resume_token": welcome["resume_token"],
            "last_event_seq": 0,
            "auth": { "scheme": "bearer", "token": "secret" },
        });
        lost.send(json!({ "type": "session.resume", "payload": payload })).await;
        // It says no more, so that it may have had no answer as far as the daemon knows.
        lost.first("session.welcome").await;
    }
    let (mut peer, next, _) = resumed(&home, &welcome, 0, 0).await;
    peer.send(json!({ "type": "session.list_jobs", "payload": {} })).await;
    peer.first("session.jobs").await;
    let (_, again, _) = resumed(&home, &next, 0, 0).await;
    assert_ne!(again["resume_token"], next["resume_token"]);
    let mut late = home.connect().await;
    let payload = json!({
        "session_id": welcome["session_id"],
        "resume_token": welcome["resume_token"],
        "auth": { "scheme": "bearer", "token": "secret" },
    });
    late.send(json!({ "type": "session.resume", "payload": payload })).await;
    assert_eq!(late.next().await.unwrap()["payload"]["code"], "UNAUTHENTICATED");
}

#[tokio::test]
async fn a_session_begins_where_its_client_surely_is_and_misses_nothing() {
    let mut home = Home::new().await;
    let ((mut one, _), (mut other, mut welcome)) = (opened(&home).await, opened(&home).await);
    // It is told of one job that runs on, of one that it has joined and was told nothing of, and of many that end.
    submit(&mut one, home.code_in("joined", "wait")).await;
    let waits = one.until_it(|envelope| envelope["payload"]["kind"] == "log").await;
    let joined = waits[0]["payload"]["job_id"].clone();
    other.send(json!({ "type": "job.subscribe", "payload": { "job_id": joined } })).await;
    other.first("job.subscribed").await;
    submit(&mut other, home.code_in("own", "wait")).await;
    let own = other.first("job.accepted").await["payload"]["job_id"].clone();
    let mut told = Vec::new();
    for _ in 0..250 {
        submit(&mut other, home.code_in("many", "printfn \"text\"")).await;
        told.extend(other.until_it(is_end).await);
    }
    let last = told.last().unwrap()["event_seq"].as_u64().unwrap();
    assert!(last > 700);
    other.send(json!({ "type": "session.ack", "payload": { "last_processed_seq": last - 10 } })).await;
    other.send(json!({ "type": "session.list_jobs", "payload": {} })).await;
    other.first("session.jobs").await;
    drop(other);
    // What is behind that can be had again, though the client had it when it resumed last.
    for from in [last, last - 10] {
        let (again, next, rest) = resumed(&home, &welcome, from, last).await;
        assert_eq!(seqs(&rest), (from + 1..=last).collect::<Vec<_>>());
        drop(again);
        welcome = next;
    }
    let stored = home.stored(welcome["session_id"].as_str().unwrap()).await;
    assert!(stored["base"]["seq"].as_u64().unwrap() >= 500, "{stored}");
    // What it acknowledged is not told again.
    let mut peer = home.connect().await;
    peer.send(json!({
        "type": "session.resume",
        "payload": {
            "session_id": welcome["session_id"], "resume_token": welcome["resume_token"], "last_event_seq": 3,
            "auth": { "scheme": "bearer", "token": "secret" },
        },
    }))
    .await;
    assert_eq!(peer.next().await.unwrap()["payload"]["code"], "RESUME_WINDOW_EXPIRED");
    // Both jobs are cut off with the daemon, and that is told.
    home.restart().await;
    let (mut again, _, _) = resumed(&home, &welcome, last, last).await;
    let mut ended = Vec::new();
    while ended.len() < 2 {
        let end = again.until_it(is_end).await.pop().unwrap();
        ended.push(end["job_id"].clone());
    }
    assert!(ended.contains(&own) && ended.contains(&joined), "{ended:?}");
}

#[tokio::test]
async fn a_trace_that_cannot_be_kept_is_refused_and_the_session_goes_on() {
    let home = Home::new().await;
    let (mut peer, _) = opened(&home).await;
    for trace in ["a".repeat(300), "/".repeat(100)] {
        let payload = json!({ "agent": "fsharp", "input": home.code("1 + 1") });
        peer.send(json!({ "type": "job.submit", "trace_id": trace, "payload": payload })).await;
        assert_eq!(peer.next().await.unwrap()["payload"]["code"], "INVALID_REQUEST", "{trace}");
    }
    submit(&mut peer, home.code("1 + 1")).await;
    peer.until_it(is_end).await;
}

#[tokio::test]
async fn the_same_job_from_two_sessions_at_once_is_accepted_and_ended_in_both() {
    let home = Home::new().await;
    let ((mut one, _), (mut other, _)) = (opened(&home).await, opened(&home).await);
    for round in 0..20 {
        let payload =
            json!({ "agent": "fsharp", "input": home.code("1 + 1"), "idempotency_key": format!("k{round}") });
        for peer in [&mut one, &mut other] {
            peer.send(json!({ "type": "job.submit", "payload": payload })).await;
        }
        let (mut jobs, mut ends) = (Vec::new(), Vec::new());
        for peer in [&mut one, &mut other] {
            jobs.push(peer.first("job.accepted").await["payload"]["job_id"].clone());
            ends.push(peer.until_it(is_end).await.pop().unwrap()["id"].clone());
        }
        assert_eq!((&jobs[0], &ends[0]), (&jobs[1], &ends[1]));
    }
}

#[tokio::test]
async fn connections_beyond_the_limit_are_closed() {
    let limits = Limits { connections: 1, ..Limits::default() };
    let home = Home::with(Settings::default(), limits).await;
    let (_first, _) = opened(&home).await;
    let mut second = home.connect().await;
    assert_eq!(second.next().await, None);
}

#[tokio::test]
async fn a_job_whose_session_was_deleted_cannot_be_joined_and_costs_nothing() {
    let home = Home::new().await;
    let ((mut one, _), (mut other, welcome)) = (opened(&home).await, opened(&home).await);
    submit(&mut one, home.code("1 + 1")).await;
    let job = one.until_it(is_end).await[0]["payload"]["job_id"].clone();
    home.delete_sessions().await;
    other.send(json!({ "type": "job.subscribe", "payload": { "job_id": job, "history": true } })).await;
    assert_eq!(other.next().await.unwrap()["payload"]["code"], "JOB_NOT_FOUND");
    drop(other);
    resumed(&home, &welcome, 0, 0).await;
}
