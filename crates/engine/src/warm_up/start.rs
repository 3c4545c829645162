//! Starting a worker within the limits, under the circuit breaker of its kind.

use std::time::Duration;

use mainstay_model::Error;
use mainstay_runner::StartedRunner;

use super::WarmUp;
use crate::context::conversation_of;
use crate::sync::time::timeout;

impl WarmUp {
    /// Starts it. What fails counts for the breaker of its kind, what is only slow does not.
    pub(super) async fn start(&mut self) -> Result<StartedRunner, Error> {
        self.check_folder()?;
        if self.is_agent() {
            let session = self.committed_session().await?;
            self.spec.conversation = Some(conversation_of(self.log.as_ref(), &session).await?);
        }
        let permit = self.breakers.permit(&self.spec.kind).await;
        match self.start_now().await {
            Ok(started) => {
                permit.succeeded();
                Ok(started)
            }
            Err(StartFailure::Failed(error)) => {
                permit.failed(error.to_string());
                Err(error)
            }
            Err(StartFailure::Late(error)) => Err(error),
        }
    }

    fn is_agent(&self) -> bool {
        self.committed.borrow().is_agent()
    }

    /// A folder that is gone is the session's own trouble, and says nothing of the kind.
    fn check_folder(&self) -> Result<(), Error> {
        let folder = &self.spec.working_directory;
        match folder.is_dir() {
            true => Ok(()),
            false => Err(Error::InvalidArgument {
                argument: "the session's folder".to_owned(),
                reason: format!("`{}` is not there", folder.display()),
            }),
        }
    }

    async fn start_now(&mut self) -> Result<StartedRunner, StartFailure> {
        within(self.limits.prepare_ms, "the kernel was not prepared", self.factory.prepare(&self.spec))
            .await?;
        self.spec.gathered =
            self.factory.gather(&self.spec, &self.observer).await.map_err(StartFailure::Failed)?;
        // The semaphore is never closed.
        let _permit = self.starts.acquire().await;
        let start = self.factory.start(self.spec.clone(), self.observer.clone());
        let started = within(self.limits.worker_start_ms, "it was not ready", start).await;
        started.map_err(|not_started| match not_started {
            StartFailure::Late(_) if self.is_agent() => StartFailure::Late(self.hangs()),
            not_started => not_started,
        })
    }

    /// An agent that hangs is not started again by itself: whoever waits for it is told, and decides.
    fn hangs(&self) -> Error {
        let said = match self.observer.last_lines.text() {
            Some(lines) => format!("; it said: {lines}"),
            None => ", and said nothing".to_owned(),
        };
        let limit_ms = self.limits.worker_start_ms;
        Error::KernelUnavailable {
            reason: format!("it was not ready within {limit_ms} ms (`worker-start-ms`){said}"),
        }
    }
}

/// Why a worker did not start.
enum StartFailure {
    /// The worker could not start.
    Failed(Error),
    /// It took too long.
    Late(Error),
}

async fn within<T>(
    limit_ms: u64,
    complaint: &str,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, StartFailure> {
    let too_late = || Error::WorkerFailed { reason: format!("{complaint} within {limit_ms} ms") };
    match timeout(Duration::from_millis(limit_ms), work).await {
        Ok(done) => done.map_err(StartFailure::Failed),
        Err(_) => Err(StartFailure::Late(too_late())),
    }
}
