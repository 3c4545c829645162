//! The one reader of the log for all who follow every session.
//!
//! Sessions publish side by side, so what is published first may come later in the log. What follows at once on what is known is passed on
//! as it is published. What does not wakes the reader, who reads on by position: the log itself shows an event only after those before it,
//! and so that order has no gaps.

use std::sync::Arc;

use mainstay_log::Log;
use mainstay_model::{Error, Event, Position};
use tokio::sync::watch;

use super::recent::Recent;
use crate::sync::task::{AbortHandle, spawn};

/// How many events are read at once.
const PAGE: usize = 256;

/// The task that reads, and what it read last.
pub(super) struct Tail {
    live: watch::Sender<Recent<Position>>,
    task: AbortHandle,
}

impl Tail {
    /// Reads what comes after the newest event there is.
    pub(super) fn start(log: Arc<dyn Log>, newest: watch::Receiver<Position>) -> Self {
        let read = *newest.borrow();
        let (live, _) = watch::channel(Recent::from(read));
        let task = spawn(read_on(log, newest, live.clone())).abort_handle();
        Self { live, task }
    }

    /// Passes published events on where nothing is missing before them; says whether all are passed on.
    pub(super) fn take(&self, events: &[Arc<Event>]) -> bool {
        let mut is_whole = true;
        self.live.send_if_modified(|recent| {
            let before = recent.last();
            for event in events.iter().filter(|event| event.position > before) {
                let last = recent.last();
                is_whole &= event.position == Position(last.0 + 1);
                if is_whole {
                    recent.push(last, Arc::clone(event));
                }
            }
            recent.last() > before
        });
        is_whole
    }

    /// What it reads from now on, at least.
    pub(super) fn follow(&self) -> watch::Receiver<Recent<Position>> {
        self.live.subscribe()
    }

    /// How many follow it.
    pub(super) fn followers(&self) -> usize {
        self.live.receiver_count()
    }

    /// Ends it at once. Dropped instead, it reads up to the end of what was published.
    pub(super) fn end(self) {
        self.task.abort();
    }
}

async fn read_on(
    log: Arc<dyn Log>,
    mut newest: watch::Receiver<Position>,
    live: watch::Sender<Recent<Position>>,
) {
    let known = || live.borrow().last();
    while newest.changed().await.is_ok() {
        let wanted = *newest.borrow_and_update();
        while known() < wanted {
            if let Err(error) = read_page(&*log, known(), &live).await {
                tracing::warn!(%error, "those who follow all sessions read on by themselves");
                live.send_if_modified(|recent| {
                    let is_behind = recent.last() < wanted;
                    if is_behind {
                        recent.pass(wanted);
                    }
                    is_behind
                });
            }
        }
    }
}

async fn read_page(
    log: &dyn Log,
    after: Position,
    live: &watch::Sender<Recent<Position>>,
) -> Result<(), Error> {
    let events = log.all_events(after, PAGE).await?;
    if events.is_empty() {
        return Err(Error::StoreFailed { reason: format!("nothing comes after position {after}") });
    }
    live.send_modify(|recent| {
        // Some may have been passed on meanwhile.
        let known = recent.last();
        let mut before = after;
        for event in events {
            let place = event.position;
            if place > known {
                recent.push(before.max(known), Arc::new(event));
            }
            before = place;
        }
    });
    Ok(())
}
