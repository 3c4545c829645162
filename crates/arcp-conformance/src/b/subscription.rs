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

/// Asks to subscribe, and returns the answer: `job.subscribed` or an error about the request.
async fn ask(session: &mut Session, job: &str, payload: Value) -> Result<Value, Stop> {
    session.send_about("job.subscribe", job, payload).await?;
    let answered = |message: &Value| match kind(message) {
        "job.subscribed" | "session.error" => true,
        // An ended job may have an error of its own, but none with these codes.
        "job.error" => matches!(text(message, "/payload/code"), "JOB_NOT_FOUND" | "PERMISSION_DENIED"),
        _ => false,
    };
    session.peer.take("job.subscribed, or an error", answered).await
}

async fn subscribe(session: &mut Session, job: &str, payload: Value) -> Result<Value, Stop> {
    let answer = ask(session, job, payload).await?;
    expect(kind(&answer) == "job.subscribed", "job.subscribed", || short(&answer))?;
    Ok(answer)
}

/// A job that has ended in the first session, and its events.
async fn ended(session: &mut Session, probe: &Probe) -> Result<(String, Vec<Value>), Stop> {
    let behaviour =
        if probe.agent(Behaviour::Chatty).is_ok() { Behaviour::Chatty } else { Behaviour::Succeeds };
    let job = session.start(probe, behaviour).await?;
    session.end(&job).await?;
    let events = events(session, &job);
    Ok((job, events))
}

fn events(session: &Session, job: &str) -> Vec<Value> {
    let about = |message: &&Value| seq(message).is_some() && text(message, "/job_id") == job;
    session.peer.received().filter(about).cloned().collect()
}

/// A subscription to a job that has published something.
struct Watched {
    job: String,
    events: Vec<Value>,
    answer: Value,
}

/// Subscribes to a job that has ended; where the runtime forgets those, to one that still runs.
async fn watch(probe: &Probe, one: &mut Session, two: &mut Session, payload: Value) -> Result<Watched, Stop> {
    let (job, before) = ended(one, probe).await?;
    let answer = ask(two, &job, payload.clone()).await?;
    if kind(&answer) == "job.subscribed" {
        return Ok(Watched { job, events: before, answer });
    }
    expect(text(&answer, "/payload/code") == "JOB_NOT_FOUND", "job.subscribed", || short(&answer))?;
    let job = one.start(probe, Behaviour::Slow).await?;
    one.peer.settle().await;
    let before = events(one, &job);
    let answer = subscribe(two, &job, payload).await?;
    Ok(Watched { job, events: before, answer })
}

async fn subscribed(probe: &Probe) -> Verdict {
    let (mut one, mut two) = pair(probe).await?;
    let Watched { job, answer, .. } = watch(probe, &mut one, &mut two, json!({})).await?;
    one.clean_up(&job).await?;
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

fn payloads<'a>(events: impl Iterator<Item = &'a Value>) -> Vec<&'a Value> {
    events.map(|event| &event["payload"]).collect()
}

/// Fails unless the events of a job that were replayed to a subscriber begin with these.
async fn replayed(two: &mut Session, job: &str, wanted: Vec<&Value>) -> Verdict {
    if let Some(last) = wanted.last() {
        let event = |message: &Value| text(message, "/job_id") == job && message["payload"] == **last;
        two.peer.take(&format!("the event {}", short(last)), event).await?;
    }
    two.peer.settle().await;
    let got = events(two, job);
    let got = payloads(got.iter());
    let described = |payloads: &[&Value]| short(&payloads.iter().map(|each| (*each).clone()).collect());
    expect(got.starts_with(&wanted), &format!("the events {}", described(&wanted)), || described(&got))
}

async fn history(probe: &Probe) -> Verdict {
    let (mut one, mut two) = pair(probe).await?;
    let request = json!({ "history": true, "from_event_seq": 0 });
    let watched = watch(probe, &mut one, &mut two, request).await?;
    if watched.events.is_empty() {
        return Err(Stop::skipped("the job publishes nothing while it runs"));
    }
    replayed(&mut two, &watched.job, payloads(watched.events.iter())).await?;
    one.clean_up(&watched.job).await
}

async fn history_from(probe: &Probe) -> Verdict {
    let (mut one, mut two) = pair(probe).await?;
    // The first job of a session begins with its first number.
    let first = 1;
    let request = json!({ "history": true, "from_event_seq": first });
    let watched = watch(probe, &mut one, &mut two, request).await?;
    let numbers: Vec<_> = watched.events.iter().filter_map(seq).collect();
    if !numbers.contains(&first) {
        return Err(Stop::skipped("the job's events do not begin with 1"));
    }
    let wanted = watched.events.iter().filter(|event| seq(event) > Some(first));
    replayed(&mut two, &watched.job, payloads(wanted)).await?;
    one.clean_up(&watched.job).await
}

async fn no_history(probe: &Probe) -> Verdict {
    let (mut one, mut two) = pair(probe).await?;
    let watched = watch(probe, &mut one, &mut two, json!({ "history": false })).await?;
    two.peer.settle().await;
    let known = payloads(watched.events.iter());
    let old =
        two.peer.received().find(|message| seq(message).is_some() && known.contains(&&message["payload"]));
    let old = old.cloned();
    one.clean_up(&watched.job).await?;
    expect(old.is_none(), "no event of before", || old.as_ref().map(short).unwrap_or_default())
}

async fn own_numbers(probe: &Probe) -> Verdict {
    let (mut one, mut two) = pair(probe).await?;
    let own = two.start(probe, Behaviour::Succeeds).await?;
    two.end(&own).await?;
    for _ in 0..2 {
        let request = json!({ "history": true, "from_event_seq": 0 });
        let watched = watch(probe, &mut one, &mut two, request).await?;
        replayed(&mut two, &watched.job, payloads(watched.events.iter())).await?;
        one.clean_up(&watched.job).await?;
    }
    two.peer.settle().await;
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
    let answer = ask(&mut other, &job, json!({ "history": true, "from_event_seq": 0 })).await?;
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
