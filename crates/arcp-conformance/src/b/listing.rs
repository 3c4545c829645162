//! Dialect B §6.6: the list of jobs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::session::Session;
use crate::json::{items, short, text};
use crate::probe::{Behaviour, Probe};
use crate::scenario::{Stop, Verdict, expect, scenarios};

scenarios! {
    "b.6.6.lists" Must
        "session.list_jobs is answered with session.jobs, the request_id, and the session's jobs."
        => lists;
    "b.6.6.entry" Must
        "The entry of a job has job_id, agent, status, lease, created_at and last_event_seq."
        => entry;
    "b.6.6.status" Must
        "The status of an entry is the job's: running, then its terminal state."
        => status;
    "b.6.6.filter-status" Must
        "filter.status leaves jobs of these states alone."
        => filter_status;
    "b.6.6.filter-agent" Must
        "filter.agent leaves jobs of this agent alone."
        => filter_agent;
    "b.6.6.filter-created" Must
        "filter.created_after leaves out the jobs of before."
        => filter_created;
    "b.6.6.pages" Must
        "limit bounds a page, and next_cursor leads through all jobs, each once."
        => pages;
    "b.6.6.other-session" Should
        "The jobs of a principal are listed in each of its sessions."
        => other_session;
    "b.6.6.other-principal" Must
        "The jobs of a principal are not listed to one that may not know of them."
        => other_principal;
    "b.6.6.bad-limit" Should
        "A limit that is no number is answered with INVALID_REQUEST."
        => bad_limit;
}

fn jobs(answer: &Value) -> &[Value] {
    items(answer, "/payload/jobs")
}

/// A session with a job that can be listed: one that runs where there is one, since a runtime may forget
/// those that have ended.
async fn with_job(probe: &Probe) -> Result<(Session, String), Stop> {
    let mut session = Session::open(probe).await?;
    session.needs("list_jobs")?;
    let job = another(&mut session, probe).await?;
    Ok((session, job))
}

async fn another(session: &mut Session, probe: &Probe) -> Result<String, Stop> {
    if probe.agent(Behaviour::Slow).is_ok() {
        return session.start(probe, Behaviour::Slow).await;
    }
    let job = session.start(probe, Behaviour::Succeeds).await?;
    session.end(&job).await?;
    Ok(job)
}

/// Fails where a job is missing, or skips the scenario where it has ended and may have been forgotten.
fn must_list(probe: &Probe, holds: bool, expected: &str, got: impl FnOnce() -> String) -> Verdict {
    if !holds && probe.agent(Behaviour::Slow).is_err() {
        return Err(Stop::skipped("no --slow-input, and the runtime does not list jobs that have ended"));
    }
    expect(holds, expected, got)
}

/// Returns the entry of a job, which the list must have.
async fn found(probe: &Probe, session: &mut Session, job: &str, request: Value) -> Result<Value, Stop> {
    let answer = session.list(request).await?;
    let entry = jobs(&answer).iter().find(|each| text(each, "/job_id") == job).cloned();
    must_list(probe, entry.is_some(), &format!("the job {job}"), || short(&answer))?;
    Ok(entry.unwrap_or_default())
}

async fn lists(probe: &Probe) -> Verdict {
    let (mut session, job) = with_job(probe).await?;
    let status = session.status(&job).await?;
    session.clean_up(&job).await?;
    must_list(probe, !status.starts_with("not listed"), &format!("the job {job} in the list"), || status)
}

async fn entry(probe: &Probe) -> Verdict {
    let before = jiff::Timestamp::now() - jiff::SignedDuration::from_secs(2);
    let (mut session, job) = with_job(probe).await?;
    let filter = json!({ "filter": { "created_after": before.to_string() }, "limit": 100 });
    let entry = found(probe, &mut session, &job, filter).await?;
    session.clean_up(&job).await?;
    for field in ["/job_id", "/agent", "/status", "/created_at"] {
        expect(!text(&entry, field).is_empty(), &format!("a text at {field}"), || short(&entry))?;
    }
    expect(entry.get("lease").is_some_and(Value::is_object), "a lease", || short(&entry))?;
    expect(entry.get("last_event_seq").is_some_and(Value::is_i64), "last_event_seq", || short(&entry))
}

async fn status(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    session.needs("list_jobs")?;
    let done = session.start(probe, Behaviour::Succeeds).await?;
    session.end(&done).await?;
    let status = session.status(&done).await?;
    let holds = status == "success" || status.starts_with("not listed");
    expect(holds, "the status success after job.result, or a list without the job", || status.clone())?;
    let Ok(slow) = session.start(probe, Behaviour::Slow).await else { return Ok(()) };
    let status = session.status(&slow).await?;
    session.clean_up(&slow).await?;
    expect(matches!(status.as_str(), "running" | "pending"), "the status running", || status.clone())
}

/// Whether a list has a job, or ends before it could.
fn may_have(answer: &Value, job: &str) -> bool {
    let full = answer.pointer("/payload/next_cursor").is_some_and(|cursor| !cursor.is_null());
    full || jobs(answer).iter().any(|each| text(each, "/job_id") == job)
}

async fn filter_status(probe: &Probe) -> Verdict {
    let (mut session, job) = with_job(probe).await?;
    let active = json!({ "filter": { "status": ["running", "pending"] }, "limit": 1000 });
    let active = session.list(active).await?;
    let ended = session.list(json!({ "filter": { "status": ["success"] }, "limit": 1000 })).await?;
    session.clean_up(&job).await?;
    let wrong = |each: &&Value| !matches!(text(each, "/status"), "running" | "pending");
    let wrong = jobs(&active).iter().find(wrong);
    expect(wrong.is_none(), "running and pending jobs alone", || wrong.map(short).unwrap_or_default())?;
    let wrong = jobs(&ended).iter().find(|each| text(each, "/status") != "success");
    expect(wrong.is_none(), "jobs that succeeded alone", || wrong.map(short).unwrap_or_default())?;
    let listed = may_have(&active, &job) || may_have(&ended, &job);
    must_list(probe, listed, &format!("the job {job}"), || short(&active))
}

async fn filter_agent(probe: &Probe) -> Verdict {
    let (mut session, job) = with_job(probe).await?;
    let (agent, _) = probe.agent(Behaviour::Succeeds)?;
    let nobody = session.list(json!({ "filter": { "agent": "no-such-agent" } })).await?;
    let mine = session.list(json!({ "filter": { "agent": agent }, "limit": 1000 })).await?;
    session.clean_up(&job).await?;
    expect(jobs(&nobody).is_empty(), "no jobs of an agent that is not there", || short(&nobody))?;
    must_list(probe, may_have(&mine, &job), &format!("the job {job} of {agent}"), || short(&mine))
}

async fn filter_created(probe: &Probe) -> Verdict {
    let (mut session, job) = with_job(probe).await?;
    let later = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
    let none = session.list(json!({ "filter": { "created_after": later.to_string() } })).await?;
    session.clean_up(&job).await?;
    expect(jobs(&none).is_empty(), "no jobs that were created an hour from now", || short(&none))
}

async fn pages(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    session.needs("list_jobs")?;
    let before = jiff::Timestamp::now() - jiff::SignedDuration::from_secs(1);
    let mut started = BTreeSet::new();
    for _ in 0..3 {
        started.insert(another(&mut session, probe).await?);
    }
    let mut seen = Vec::new();
    let mut request = json!({ "filter": { "created_after": before.to_string() }, "limit": 1 });
    for _ in 0..100 {
        let page = session.list(request.clone()).await?;
        expect(jobs(&page).len() <= 1, "a page of one job", || short(&page))?;
        seen.extend(jobs(&page).iter().map(|each| text(each, "/job_id").to_owned()));
        match page.pointer("/payload/next_cursor") {
            Some(cursor) if !cursor.is_null() => request["cursor"] = cursor.clone(),
            _ => break,
        }
    }
    for job in &started {
        session.send_about("job.cancel", job, json!({ "reason": "the scenario is over" })).await?;
    }
    let unique: BTreeSet<_> = seen.iter().cloned().collect();
    expect(unique.len() == seen.len(), "each job once", || format!("{seen:?}"))?;
    must_list(probe, started.is_subset(&unique), &format!("the jobs {started:?}"), || format!("{seen:?}"))
}

async fn other_session(probe: &Probe) -> Verdict {
    probe.needs_connections()?;
    let (mut session, job) = with_job(probe).await?;
    let mut other = Session::open(probe).await?;
    let status = other.status(&job).await?;
    session.clean_up(&job).await?;
    must_list(probe, !status.starts_with("not listed"), &format!("the job {job} in the list"), || status)
}

async fn other_principal(probe: &Probe) -> Verdict {
    probe.needs_connections()?;
    let mut other = Session::open_other(probe).await?;
    let (mut session, job) = with_job(probe).await?;
    let status = other.status(&job).await?;
    session.clean_up(&job).await?;
    expect(status.starts_with("not listed"), "a list without the job of somebody else", || status)
}

async fn bad_limit(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    session.needs("list_jobs")?;
    session.send("session.list_jobs", json!({ "limit": "many" })).await?;
    session.refusal("INVALID_REQUEST").await?;
    Ok(())
}
