//! The protocol's log: what happens in the sessions that a client may see, from the level on that it wants. A connection of the older
//! protocols says the level once, a request of the newest one with itself, and hears what happens while it is carried out.

#![expect(deprecated, reason = "clients of every protocol that is spoken may ask for a log")]

use std::sync::{Arc, Mutex, PoisonError};

use mainstay_engine::{Client, ClientSubscription, Cursor};
use mainstay_model::{Error, Event, EventBody, EventFilter, Position, Source};
use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam};
use rmcp::{Peer, RoleServer};
use serde_json::json;

use super::text::beginning;

/// How much of an event's text is logged, in bytes.
const TEXT_BYTES: usize = 240;
/// How many events are read at once.
const PAGE: usize = 256;

/// The lowest level that is logged.
pub(super) type Threshold = Arc<Mutex<LoggingLevel>>;

/// Sends log messages to one client.
pub(super) struct Log {
    client: Client,
    peer: Peer<RoleServer>,
    threshold: Threshold,
    events: ClientSubscription,
    /// Where what was looked at ends.
    seen: Position,
}

impl Log {
    /// From now on.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub(super) async fn begin(
        client: &Client,
        peer: &Peer<RoleServer>,
        threshold: Threshold,
    ) -> Result<Self, Error> {
        let seen = client.last_position().await?;
        let events = client.follow(Cursor::Log { after: seen }, EventFilter::default()).await?;
        Ok(Self { client: client.clone(), peer: peer.clone(), threshold, events, seen })
    }

    /// Logs until nobody hears it.
    pub(super) async fn follow(mut self) {
        while let Ok(event) = self.events.next().await {
            if !self.tell(&event).await {
                return;
            }
        }
    }

    /// Logs until something is carried out, and all that had happened by then.
    async fn beside<T>(mut self, carried_out: impl Future<Output = T>) -> T {
        let mut carried_out = std::pin::pin!(carried_out);
        let answer = loop {
            tokio::select! {
                answer = &mut carried_out => break answer,
                event = self.events.next() => match event {
                    Ok(event) => drop(self.tell(&event).await),
                    Err(_) => break carried_out.await,
                },
            }
        };
        if let Err(error) = self.catch_up().await {
            tracing::debug!(%error, "a client did not hear the end of a log");
        }
        answer
    }

    async fn catch_up(&mut self) -> Result<(), Error> {
        let end = self.client.last_position().await?;
        while self.seen < end {
            let page = self.client.all_events(self.seen, PAGE).await?;
            if page.is_empty() {
                break;
            }
            for event in page {
                self.tell(&event).await;
            }
        }
        Ok(())
    }

    /// Logs an event, where it is one for the log; whether someone still hears it.
    async fn tell(&mut self, event: &Event) -> bool {
        self.seen = event.position;
        let Some(level) = level_of(event, &self.client.source()) else { return true };
        let threshold = *self.threshold.lock().unwrap_or_else(PoisonError::into_inner);
        if rank(level) < rank(threshold) {
            return true;
        }
        let data = json!({
            "sessionId": event.session.short(),
            "seq": event.seq,
            "kind": event.body.kind(),
            "text": beginning(&event.body.describe().text(), TEXT_BYTES),
        });
        let message = LoggingMessageNotificationParam::new(level, data).with_logger("mainstay");
        self.peer.notify_logging_message(message).await.is_ok()
    }
}

/// Carries out what a request asks for, with the log that it wants beside it.
pub(super) async fn beside<T>(
    client: &Client,
    peer: &Peer<RoleServer>,
    wanted: Option<LoggingLevel>,
    carried_out: impl Future<Output = T>,
) -> T {
    let Some(level) = wanted else { return carried_out.await };
    match Log::begin(client, peer, Arc::new(Mutex::new(level))).await {
        Ok(log) => log.beside(carried_out).await,
        Err(error) => {
            tracing::debug!(%error, "a request has no log");
            carried_out.await
        }
    }
}

/// How much an event matters to a client; none where it is not for the log.
fn level_of(event: &Event, own: &Source) -> Option<LoggingLevel> {
    if let EventBody::SessionFaulted { .. } = &event.body {
        Some(LoggingLevel::Error)
    // Attempt 0 is code that ended its worker on purpose.
    } else if let EventBody::WorkerExited { attempt: 1.., .. } = &event.body {
        Some(LoggingLevel::Warning)
    } else if let EventBody::WarmUpStarted { .. } | EventBody::WarmUpCompleted { .. } = &event.body {
        Some(LoggingLevel::Info)
    } else if let EventBody::EvalRequested { .. } = &event.body
        && event.metadata.source != *own
    {
        Some(LoggingLevel::Debug)
    } else {
        None
    }
}

const fn rank(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}
