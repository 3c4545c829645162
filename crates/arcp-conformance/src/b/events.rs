//! Dialect B §8: events, their numbers, and results in chunks.

use std::collections::BTreeMap;

use serde_json::Value;

use super::session::{Session, gap_free, numbers};
use crate::json::{kind, seq, short, text};
use crate::probe::{Behaviour, Probe};
use crate::scenario::{Stop, Verdict, expect, scenarios};

scenarios! {
    "b.8.1.event" Must
        "An event has job_id, event_seq and a payload of kind and body."
        => event;
    "b.8.1.timestamp" Should
        "An event has a time as payload.ts."
        => timestamp;
    "b.8.2.kinds" Must
        "The kind of an event is one of the specification, or begins with x-."
        => kinds;
    "b.8.2.bodies" Must
        "The body of an event has the fields that its kind demands."
        => bodies;
    "b.8.3.gap-free" Must
        "event_seq grows by one from event to event of a session, over three concurrent jobs."
        => concurrent;
    "b.8.3.each-ends" Must
        "Each of three concurrent jobs ends."
        => each_ends;
    "b.8.3.per-session" Must
        "event_seq is counted in each session alone, also while others publish."
        => per_session;
    "b.8.4.not-mixed" Must
        "After a result_chunk, job.result has result_id and no result."
        => not_mixed;
    "b.8.4.chunks-in-order" Must
        "The chunks of a result are numbered from 0, and the last alone has more: false."
        => chunks_in_order;
}

/// A session in which a job has run that published as much as it can.
async fn busy(probe: &Probe) -> Result<(Session, String), Stop> {
    let behaviour =
        if probe.agent(Behaviour::Chatty).is_ok() { Behaviour::Chatty } else { Behaviour::Succeeds };
    let mut session = Session::open(probe).await?;
    let job = session.start(probe, behaviour).await?;
    session.end(&job).await?;
    Ok((session, job))
}

fn events(session: &Session) -> Result<Vec<&Value>, Stop> {
    let events: Vec<_> = session.peer.received().filter(|message| kind(message) == "job.event").collect();
    if events.is_empty() { Err(Stop::not_applicable("the job publishes no events")) } else { Ok(events) }
}

async fn event(probe: &Probe) -> Verdict {
    let (session, job) = busy(probe).await?;
    for event in events(&session)? {
        let whole = text(event, "/job_id") == job
            && seq(event).is_some()
            && !text(event, "/payload/kind").is_empty()
            && event["payload"]["body"].is_object();
        expect(whole, "job_id, event_seq, payload.kind and payload.body", || short(event))?;
    }
    Ok(())
}

async fn timestamp(probe: &Probe) -> Verdict {
    let (session, _) = busy(probe).await?;
    for event in events(&session)? {
        let time = text(event, "/payload/ts").parse::<jiff::Timestamp>();
        expect(time.is_ok(), "payload.ts as a time", || short(event))?;
    }
    Ok(())
}

/// The fields that the body of each kind has (§8.2).
const BODIES: [(&str, &[&str]); 10] = [
    ("log", &["level", "message"]),
    ("thought", &["text"]),
    ("tool_call", &["tool", "args", "call_id"]),
    ("tool_result", &["call_id"]),
    ("status", &["phase"]),
    ("metric", &["name", "value"]),
    ("artifact_ref", &["uri", "content_type"]),
    ("delegate", &[]),
    ("progress", &["current"]),
    ("result_chunk", &["result_id", "chunk_seq", "data", "encoding", "more"]),
];

async fn kinds(probe: &Probe) -> Verdict {
    let (session, _) = busy(probe).await?;
    for event in events(&session)? {
        let name = text(event, "/payload/kind");
        let known = name.starts_with("x-") || BODIES.iter().any(|(kind, _)| *kind == name);
        expect(known, "a kind of the specification, or x-…", || short(event))?;
    }
    Ok(())
}

async fn bodies(probe: &Probe) -> Verdict {
    let (session, _) = busy(probe).await?;
    for event in events(&session)? {
        let name = text(event, "/payload/kind");
        let Some((_, fields)) = BODIES.iter().find(|(kind, _)| *kind == name) else { continue };
        let body = &event["payload"]["body"];
        let whole = fields.iter().all(|field| body.get(field).is_some());
        expect(whole, &format!("{name} with {}", fields.join(", ")), || short(event))?;
        if name == "progress" {
            let current = body["current"].as_f64();
            expect(current.is_some_and(|value| value >= 0.0), "current of 0 or more", || short(event))?;
        }
    }
    Ok(())
}

async fn three(probe: &Probe) -> Result<(Session, Vec<String>), Stop> {
    let behaviour =
        if probe.agent(Behaviour::Chatty).is_ok() { Behaviour::Chatty } else { Behaviour::Succeeds };
    let mut session = Session::open(probe).await?;
    for _ in 0..3 {
        session.send("job.submit", super::session::job(probe, behaviour)?).await?;
    }
    let mut jobs = Vec::new();
    for _ in 0..3 {
        jobs.push(super::session::job_id(&session.accepted().await?)?);
    }
    Ok((session, jobs))
}

async fn concurrent(probe: &Probe) -> Verdict {
    let (mut session, jobs) = three(probe).await?;
    for job in &jobs {
        session.end(job).await?;
    }
    let numbers = numbers(session.peer.received());
    expect(numbers.len() >= 3, "numbered events of three jobs", || format!("{numbers:?}"))?;
    gap_free(&numbers)
}

async fn each_ends(probe: &Probe) -> Verdict {
    let (mut session, jobs) = three(probe).await?;
    for job in &jobs {
        let end = session.end(job).await?;
        expect(kind(&end) == "job.result", "job.result", || short(&end))?;
    }
    Ok(())
}

async fn per_session(probe: &Probe) -> Verdict {
    probe.needs_connections()?;
    let (mut one, _) = busy(probe).await?;
    let (mut two, _) = busy(probe).await?;
    for _ in 0..2 {
        for session in [&mut one, &mut two] {
            let job = session.start(probe, Behaviour::Succeeds).await?;
            session.end(&job).await?;
        }
    }
    gap_free(&numbers(one.peer.received()))?;
    gap_free(&numbers(two.peer.received()))
}

async fn chunked(probe: &Probe) -> Result<(Session, String, Value), Stop> {
    let behaviour =
        if probe.agent(Behaviour::Chatty).is_ok() { Behaviour::Chatty } else { Behaviour::Succeeds };
    let mut session = Session::open(probe).await?;
    session.needs("result_chunk")?;
    let job = session.start(probe, behaviour).await?;
    let end = session.end(&job).await?;
    let chunks = session.peer.received().any(|message| text(message, "/payload/kind") == "result_chunk");
    if chunks { Ok((session, job, end)) } else { Err(Stop::not_applicable("the job's result is inline")) }
}

async fn not_mixed(probe: &Probe) -> Verdict {
    let (session, _, end) = chunked(probe).await?;
    let id = text(&end, "/payload/result_id");
    let inline = end.pointer("/payload/result").is_some_and(|result| !result.is_null());
    expect(!id.is_empty() && !inline, "job.result with result_id and no result", || short(&end))?;
    let known = session.peer.received().any(|message| text(message, "/payload/body/result_id") == id);
    expect(known, &format!("chunks of {id}"), || short(&end))
}

/// The number of a chunk, and whether more follow.
type Chunk = (Option<i64>, Option<bool>);

async fn chunks_in_order(probe: &Probe) -> Verdict {
    let (session, _, _) = chunked(probe).await?;
    let mut chunks: BTreeMap<&str, Vec<Chunk>> = BTreeMap::new();
    for message in session.peer.received().filter(|each| text(each, "/payload/kind") == "result_chunk") {
        let body = &message["payload"]["body"];
        let chunk = (body["chunk_seq"].as_i64(), body["more"].as_bool());
        chunks.entry(text(body, "/result_id")).or_default().push(chunk);
    }
    for (id, chunks) in chunks {
        let wanted = (0..)
            .zip(&chunks)
            .map(|(number, _)| (Some(number), Some(usize::try_from(number).unwrap_or(0) + 1 < chunks.len())));
        let holds = wanted.eq(chunks.iter().copied());
        expect(holds, &format!("the chunks of {id} in order"), || format!("{chunks:?}"))?;
    }
    Ok(())
}
