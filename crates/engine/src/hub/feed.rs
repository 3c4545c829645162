//! Commits of which nobody here heard that they are durable: read from the log, and published as others are. Another daemon made them
//! to a store that both use, or the store's answer was lost.

use std::sync::Weak;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use mainstay_log::Log;
use mainstay_model::{Error, Event, Position, Seq, SessionId};

use super::Hub;
use crate::session::OwnTask;
use crate::sync::time::sleep;

/// How many events are read at once.
const PAGE: usize = 256;
/// How long is waited after a read that failed.
const PAUSE: Duration = Duration::from_millis(100);

/// What passes the commits of others on.
pub(crate) struct Feed<F> {
    /// The store and the hub, as long as the engine has them.
    pub(crate) log: Weak<dyn Log>,
    pub(crate) hub: Weak<Hub>,
    /// The task of a session here, whose committer publishes what it appends.
    pub(crate) task_of: F,
    /// The newest event that was looked at.
    pub(crate) after: Position,
}

impl<F: Fn(SessionId) -> Option<OwnTask>> Feed<F> {
    /// Passes on what others commit, until the store is closed.
    pub(crate) async fn run(mut self, mut changes: BoxStream<'static, Position>) {
        while let Some(newest) = changes.next().await {
            while self.after < newest {
                match self.pass_on(newest).await {
                    Ok(Some(())) => {}
                    Ok(None) => return,
                    Err(error) => {
                        tracing::warn!(%error, "what another daemon has stored is passed on late");
                        sleep(PAUSE).await;
                    }
                }
            }
        }
    }

    /// Passes a page of what is there up to the newest position on; none where the engine is gone.
    async fn pass_on(&mut self, newest: Position) -> Result<Option<()>, Error> {
        // Held no longer than for the call, lest it keep the store of an engine that is gone.
        let Some(log) = self.log.upgrade() else { return Ok(None) };
        let events = log.all_events(self.after, PAGE).await?;
        drop(log);
        if events.is_empty() {
            // What came last was of sessions that are deleted.
            self.after = newest;
        }
        let of_one_session = |one: &Event, next: &Event| one.session == next.session;
        for run in events.chunk_by(of_one_session) {
            let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
            let Some(by_others) = self.by_others(first.session, run).await? else { return Ok(None) };
            let Some(hub) = self.hub.upgrade() else { return Ok(None) };
            hub.publish(first.session, by_others.to_vec());
            self.after = last.position;
        }
        Ok(Some(()))
    }

    /// Those events of a session that no task here publishes: they come first. A task whose session was taken over ends before;
    /// it may not know yet, and where it has nothing to append it would never learn. None where the engine is gone.
    async fn by_others<'e>(
        &self,
        session: SessionId,
        events: &'e [Event],
    ) -> Result<Option<&'e [Event]>, Error> {
        let Some(task) = (self.task_of)(session) else { return Ok(Some(events)) };
        let before = events.partition_point(|event| event.seq <= task.after);
        if before < events.len() {
            let Some(log) = self.log.upgrade() else { return Ok(None) };
            if log.newest_epoch(session).await? != Some(task.epoch) {
                drop(log);
                tracing::warn!(%session, "another daemon has taken the session over");
                task.handle.taken_over().await;
                return Ok(Some(events));
            }
        }
        Ok(Some(&events[..before]))
    }
}

/// Publishes what a session has in the log after an event, once that can be read: an append whose answer never came may be there.
pub(crate) async fn publish_stored(log: Weak<dyn Log>, hub: Weak<Hub>, session: SessionId, mut after: Seq) {
    let mut is_told = false;
    loop {
        // Held no longer than for the call, lest it keep the store of an engine that is gone.
        let Some(held) = log.upgrade() else { return };
        let stored = held.events(session, after, PAGE).await;
        drop(held);
        match (stored, hub.upgrade()) {
            (_, None) => return,
            (Err(error), Some(_)) => {
                if !is_told {
                    tracing::warn!(%session, %error, "what may have been stored is passed on late");
                }
                is_told = true;
                sleep(PAUSE).await;
            }
            (Ok(events), Some(hub)) => {
                let Some(last) = events.last() else { return };
                after = last.seq;
                hub.publish(session, events);
            }
        }
    }
}
