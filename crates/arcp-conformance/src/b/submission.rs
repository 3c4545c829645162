//! Dialect B §7.1, §7.2 and §7.5: submission, idempotency, versions of agents.

use serde_json::{Value, json};

use super::session::{Session, is_terminal, job, job_id};
use crate::json::{items, kind, short, text};
use crate::probe::{Behaviour, Probe, fresh};
use crate::scenario::{Stop, Verdict, expect, scenarios};

scenarios! {
    "b.7.1.accepted" Must
        "job.submit is answered with job.accepted: job_id, lease and accepted_at."
        => accepted;
    "b.7.1.ids-differ" Must
        "Two submissions without a key are two jobs."
        => ids_differ;
    "b.7.1.no-agent" Must
        "A job.submit without an agent is answered with INVALID_REQUEST."
        => no_agent;
    "b.7.1.unknown-agent" Must
        "A job.submit for an unknown agent is answered with AGENT_NOT_AVAILABLE."
        => unknown_agent;
    "b.7.1.max-runtime" Must
        "A job that exceeds max_runtime_sec ends with TIMEOUT and the final_status timed_out."
        => max_runtime;
    "b.7.2.same-key" Must
        "A second submission with the same key and parameters is the same job."
        => same_key;
    "b.7.2.same-payload" Must
        "It is answered with the same payload of job.accepted."
        => same_payload;
    "b.7.2.other-input" Must
        "A key with another input is answered with DUPLICATE_KEY."
        => other_input;
    "b.7.2.other-agent" Must
        "A key with another agent is answered with DUPLICATE_KEY, or with the error of that agent."
        => other_agent;
    "b.7.2.runs-once" Must
        "A job that was submitted twice with one key ends once in a session."
        => runs_once;
    "b.7.2.after-end" Must
        "A submission with the key of an ended job returns its terminal event again (draft-02)."
        => after_end;
    "b.7.2.other-session" Must
        "A key holds across the sessions of its principal."
        => key_other_session;
    "b.7.2.other-principal" Must
        "The key of one principal is not the key of another."
        => key_other_principal;
    "b.7.5.unknown-version" Must
        "An unknown version of an agent is answered with AGENT_VERSION_NOT_AVAILABLE."
        => unknown_version;
    "b.7.5.default-version" Must
        "A name without a version means the default version, and job.accepted says name@version."
        => default_version;
    "b.7.5.exact-version" Must
        "name@version is accepted, and job.accepted says the same."
        => exact_version;
}

async fn accepted(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let accepted = session.submit(job(probe, Behaviour::Succeeds)?).await?;
    session.end(&job_id(&accepted)?).await?;
    let at = text(&accepted, "/payload/accepted_at");
    expect(at.parse::<jiff::Timestamp>().is_ok(), "accepted_at as a time", || short(&accepted))?;
    let lease = accepted.pointer("/payload/lease");
    expect(lease.is_some_and(Value::is_object), "a lease", || short(&accepted))
}

async fn ids_differ(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let one = session.start(probe, Behaviour::Succeeds).await?;
    let two = session.start(probe, Behaviour::Succeeds).await?;
    expect(one != two, "two job_ids", || one.clone())
}

async fn no_agent(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    session.send("job.submit", json!({ "input": 1 })).await?;
    session.refusal("INVALID_REQUEST").await.map(drop)
}

async fn unknown_agent(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    session.send("job.submit", json!({ "agent": "no-such-agent", "input": null })).await?;
    session.refusal("AGENT_NOT_AVAILABLE").await.map(drop)
}

async fn max_runtime(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let mut payload = job(probe, Behaviour::Slow)?;
    payload["max_runtime_sec"] = json!(1);
    let job = job_id(&session.submit(payload).await?)?;
    let end = session.end(&job).await?;
    let timed_out = text(&end, "/payload/final_status") == "timed_out";
    let expected = "job.error with TIMEOUT and the final_status timed_out";
    expect(timed_out && text(&end, "/payload/code") == "TIMEOUT", expected, || short(&end))
}

/// The payload of a job that succeeds, with a key of its own.
fn keyed(probe: &Probe) -> Result<Value, Stop> {
    let mut payload = job(probe, Behaviour::Succeeds)?;
    payload["idempotency_key"] = json!(fresh("key"));
    Ok(payload)
}

async fn same_key(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let payload = keyed(probe)?;
    let one = job_id(&session.submit(payload.clone()).await?)?;
    let two = job_id(&session.submit(payload).await?)?;
    expect(one == two, &format!("the job {one} again"), || two.clone())
}

async fn same_payload(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let payload = keyed(probe)?;
    // A request_id names the submission that is answered; it is no part of the specification.
    let answer = |mut accepted: Value| {
        if let Some(fields) = accepted.pointer_mut("/payload").and_then(Value::as_object_mut) {
            fields.remove("request_id");
        }
        accepted["payload"].take()
    };
    let one = answer(session.submit(payload.clone()).await?);
    let two = answer(session.submit(payload).await?);
    expect(one == two, &short(&one), || short(&two))
}

async fn other_input(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let mut payload = keyed(probe)?;
    session.submit(payload.clone()).await?;
    payload["input"] = json!({ "another": payload["input"] });
    session.send("job.submit", payload).await?;
    session.refusal("DUPLICATE_KEY").await.map(drop)
}

async fn other_agent(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let mut payload = keyed(probe)?;
    session.submit(payload.clone()).await?;
    payload["agent"] = json!("no-such-agent");
    session.send("job.submit", payload).await?;
    let expected = "an error with the code DUPLICATE_KEY or AGENT_NOT_AVAILABLE";
    let coded =
        |message: &Value| matches!(text(message, "/payload/code"), "DUPLICATE_KEY" | "AGENT_NOT_AVAILABLE");
    let answered = |message: &Value| {
        matches!(kind(message), "session.error" | "job.accepted")
            || (kind(message) == "job.error" && coded(message))
    };
    let answer = session.peer.take(expected, answered).await?;
    expect(coded(&answer), expected, || short(&answer))
}

async fn runs_once(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let mut payload = job(probe, Behaviour::Chatty).or_else(|_| job(probe, Behaviour::Succeeds))?;
    payload["idempotency_key"] = json!(fresh("key"));
    session.send("job.submit", payload.clone()).await?;
    session.send("job.submit", payload).await?;
    let job = job_id(&session.accepted().await?)?;
    session.accepted().await?;
    session.end(&job).await?;
    session.peer.settle().await;
    let jobs: Vec<_> = session
        .peer
        .received()
        .filter(|message| matches!(kind(message), "job.result" | "job.error"))
        .map(|message| text(message, "/job_id"))
        .collect();
    expect(jobs.iter().all(|each| *each == job), &format!("the end of {job} alone"), || format!("{jobs:?}"))
}

async fn after_end(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let payload = keyed(probe)?;
    let job = job_id(&session.submit(payload.clone()).await?)?;
    let first = session.end(&job).await?;
    session.submit(payload).await?;
    let again = session.peer.take("the terminal event again", |message| is_terminal(message, &job)).await?;
    let same = kind(&first) == kind(&again) && first["payload"] == again["payload"];
    expect(same, &short(&first), || short(&again))
}

async fn key_other_session(probe: &Probe) -> Verdict {
    probe.needs_connections()?;
    let payload = keyed(probe)?;
    let mut one = Session::open(probe).await?;
    let first = job_id(&one.submit(payload.clone()).await?)?;
    let mut two = Session::open(probe).await?;
    let second = job_id(&two.submit(payload).await?)?;
    expect(first == second, &format!("the job {first} again"), || second.clone())
}

async fn key_other_principal(probe: &Probe) -> Verdict {
    probe.needs_connections()?;
    let payload = keyed(probe)?;
    let mut two = Session::open_other(probe).await?;
    let mut one = Session::open(probe).await?;
    let first = job_id(&one.submit(payload.clone()).await?)?;
    let second = job_id(&two.submit(payload).await?)?;
    expect(first != second, "a job of its own", || second.clone())
}

async fn unknown_version(probe: &Probe) -> Verdict {
    let (agent, input) = probe.agent(Behaviour::Succeeds)?;
    let mut session = Session::open(probe).await?;
    session.needs("agent_versions")?;
    let name = agent.split('@').next().unwrap_or(agent);
    let payload = json!({ "agent": format!("{name}@999.999.999"), "input": input });
    session.send("job.submit", payload).await?;
    session.refusal("AGENT_VERSION_NOT_AVAILABLE").await.map(drop)
}

/// The name of the agent, its default version and a version, as the welcome lists them.
fn versions(probe: &Probe, session: &Session) -> Result<(String, Option<String>, Option<String>), Stop> {
    session.needs("agent_versions")?;
    let (agent, _) = probe.agent(Behaviour::Succeeds)?;
    let name = agent.split('@').next().unwrap_or(agent);
    let agents = items(&session.welcome, "/payload/capabilities/agents");
    let Some(listed) = agents.iter().find(|each| text(each, "/name") == name) else {
        return Err(Stop::failed(format!("the agent {name} in the welcome"), short(&session.welcome)));
    };
    let default = listed.get("default").and_then(Value::as_str).map(str::to_owned);
    let first = items(listed, "/versions").first().and_then(Value::as_str).map(str::to_owned);
    Ok((name.to_owned(), default, first))
}

async fn default_version(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let (name, default, _) = versions(probe, &session)?;
    let default = default.ok_or_else(|| Stop::not_applicable("the agent has no default version"))?;
    resolves(&mut session, probe, &name, &format!("{name}@{default}")).await
}

async fn exact_version(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let (name, _, version) = versions(probe, &session)?;
    let version = version.ok_or_else(|| Stop::not_applicable("the agent lists no versions"))?;
    let exact = format!("{name}@{version}");
    resolves(&mut session, probe, &exact, &exact).await
}

async fn resolves(session: &mut Session, probe: &Probe, asked: &str, resolved: &str) -> Verdict {
    let (_, input) = probe.agent(Behaviour::Succeeds)?;
    let accepted = session.submit(json!({ "agent": asked, "input": input })).await?;
    let got = text(&accepted, "/payload/agent");
    expect(got == resolved, &format!("job.accepted with the agent {resolved}"), || short(&accepted))
}
