//! Appends that the store could not take: tried again, in their order, for a while.

use std::sync::{Arc, Weak};
use std::time::Duration;

use mainstay_log::{AppendError, Appended, FailedAppend, Log, Refusal};
use mainstay_model::Event;

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::time::{Instant, sleep};

/// How long is waited before the first repetition; each time twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// How long is waited at most before a repetition.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Appends again what the store could not take.
pub(crate) struct Retry {
    /// The store, as long as the engine has it.
    log: Weak<dyn Log>,
    /// How long one append is tried.
    limit: Duration,
    /// Whether an append was tried again: those that were queued behind it have been refused for want of it.
    has_repeated: bool,
    /// Whether an append waits for the store now.
    is_away: Arc<AtomicBool>,
}

impl Retry {
    /// Tries each append for at most `limit`.
    pub(crate) fn new(log: Weak<dyn Log>, limit: Duration) -> Self {
        Self { log, limit, has_repeated: false, is_away: Arc::default() }
    }

    /// The store, as long as the engine has it.
    pub(crate) fn log(&self) -> Weak<dyn Log> {
        Weak::clone(&self.log)
    }

    /// What says whether an append waits for a store that cannot take it.
    pub(crate) fn is_away(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_away)
    }

    /// What comes of an append, once it is durable, or certainly not there.
    pub(crate) async fn stored(&mut self, appended: Appended) -> Result<Vec<Event>, AppendError> {
        let stored = self.stored_at_last(appended).await;
        self.is_away.store(false, Ordering::Relaxed);
        stored
    }

    async fn stored_at_last(&mut self, appended: Appended) -> Result<Vec<Event>, AppendError> {
        let FailedAppend { mut error, mut append } = match appended.await {
            Ok(events) => return Ok(events),
            Err(failed) => failed,
        };
        if self.has_repeated && matches!(error, AppendError::Refused(Refusal::OutOfSequence { .. })) {
            // What it was refused for want of is there now.
            match self.again(append).await {
                None => return Err(error),
                Some(Ok(events)) => return Ok(events),
                Some(Err(failed)) => FailedAppend { error, append } = failed,
            }
        }
        let (began, mut pause) = (Instant::now(), FIRST_PAUSE);
        while matches!(error, AppendError::Unavailable { .. }) && began.elapsed() < self.limit {
            tracing::warn!(session = %append.session, %error, "an append waits for the store");
            self.is_away.store(true, Ordering::Relaxed);
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            match self.again(append).await {
                None => return Err(error),
                Some(Ok(events)) => return Ok(events),
                Some(Err(failed)) => FailedAppend { error, append } = failed,
            }
        }
        Err(error)
    }

    /// Appends again; none where the engine is gone.
    async fn again(&mut self, append: Box<mainstay_log::Append>) -> Option<Result<Vec<Event>, FailedAppend>> {
        // Held no longer than for the call, lest it keep the store of an engine that is gone.
        let appended = self.log.upgrade()?.append(*append);
        self.has_repeated = true;
        Some(appended.await)
    }
}
