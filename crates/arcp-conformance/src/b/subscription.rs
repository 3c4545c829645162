//! Dialect B §7.6: subscription to jobs of other sessions.

use serde_json::{Value, json};

use super::session::{Session, gap_free, is_terminal, numbers};
use crate::json::{items, kind, seq, short, text};
use crate::probe::{Behaviour, Probe};
use crate::scenario::{Stop, Verdict, expect, scenarios};

scenarios! {
    "b.7.6.subscribed" Must
        "job.subscribe is answered with job.subscribed: job_id, current_status, agent, lease, \
        subscribed_from and replayed."
        => subscribed;
    "b.7.6.live" Must
        "A subscriber gets what the job publishes after the subscription, in its own session."
        => live;
    "b.7.6.history" Must
        "With history, the events of before are replayed."
        => history;
    "b.7.6.history-from" Must
        "from_event_seq leaves out the events up to it."
        => history_from;
    "b.7.6.no-history" Must
        "Without history, no event of before is replayed."
        => no_history;
    "b.7.6.own-numbers" Must
        "A subscriber's events have the event_seq of its own session, without a gap."
        => own_numbers;
    "b.7.6.no-cancel" Must
        "A subscriber cannot cancel the job."
        => no_cancel;
    "b.7.6.unsubscribe" Must
        "After job.unsubscribe no event of the job arrives."
        => unsubscribe;
    "b.7.6.unknown-job" Must
        "A subscription to an unknown job is answered with JOB_NOT_FOUND."
        => unknown_job;
    "b.7.6.other-principal" Must
        "A subscription by a principal that may not observe the job is refused."
        => other_principal;
    "b.14.no-credentials" Must
        "A subscriber that did not submit the job gets no credentials."
        => no_credentials;
}

/// Two sessions of one principal, of which the second may subscribe.
async fn pair(probe: &Probe) -> Result<(Session, Session), Stop> {
    probe.needs_connections()?;
    let one = Session::open(probe).await?;
    let two = Session::open(probe).await?;
    two.needs("subscribe")?;
    Ok((one, two))
}

async fn subscribe(session: &mut Session, job: &str, payload: Value) -> Result<Value, Stop> {
    session.send_about("job.subscribe", job, payload).await?;
    let answered =
        |message: &Value| matches!(kind(message), "job.subscribed" | "session.error" | "job.error");
    let expected = "job.subscribed";
    let answer = session.peer.take(expected, |message| answered(message) && seq(message).is_none()).await?;
    expect(kind(&answer) == expected, expected, || short(&answer))?;
    Ok(answer)
}

/// A job that has ended in the first session, and its events.
async fn ended(session: &mut Session, probe: &Probe) -> Result<(String, Vec<Value>), Stop> {
    let behaviour =
        if probe.agent(Behaviour::Chatty).is_ok() { Behaviour::Chatty } else { Behaviour::Succeeds };
    let job = session.start(probe, behaviour).await?;
    session.end(&job).await?;
    let events = session.peer.received().filter(|message| seq(message).is_some()).cloned().collect();
    Ok((job, events))
}

async fn subscribed(probe: &Probe) -> Verdict {
    let (mut one, mut two) = pair(probe).await?;
    let (job, _) = ended(&mut one, probe).await?;
    let answer = subscribe(&mut two, &job, json!({})).await?;
    expect(text(&answer, "/payload/job_id") == job, "the job_id", || short(&answer))?;
    for field in ["current_status", "agent"] {
        let pointer = format!("/payload/{field}");
        expect(!text(&answer, &pointer).is_empty(), &format!("a text as {field}"), || short(&answer))?;
    }
    let payload = &answer["payload"];
    expect(payload["lease"].is_object(), "a lease", || short(&answer))?;
    expect(payload["subscribed_from"].is_i64(), "subscribed_from as a whole number", || short(&answer))?;
    expect(payload["replayed"].is_boolean(), "replayed as true or false", || short(&answer))
}

async fn live(probe: &Probe) -> Verdict {
    let (mut one, mut two) = pair(probe).await?;
    let job = one.start(probe, Behaviour::Slow).await?;
    subscribe(&mut two, &job, json!({})).await?;
    one.clean_up(&job).await?;
    let end = two.end(&job).await?;
    expect(text(&end, "/session_id") == two.id, "the subscriber's session_id", || short(&end))
}

/// The payloads of a job's events, without what belongs to a session.
fn payloads<'a>(messages: impl Iterator<Item = &'a Value>, job: &str) -> Vec<Value> {
    let about = messages.filter(|message| seq(message).is_some() && text(message, "/job_id") == job);
    about.map(|message| message["payload"].clone()).collect()
}

async fn history(probe: &Probe) -> Verdict {
    let (mut one, mut two) = pair(probe).await?;
    let (job, events) = ended(&mut one, probe).await?;
    subscribe(&mut two, &job, json!({ "history": true, "from_event_seq": 0 })).await?;
    two.end(&job).await?;
    two.peer.settle().await;
    let (wanted, got) = (payloads(events.iter(), &job), payloads(two.peer.received(), &job));
    expect(wanted == got, &format!("the job's {} events", wanted.len()), || format!("{} events", got.len()))
}

async fn history_from(probe: &Probe) -> Verdict {
    let (mut one, mut two) = pair(probe).await?;
    let (job, events) = ended(&mut one, probe).await?;
    let first = events.first().and_then(seq).unwrap_or(0);
    subscribe(&mut two, &job, json!({ "history": true, "from_event_seq": first })).await?;
    let wanted = payloads(events.iter().filter(|event| seq(event) > Some(first)), &job);
    if !wanted.is_empty() {
        two.end(&job).await?;
    }
    two.peer.settle().await;
    let got = payloads(two.peer.received(), &job);
    expect(wanted == got, &format!("the {} events after {first}", wanted.len()), || {
        format!("{} events", got.len())
    })
}

async fn no_history(probe: &Probe) -> Verdict {
    let (mut one, mut two) = pair(probe).await?;
    let (job, _) = ended(&mut one, probe).await?;
    subscribe(&mut two, &job, json!({ "history": false })).await?;
    two.peer.settle().await;
    let old = two.peer.received().find(|message| seq(message).is_some());
    expect(old.is_none(), "no event of before", || old.map(short).unwrap_or_default())
}

async fn own_numbers(probe: &Probe) -> Verdict {
    let (mut one, mut two) = pair(probe).await?;
    let (first, _) = ended(&mut one, probe).await?;
    let (second, _) = ended(&mut one, probe).await?;
    let own = two.start(probe, Behaviour::Succeeds).await?;
    two.end(&own).await?;
    for job in [&first, &second] {
        subscribe(&mut two, job, json!({ "history": true, "from_event_seq": 0 })).await?;
        two.end(job).await?;
    }
    gap_free(&numbers(two.peer.received()))
}

async fn no_cancel(probe: &Probe) -> Verdict {
    let (mut one, mut two) = pair(probe).await?;
    let job = one.start(probe, Behaviour::Slow).await?;
    subscribe(&mut two, &job, json!({})).await?;
    two.send_about("job.cancel", &job, json!({ "reason": "a subscriber tries" })).await?;
    two.round_trip().await?;
    one.peer.settle().await;
    let ended = one.peer.received().find(|message| is_terminal(message, &job)).cloned();
    one.clean_up(&job).await?;
    expect(ended.is_none(), "a job that goes on", || ended.as_ref().map(short).unwrap_or_default())
}

async fn unsubscribe(probe: &Probe) -> Verdict {
    let (mut one, mut two) = pair(probe).await?;
    let job = one.start(probe, Behaviour::Slow).await?;
    subscribe(&mut two, &job, json!({})).await?;
    two.send_about("job.unsubscribe", &job, json!({})).await?;
    two.round_trip().await?;
    let before = two.peer.count();
    one.clean_up(&job).await?;
    two.peer.settle().await;
    let more = two.peer.received().skip(before).find(|message| text(message, "/job_id") == job);
    expect(more.is_none(), "no event after job.unsubscribe", || more.map(short).unwrap_or_default())
}

async fn unknown_job(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    session.needs("subscribe")?;
    session.send_about("job.subscribe", "job_01JZZZZZZZZZZZZZZZZZZZZZZZ", json!({})).await?;
    session.refusal("JOB_NOT_FOUND").await.map(drop)
}

async fn other_principal(probe: &Probe) -> Verdict {
    probe.needs_connections()?;
    let mut other = Session::open_other(probe).await?;
    other.needs("subscribe")?;
    let mut session = Session::open(probe).await?;
    let (job, _) = ended(&mut session, probe).await?;
    other.send_about("job.subscribe", &job, json!({ "history": true, "from_event_seq": 0 })).await?;
    let answered =
        |message: &Value| matches!(kind(message), "job.subscribed" | "session.error" | "job.error");
    let answer = other.peer.take("PERMISSION_DENIED or JOB_NOT_FOUND", answered).await?;
    let holds = matches!(text(&answer, "/payload/code"), "PERMISSION_DENIED" | "JOB_NOT_FOUND");
    expect(holds, "PERMISSION_DENIED or JOB_NOT_FOUND", || short(&answer))
}

async fn no_credentials(probe: &Probe) -> Verdict {
    probe.needs_connections()?;
    let mut one = Session::open(probe).await?;
    one.needs("provisioned_credentials")?;
    let accepted = one.submit(super::session::job(probe, Behaviour::Succeeds)?).await?;
    if items(&accepted, "/payload/credentials").is_empty() {
        return Err(Stop::not_applicable("the job has no credentials"));
    }
    let job = super::session::job_id(&accepted)?;
    let mut two = Session::open_other(probe).await?;
    two.send_about("job.subscribe", &job, json!({})).await?;
    two.peer.settle().await;
    let leaked = two.peer.received().find(|message| message.pointer("/payload/credentials").is_some());
    expect(leaked.is_none(), "no credentials", || "a message with credentials".to_owned())
}
