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
        "An entry has job_id, agent, status, lease, created_at and last_event_seq."
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

async fn with_job(probe: &Probe) -> Result<(Session, String), Stop> {
    let mut session = Session::open(probe).await?;
    session.needs("list_jobs")?;
    let job = session.start(probe, Behaviour::Succeeds).await?;
    session.end(&job).await?;
    Ok((session, job))
}

/// Returns the entry of a job, which the list must have.
async fn found(session: &mut Session, job: &str, request: Value) -> Result<Value, Stop> {
    let answer = session.list(request).await?;
    let entry = jobs(&answer).iter().find(|each| text(each, "/job_id") == job).cloned();
    entry.ok_or_else(|| Stop::failed(format!("the job {job}"), short(&answer)))
}

async fn lists(probe: &Probe) -> Verdict {
    let (mut session, job) = with_job(probe).await?;
    let status = session.status(&job).await?;
    expect(status != "not listed", &format!("the job {job} in the list"), || status)
}

async fn entry(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    session.needs("list_jobs")?;
    let before = jiff::Timestamp::now() - jiff::SignedDuration::from_secs(2);
    let job = session.start(probe, Behaviour::Succeeds).await?;
    session.end(&job).await?;
    let filter = json!({ "filter": { "created_after": before.to_string() }, "limit": 100 });
    let entry = found(&mut session, &job, filter).await?;
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
    expect(status == "success", "the status success after job.result", || status.clone())?;
    let Ok(slow) = session.start(probe, Behaviour::Slow).await else { return Ok(()) };
    let status = session.status(&slow).await?;
    session.clean_up(&slow).await?;
    expect(matches!(status.as_str(), "running" | "pending"), "the status running", || status.clone())
}

async fn filter_status(probe: &Probe) -> Verdict {
    let (mut session, job) = with_job(probe).await?;
    let none = session.list(json!({ "filter": { "status": ["running", "pending"] }, "limit": 1000 })).await?;
    let wrong = jobs(&none).iter().find(|each| !matches!(text(each, "/status"), "running" | "pending"));
    expect(wrong.is_none(), "running and pending jobs alone", || wrong.map(short).unwrap_or_default())?;
    let one = session.list(json!({ "filter": { "status": ["success"] }, "limit": 1000 })).await?;
    let full = one.pointer("/payload/next_cursor").is_some_and(|cursor| !cursor.is_null());
    let listed = jobs(&one).iter().any(|each| text(each, "/job_id") == job);
    expect(listed || full, &format!("the finished job {job}"), || short(&one))
}

async fn filter_agent(probe: &Probe) -> Verdict {
    let (mut session, job) = with_job(probe).await?;
    let nobody = session.list(json!({ "filter": { "agent": "no-such-agent" } })).await?;
    expect(jobs(&nobody).is_empty(), "no jobs of an agent that is not there", || short(&nobody))?;
    let (agent, _) = probe.agent(Behaviour::Succeeds)?;
    let mine = session.list(json!({ "filter": { "agent": agent }, "limit": 1000 })).await?;
    let full = mine.pointer("/payload/next_cursor").is_some_and(|cursor| !cursor.is_null());
    let listed = jobs(&mine).iter().any(|each| text(each, "/job_id") == job);
    expect(listed || full, &format!("the job {job} of {agent}"), || short(&mine))
}

async fn filter_created(probe: &Probe) -> Verdict {
    let (mut session, _) = with_job(probe).await?;
    let later = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
    let none = session.list(json!({ "filter": { "created_after": later.to_string() } })).await?;
    expect(jobs(&none).is_empty(), "no jobs that were created an hour from now", || short(&none))
}

async fn pages(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    session.needs("list_jobs")?;
    let before = jiff::Timestamp::now();
    let mut started = BTreeSet::new();
    for _ in 0..3 {
        let job = session.start(probe, Behaviour::Succeeds).await?;
        session.end(&job).await?;
        started.insert(job);
    }
    let mut seen = Vec::new();
    let filter = json!({ "created_after": (before - jiff::SignedDuration::from_secs(1)).to_string() });
    let mut request = json!({ "filter": filter, "limit": 1 });
    for _ in 0..100 {
        let page = session.list(request.clone()).await?;
        expect(jobs(&page).len() <= 1, "a page of one job", || short(&page))?;
        seen.extend(jobs(&page).iter().map(|each| text(each, "/job_id").to_owned()));
        match page.pointer("/payload/next_cursor") {
            Some(cursor) if !cursor.is_null() => request["cursor"] = cursor.clone(),
            _ => break,
        }
    }
    let unique: BTreeSet<_> = seen.iter().cloned().collect();
    expect(unique.len() == seen.len(), "each job once", || format!("{seen:?}"))?;
    expect(started.is_subset(&unique), &format!("the jobs {started:?}"), || format!("{seen:?}"))
}

async fn other_session(probe: &Probe) -> Verdict {
    probe.needs_connections()?;
    let (_session, job) = with_job(probe).await?;
    let mut other = Session::open(probe).await?;
    let status = other.status(&job).await?;
    expect(!status.starts_with("not listed"), &format!("the job {job} in the list"), || status)
}

async fn other_principal(probe: &Probe) -> Verdict {
    probe.needs_connections()?;
    let mut other = Session::open_other(probe).await?;
    let (_session, job) = with_job(probe).await?;
    let status = other.status(&job).await?;
    expect(status.starts_with("not listed"), "a list without the job of somebody else", || status)
}

async fn bad_limit(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    session.needs("list_jobs")?;
    session.send("session.list_jobs", json!({ "limit": "many" })).await?;
    session.refusal("INVALID_REQUEST").await?;
    Ok(())
}
