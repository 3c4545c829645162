//! Dialect B §5: the envelope.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::session::{FEATURES, Session, hello, job, job_id};
use crate::json::{kind, short, text};
use crate::probe::{Behaviour, Probe};
use crate::scenario::{Verdict, expect, scenarios};

scenarios! {
    "b.5.envelope" Must
        "Every message of the runtime is a JSON object with arcp, id, type, payload and, after the welcome, \
        session_id."
        => envelope;
    "b.5.ids-unique" Must
        "Every message of the runtime has an id of its own."
        => ids_unique;
    "b.5.unknown-fields" Must
        "Unknown top-level fields of an envelope are ignored."
        => unknown_fields;
    "b.5.unknown-type" Should
        "A message of an unknown type does not end the session."
        => unknown_type;
    "b.5.malformed-json" Should
        "A frame that is no JSON does not end the session."
        => malformed_json;
    "b.5.not-an-object" Should
        "A frame that is JSON but no object does not end the session."
        => not_an_object;
    "b.5.duplicate-id" Should
        "A job.submit that arrives twice with the same envelope id runs once."
        => duplicate_id;
}

/// A session in which a job ran, if there is an agent, and a ping was answered.
async fn used(probe: &Probe) -> Result<Session, crate::scenario::Stop> {
    let mut session = Session::open(probe).await?;
    if probe.agent(Behaviour::Succeeds).is_ok() {
        let job = session.start(probe, Behaviour::Succeeds).await?;
        session.end(&job).await?;
    }
    session.round_trip().await?;
    Ok(session)
}

async fn envelope(probe: &Probe) -> Verdict {
    let session = used(probe).await?;
    for message in session.peer.received() {
        let fields = ["/arcp", "/id", "/type"];
        let named = fields.iter().all(|field| !text(message, field).is_empty());
        let whole = named && message.get("payload").is_some_and(Value::is_object);
        expect(whole, "arcp, id, type and payload", || short(message))?;
        let known = !session.id.is_empty() && text(message, "/session_id") == session.id;
        expect(known, "session_id in every envelope", || short(message))?;
    }
    Ok(())
}

async fn ids_unique(probe: &Probe) -> Verdict {
    let session = used(probe).await?;
    let mut seen = BTreeSet::new();
    for message in session.peer.received() {
        expect(seen.insert(text(message, "/id")), "an id that no other message has", || short(message))?;
    }
    Ok(())
}

async fn unknown_fields(probe: &Probe) -> Verdict {
    let mut hello = hello(probe.settings.token.as_deref(), &FEATURES);
    hello["x_conformance"] = json!({ "nested": [1, 2, 3] });
    let mut session = Session::open_with(probe, hello).await?;
    let Ok(payload) = job(probe, Behaviour::Succeeds) else { return Ok(()) };
    let mut submit = session.envelope("job.submit", payload);
    submit["x_conformance"] = json!(true);
    session.peer.send(submit).await?;
    let accepted = session.accepted().await?;
    session.end(&job_id(&accepted)?).await?;
    Ok(())
}

async fn unknown_type(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    session.send("session.no_such_type", json!({})).await?;
    survives(session, probe).await
}

async fn malformed_json(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    session.peer.send_text("{\"arcp\": \"1.1\", \"id\"".to_owned()).await?;
    survives(session, probe).await
}

async fn not_an_object(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    session.peer.send_text("[1, 2, 3]".to_owned()).await?;
    survives(session, probe).await
}

/// Fails unless the session still answers.
async fn survives(mut session: Session, probe: &Probe) -> Verdict {
    session.peer.settle().await;
    expect(!session.peer.is_closed(), "a session that goes on", || "the connection was closed".to_owned())?;
    if probe.agent(Behaviour::Succeeds).is_ok() {
        session.send("job.submit", job(probe, Behaviour::Succeeds)?).await?;
        let accepted = session.peer.take("job.accepted", |message| kind(message) == "job.accepted").await?;
        session.end(&job_id(&accepted)?).await?;
    }
    session.round_trip().await
}

async fn duplicate_id(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let mut submit = session.envelope("job.submit", job(probe, Behaviour::Succeeds)?);
    submit["id"] = json!(uuid::Uuid::now_v7().to_string());
    session.peer.send(submit.clone()).await?;
    let first = job_id(&session.accepted().await?)?;
    session.end(&first).await?;
    session.peer.send(submit).await?;
    session.round_trip().await?;
    session.peer.settle().await;
    let jobs: BTreeSet<_> = session
        .peer
        .received()
        .filter(|message| kind(message) == "job.accepted")
        .map(|message| text(message, "/payload/job_id"))
        .collect();
    expect(jobs.len() == 1, "one job for one envelope id", || format!("the jobs {jobs:?}"))
}
