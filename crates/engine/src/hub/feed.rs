//! Commits that another daemon made to a store that both use: read from the log, and passed on as one's own are.

use std::sync::Weak;

use futures::StreamExt;
use futures::stream::BoxStream;
use mainstay_log::Log;
use mainstay_model::{Error, Event, Position, SessionId};

use super::Hub;

/// How many events are read at once.
const PAGE: usize = 256;

/// What passes the commits of others on.
pub(crate) struct Feed<F> {
    /// The store and the hub, as long as the engine has them.
    pub(crate) log: Weak<dyn Log>,
    pub(crate) hub: Weak<Hub>,
    /// Whether a session has a task here, whose committer publishes its events.
    pub(crate) is_ours: F,
    /// The newest event that was looked at.
    pub(crate) after: Position,
}

impl<F: Fn(SessionId) -> bool> Feed<F> {
    /// Passes on what others commit, until the store is closed.
    pub(crate) async fn run(mut self, mut changes: BoxStream<'static, Position>) {
        while let Some(newest) = changes.next().await {
            while self.after < newest {
                match self.pass_on(newest).await {
                    Ok(Some(())) => {}
                    Ok(None) => return,
                    Err(error) => {
                        tracing::warn!(%error, "what another daemon has stored is passed on with its next change");
                        break;
                    }
                }
            }
        }
    }

    /// Passes a page of what is there up to the newest position on; none where the engine is gone.
    async fn pass_on(&mut self, newest: Position) -> Result<Option<()>, Error> {
        let Some(log) = self.log.upgrade() else { return Ok(None) };
        let events = log.all_events(self.after, PAGE).await?;
        drop(log);
        let Some(last) = events.last().map(|event| event.position) else {
            // What came last was of sessions that are deleted.
            self.after = newest;
            return Ok(Some(()));
        };
        let Some(hub) = self.hub.upgrade() else { return Ok(None) };
        let of_one_session = |one: &Event, next: &Event| one.session == next.session;
        for run in events.chunk_by(of_one_session) {
            if let Some(first) = run.first()
                && !(self.is_ours)(first.session)
            {
                hub.publish(first.session, run.to_vec());
            }
        }
        self.after = last;
        Ok(Some(()))
    }
}
