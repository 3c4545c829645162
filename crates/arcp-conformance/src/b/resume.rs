//! Dialect B §6.3: resuming a session whose connection was lost.

use std::time::Duration;

use serde_json::{Value, json};

use super::session::{FEATURES, Session, gap_free, hello, is_terminal, job, job_id, numbers};
use crate::json::{kind, seq, short, text};
use crate::peer::Peer;
use crate::probe::{Behaviour, Probe};
use crate::scenario::{Stop, Verdict, expect, scenarios};

scenarios! {
    "b.6.3.session-resume" Must
        "A client resumes with session.resume, and gets a welcome of the same session."
        => session_resume;
    "b.6.3.hello-resume" Should
        "A client resumes with the resume block of session.hello (draft-02)."
        => hello_resume;
    "b.6.3.rotates-token" Must
        "The resume_token changes with every welcome."
        => rotates_token;
    "b.6.3.old-token" Must
        "A resume_token is refused after it has rotated."
        => old_token;
    "b.6.3.wrong-token" Must
        "A resume with a wrong resume_token is refused."
        => wrong_token;
    "b.6.3.wrong-token-harmless" Must
        "After a resume with a wrong token the session can be resumed with the right one (draft-02 §6.2)."
        => wrong_token_harmless;
    "b.6.3.wrong-bearer" Must
        "A resume with a wrong bearer token is refused."
        => wrong_bearer;
    "b.6.3.other-principal" Must
        "A resume by another principal is refused."
        => other_principal;
    "b.6.3.unknown-session" Must
        "A resume of a session that never was is refused."
        => unknown_session;
    "b.6.3.from-start" Must
        "A resume from 0 replays every event of the session once, in order."
        => from_start;
    "b.6.3.from-middle" Must
        "A resume from the middle replays exactly the events after it."
        => from_middle;
    "b.6.3.from-end" Must
        "A resume from the last event replays none."
        => from_end;
    "b.6.3.same-events" Must
        "A replayed event is the same message as the first time."
        => same_events;
    "b.6.3.while-away" Must
        "Events that a job publishes while the client is away are replayed without a gap."
        => while_away;
    "b.6.3.goes-on" Must
        "After a resume the numbers of new events follow those before it."
        => goes_on;
    "b.6.3.ahead" Should
        "A resume from a number that was never given out is refused."
        => ahead;
    "b.6.3.window-expired" Must
        "A resume after resume_window_sec is answered with RESUME_WINDOW_EXPIRED (draft-02)."
        => window_expired;
    "b.7.7.cancel-authority" Must
        "A session that was resumed may still cancel its jobs."
        => cancel_authority;
}

/// How a client asks to resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// A `session.resume` (§6.3 of 1.1).
    Message,
    /// A `session.hello` with a `resume` block (§6.3 of draft-02).
    Hello,
}

/// What a client knows of the session that it resumes.
struct Lost {
    session: String,
    token: String,
    last: i64,
}

impl Lost {
    fn of(session: &Session, last: i64) -> Self {
        Self { session: session.id.clone(), token: session.resume_token().to_owned(), last }
    }
}

/// Sends the request to resume on a new connection.
async fn ask(probe: &Probe, lost: &Lost, style: Style, bearer: Option<&str>) -> Result<Peer, Stop> {
    let block =
        json!({ "session_id": lost.session, "resume_token": lost.token, "last_event_seq": lost.last });
    let mut message = hello(bearer, &FEATURES);
    if style == Style::Message {
        message["type"] = json!("session.resume");
        message["session_id"] = json!(lost.session);
        for field in ["session_id", "resume_token", "last_event_seq"] {
            message["payload"][field] = block[field].clone();
        }
    } else {
        message["payload"]["resume"] = block;
    }
    let mut peer = probe.connect().await?;
    peer.send(message).await?;
    Ok(peer)
}

/// Resumes as the runtime understands it: by `session.hello`, or else by `session.resume`. A runtime that
/// does not know the first opens another session, which is no resume.
pub(super) async fn resume(probe: &Probe, session: &Session, last: i64) -> Result<Session, Stop> {
    let lost = Lost::of(session, last);
    let token = probe.settings.token.as_deref();
    let first = Session::welcomed(ask(probe, &lost, Style::Hello, token).await?).await;
    match first {
        Ok(resumed) if resumed.id == session.id => Ok(resumed),
        Ok(_) => Session::welcomed(ask(probe, &lost, Style::Message, token).await?).await,
        Err(first) => {
            let second = Session::welcomed(ask(probe, &lost, Style::Message, token).await?).await;
            second.map_err(|_| first)
        }
    }
}

/// What a runtime answers to a request to resume: an error or a welcome, or nothing where the connection
/// ended or stayed silent.
async fn answer(probe: &Probe, lost: &Lost, style: Style, bearer: Option<&str>) -> Result<Answer, Stop> {
    let mut peer = ask(probe, lost, style, bearer).await?;
    let answered = |message: &Value| matches!(kind(message), "session.welcome" | "session.error");
    match peer.take("session.error", answered).await {
        Ok(message) => Ok(Answer::Message(message)),
        Err(_) if peer.is_closed() => Ok(Answer::Closed),
        Err(_) => Ok(Answer::Silent),
    }
}

/// How a runtime answers a request to resume.
enum Answer {
    Message(Value),
    Closed,
    Silent,
}

/// Fails where either way to resume leads back to the session, or where neither is answered.
async fn refused(probe: &Probe, lost: &Lost, bearer: Option<&str>) -> Verdict {
    let expected = "session.error, or the end of the connection";
    let mut silent = 0;
    for style in [Style::Hello, Style::Message] {
        match answer(probe, lost, style, bearer).await? {
            Answer::Message(message) if kind(&message) == "session.welcome" => {
                let same = text(&message, "/session_id") == lost.session;
                expect(!same, expected, || short(&message))?;
            }
            Answer::Message(_) | Answer::Closed => {}
            Answer::Silent => silent += 1,
        }
    }
    expect(silent < 2, expected, || "no answer".to_owned())
}

/// A session whose job has ended, and the job's events.
async fn finished(probe: &Probe) -> Result<(Session, Vec<Value>), Stop> {
    probe.needs_connections()?;
    let payload = job(probe, Behaviour::Chatty).or_else(|_| job(probe, Behaviour::Succeeds))?;
    let mut session = Session::open(probe).await?;
    let job = job_id(&session.submit(payload).await?)?;
    session.end(&job).await?;
    let events: Vec<_> = session.peer.received().filter(|message| seq(message).is_some()).cloned().collect();
    Ok((session, events))
}

async fn idle(probe: &Probe) -> Result<Session, Stop> {
    probe.needs_connections()?;
    let mut session = Session::open(probe).await?;
    session.peer.cut();
    Ok(session)
}

async fn by(probe: &Probe, style: Style) -> Verdict {
    let session = idle(probe).await?;
    let peer = ask(probe, &Lost::of(&session, 0), style, probe.settings.token.as_deref()).await?;
    let resumed = Session::welcomed(peer).await?;
    expect(resumed.id == session.id, "the same session_id", || short(&resumed.welcome))
}

async fn session_resume(probe: &Probe) -> Verdict {
    by(probe, Style::Message).await
}

async fn hello_resume(probe: &Probe) -> Verdict {
    by(probe, Style::Hello).await
}

async fn rotates_token(probe: &Probe) -> Verdict {
    let session = idle(probe).await?;
    let resumed = resume(probe, &session, 0).await?;
    let holds = !resumed.resume_token().is_empty() && resumed.resume_token() != session.resume_token();
    expect(holds, "another resume_token", || short(&resumed.welcome))
}

async fn old_token(probe: &Probe) -> Verdict {
    let session = idle(probe).await?;
    let mut resumed = resume(probe, &session, 0).await?;
    // Until then the runtime cannot know that the welcome was not lost with its connection.
    resumed.round_trip().await?;
    resumed.peer.cut();
    refused(probe, &Lost::of(&session, 0), probe.settings.token.as_deref()).await
}

async fn wrong_token(probe: &Probe) -> Verdict {
    let session = idle(probe).await?;
    refused(probe, &guessed(&session), probe.settings.token.as_deref()).await
}

async fn wrong_token_harmless(probe: &Probe) -> Verdict {
    let session = idle(probe).await?;
    for style in [Style::Hello, Style::Message] {
        let mut peer = ask(probe, &guessed(&session), style, probe.settings.token.as_deref()).await?;
        peer.settle().await;
    }
    resume(probe, &session, 0).await.map(drop)
}

/// What somebody has who knows a session's id, and guesses its token.
fn guessed(session: &Session) -> Lost {
    let token = "rt_00000000000000000000000000000000".to_owned();
    Lost { token, ..Lost::of(session, 0) }
}

async fn wrong_bearer(probe: &Probe) -> Verdict {
    if probe.settings.token.is_none() {
        return Err(Stop::skipped("no --token, so the runtime may accept anybody"));
    }
    let session = idle(probe).await?;
    refused(probe, &Lost::of(&session, 0), Some("arcp-conformance-wrong-token")).await
}

async fn other_principal(probe: &Probe) -> Verdict {
    let other = probe.other_token()?;
    let session = idle(probe).await?;
    refused(probe, &Lost::of(&session, 0), Some(other)).await
}

async fn unknown_session(probe: &Probe) -> Verdict {
    probe.needs_connections()?;
    let lost = Lost {
        session: "sess_01JZZZZZZZZZZZZZZZZZZZZZZZ".to_owned(),
        token: "rt_00000000000000000000000000000000".to_owned(),
        last: 0,
    };
    refused(probe, &lost, probe.settings.token.as_deref()).await
}

/// Cuts a session at one of its events, resumes there, and compares what is replayed.
async fn replay(probe: &Probe, cut: fn(&[i64]) -> i64) -> Result<(Vec<Value>, Vec<Value>), Stop> {
    let (mut session, events) = finished(probe).await?;
    let before = numbers(events.iter());
    expect(!before.is_empty(), "a job with events", || "none".to_owned())?;
    let last = cut(&before);
    session.peer.cut();
    let mut resumed = resume(probe, &session, last).await?;
    let expected: Vec<_> = events.into_iter().filter(|event| seq(event) > Some(last)).collect();
    resumed.replayed(numbers(expected.iter()).last().copied()).await?;
    let replayed: Vec<_> =
        resumed.peer.received().filter(|message| seq(message).is_some()).cloned().collect();
    let (wanted, got) = (numbers(expected.iter()), numbers(replayed.iter()));
    expect(wanted == got, &format!("the events {wanted:?} after {last}"), || format!("{got:?}"))?;
    Ok((expected, replayed))
}

async fn from_start(probe: &Probe) -> Verdict {
    replay(probe, |_| 0).await.map(drop)
}

async fn from_middle(probe: &Probe) -> Verdict {
    replay(probe, |numbers| numbers[(numbers.len() - 1) / 2]).await.map(drop)
}

async fn from_end(probe: &Probe) -> Verdict {
    replay(probe, |numbers| numbers[numbers.len() - 1]).await.map(drop)
}

async fn same_events(probe: &Probe) -> Verdict {
    let (first, again) = replay(probe, |_| 0).await?;
    for (first, again) in first.iter().zip(&again) {
        let same =
            ["id", "type", "job_id", "payload"].iter().all(|field| first.get(field) == again.get(field));
        expect(same, &short(first), || short(again))?;
    }
    Ok(())
}

async fn while_away(probe: &Probe) -> Verdict {
    probe.needs_connections()?;
    let payload = job(probe, Behaviour::Chatty).or_else(|_| job(probe, Behaviour::Succeeds))?;
    let mut session = Session::open(probe).await?;
    // The events of a first job say where the numbers of the second begin.
    let before = session.start(probe, Behaviour::Succeeds).await?;
    session.end(&before).await?;
    let job = job_id(&session.submit(payload).await?)?;
    session.peer.cut();
    let last = numbers(session.peer.received()).last().copied().unwrap_or(0);
    // The job must have time to publish while nobody listens.
    tokio::time::sleep(probe.settings.quiet).await;
    let mut resumed = resume(probe, &session, last).await?;
    let end = resumed.end(&job).await?;
    expect(kind(&end) == "job.result", "job.result", || short(&end))?;
    let both = numbers(session.peer.received().chain(resumed.peer.received()));
    gap_free(&both)
}

async fn cancel_authority(probe: &Probe) -> Verdict {
    probe.needs_connections()?;
    let mut session = Session::open(probe).await?;
    let job = session.start(probe, Behaviour::Slow).await?;
    session.peer.settle().await;
    session.peer.cut();
    let mut resumed = resume(probe, &session, 0).await?;
    resumed.send_about("job.cancel", &job, json!({ "reason": "the scenario wants it" })).await?;
    let end = resumed.end(&job).await?;
    let cancelled = text(&end, "/payload/final_status") == "cancelled";
    expect(cancelled, "the final_status cancelled", || short(&end))
}

async fn goes_on(probe: &Probe) -> Verdict {
    let (mut session, events) = finished(probe).await?;
    let last = numbers(events.iter()).last().copied().unwrap_or(0);
    session.peer.cut();
    let mut resumed = resume(probe, &session, last).await?;
    let next = resumed.start(probe, Behaviour::Succeeds).await?;
    resumed.peer.take("the end of the next job", |message| is_terminal(message, &next)).await?;
    let both: Vec<_> = numbers(events.iter()).into_iter().chain(numbers(resumed.peer.received())).collect();
    gap_free(&both)
}

async fn ahead(probe: &Probe) -> Verdict {
    let session = idle(probe).await?;
    refused(probe, &Lost::of(&session, 1_000_000), probe.settings.token.as_deref()).await
}

async fn window_expired(probe: &Probe) -> Verdict {
    let session = idle(probe).await?;
    let window = session.welcome.pointer("/payload/resume_window_sec").and_then(Value::as_u64).unwrap_or(0);
    let past = Duration::from_secs(window) + probe.settings.quiet;
    if past + probe.settings.wait > probe.settings.limit {
        return Err(Stop::skipped(format!("the window of {window} s is longer than --limit")));
    }
    tokio::time::sleep(past).await;
    let mut got = None;
    for style in [Style::Hello, Style::Message] {
        let token = probe.settings.token.as_deref();
        if let Answer::Message(answer) = answer(probe, &Lost::of(&session, 0), style, token).await? {
            if text(&answer, "/payload/code") == "RESUME_WINDOW_EXPIRED" {
                return Ok(());
            }
            got.get_or_insert(short(&answer));
        }
    }
    let got = got.unwrap_or_else(|| "no answer".to_owned());
    Err(Stop::failed("session.error RESUME_WINDOW_EXPIRED", got))
}
