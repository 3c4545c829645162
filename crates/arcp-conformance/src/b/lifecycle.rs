//! Dialect B §7.3 and §7.4: how jobs end, and cancellation.

use serde_json::{Value, json};

use super::session::{Session, is_terminal};
use crate::json::{kind, seq, short, text};
use crate::probe::{Behaviour, Probe};
use crate::scenario::{Stop, Verdict, expect, scenarios};

scenarios! {
    "b.7.3.order" Must
        "job.accepted comes before the job's events, and its terminal event comes last."
        => order;
    "b.7.3.success" Must
        "A job that succeeds ends with job.result and the final_status success."
        => success;
    "b.7.3.error" Must
        "A job that fails ends with job.error, a code and the final_status error."
        => error;
    "b.7.3.one-end" Must
        "A job has one terminal event."
        => one_end;
    "b.7.4.cancelled" Must
        "job.cancel is acknowledged with job.cancelled."
        => cancelled;
    "b.7.4.terminal" Must
        "A cancelled job ends with job.error CANCELLED and the final_status cancelled."
        => terminal;
    "b.7.4.waiting-job" Must
        "A job that waits for a human can be cancelled."
        => waiting_job;
    "b.7.4.one-end" Must
        "A job that is cancelled twice has one terminal event."
        => cancelled_once;
    "b.7.4.unknown-job" Must
        "job.cancel of an unknown job is answered with JOB_NOT_FOUND."
        => unknown_job;
    "b.7.4.ended-job" Must
        "job.cancel of an ended job does not end it again."
        => ended_job;
    "b.7.4.other-session" Must
        "A job is not cancelled by a session that did not submit it."
        => other_session;
    "b.7.4.other-refused" Should
        "A cancel by a session that did not submit the job is answered with an error."
        => other_refused;
    "b.7.4.other-principal" Must
        "A job is not cancelled by another principal."
        => other_principal;
    "b.7.4.session-goes-on" Must
        "The session goes on after a job of it was cancelled."
        => session_goes_on;
}

async fn order(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let behaviour =
        if probe.agent(Behaviour::Chatty).is_ok() { Behaviour::Chatty } else { Behaviour::Succeeds };
    let job = session.start(probe, behaviour).await?;
    session.end(&job).await?;
    session.peer.settle().await;
    let about = |message: &&Value| text(message, "/job_id") == job || text(message, "/payload/job_id") == job;
    let kinds: Vec<_> = session.peer.received().filter(about).map(kind).collect();
    let events = kinds.get(1..kinds.len().saturating_sub(1)).unwrap_or_default();
    let holds = kinds.first() == Some(&"job.accepted")
        && kinds.last().is_some_and(|last| matches!(*last, "job.result" | "job.error"))
        && events.iter().all(|each| *each == "job.event");
    expect(holds, "job.accepted, job.event …, job.result", || format!("{kinds:?}"))
}

async fn success(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let job = session.start(probe, Behaviour::Succeeds).await?;
    let end = session.end(&job).await?;
    let holds = kind(&end) == "job.result" && text(&end, "/payload/final_status") == "success";
    expect(holds && seq(&end).is_some(), "a numbered job.result with the final_status success", || {
        short(&end)
    })
}

async fn error(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let job = session.start(probe, Behaviour::Fails).await?;
    let end = session.end(&job).await?;
    let coded = !text(&end, "/payload/code").is_empty();
    let holds = kind(&end) == "job.error" && coded && text(&end, "/payload/final_status") == "error";
    expect(holds, "job.error with a code and the final_status error", || short(&end))
}

/// Fails unless exactly one terminal event of the job arrived.
async fn ended_once(session: &mut Session, job: &str) -> Verdict {
    session.end(job).await?;
    session.round_trip().await?;
    session.peer.settle().await;
    let ends = session.peer.received().filter(|message| is_terminal(message, job)).count();
    expect(ends == 1, "one terminal event", || ends.to_string())
}

async fn one_end(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let job = session.start(probe, Behaviour::Succeeds).await?;
    ended_once(&mut session, &job).await
}

async fn cancel(session: &mut Session, job: &str) -> Result<String, Stop> {
    session.send_about("job.cancel", job, json!({ "reason": "the scenario wants it" })).await
}

async fn cancelled(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let job = session.start(probe, Behaviour::Slow).await?;
    cancel(&mut session, &job).await?;
    let about = |message: &Value| text(message, "/job_id") == job || text(message, "/payload/job_id") == job;
    let acknowledged = |message: &Value| kind(message) == "job.cancelled" && about(message);
    session.peer.take("job.cancelled", acknowledged).await.map(drop)
}

/// Cancels a job that behaves so once it has published what it can, and fails unless it ends as cancelled.
async fn ends_cancelled(probe: &Probe, behaviour: Behaviour) -> Verdict {
    let mut session = Session::open(probe).await?;
    let job = session.start(probe, behaviour).await?;
    session.peer.settle().await;
    cancel(&mut session, &job).await?;
    let end = session.end(&job).await?;
    let holds = kind(&end) == "job.error"
        && text(&end, "/payload/code") == "CANCELLED"
        && text(&end, "/payload/final_status") == "cancelled";
    expect(holds, "job.error with CANCELLED and the final_status cancelled", || short(&end))
}

async fn terminal(probe: &Probe) -> Verdict {
    ends_cancelled(probe, Behaviour::Slow).await
}

async fn waiting_job(probe: &Probe) -> Verdict {
    ends_cancelled(probe, Behaviour::Asks).await
}

async fn cancelled_once(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let job = session.start(probe, Behaviour::Slow).await?;
    cancel(&mut session, &job).await?;
    cancel(&mut session, &job).await?;
    let terminal = |message: &Value| is_terminal(message, &job) && seq(message).is_some();
    session.peer.take("the job's terminal event", terminal).await?;
    session.peer.settle().await;
    let ends = session.peer.received().filter(|message| terminal(message)).count();
    expect(ends == 1, "one terminal event", || ends.to_string())
}

async fn unknown_job(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    cancel(&mut session, "job_01JZZZZZZZZZZZZZZZZZZZZZZZ").await?;
    session.refusal("JOB_NOT_FOUND").await.map(drop)
}

async fn ended_job(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let job = session.start(probe, Behaviour::Succeeds).await?;
    session.end(&job).await?;
    let before = session.peer.count();
    cancel(&mut session, &job).await?;
    session.round_trip().await?;
    session.peer.settle().await;
    let ended = |message: &&Value| is_terminal(message, &job) && seq(message).is_some();
    let again = session.peer.received().skip(before).find(ended);
    expect(again.is_none(), "no second terminal event", || again.map(short).unwrap_or_default())?;
    expect(!session.peer.is_closed(), "a session that goes on", || "the connection was closed".to_owned())
}

/// Starts a slow job in one session, lets another try to cancel it, and fails where the job ends.
async fn not_by(probe: &Probe, mut other: Session) -> Verdict {
    let mut session = Session::open(probe).await?;
    let job = session.start(probe, Behaviour::Slow).await?;
    cancel(&mut other, &job).await?;
    other.round_trip().await?;
    session.peer.settle().await;
    let ended = session.peer.received().find(|message| is_terminal(message, &job)).cloned();
    session.clean_up(&job).await?;
    expect(ended.is_none(), "a job that goes on", || ended.as_ref().map(short).unwrap_or_default())
}

async fn other_session(probe: &Probe) -> Verdict {
    probe.needs_connections()?;
    probe.agent(Behaviour::Slow)?;
    not_by(probe, Session::open(probe).await?).await
}

async fn other_principal(probe: &Probe) -> Verdict {
    probe.needs_connections()?;
    probe.agent(Behaviour::Slow)?;
    not_by(probe, Session::open_other(probe).await?).await
}

async fn other_refused(probe: &Probe) -> Verdict {
    probe.needs_connections()?;
    let mut session = Session::open(probe).await?;
    let mut other = Session::open(probe).await?;
    let job = session.start(probe, Behaviour::Slow).await?;
    cancel(&mut other, &job).await?;
    let refused = |message: &Value| matches!(kind(message), "session.error" | "job.error" | "job.cancelled");
    let answer = other.peer.take("an error", refused).await;
    session.clean_up(&job).await?;
    let answer = answer?;
    let holds = matches!(text(&answer, "/payload/code"), "PERMISSION_DENIED" | "JOB_NOT_FOUND");
    expect(holds, "PERMISSION_DENIED or JOB_NOT_FOUND", || short(&answer))
}

async fn session_goes_on(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let job = session.start(probe, Behaviour::Slow).await?;
    cancel(&mut session, &job).await?;
    session.end(&job).await?;
    let next = session.start(probe, Behaviour::Succeeds).await?;
    let end = session.end(&next).await?;
    expect(kind(&end) == "job.result", "job.result of the next job", || short(&end))
}
