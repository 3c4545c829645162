//! Dialect A §10.6: scheduled jobs.

use serde_json::{Value, json};

use super::session::Session;
use crate::json::{kind, text};
use crate::probe::{Behaviour, Probe};
use crate::scenario::{Stop, Verdict, scenarios};

scenarios! {
    "a.10.6.after" Must
        "job.schedule with after runs the job, where scheduled_jobs is advertised."
        => after;
    "a.10.6.at" Must
        "job.schedule with at runs the job, where scheduled_jobs is advertised."
        => at;
    "a.10.6.two-times" Must
        "job.schedule with at and after is refused, since when has exactly one."
        => two_times;
    "a.10.6.no-time" Must
        "job.schedule without a time is refused."
        => no_time;
    "a.10.6.bad-rule" Must
        "job.schedule with an every that is no RRULE is refused."
        => bad_rule;
    "a.10.6.unsupported" Must
        "A runtime without scheduled_jobs refuses job.schedule with a nack."
        => unsupported;
}

fn schedule(probe: &Probe, when: Value) -> Result<Value, Stop> {
    let work = Session::work(probe, Behaviour::Succeeds)?;
    Ok(json!({ "job": { "type": "tool.invoke", "payload": work }, "when": when }))
}

async fn runs(probe: &Probe, when: Value) -> Verdict {
    let payload = schedule(probe, when)?;
    let mut session = Session::open(probe).await?;
    session.needs("scheduled_jobs")?;
    let id = session.send("job.schedule", payload).await?;
    session.answer(&id, &["ack", "job.accepted"]).await?;
    let ends = |message: &Value| {
        matches!(kind(message), "job.completed" | "tool.result") && !text(message, "/job_id").is_empty()
    };
    session.peer.take("the end of the scheduled job", ends).await.map(drop)
}

async fn after(probe: &Probe) -> Verdict {
    runs(probe, json!({ "after": 1 })).await
}

async fn at(probe: &Probe) -> Verdict {
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(1);
    runs(probe, json!({ "at": soon.to_string() })).await
}

async fn refused(probe: &Probe, when: Value) -> Verdict {
    let payload = schedule(probe, when)?;
    let mut session = Session::open(probe).await?;
    session.needs("scheduled_jobs")?;
    let id = session.send("job.schedule", payload).await?;
    session.refusal(&id, &["INVALID_ARGUMENT"]).await.map(drop)
}

async fn two_times(probe: &Probe) -> Verdict {
    refused(probe, json!({ "after": 1, "at": "2099-01-01T00:00:00Z" })).await
}

async fn no_time(probe: &Probe) -> Verdict {
    refused(probe, json!({})).await
}

async fn bad_rule(probe: &Probe) -> Verdict {
    refused(probe, json!({ "every": "now and then" })).await
}

async fn unsupported(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    if session.has("scheduled_jobs") {
        return Err(Stop::not_applicable("the runtime advertises scheduled_jobs"));
    }
    let work = json!({ "tool": "echo", "arguments": {} });
    let payload = json!({ "job": { "type": "tool.invoke", "payload": work }, "when": { "after": 1 } });
    let id = session.send("job.schedule", payload).await?;
    session.refusal(&id, &["UNIMPLEMENTED"]).await.map(drop)
}
