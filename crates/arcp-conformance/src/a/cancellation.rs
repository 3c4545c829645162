//! Dialect A §10.4 and §10.5: cancellation and interrupts.

use serde_json::{Value, json};

use super::session::{Session, concerns, is_terminal};
use crate::json::{kind, short, text};
use crate::probe::{Behaviour, Probe};
use crate::scenario::{Stop, Verdict, expect, scenarios};

scenarios! {
    "a.10.4.accepted" Must
        "cancel of a running job is answered with cancel.accepted."
        => accepted;
    "a.10.4.terminal" Must
        "A cancelled job ends with job.cancelled."
        => terminal;
    "a.10.4.unknown-job" Must
        "cancel of an unknown job is answered with cancel.refused or NOT_FOUND."
        => unknown_job;
    "a.10.4.ended-job" Must
        "cancel of an ended job is answered with cancel.refused."
        => ended_job;
    "a.10.4.other-principal" Must
        "A job is not cancelled by another principal."
        => other_principal;
    "a.10.5.interrupt" Should
        "interrupt of a running job leads to human.input.request, where the runtime can."
        => interrupt;
    "a.10.5.not-ended" Must
        "An interrupted job goes on, and can be cancelled."
        => interrupt_not_end;
    "a.10.5.unsupported" Must
        "A runtime without interrupts advertises interrupt: false, and refuses them."
        => unsupported;
}

async fn cancel(session: &mut Session, job: &str) -> Result<String, Stop> {
    let payload = json!({ "target": "job", "target_id": job, "reason": "user_aborted", "deadline_ms": 3000 });
    session.send("cancel", payload).await
}

async fn accepted(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let (_, job) = session.start(probe, Behaviour::Slow).await?;
    let id = cancel(&mut session, &job).await?;
    session.answer(&id, &["cancel.accepted"]).await.map(drop)
}

async fn terminal(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let (command, job) = session.start(probe, Behaviour::Slow).await?;
    cancel(&mut session, &job).await?;
    let end = session.end(&command, &job).await?;
    expect(kind(&end) == "job.cancelled", "job.cancelled", || short(&end))
}

async fn unknown_job(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let id = cancel(&mut session, "job_nobody").await?;
    refused(&mut session, &id).await
}

async fn refused(session: &mut Session, id: &str) -> Verdict {
    let expected = "cancel.refused, or a nack with NOT_FOUND or FAILED_PRECONDITION";
    let answered = |message: &Value| text(message, "/correlation_id") == id;
    let answer = session.peer.take(expected, answered).await?;
    let coded = matches!(text(&answer, "/payload/code"), "NOT_FOUND" | "FAILED_PRECONDITION");
    expect(kind(&answer) == "cancel.refused" || (kind(&answer) == "nack" && coded), expected, || {
        short(&answer)
    })
}

async fn ended_job(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let (command, job) = session.start(probe, Behaviour::Succeeds).await?;
    session.end(&command, &job).await?;
    let id = cancel(&mut session, &job).await?;
    session.answer(&id, &["cancel.refused"]).await.map(drop)
}

async fn other_principal(probe: &Probe) -> Verdict {
    probe.needs_connections()?;
    let mut other = Session::open_other(probe).await?;
    let mut session = Session::open(probe).await?;
    let (command, job) = session.start(probe, Behaviour::Slow).await?;
    cancel(&mut other, &job).await?;
    other.round_trip().await?;
    session.peer.settle().await;
    let ended = session.about(&command, &job).into_iter().find(|message| is_terminal(message)).cloned();
    session.clean_up(&job).await?;
    expect(ended.is_none(), "a job that goes on", || ended.as_ref().map(short).unwrap_or_default())
}

async fn interrupt(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    session.needs("interrupt")?;
    let (_, job) = session.start(probe, Behaviour::Slow).await?;
    pauses(&mut session, &job).await?;
    let asks = |message: &Value| kind(message) == "human.input.request" && text(message, "/job_id") == job;
    let asked = session.peer.take("human.input.request of the job", asks).await;
    session.clean_up(&job).await?;
    asked.map(drop)
}

async fn send_interrupt(session: &mut Session, job: &str) -> Result<String, Stop> {
    let payload = json!({ "target": "job", "target_id": job, "prompt": "Stop, and ask before you go on." });
    session.send("interrupt", payload).await
}

/// Interrupts a job. A runtime may have jobs that cannot pause, which it refuses to interrupt.
async fn pauses(session: &mut Session, job: &str) -> Result<(), Stop> {
    let id = send_interrupt(session, job).await?;
    session.round_trip().await?;
    let refuses = |message: &&Value| kind(message) == "nack" && text(message, "/correlation_id") == id;
    let refusal = session.peer.received().find(refuses).map(short);
    match refusal {
        Some(refusal) => {
            session.clean_up(job).await?;
            Err(Stop::skipped(format!("the runtime cannot interrupt this job: {refusal}")))
        }
        None => Ok(()),
    }
}

async fn interrupt_not_end(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    session.needs("interrupt")?;
    let (command, job) = session.start(probe, Behaviour::Slow).await?;
    pauses(&mut session, &job).await?;
    session.peer.settle().await;
    let ended = session.about(&command, &job).into_iter().find(|message| is_terminal(message)).cloned();
    expect(ended.is_none(), "a job that goes on", || ended.as_ref().map(short).unwrap_or_default())?;
    let id = cancel(&mut session, &job).await?;
    session.answer(&id, &["cancel.accepted"]).await?;
    let end = session
        .peer
        .take("the job's terminal event", |message| is_terminal(message) && concerns(message, &command, &job))
        .await?;
    expect(kind(&end) == "job.cancelled", "job.cancelled", || short(&end))
}

async fn unsupported(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    if session.has("interrupt") {
        return Err(Stop::not_applicable("the runtime advertises interrupt"));
    }
    let (_, job) = session.start(probe, Behaviour::Slow).await?;
    let id = send_interrupt(&mut session, &job).await?;
    let refused = session.refusal(&id, &["UNIMPLEMENTED", "FAILED_PRECONDITION"]).await;
    session.clean_up(&job).await?;
    refused.map(drop)
}
