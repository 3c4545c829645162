//! Dialect A §13: observers.

use serde_json::{Value, json};

use super::session::Session;
use crate::json::{kind, short, text};
use crate::probe::{Behaviour, Probe};
use crate::scenario::{Stop, Verdict, expect, scenarios};

scenarios! {
    "a.13.1.accepted" Must
        "subscribe is answered with subscribe.accepted, with a subscription_id."
        => accepted;
    "a.13.1.delivered" Must
        "Events of the session are delivered as subscribe.event, with subscription_id and payload.event."
        => delivered;
    "a.13.1.other-principal" Must
        "A subscription to the session of another principal is refused with PERMISSION_DENIED, or delivers \
        nothing of it."
        => other_principal;
    "a.13.2.types" Must
        "filter.types lets events of these types through alone."
        => types;
    "a.13.2.and" Must
        "The conditions of a filter are joined by and."
        => joined_by_and;
    "a.13.2.job" Must
        "filter.job_id lets events of this job through alone."
        => of_job;
    "a.13.3.backfill" Must
        "since.after_message_id replays the events after it, and then says subscription.backfill_complete."
        => backfill;
    "a.13.3.boundary" Must
        "subscription.backfill_complete comes after every replayed event and before every live one."
        => boundary;
    "a.13.4.unsubscribe" Must
        "After unsubscribe no event is delivered."
        => unsubscribe;
    "a.13.4.unknown" Must
        "unsubscribe of an unknown subscription is refused."
        => unknown;
}

async fn ready(probe: &Probe) -> Result<Session, Stop> {
    let session = Session::open(probe).await?;
    session.needs("subscriptions")?;
    Ok(session)
}

async fn subscribe(session: &mut Session, payload: Value) -> Result<String, Stop> {
    let id = session.send("subscribe", payload).await?;
    let answer = session.answer(&id, &["subscribe.accepted"]).await?;
    let inner = text(&answer, "/payload/subscription_id");
    let id = Some(inner).filter(|id| !id.is_empty()).unwrap_or_else(|| text(&answer, "/subscription_id"));
    expect(!id.is_empty(), "subscribe.accepted with a subscription_id", || short(&answer))?;
    Ok(id.to_owned())
}

fn of_session(session: &Session) -> Value {
    json!({ "session_id": [session.id] })
}

fn is_event(message: &Value, subscription: &str) -> bool {
    kind(message) == "subscribe.event" && text(message, "/subscription_id") == subscription
}

/// The type of the event that a `subscribe.event` carries.
fn inner(message: &Value) -> &str {
    text(message, "/payload/event/type")
}

/// Whether a message marks the end of the replay (§13.3).
fn is_complete(message: &Value) -> bool {
    inner(message) == "event.emit"
        && message["payload"]["event"].to_string().contains("subscription.backfill_complete")
}

async fn run(session: &mut Session, probe: &Probe) -> Result<(String, String), Stop> {
    let (command, job) = session.start(probe, Behaviour::Succeeds).await?;
    session.end(&command, &job).await?;
    session.peer.settle().await;
    Ok((command, job))
}

async fn accepted(probe: &Probe) -> Verdict {
    let mut session = ready(probe).await?;
    let filter = of_session(&session);
    subscribe(&mut session, json!({ "filter": filter })).await.map(drop)
}

/// Subscribes with a filter, runs a job, waits for an event of a type, if one is expected, and returns what
/// was delivered.
async fn filtered(probe: &Probe, filter: Value, expected: Option<&str>) -> Result<Vec<Value>, Stop> {
    let mut session = ready(probe).await?;
    let mut whole = of_session(&session);
    for (name, value) in filter.as_object().into_iter().flatten() {
        whole[name] = value.clone();
    }
    let id = subscribe(&mut session, json!({ "filter": whole })).await?;
    run(&mut session, probe).await?;
    if let Some(expected) = expected {
        let event = |message: &Value| is_event(message, &id) && inner(message) == expected;
        session.peer.take(&format!("subscribe.event with {expected}"), event).await?;
        session.peer.settle().await;
    }
    let events = session.peer.received().filter(|message| is_event(message, &id) && !is_complete(message));
    Ok(events.cloned().collect())
}

async fn delivered(probe: &Probe) -> Verdict {
    filtered(probe, json!({}), Some("job.started")).await.map(drop)
}

async fn types(probe: &Probe) -> Verdict {
    let events = filtered(probe, json!({ "types": ["job.started"] }), Some("job.started")).await?;
    let kinds: Vec<_> = events.iter().map(inner).collect();
    expect(kinds.iter().all(|each| *each == "job.started"), "job.started alone", || format!("{kinds:?}"))
}

async fn joined_by_and(probe: &Probe) -> Verdict {
    let filter = json!({ "types": ["job.started"], "trace_id": ["trace-of-nobody"] });
    let none = filtered(probe, filter, None).await?;
    let got = || none.first().map(short).unwrap_or_default();
    expect(none.is_empty(), "nothing, since no event has this trace_id", got)
}

async fn of_job(probe: &Probe) -> Verdict {
    let mut session = ready(probe).await?;
    let (_, job) = run(&mut session, probe).await?;
    let mut filter = of_session(&session);
    filter["job_id"] = json!([job]);
    let id = subscribe(&mut session, json!({ "filter": filter })).await?;
    run(&mut session, probe).await?;
    let other = session.peer.received().find(|message| {
        is_event(message, &id) && !is_complete(message) && text(message, "/payload/event/job_id") != job
    });
    expect(other.is_none(), &format!("events of {job} alone"), || other.map(short).unwrap_or_default())
}

/// Subscribes to a job that has ended, from its acceptance on, and returns the session, the subscription and
/// the job.
async fn filled(probe: &Probe) -> Result<(Session, String, String), Stop> {
    let mut session = ready(probe).await?;
    let (command, job) = run(&mut session, probe).await?;
    let first = session.about(&command, &job).first().map(|message| text(message, "/id").to_owned());
    let since = json!({ "after_message_id": first.unwrap_or_default() });
    let filter = of_session(&session);
    let id = subscribe(&mut session, json!({ "filter": filter, "since": since })).await?;
    Ok((session, id, job))
}

async fn backfill(probe: &Probe) -> Verdict {
    let (mut session, id, job) = filled(probe).await?;
    let complete = |message: &Value| is_event(message, &id) && is_complete(message);
    session.peer.take("subscription.backfill_complete", complete).await?;
    let replayed = session.peer.received().any(|message| {
        is_event(message, &id)
            && inner(message) == "job.started"
            && text(message, "/payload/event/job_id") == job
    });
    expect(replayed, &format!("job.started of {job} before subscription.backfill_complete"), || {
        "not replayed".to_owned()
    })
}

async fn boundary(probe: &Probe) -> Verdict {
    let (mut session, id, job) = filled(probe).await?;
    run(&mut session, probe).await?;
    let complete = |message: &Value| is_event(message, &id) && is_complete(message);
    session.peer.take("subscription.backfill_complete", complete).await?;
    session.peer.settle().await;
    let events: Vec<_> = session.peer.received().filter(|message| is_event(message, &id)).collect();
    let end = events.iter().position(|event| is_complete(event)).unwrap_or(events.len());
    let old = |event: &&&Value| text(event, "/payload/event/job_id") == job;
    let late = events.iter().skip(end + 1).find(old);
    expect(late.is_none(), "no replayed event after it", || {
        late.map(|event| short(event)).unwrap_or_default()
    })?;
    let live = |event: &&&Value| inner(event).starts_with("job.") && !old(event);
    let early = events.iter().take(end).find(live);
    expect(early.is_none(), "no live event before it", || early.map(|event| short(event)).unwrap_or_default())
}

async fn unsubscribe(probe: &Probe) -> Verdict {
    let mut session = ready(probe).await?;
    let filter = of_session(&session);
    let id = subscribe(&mut session, json!({ "filter": filter })).await?;
    let mut end = session.envelope("unsubscribe", json!({ "subscription_id": id }));
    end["subscription_id"] = json!(id);
    session.peer.send(end).await?;
    session.round_trip().await?;
    session.peer.settle().await;
    let before = session.peer.count();
    run(&mut session, probe).await?;
    let more = session.peer.received().skip(before).find(|message| is_event(message, &id));
    expect(more.is_none(), "no event after unsubscribe", || more.map(short).unwrap_or_default())
}

async fn unknown(probe: &Probe) -> Verdict {
    let mut session = ready(probe).await?;
    let mut end = session.envelope("unsubscribe", json!({ "subscription_id": "sub_nobody" }));
    end["subscription_id"] = json!("sub_nobody");
    let id = session.peer.send(end).await?;
    session.refusal(&id, &["NOT_FOUND", "INVALID_ARGUMENT", "FAILED_PRECONDITION"]).await.map(drop)
}

async fn other_principal(probe: &Probe) -> Verdict {
    probe.needs_connections()?;
    let mut other = Session::open_other(probe).await?;
    other.needs("subscriptions")?;
    let mut session = Session::open(probe).await?;
    let filter = of_session(&session);
    other.send("subscribe", json!({ "filter": filter })).await?;
    other.round_trip().await?;
    run(&mut session, probe).await?;
    other.peer.settle().await;
    let of_other = |message: &&Value| {
        kind(message) == "subscribe.event" && text(message, "/payload/event/session_id") == session.id
    };
    let seen = other.peer.received().find(of_other);
    expect(seen.is_none(), "no event of the other principal's session", || {
        seen.map(short).unwrap_or_default()
    })
}
