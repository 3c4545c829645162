//! Dialect A §6.3, §10.1 to §10.3 and §11: the course of a job.

use serde_json::{Value, json};

use super::session::{Session, concerns, is_terminal};
use crate::json::{kind, short, text};
use crate::probe::{Behaviour, Probe};
use crate::scenario::{Stop, Verdict, expect, scenarios};

scenarios! {
    "a.6.3.accepted" Must
        "tool.invoke is answered with job.accepted, with its id as correlation_id."
        => accepted;
    "a.6.3.order" Must
        "job.accepted comes before job.started, and the terminal event after it."
        => order;
    "a.6.3.one-end" Must
        "A job has one terminal event, and nothing after it."
        => one_end;
    "a.6.3.job-id" Must
        "Every event of a job has its job_id (§6.1.1)."
        => with_job_id;
    "a.10.2.failed" Must
        "A job that fails ends with job.failed or tool.error, a code and a message."
        => failed;
    "a.10.3.heartbeats" Must
        "A running job sends job.heartbeat within the negotiated interval."
        => heartbeats;
    "a.10.3.heartbeat-shape" Must
        "job.heartbeat has sequence, deadline_ms and state, and its sequence grows."
        => heartbeat_shape;
    "a.11.1.kind" Must
        "stream.open declares a kind, and stream events have a stream_id."
        => stream_kind;
    "a.11.1.closed" Must
        "A stream that was opened is closed before or at the end of its job."
        => stream_closed;
    "a.17.1.trace" Must
        "The events of a job have the trace_id of its command."
        => trace;
    "a.17.3.1.units" Must
        "A metric with a reserved name has the unit of the specification."
        => metric_units;
}

async fn accepted(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    session.start(probe, Behaviour::Succeeds).await.map(drop)
}

/// A session in which a job has run that published as much as it can, with the command's id and the job's.
async fn busy(probe: &Probe) -> Result<(Session, String, String), Stop> {
    let behaviour =
        if probe.tool(Behaviour::Chatty).is_ok() { Behaviour::Chatty } else { Behaviour::Succeeds };
    let mut session = Session::open(probe).await?;
    let (command, job) = session.start(probe, behaviour).await?;
    session.end(&command, &job).await?;
    session.peer.settle().await;
    Ok((session, command, job))
}

async fn order(probe: &Probe) -> Verdict {
    let (session, command, job) = busy(probe).await?;
    let kinds: Vec<_> = session.about(&command, &job).into_iter().map(kind).collect();
    let place = |wanted: &str| kinds.iter().position(|each| *each == wanted);
    let end = session.about(&command, &job).into_iter().position(is_terminal);
    let places = [place("job.accepted"), place("job.started"), end];
    let holds = places.iter().all(Option::is_some) && places.is_sorted();
    expect(holds, "job.accepted, job.started, …, a terminal event", || format!("{kinds:?}"))
}

async fn one_end(probe: &Probe) -> Verdict {
    let (session, command, job) = busy(probe).await?;
    let events = session.about(&command, &job);
    // A direct invocation ends with tool.result or tool.error, a durable job with job.completed or
    // job.failed.
    let of_tool = events.iter().filter(|each| matches!(kind(each), "tool.result" | "tool.error")).count();
    let of_job = events.iter().filter(|each| is_terminal(each)).count() - of_tool;
    let kinds: Vec<_> = events.iter().map(|each| kind(each)).collect();
    expect(of_tool + of_job == 1, "one terminal event", || format!("{kinds:?}"))?;
    expect(events.last().is_some_and(|last| is_terminal(last)), "nothing after it", || format!("{kinds:?}"))
}

async fn with_job_id(probe: &Probe) -> Verdict {
    let (session, command, job) = busy(probe).await?;
    let events = session.about(&command, &job);
    let other = events.iter().find(|each| kind(each).starts_with("job.") && text(each, "/job_id") != job);
    expect(other.is_none(), &format!("the job_id {job}"), || {
        other.map(|each| short(each)).unwrap_or_default()
    })
}

async fn failed(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let command = session.send("tool.invoke", Session::work(probe, Behaviour::Fails)?).await?;
    let accepted = session.answer(&command, &["job.accepted"]).await?;
    let end = session.end(&command, &super::session::job_id(&accepted)?).await?;
    let whole = !text(&end, "/payload/code").is_empty() && end["payload"]["message"].is_string();
    let holds = whole && matches!(kind(&end), "job.failed" | "tool.error");
    expect(holds, "job.failed or tool.error with code and message", || short(&end))
}

/// Waits for two heartbeats of a slow job.
async fn two_heartbeats(probe: &Probe) -> Result<(Value, Value), Stop> {
    let work = Session::work(probe, Behaviour::Slow)?;
    let mut session = Session::open(probe).await?;
    let interval = session.accepted.pointer("/payload/capabilities/heartbeat_interval_seconds");
    let interval = interval.and_then(Value::as_f64).unwrap_or(30.0);
    if interval > probe.settings.wait.as_secs_f64() {
        return Err(Stop::skipped(format!("the interval of {interval} s is longer than --wait")));
    }
    let command = session.send("tool.invoke", work).await?;
    let accepted = session.answer(&command, &["job.accepted"]).await?;
    let job = super::session::job_id(&accepted)?;
    let heartbeat = |message: &Value| kind(message) == "job.heartbeat" && text(message, "/job_id") == job;
    let expected = format!("job.heartbeat within {interval} s");
    let first = session.peer.take(&expected, heartbeat).await;
    let second = session.peer.take(&expected, heartbeat).await;
    session.clean_up(&job).await?;
    Ok((first?, second?))
}

async fn heartbeats(probe: &Probe) -> Verdict {
    two_heartbeats(probe).await.map(drop)
}

async fn heartbeat_shape(probe: &Probe) -> Verdict {
    let (first, second) = two_heartbeats(probe).await?;
    for heartbeat in [&first, &second] {
        let payload = &heartbeat["payload"];
        let whole =
            payload["sequence"].is_u64() && payload["deadline_ms"].is_u64() && payload["state"].is_string();
        expect(whole, "sequence, deadline_ms and state", || short(heartbeat))?;
    }
    let sequence = |heartbeat: &Value| heartbeat["payload"]["sequence"].as_u64();
    expect(sequence(&first) < sequence(&second), "a sequence that grows", || short(&second))
}

async fn opened(probe: &Probe) -> Result<(Session, Vec<Value>), Stop> {
    let (session, _, _) = busy(probe).await?;
    let streams =
        session.peer.received().filter(|message| kind(message) == "stream.open").cloned().collect::<Vec<_>>();
    if streams.is_empty() {
        Err(Stop::not_applicable("the job opens no stream"))
    } else {
        Ok((session, streams))
    }
}

async fn stream_kind(probe: &Probe) -> Verdict {
    let (session, streams) = opened(probe).await?;
    for stream in &streams {
        expect(!text(stream, "/payload/kind").is_empty(), "stream.open with a kind", || short(stream))?;
    }
    let unnamed = session
        .peer
        .received()
        .find(|message| kind(message).starts_with("stream.") && text(message, "/stream_id").is_empty());
    expect(unnamed.is_none(), "a stream_id in every stream event", || unnamed.map(short).unwrap_or_default())
}

async fn stream_closed(probe: &Probe) -> Verdict {
    let (session, streams) = opened(probe).await?;
    for stream in &streams {
        let id = text(stream, "/stream_id");
        let closed = session.peer.received().any(|message| {
            matches!(kind(message), "stream.close" | "stream.error") && text(message, "/stream_id") == id
        });
        expect(closed, &format!("stream.close of {id}"), || short(stream))?;
    }
    Ok(())
}

async fn trace(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let mut command = session.envelope("tool.invoke", Session::work(probe, Behaviour::Succeeds)?);
    command["trace_id"] = json!("trace-of-the-scenario");
    let id = session.peer.send(command).await?;
    let accepted = session.answer(&id, &["job.accepted"]).await?;
    let job = super::session::job_id(&accepted)?;
    session.end(&id, &job).await?;
    let other = session.peer.received().find(|message| {
        concerns(message, &id, &job) && text(message, "/trace_id") != "trace-of-the-scenario"
    });
    expect(other.is_none(), "the command's trace_id", || other.map(short).unwrap_or_default())
}

/// The reserved names of metrics, and their units (§17.3.1).
const UNITS: [(&str, &str); 8] = [
    ("tokens.used", "tokens"),
    ("cost.usd", "usd"),
    ("gpu.seconds", "seconds"),
    ("tool.invocations", "count"),
    ("latency.ms", "ms"),
    ("bytes.in", "bytes"),
    ("bytes.out", "bytes"),
    ("errors.total", "count"),
];

async fn metric_units(probe: &Probe) -> Verdict {
    let (session, _, _) = busy(probe).await?;
    let mut any = false;
    for message in session.peer.received().filter(|message| kind(message) == "metric") {
        let name = text(message, "/payload/name");
        if let Some((_, unit)) = UNITS.iter().find(|(reserved, _)| *reserved == name) {
            any = true;
            expect(text(message, "/payload/unit") == *unit, &format!("{name} in {unit}"), || short(message))?;
        }
    }
    if any { Ok(()) } else { Err(Stop::not_applicable("the job has no metric of a reserved name")) }
}
