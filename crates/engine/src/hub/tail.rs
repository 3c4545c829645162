//! The one reader of the log for all who follow every session: woken by what is published, it reads on by position.
//!
//! Sessions publish side by side, so what is published first may come later in the log. The log itself shows an event only
//! after those before it, and so the order in which it is read has no gaps.

use std::sync::Arc;

use mainstay_log::Log;
use mainstay_model::{Error, Position};
use tokio::sync::watch;

use super::recent::{Place, Recent};
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
        let task = spawn(read_on(log, newest, read, live.clone())).abort_handle();
        Self { live, task }
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
    mut read: Position,
    live: watch::Sender<Recent<Position>>,
) {
    while newest.changed().await.is_ok() {
        let wanted = *newest.borrow_and_update();
        while read < wanted {
            read = match read_page(&*log, read, &live).await {
                Ok(reached) => reached,
                Err(error) => {
                    tracing::warn!(%error, "those who follow all sessions read on by themselves");
                    live.send_modify(|recent| recent.pass(wanted));
                    wanted
                }
            };
        }
    }
}

async fn read_page(
    log: &dyn Log,
    after: Position,
    live: &watch::Sender<Recent<Position>>,
) -> Result<Position, Error> {
    let events = log.all_events(after, PAGE).await?;
    let Some(last) = events.last().map(Place::of) else {
        return Err(Error::StoreFailed { reason: format!("nothing comes after position {after}") });
    };
    live.send_modify(|recent| {
        let mut before = after;
        for event in events {
            let place = event.position;
            recent.push(before, Arc::new(event));
            before = place;
        }
    });
    Ok(last)
}
