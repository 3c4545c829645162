//! Sessions of the transport over HTTP that their clients have ended. `rmcp` cancels the calls that are under way in one, as if their user had
//! cancelled them; but the client has only gone, and what it began goes on.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// How many are remembered: each is asked about only while its calls are cancelled.
const REMEMBERED: usize = 64;

/// Those that ended last.
#[derive(Clone, Debug, Default)]
pub(super) struct EndedSessions(Arc<Mutex<VecDeque<Arc<str>>>>);

impl EndedSessions {
    /// Notes that a client ends this one.
    pub(super) fn note(&self, id: Arc<str>) {
        let mut ended = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ended.push_back(id);
        if ended.len() > REMEMBERED {
            ended.pop_front();
        }
    }

    /// Whether its client has ended this one.
    pub(super) fn has(&self, id: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|ended| **ended == *id)
    }
}
