//! How many messages a session's clients are shown, as `get_messages` has them. Counted again once something has happened in it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use mainstay_engine::Client;
use mainstay_model::{Error, Seq, Session, SessionId};
use mainstay_runner::Conversation;

use super::messages;

/// Counts that are kept.
const KEPT: usize = 10_000;

/// What was counted, and up to which event.
#[derive(Default)]
pub(super) struct Counts(Mutex<HashMap<SessionId, (Seq, usize)>>);

impl Counts {
    /// How many messages there are.
    pub(super) async fn of(&self, client: &Client, session: &Session) -> Result<usize, Error> {
        let kept = self.lock().get(&session.id).copied();
        if let Some((_, count)) = kept.filter(|(seq, _)| *seq == session.last_seq) {
            return Ok(count);
        }
        let Conversation { entries, state, .. } = client.conversation(session.id).await?;
        let count = messages::of_entries(&entries, state.as_ref()).len();
        let mut kept = self.lock();
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(session.id, (session.last_seq, count));
        Ok(count)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, (Seq, usize)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
