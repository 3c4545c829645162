//! Dialect A §19: coming back to a session.

use serde_json::{Value, json};

use super::session::{Session, capabilities, envelope, open};
use crate::json::{kind, short, text};
use crate::probe::{Behaviour, Probe};
use crate::scenario::{Stop, Verdict, expect, scenarios};

scenarios! {
    "a.19.replays" Must
        "resume replays the messages after after_message_id, with the same ids, in the same order."
        => replays;
    "a.19.deterministic" Must
        "Two resumes from the same message replay the same."
        => deterministic;
    "a.19.from-end" Must
        "resume from the last message of a job replays none of its messages."
        => from_end;
    "a.19.while-away" Must
        "What a job publishes while the client is away is replayed, up to its terminal event."
        => while_away;
    "a.19.data-loss" Must
        "resume from a message that the runtime does not have is answered with DATA_LOSS."
        => data_loss;
    "a.19.other-principal" Must
        "resume of the session of another principal is refused."
        => other_principal;
}

/// Opens a connection, authenticates, and asks to resume a session after a message.
async fn resume(probe: &Probe, token: Option<&str>, session: &str, after: &str) -> Result<Session, Stop> {
    let mut message = open(token, capabilities());
    message["session_id"] = json!(session);
    let mut back = Session::open_with(probe, message).await?;
    let payload = json!({ "session_id": session, "after_message_id": after, "include_open_streams": true });
    let mut request = envelope("resume", payload);
    request["session_id"] = json!(session);
    back.peer.send(request).await?;
    Ok(back)
}

/// A message that belongs to the course of a job, and so to what is replayed.
fn is_of_job(message: &Value, job: &str) -> bool {
    text(message, "/job_id") == job && kind(message).starts_with("job.")
}

fn ids(session: &Session, job: &str) -> Vec<String> {
    let events = session.peer.received().filter(|message| is_of_job(message, job));
    // A replayed message may be sent again as it goes on; the first time counts.
    let mut ids: Vec<String> = Vec::new();
    for id in events.map(|message| text(message, "/id")) {
        if !ids.iter().any(|known| known == id) {
            ids.push(id.to_owned());
        }
    }
    ids
}

/// A session whose job has ended and whose connection is lost, with the job's id and the ids of its messages.
async fn ended(probe: &Probe) -> Result<(Session, String, Vec<String>), Stop> {
    probe.needs_connections()?;
    let behaviour =
        if probe.tool(Behaviour::Chatty).is_ok() { Behaviour::Chatty } else { Behaviour::Succeeds };
    let mut session = Session::open(probe).await?;
    let (command, job) = session.start(probe, behaviour).await?;
    session.end(&command, &job).await?;
    session.peer.settle().await;
    session.peer.cut();
    let ids = ids(&session, &job);
    expect(ids.len() >= 2, "messages of the job", || format!("{ids:?}"))?;
    Ok((session, job, ids))
}

/// Resumes after a message, and returns the ids of the job's messages that are replayed; the last is waited
/// for.
async fn replayed(
    probe: &Probe,
    session: &str,
    job: &str,
    after: &str,
    last: Option<&str>,
) -> Result<Vec<String>, Stop> {
    let mut back = resume(probe, probe.settings.token.as_deref(), session, after).await?;
    if let Some(last) = last {
        back.peer.take(&format!("the message {last}"), |message| text(message, "/id") == last).await?;
    }
    back.peer.settle().await;
    let got = ids(&back, job);
    back.peer.cut();
    Ok(got)
}

async fn replays(probe: &Probe) -> Verdict {
    let (session, job, ids) = ended(probe).await?;
    let last = ids.last().map(String::as_str);
    let got = replayed(probe, &session.id, &job, &ids[0], last).await?;
    expect(got == ids[1..], &format!("the messages {:?}", &ids[1..]), || format!("{got:?}"))
}

async fn deterministic(probe: &Probe) -> Verdict {
    let (session, job, ids) = ended(probe).await?;
    let last = ids.last().map(String::as_str);
    let one = replayed(probe, &session.id, &job, &ids[0], last).await?;
    let two = replayed(probe, &session.id, &job, &ids[0], last).await?;
    expect(one == two, &format!("the messages {one:?} again"), || format!("{two:?}"))
}

async fn from_end(probe: &Probe) -> Verdict {
    let (session, job, ids) = ended(probe).await?;
    let got = replayed(probe, &session.id, &job, &ids[ids.len() - 1], None).await?;
    expect(got.is_empty(), "no message of the job", || format!("{got:?}"))
}

async fn while_away(probe: &Probe) -> Verdict {
    probe.needs_connections()?;
    let behaviour =
        if probe.tool(Behaviour::Chatty).is_ok() { Behaviour::Chatty } else { Behaviour::Succeeds };
    let mut session = Session::open(probe).await?;
    let (command, job) = session.start(probe, behaviour).await?;
    session.peer.cut();
    let last = session.about(&command, &job).last().map(|message| text(message, "/id").to_owned());
    // The job must have time to publish while nobody listens.
    tokio::time::sleep(probe.settings.quiet).await;
    let token = probe.settings.token.as_deref();
    let mut back = resume(probe, token, &session.id, &last.unwrap_or_default()).await?;
    back.end(&command, &job).await.map(drop)
}

async fn data_loss(probe: &Probe) -> Verdict {
    let (session, _, _) = ended(probe).await?;
    let mut back = resume(probe, probe.settings.token.as_deref(), &session.id, "msg_nobody").await?;
    let coded = |message: &Value| message["payload"]["code"].is_string();
    let answer = back.peer.take("an error with the code DATA_LOSS", coded).await?;
    expect(text(&answer, "/payload/code") == "DATA_LOSS", "an error with the code DATA_LOSS", || {
        short(&answer)
    })
}

async fn other_principal(probe: &Probe) -> Verdict {
    let other = probe.other_token()?;
    let (session, job, ids) = ended(probe).await?;
    match resume(probe, Some(other), &session.id, &ids[0]).await {
        Ok(mut back) => {
            back.peer.settle().await;
            let seen = back.peer.received().find(|message| is_of_job(message, &job));
            expect(seen.is_none(), "no message of the other principal's job", || {
                seen.map(short).unwrap_or_default()
            })
        }
        // A session that is not even opened leaks nothing.
        Err(Stop::Failed { .. }) => Ok(()),
        Err(stop) => Err(stop),
    }
}
