//! Dialect B: what a job may do at most, until when, and at what cost. Source: draft-arcp-1.1, 9.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::b::{is_end, opened, seqs};
use crate::support::{Home, Peer};

/// Submits a job with these fields beside its agent and its input.
async fn submit(peer: &mut Peer, input: Value, fields: Value) -> String {
    let mut payload = json!({ "agent": "fsharp", "input": input });
    payload.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    peer.send(json!({ "type": "job.submit", "payload": payload })).await
}

fn in_milliseconds(span: i64) -> Value {
    let at = Timestamp::now() + SignedDuration::from_millis(span);
    json!({ "lease_constraints": { "expires_at": at.to_string() } })
}

#[tokio::test]
async fn a_job_whose_lease_expires_is_stopped() {
    let home = Home::new().await;
    let (mut peer, _) = opened(&home).await;
    submit(&mut peer, home.code("wait"), in_milliseconds(700)).await;
    let told = peer.until_it(is_end).await;
    let end = &told.last().unwrap()["payload"];
    assert_eq!((&end["code"], &end["final_status"]), (&json!("LEASE_EXPIRED"), &json!("error")), "{end}");
    let numbered: Vec<Value> = told.into_iter().filter(|told| told["event_seq"].is_u64()).collect();
    assert_eq!(seqs(&numbered), (1..=numbered.len() as u64).collect::<Vec<_>>());
    // Its session goes on.
    submit(&mut peer, home.code("1 + 1"), json!({})).await;
    assert_eq!(peer.until_it(is_end).await.last().unwrap()["type"], "job.result");
}

#[tokio::test]
async fn a_job_that_is_submitted_again_after_its_leases_end_is_told_its_end_again() {
    let home = Home::new().await;
    let (mut peer, _) = opened(&home).await;
    let mut fields = in_milliseconds(700);
    fields["idempotency_key"] = json!("once");
    submit(&mut peer, home.code("wait"), fields.clone()).await;
    let end = peer.until_it(is_end).await.pop().unwrap();
    assert_eq!(end["payload"]["code"], "LEASE_EXPIRED");
    submit(&mut peer, home.code("wait"), fields.clone()).await;
    let again = peer.until_it(is_end).await.pop().unwrap();
    assert_eq!((&again["job_id"], &again["payload"]), (&end["job_id"], &end["payload"]));
    fields["idempotency_key"] = json!("another");
    submit(&mut peer, home.code("wait"), fields).await;
    let refused = peer.first("session.error").await;
    assert_eq!(refused["payload"]["code"], "INVALID_REQUEST", "{refused}");
}

#[tokio::test]
async fn a_job_whose_lease_expires_while_it_waits_never_runs() {
    let home = Home::new().await;
    let (mut peer, _) = opened(&home).await;
    submit(&mut peer, home.code("wait"), json!({})).await;
    let first = peer.first("job.accepted").await["payload"]["job_id"].clone();
    submit(&mut peer, home.code("printfn \"ran\""), in_milliseconds(500)).await;
    let end = peer.until_it(is_end).await.pop().unwrap();
    assert_ne!(end["job_id"], first);
    assert_eq!(end["payload"]["code"], "LEASE_EXPIRED");
}

#[tokio::test]
async fn what_is_granted_is_told_and_of_a_kernel_only_what_can_be_held_to() {
    let home = Home::new().await;
    let (mut peer, _) = opened(&home).await;
    let asked = json!({
        "lease_request": { "fs.read": ["/project/**"], "cost.budget": ["USD:5.25", "credits:10"] },
        "lease_constraints": { "expires_at": "2099-01-01T00:00:00Z" },
    });
    submit(&mut peer, home.code("wait"), asked).await;
    let accepted = peer.first("job.accepted").await["payload"].clone();
    assert_eq!(accepted["lease"], json!({ "cost.budget": ["USD:5.25", "credits:10"] }));
    assert_eq!(accepted["lease_constraints"], json!({ "expires_at": "2099-01-01T00:00:00Z" }));
    assert_eq!(accepted["budget"], json!({ "USD": "5.25", "credits": "10" }));
    // Others of the same principal are told too.
    let (mut other, _) = opened(&home).await;
    other.send(json!({ "type": "session.list_jobs", "payload": {} })).await;
    let listed = other.first("session.jobs").await["payload"]["jobs"][0].clone();
    assert_eq!((&listed["job_id"], &listed["lease"]), (&accepted["job_id"], &accepted["lease"]));
    other.send(json!({ "type": "job.subscribe", "payload": { "job_id": accepted["job_id"] } })).await;
    let subscribed = other.first("job.subscribed").await["payload"].clone();
    for field in ["lease", "lease_constraints", "budget"] {
        assert_eq!(subscribed[field], accepted[field], "{field}");
    }
}

#[tokio::test]
async fn a_lease_of_no_known_form_is_refused_and_says_what_is_wrong() {
    let home = Home::new().await;
    let (mut peer, _) = opened(&home).await;
    for (request, about) in [
        (json!({ "fs.read": ["work"] }), "fs.read"),
        (json!({ "fs.read": ["/project/a**"] }), "fs.read"),
        (json!({ "Files": ["/work"] }), "kind of operation"),
        (json!({ "cost.budget": ["five dollars"] }), "amount"),
        (json!({ "cost.budget": ["USD:1", "USD:2"] }), "USD"),
    ] {
        let id = submit(&mut peer, home.code("1"), json!({ "lease_request": request })).await;
        let refused = peer.next().await.unwrap()["payload"].clone();
        assert_eq!(refused["code"], "INVALID_REQUEST", "{request}");
        assert_eq!(refused["details"]["request_id"], id);
        assert!(refused["message"].as_str().unwrap().contains(about), "{refused}");
    }
}

#[tokio::test]
async fn a_key_that_is_used_again_with_another_lease_is_a_conflict() {
    let home = Home::new().await;
    let (mut peer, _) = opened(&home).await;
    let job =
        |budget: &str| json!({ "idempotency_key": "once", "lease_request": { "cost.budget": [budget] } });
    submit(&mut peer, home.code("1"), job("USD:1")).await;
    peer.until_it(is_end).await;
    submit(&mut peer, home.code("1"), job("USD:1")).await;
    assert_eq!(peer.until_it(is_end).await.last().unwrap()["type"], "job.result");
    submit(&mut peer, home.code("1"), job("USD:2")).await;
    assert_eq!(peer.next().await.unwrap()["payload"]["code"], "DUPLICATE_KEY");
}
