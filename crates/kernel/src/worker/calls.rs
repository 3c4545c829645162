//! What a worker was asked and has not answered yet.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use futures::SinkExt;
use mainstay_model::{Error, JobId};
use tokio::sync::oneshot;

use crate::channel::{HELLO_ID, Outgoing};
use crate::protocol::{FromWorker, ToWorker, encode};

/// What was asked and is not answered yet.
#[derive(Default)]
pub(super) struct Calls {
    last: AtomicU64,
    queries: Mutex<HashMap<u64, oneshot::Sender<FromWorker>>>,
    running: Mutex<Option<(u64, JobId)>>,
}

impl Calls {
    pub(super) fn next_id(&self) -> u64 {
        HELLO_ID + 1 + self.last.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn expect(&self, id: u64) -> oneshot::Receiver<FromWorker> {
        let (answer, receiver) = oneshot::channel();
        self.queries.lock().unwrap_or_else(PoisonError::into_inner).insert(id, answer);
        receiver
    }

    pub(super) fn answer(&self, id: u64, message: FromWorker) {
        let waiting = self.queries.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        if let Some(waiting) = waiting {
            // Who asked may have given up.
            waiting.send(message).ok();
        }
    }

    pub(super) fn abandon(&self) {
        self.queries.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The request and the job of the eval that has no result yet.
    pub(super) fn running(&self) -> Option<(u64, JobId)> {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes which eval runs now, by its request and its job.
    pub(super) fn begin_job(&self, id: u64, job: JobId) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some((id, job));
    }

    pub(super) fn end_job(&self, id: u64) -> Option<JobId> {
        self.running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take_if(|(running, _)| *running == id)
            .map(|(_, job)| job)
    }
}

/// Frames to the worker, from whoever has something to say.
pub(super) type SharedOutgoing = std::sync::Arc<tokio::sync::Mutex<Outgoing>>;

/// Sends a worker a message.
pub(super) async fn send(outgoing: &SharedOutgoing, message: &ToWorker) -> Result<(), Error> {
    let frame = encode(message)?;
    let sent = outgoing.lock().await.send(frame).await;
    sent.map_err(|error| Error::WorkerFailed { reason: format!("it takes no more requests: {error}") })
}
