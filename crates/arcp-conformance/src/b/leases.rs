//! Dialect B §9, §11 and §12: leases, traces, errors.

use serde_json::{Value, json};

use super::session::{Session, is_refusal, job, job_id};
use crate::json::{items, kind, seq, short, text};
use crate::probe::{Behaviour, Probe};
use crate::scenario::{Stop, Verdict, expect, scenarios};

scenarios! {
    "b.9.1.not-expanded" Must
        "The lease of job.accepted has no capability and no pattern that was not asked for."
        => not_expanded;
    "b.9.1.empty" Must
        "A job that asked for no lease has an empty one."
        => empty;
    "b.9.2.bad-shape" Must
        "A lease_request that is no map of lists is answered with INVALID_REQUEST."
        => bad_shape;
    "b.9.2.bad-pattern" Must
        "A pattern that is no text is answered with INVALID_REQUEST."
        => bad_pattern;
    "b.9.5.past" Must
        "expires_at in the past is answered with INVALID_REQUEST."
        => past;
    "b.9.5.not-utc" Must
        "expires_at that is not in UTC is answered with INVALID_REQUEST."
        => not_utc;
    "b.9.5.no-time" Must
        "expires_at that is no time is answered with INVALID_REQUEST."
        => no_time;
    "b.9.5.echoed" Must
        "job.accepted echoes lease_constraints."
        => echoed;
    "b.9.6.counters" Must
        "job.accepted has the initial counter of each budgeted currency."
        => counters;
    "b.9.6.bad-amount" Must
        "A cost.budget that is no currency and amount is answered with INVALID_REQUEST."
        => bad_amount;
    "b.11.given" Must
        "job.accepted has the trace_id of job.submit."
        => trace_given;
    "b.11.events" Should
        "The events of a job have the trace_id of its job.submit."
        => trace_events;
    "b.11.generated" Must
        "Without a trace_id the runtime generates one of 32 hex digits for job.accepted (draft-02)."
        => trace_generated;
    "b.12.shape" Must
        "An error has code, message and retryable."
        => error_shape;
    "b.12.codes" Should
        "The code of an error of the protocol is one of the specification."
        => error_codes;
    "b.12.session-goes-on" Must
        "A refused request does not end the session."
        => session_goes_on;
}

async fn with(probe: &Probe, fields: Value) -> Result<(Session, Value), Stop> {
    let mut session = Session::open(probe).await?;
    let mut payload = job(probe, Behaviour::Succeeds)?;
    for (name, value) in fields.as_object().into_iter().flatten() {
        payload[name] = value.clone();
    }
    if fields.get("lease_constraints").is_some() {
        session.needs("lease_expires_at")?;
    }
    if fields.pointer("/lease_request/cost.budget").is_some() {
        session.needs("cost.budget")?;
    }
    session.send("job.submit", payload.clone()).await?;
    Ok((session, payload))
}

async fn invalid(probe: &Probe, fields: Value) -> Verdict {
    let (mut session, _) = with(probe, fields).await?;
    session.refusal("INVALID_REQUEST").await.map(drop)
}

async fn not_expanded(probe: &Probe) -> Verdict {
    let asked = json!({ "tool.call": ["arcp-conformance.*"], "fs.read": ["/arcp-conformance/**"] });
    let (mut session, _) = with(probe, json!({ "lease_request": asked })).await?;
    let accepted = session.accepted().await?;
    for (capability, patterns) in accepted["payload"]["lease"].as_object().into_iter().flatten() {
        let wanted = items(&asked, &format!("/{capability}"));
        let within = patterns.as_array().is_some_and(|each| each.iter().all(|one| wanted.contains(one)));
        expect(within, "capabilities and patterns of the request alone", || short(&accepted))?;
    }
    Ok(())
}

async fn empty(probe: &Probe) -> Verdict {
    let (mut session, _) = with(probe, json!({})).await?;
    let accepted = session.accepted().await?;
    let lease = &accepted["payload"]["lease"];
    let patterns =
        lease.as_object().into_iter().flatten().map(|(_, each)| each.as_array().map_or(1, Vec::len));
    expect(patterns.sum::<usize>() == 0, "an empty lease", || short(&accepted))
}

async fn bad_shape(probe: &Probe) -> Verdict {
    invalid(probe, json!({ "lease_request": { "fs.read": "/tmp/**" } })).await
}

async fn bad_pattern(probe: &Probe) -> Verdict {
    invalid(probe, json!({ "lease_request": { "fs.read": [7] } })).await
}

async fn past(probe: &Probe) -> Verdict {
    invalid(probe, json!({ "lease_constraints": { "expires_at": "2020-01-01T00:00:00Z" } })).await
}

fn later() -> jiff::Timestamp {
    jiff::Timestamp::now() + jiff::SignedDuration::from_hours(3)
}

async fn not_utc(probe: &Probe) -> Verdict {
    let zoned = later().to_zoned(jiff::tz::TimeZone::fixed(jiff::tz::offset(2)));
    let at = zoned.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string();
    invalid(probe, json!({ "lease_constraints": { "expires_at": at } })).await
}

async fn no_time(probe: &Probe) -> Verdict {
    invalid(probe, json!({ "lease_constraints": { "expires_at": "next Tuesday" } })).await
}

async fn echoed(probe: &Probe) -> Verdict {
    let at = later();
    let asked = json!({ "expires_at": at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string() });
    let (mut session, _) = with(probe, json!({ "lease_constraints": asked })).await?;
    let accepted = session.accepted().await?;
    let echo = text(&accepted, "/payload/lease_constraints/expires_at").parse::<jiff::Timestamp>();
    let holds = echo.is_ok_and(|echo| echo.as_second() == at.as_second());
    expect(holds, &format!("lease_constraints {asked}"), || short(&accepted))
}

async fn counters(probe: &Probe) -> Verdict {
    let asked = json!({ "lease_request": { "cost.budget": ["USD:5.25", "credits:1000"] } });
    let (mut session, _) = with(probe, asked).await?;
    let accepted = session.accepted().await?;
    for (currency, amount) in [("USD", 5.25), ("credits", 1000.0)] {
        let counter = &accepted["payload"]["budget"][currency];
        let number = counter.as_f64().or_else(|| counter.as_str().and_then(|text| text.parse().ok()));
        let holds = number.is_some_and(|number: f64| (number - amount).abs() < 1e-9);
        expect(holds, &format!("budget.{currency} of {amount}"), || short(&accepted))?;
    }
    Ok(())
}

async fn bad_amount(probe: &Probe) -> Verdict {
    invalid(probe, json!({ "lease_request": { "cost.budget": ["five dollars"] } })).await
}

/// A trace id that a client could have.
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

async fn traced(probe: &Probe) -> Result<(Session, Value), Stop> {
    let mut session = Session::open(probe).await?;
    let mut submit = session.envelope("job.submit", job(probe, Behaviour::Succeeds)?);
    submit["trace_id"] = json!(TRACE);
    session.peer.send(submit).await?;
    let accepted = session.accepted().await?;
    Ok((session, accepted))
}

async fn trace_given(probe: &Probe) -> Verdict {
    let (_, accepted) = traced(probe).await?;
    let echoed = text(&accepted, "/payload/trace_id") == TRACE;
    expect(echoed, &format!("job.accepted with payload.trace_id {TRACE}"), || short(&accepted))
}

async fn trace_events(probe: &Probe) -> Verdict {
    let (mut session, accepted) = traced(probe).await?;
    session.end(&job_id(&accepted)?).await?;
    let other = |message: &&Value| seq(message).is_some() && text(message, "/trace_id") != TRACE;
    let others = session.peer.received().find(other);
    expect(others.is_none(), &format!("the trace_id {TRACE} in each event"), || {
        others.map(short).unwrap_or_default()
    })
}

async fn trace_generated(probe: &Probe) -> Verdict {
    let (mut session, _) = with(probe, json!({})).await?;
    let accepted = session.accepted().await?;
    let trace = text(&accepted, "/payload/trace_id");
    let hex = |each: char| matches!(each, '0'..='9' | 'a'..='f');
    let holds = trace.len() == 32 && trace.chars().all(hex) && trace.chars().any(|each| each != '0');
    expect(holds, "a trace_id of 32 lowercase hex digits", || short(&accepted))
}

/// Provokes errors of several kinds, and returns them.
async fn errors(probe: &Probe) -> Result<(Session, Vec<Value>), Stop> {
    let mut session = Session::open(probe).await?;
    session.send("job.submit", json!({ "agent": "no-such-agent", "input": null })).await?;
    session.send("job.submit", json!({ "input": null })).await?;
    session
        .send_about("job.cancel", "job_01JZZZZZZZZZZZZZZZZZZZZZZZ", json!({ "reason": "unknown" }))
        .await?;
    session.peer.take("errors for requests that cannot be carried out", is_refusal).await?;
    session.peer.settle().await;
    let errors: Vec<_> = session.peer.received().filter(|message| is_refusal(message)).cloned().collect();
    Ok((session, errors))
}

async fn error_shape(probe: &Probe) -> Verdict {
    for error in errors(probe).await?.1 {
        let texts = !text(&error, "/payload/code").is_empty() && error["payload"]["message"].is_string();
        let whole = texts && error["payload"]["retryable"].is_boolean();
        expect(whole, "code, message and retryable", || short(&error))?;
    }
    Ok(())
}

/// The codes of §12 of draft-arcp-1.1.
const CODES: [&str; 15] = [
    "PERMISSION_DENIED",
    "LEASE_SUBSET_VIOLATION",
    "JOB_NOT_FOUND",
    "DUPLICATE_KEY",
    "AGENT_NOT_AVAILABLE",
    "AGENT_VERSION_NOT_AVAILABLE",
    "CANCELLED",
    "TIMEOUT",
    "RESUME_WINDOW_EXPIRED",
    "HEARTBEAT_LOST",
    "LEASE_EXPIRED",
    "BUDGET_EXHAUSTED",
    "INVALID_REQUEST",
    "UNAUTHENTICATED",
    "INTERNAL_ERROR",
];

async fn error_codes(probe: &Probe) -> Verdict {
    for error in errors(probe).await?.1 {
        expect(CODES.contains(&text(&error, "/payload/code")), "a code of §12", || short(&error))?;
    }
    Ok(())
}

async fn session_goes_on(probe: &Probe) -> Verdict {
    let (mut session, _) = errors(probe).await?;
    expect(!session.peer.is_closed(), "a session that goes on", || "the connection was closed".to_owned())?;
    session.send("job.submit", job(probe, Behaviour::Succeeds)?).await?;
    let accepted = session.peer.take("job.accepted", |message| kind(message) == "job.accepted").await?;
    session.end(&job_id(&accepted)?).await.map(drop)
}
