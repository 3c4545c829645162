//! Sessions, what waits in them, and how they are related.

use mainstay_engine::{Client, Relative, SessionStatus, Statistics, WaitingAsk};
use mainstay_model::{Ask, PendingAsk, Raiser, Session};
use mainstay_protocol::view::{AskView, MergedEntries, Orphaned, RelativeView, SessionView, StatisticsView};

/// The view of a session with its state.
pub fn session_view(status: SessionStatus) -> SessionView {
    let orphaned = status.is_orphaned.then(|| Orphaned::of(&status.session)).flatten();
    let dropped_environment = status.dropped_environment;
    let view = SessionView::new(&status.session, status.usage);
    SessionView { warm_up: status.warm_up, orphaned, dropped_environment, ..view }
}

/// The view of the job that runs in a session, where this client may know that whoever asked for it has left.
pub fn orphaned_view(client: &Client, session: &Session) -> Option<Orphaned> {
    client.is_orphaned(session).then(|| Orphaned::of(session)).flatten()
}

/// The view of an ask that waits for an answer.
pub fn ask_view(WaitingAsk { session, pending }: WaitingAsk) -> AskView {
    let PendingAsk { ask, raised: _, raised_at, source, votes } = pending;
    let Ask { ask, raiser, question, deadline } = ask;
    let (job, command) = match raiser {
        Raiser::Job { job } => (Some(job), None),
        Raiser::Command { command, .. } => (None, Some(command)),
    };
    AskView {
        ask,
        short_id: ask.short(),
        session: session.id,
        session_name: session.name,
        question,
        source,
        job,
        command,
        raised_at,
        deadline: deadline.map(|deadline| deadline.at),
        votes,
    }
}

/// The view of a session among those it is related to.
pub fn relative_view(Relative { session, entries, merged }: Relative) -> RelativeView {
    let merged = merged.into_iter().map(|(session, entries)| MergedEntries { session, entries });
    RelativeView { session: SessionView::new(&session, None), entries, merged: merged.collect() }
}

/// The view of a session in numbers.
pub fn statistics_view(Statistics { session, transcript, stored }: Statistics) -> StatisticsView {
    StatisticsView { session: SessionView::new(&session, None), transcript, stored }
}
