//! The events of a session that a client hears of, as the protocol tells them.

use std::sync::Arc;

use mainstay_engine::Cursor;
use mainstay_model::{Error, EventBody, EventFilter, Seq, Session, SessionId};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::Connection;
use crate::events::ui_request;
use crate::frames;
use crate::handlers::has_begun;
use crate::running_command::ReportedStage;
use crate::turn_catch_up;

/// Events of a session on their way to the client. Ends with the connection.
pub(super) struct SessionEvents {
    pub(super) session: SessionId,
    pub(super) task: AbortHandle,
    /// The last event that was told.
    pub(super) told: watch::Receiver<Seq>,
}

impl Drop for SessionEvents {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Connection {
    /// Hears of a session's events from now on, or from after one on.
    pub(super) async fn hear(
        self: &Arc<Self>,
        name: &str,
        session: Session,
        after: Option<u64>,
        is_cumulative: bool,
    ) -> Result<SessionEvents, Error> {
        let mut live = self.peer.client.listen(session.id).await?;
        if after.is_some_and(|after| after > session.last_seq.0) {
            let reason = format!("the session's newest event is {}", session.last_seq);
            return Err(Error::InvalidArgument { argument: "afterSeq".to_owned(), reason });
        }
        let asks = if after.is_none() { session.asks.clone() } else { Vec::new() };
        let after = after.map_or(session.last_seq, Seq);
        let cursor = Cursor::Session { session: session.id, after };
        let mut followed = self.peer.client.follow(cursor, EventFilter::default()).await?;
        let state = self.daemon.engine.agent_state(&session);
        let mut teller =
            turn_catch_up::teller(&self.peer.client, &session, state, after, is_cumulative).await?;
        let (connection, name) = (Arc::clone(self), name.to_owned());
        let (reached, told) = watch::channel(after);
        let task = tokio::spawn(async move {
            for pending in &asks {
                connection.send(&frames::event(&name, ui_request(&pending.ask), Some(pending.raised))).await;
            }
            for frame in frames::of_event(&name, teller.open_message(), None) {
                connection.send(&frame).await;
            }
            loop {
                let (told, seq, is_last) = tokio::select! {
                    // What is stored first: live pieces are ahead of it at most.
                    biased;
                    event = followed.next() => match event {
                        Ok(event) => {
                            // What a command does is told behind its acceptance.
                            if let Some(command) = &event.metadata.correlation {
                                let begun = has_begun(&event.body);
                                connection.hears_of(command, if begun { ReportedStage::Started } else { ReportedStage::Accepted }).await;
                            }
                            let is_last = matches!(event.body, EventBody::SessionUnloaded { .. });
                            (teller.tell(&event), Some(event.seq), is_last)
                        }
                        Err(_) => return,
                    },
                    Some(live) = live.next() => (teller.hear(&live), None, false),
                };
                for frame in frames::of_event(&name, told, seq) {
                    connection.send(&frame).await;
                }
                if let Some(seq) = seq {
                    reached.send_replace(seq);
                }
                if is_last {
                    return;
                }
            }
        });
        Ok(SessionEvents { session: session.id, task: task.abort_handle(), told })
    }
}
