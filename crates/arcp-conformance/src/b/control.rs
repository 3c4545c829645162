//! Dialect B §6.4, §6.5 and §6.7: heartbeats, acknowledgement, close.

use serde_json::{Value, json};

use super::resume::resume;
use super::session::{Session, numbers};
use crate::json::{kind, seq, short, text};
use crate::probe::{Behaviour, Probe, fresh};
use crate::scenario::{Stop, Verdict, expect, scenarios};

scenarios! {
    "b.6.4.pong" Must
        "session.ping is answered with session.pong, with the ping's nonce."
        => pong;
    "b.6.4.not-numbered" Must
        "Heartbeats have no event_seq and use up no number."
        => not_numbered;
    "b.6.4.jobs-survive" Must
        "A lost connection does not end the session's jobs."
        => jobs_survive;
    "b.6.5.ack-unanswered" Must
        "session.ack is no event: it is not answered with an error and uses up no number."
        => ack_unanswered;
    "b.6.5.unacked-kept" Must
        "Events after the acknowledged one are still replayed."
        => unacked_kept;
    "b.6.5.ack-ahead" Should
        "An acknowledgement of a number that was never given out does not end the session."
        => ack_ahead;
    "b.6.7.close" Must
        "session.close is answered with session.closed."
        => close;
    "b.6.7.jobs-go-on" Must
        "Jobs go on after session.close."
        => jobs_go_on;
    "b.6.7.bye" Must
        "After session.bye the runtime sends nothing more (draft-02 §6.4)."
        => bye;
}

async fn ping(session: &mut Session) -> Result<Value, Stop> {
    session.needs("heartbeat")?;
    let nonce = fresh("p");
    let sent_at = jiff::Timestamp::now().to_string();
    session.send("session.ping", json!({ "nonce": nonce, "sent_at": sent_at })).await?;
    let expected = "session.pong with the ping's nonce as ping_nonce";
    let pong = session.peer.take(expected, |message| kind(message) == "session.pong").await?;
    expect(text(&pong, "/payload/ping_nonce") == nonce, expected, || short(&pong))?;
    Ok(pong)
}

async fn pong(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let pong = ping(&mut session).await?;
    expect(!text(&pong, "/payload/received_at").is_empty(), "received_at", || short(&pong))
}

/// Fails unless the events of two jobs, with something between them, have numbers without a gap.
async fn between_jobs(probe: &Probe, between: impl AsyncFnOnce(&mut Session) -> Verdict) -> Verdict {
    let mut session = Session::open(probe).await?;
    let first = session.start(probe, Behaviour::Succeeds).await?;
    session.end(&first).await?;
    between(&mut session).await?;
    let second = session.start(probe, Behaviour::Succeeds).await?;
    session.end(&second).await?;
    super::session::gap_free(&numbers(session.peer.received()))
}

async fn not_numbered(probe: &Probe) -> Verdict {
    between_jobs(probe, async |session| {
        let pong = ping(session).await?;
        expect(seq(&pong).is_none(), "session.pong without event_seq", || short(&pong))
    })
    .await
}

async fn jobs_survive(probe: &Probe) -> Verdict {
    probe.needs_connections()?;
    let mut session = Session::open(probe).await?;
    session.needs("list_jobs")?;
    let job = session.start(probe, Behaviour::Slow).await?;
    session.peer.cut();
    tokio::time::sleep(probe.settings.quiet).await;
    let mut resumed = resume(probe, &session, 0).await?;
    let status = resumed.status(&job).await?;
    resumed.clean_up(&job).await?;
    let goes_on = matches!(status.as_str(), "running" | "pending");
    expect(goes_on, "a job that goes on", || status)
}

async fn ack_unanswered(probe: &Probe) -> Verdict {
    between_jobs(probe, async |session| {
        session.needs("ack")?;
        let last = numbers(session.peer.received()).last().copied().unwrap_or(0);
        let before = session.peer.count();
        session.send("session.ack", json!({ "last_processed_seq": last })).await?;
        session.round_trip().await?;
        let error = session.peer.received().skip(before).find(|message| kind(message) == "session.error");
        expect(error.is_none(), "no error", || error.map(short).unwrap_or_default())
    })
    .await
}

async fn unacked_kept(probe: &Probe) -> Verdict {
    probe.needs_connections()?;
    let mut session = Session::open(probe).await?;
    session.needs("ack")?;
    let job = session.start(probe, Behaviour::Succeeds).await?;
    session.end(&job).await?;
    let sent = numbers(session.peer.received());
    let first = sent.first().copied().unwrap_or(0);
    session.send("session.ack", json!({ "last_processed_seq": first })).await?;
    session.round_trip().await?;
    session.peer.cut();
    let mut resumed = resume(probe, &session, first).await?;
    let wanted = sent.get(1..).unwrap_or_default();
    resumed.replayed(wanted.last().copied()).await?;
    let got = numbers(resumed.peer.received());
    expect(wanted == got, &format!("the events {wanted:?}"), || format!("{got:?}"))
}

async fn ack_ahead(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    session.needs("ack")?;
    session.send("session.ack", json!({ "last_processed_seq": 1_000_000 })).await?;
    session.round_trip().await?;
    expect(!session.peer.is_closed(), "a session that goes on", || "the connection was closed".to_owned())
}

async fn close(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    session.send("session.close", json!({ "reason": "the scenario is over" })).await?;
    let answered = |message: &Value| matches!(kind(message), "session.closed" | "session.error");
    let answer = session.peer.take("session.closed", answered).await?;
    expect(kind(&answer) == "session.closed", "session.closed", || short(&answer))
}

async fn jobs_go_on(probe: &Probe) -> Verdict {
    probe.needs_connections()?;
    let mut session = Session::open(probe).await?;
    session.needs("list_jobs")?;
    let job = session.start(probe, Behaviour::Slow).await?;
    session.send("session.close", json!({ "reason": "the scenario is over" })).await?;
    session.peer.settle().await;
    let mut other = Session::open(probe).await?;
    let status = other.status(&job).await?;
    let goes_on = matches!(status.as_str(), "running" | "pending");
    expect(goes_on, "a job that goes on", || status)
}

async fn bye(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    session.send("session.bye", json!({ "reason": "client_shutdown" })).await?;
    session.peer.settle().await;
    let before = session.peer.count();
    // The connection may be gone already, which is as quiet as it gets.
    let _ =
        session.send("session.ping", json!({ "nonce": fresh("p"), "sent_at": "2026-01-01T00:00:00Z" })).await;
    session.peer.settle().await;
    let more = session.peer.received().nth(before);
    let answer = session.peer.received().find(|message| kind(message) == "session.error");
    expect(more.is_none() && answer.is_none(), "nothing after session.bye", || {
        more.or(answer).map(short).unwrap_or_default()
    })
}
