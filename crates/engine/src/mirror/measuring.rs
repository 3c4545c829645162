//! Which lines the tests of a session run, measured in a process of its own beside the session's: one measurement of a session at a time, and
//! one of each code.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError};

use mainstay_model::{CodeMark, Error, Session, SessionId, TestPolicy};
use serde_json::Value;
use tokio::sync::{Semaphore, watch};

use super::process_of;
use super::worker::{Beginning, MirrorWorker};
use crate::sync::Mutex;

/// What has been measured of each session, and what is being measured.
pub(crate) struct Measurements {
    of: Mutex<HashMap<SessionId, Arc<Measurement>>>,
    /// Lets one process run tests at a time, for whichever session.
    turn: Semaphore,
}

impl Default for Measurements {
    fn default() -> Self {
        Self { of: Mutex::default(), turn: Semaphore::new(1) }
    }
}

/// The measurements of one session: one at a time.
#[derive(Default)]
pub(crate) struct Measurement {
    /// Held as long as something is being measured.
    last: tokio::sync::Mutex<Last>,
}

/// How measuring a session has ended.
#[derive(Default)]
struct Last {
    /// The code that was measured.
    measured: Option<CodeMark>,
    /// The code that could not be, and why.
    failed: Option<(CodeMark, String)>,
}

impl Measurements {
    pub(crate) fn of(&self, session: SessionId) -> Arc<Measurement> {
        let mut all = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(session).or_default())
    }

    /// The sessions of which something is known.
    pub(crate) fn kept(&self) -> Vec<SessionId> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner).keys().copied().collect()
    }

    /// Forgets all of a session that is gone.
    pub(crate) fn forget(&self, session: SessionId) {
        self.of.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
    }

    /// Starts a process beside a session's, and measures in it which lines the tests run; only kernels know in which form. Dropping the future
    /// ends it, and so does the end of the session's own process.
    pub(crate) async fn run(
        &self,
        beginning: &Beginning,
        visible: watch::Receiver<Arc<Session>>,
        policies: &BTreeMap<String, TestPolicy>,
    ) -> Result<Value, Error> {
        let process = process_of(&visible.borrow());
        let measured = async {
            // The semaphore is never closed.
            let _turn = self.turn.acquire().await;
            let mut worker = MirrorWorker::start_unsettled(beginning).await?;
            let session = beginning.spec.session;
            tracing::info!(%session, pid = worker.pid(), "the lines that tests run are being measured");
            worker.measure(beginning, policies).await
        };
        tokio::select! {
            measured = measured => measured,
            () = has_other_than(visible, process) => Err(Error::WorkerFailed {
                reason: "the session's worker was replaced while its tests were measured".to_owned(),
            }),
        }
    }
}

/// Waits until a session has another process than this.
async fn has_other_than(mut visible: watch::Receiver<Arc<Session>>, process: Option<u32>) {
    // Where nobody tells any more, the session is no longer in use.
    visible.wait_for(|session| process_of(session) != process).await.ok();
}

impl Measurement {
    /// Measures, unless that was done for the code as it is.
    pub(crate) async fn once(
        &self,
        code: CodeMark,
        measure: impl Future<Output = Result<(), Error>>,
    ) -> Result<(), Error> {
        let mut last = self.last.lock().await;
        if last.measured.as_ref() == Some(&code) {
            return Ok(());
        }
        let measured = measure.await;
        match &measured {
            Ok(()) => *last = Last { measured: Some(code), failed: None },
            Err(error) => last.failed = Some((code, error.to_string())),
        }
        measured
    }

    /// How far the measurement of some code is.
    pub(crate) fn stage(&self, code: &CodeMark) -> Stage {
        match self.last.try_lock() {
            Ok(last) if last.measured.as_ref() == Some(code) => Stage::Done,
            Ok(last) => match &last.failed {
                Some((failed, reason)) if failed == code => Stage::Failed(reason.clone()),
                Some(_) | None => Stage::Due,
            },
            Err(_) => Stage::UnderWay,
        }
    }

    /// Waits for the end of the measurement that goes on, where one does.
    pub(crate) async fn ended(&self) {
        drop(self.last.lock().await);
    }
}

/// How far the measurement of some code is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It was not measured.
    Due,
    /// Something is being measured: this code, or what it was before.
    UnderWay,
    /// The code was measured.
    Done,
    /// It could not be measured, and this is why. It is tried again where somebody asks, and not by itself.
    Failed(String),
}

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn code(mark: &str) -> CodeMark {
        CodeMark(mark.to_owned())
    }

    #[tokio::test]
    async fn code_is_measured_once_and_what_fails_waits_for_somebody_who_asks() {
        let measurement = Measurement::default();
        let times = Cell::new(0);
        let runs = |result: Result<(), Error>| async {
            times.set(times.get() + 1);
            assert_eq!(measurement.stage(&code("a:1")), Stage::UnderWay);
            result
        };
        let failure = || Err(Error::WorkerFailed { reason: "it ended".to_owned() });
        assert_eq!(measurement.stage(&code("a:1")), Stage::Due);
        assert!(measurement.once(code("a:1"), runs(failure())).await.is_err());
        let failed = measurement.stage(&code("a:1"));
        assert!(matches!(&failed, Stage::Failed(reason) if reason.contains("it ended")), "{failed:?}");
        assert_eq!(measurement.stage(&code("a:2")), Stage::Due, "other code was not tried");
        assert_eq!(measurement.once(code("a:1"), runs(Ok(()))).await, Ok(()), "who asks is served");
        assert_eq!((times.get(), measurement.stage(&code("a:1"))), (2, Stage::Done));
        assert_eq!(measurement.once(code("a:1"), runs(failure())).await, Ok(()));
        assert_eq!(times.get(), 2, "it was done");
        assert_eq!(measurement.once(code("a:2"), runs(Ok(()))).await, Ok(()));
        assert_eq!((times.get(), measurement.stage(&code("a:2"))), (3, Stage::Done));
    }
}
