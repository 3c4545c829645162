//! Keeping the values of a Python session: when its kernel is asked to write them down, and what is kept of an earlier kernel.
//!
//! The values lie in a folder of the session's as the kernel's helper writes them (`kernels/python/mainstay_snapshot.py`). They are no truth: what is
//! not there, or is of no use, is computed again by a replay.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mainstay_model::replay::{Snapshot, SnapshotCell};
use mainstay_model::{Error, JobEnding, JobId, JobReport};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::line::Line;
use super::python;
use super::sockets::failed;

/// How long nothing runs before values are written down: who enters one cell after the other waits for none of it.
const QUIET: Duration = Duration::from_millis(300);
/// How long values are not written down at most while one cell follows the other.
const LONGEST: Duration = Duration::from_secs(5);
/// How long another snapshot that is being written is waited for.
const BUSY: Duration = Duration::from_secs(2);
/// What says what a snapshot consists of, in its folder.
const CONTENTS: &str = "snapshot.json";

/// Where the values of a session are kept.
#[derive(Clone, Debug)]
pub struct SnapshotPlace {
    /// The session's folder, which is made when it is needed.
    pub folder: PathBuf,
    /// How many bytes of values are kept at most.
    pub bytes: u64,
}

/// Has a kernel's values written down.
pub(super) struct Keeper {
    place: SnapshotPlace,
    ran: Mutex<Ran>,
    ended: Notify,
}

/// What has run in a kernel.
#[derive(Default)]
struct Ran {
    jobs: Vec<RanJob>,
    /// Whether it may have changed a value since values were written down.
    has_changed: bool,
    /// Whether its values may hold what must be stored nowhere.
    has_secrets: bool,
}

/// A job that a kernel ran.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RanJob {
    job: JobId,
    /// Whether a replay runs it.
    is_replayed: bool,
}

/// A snapshot as its folder describes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Contents {
    cells: Vec<SnapshotCell>,
    kept: Vec<Part>,
    not_kept: BTreeMap<String, String>,
    inert: BTreeSet<String>,
}

/// Names whose values were written as one.
#[derive(Deserialize)]
struct Part {
    names: Vec<String>,
}

impl Keeper {
    pub(super) fn new(place: SnapshotPlace) -> Arc<Self> {
        Arc::new(Self { place, ran: Mutex::default(), ended: Notify::new() })
    }

    fn ran(&self) -> MutexGuard<'_, Ran> {
        self.ran.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Code is about to run. Of code that says nothing the kernel takes no note.
    pub(super) fn begins(&self, job: JobId, code: &str) {
        if !code.trim().is_empty() {
            self.ran().jobs.push(RanJob { job, is_replayed: false });
        }
    }

    /// Code has ended, and its values may be written down.
    pub(super) fn ended(&self, job: JobId, report: &JobReport) {
        let was_cut = matches!(report.ending, JobEnding::Interrupted { .. });
        let mut ran = self.ran();
        if let Some(ended) = ran.jobs.iter_mut().rfind(|ran| ran.job == job) {
            ended.is_replayed = report.changes_state && !was_cut;
            ran.has_changed |= report.changes_state;
            self.ended.notify_one();
        }
    }

    /// From now on what the kernel holds is stored nowhere.
    pub(super) fn has_secrets(&self) {
        self.ran().has_secrets = true;
    }

    /// Has values written down whenever they have changed and nothing runs. It never ends.
    pub(super) async fn keep(self: Arc<Self>, line: Arc<Line>) {
        let mut kept_at = Instant::now();
        loop {
            self.ended.notified().await;
            // Where one cell follows the other, as in a notebook that runs, one of them waits for a moment.
            if kept_at.elapsed() < LONGEST {
                sleep(QUIET).await;
            }
            // The end of what runs is told.
            if line.running().is_some() || !std::mem::take(&mut self.ran().has_changed) {
                continue;
            }
            match self.keep_now(&line).await {
                Ok(true) => kept_at = Instant::now(),
                Ok(false) => {
                    sleep(BUSY).await;
                    self.ran().has_changed = true;
                    self.ended.notify_one();
                }
                Err(error) => tracing::debug!(%error, "the values of a kernel are not written down"),
            }
        }
    }

    /// Has them written down, by a process that the kernel forks off; whether that has begun.
    async fn keep_now(&self, line: &Line) -> Result<bool, Error> {
        let arguments = {
            let ran = self.ran();
            if ran.has_secrets {
                return Ok(true);
            }
            [json!(self.place.folder), json!(self.place.bytes), json!(ran.jobs)]
        };
        line.call_alone(&python::call("keep", &arguments)).await
    }

    /// What an earlier kernel has kept; none where that is nothing, or of no use to this one.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`] where it cannot be read.
    pub(super) async fn snapshot(&self, line: &Line) -> Result<Option<Snapshot>, Error> {
        let text = match tokio::fs::read(self.place.folder.join(CONTENTS)).await {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(&error.to_string())),
        };
        let call = python::call("misfit", &[json!(self.place.folder)]);
        if let Some(reason) = line.call_alone::<Option<String>>(&call).await? {
            tracing::info!(reason, "the values of an earlier kernel are of no use");
            return Ok(None);
        }
        let Contents { cells, kept, not_kept, inert } =
            serde_json::from_slice(&text).map_err(|error| failed(&error.to_string()))?;
        let kept = kept.into_iter().flat_map(|part| part.names).collect::<BTreeSet<_>>();
        Ok(Some(Snapshot { cells, kept, not_kept, inert }))
    }

    /// Gives the kernel's names the values of a snapshot.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`] where it cannot.
    pub(super) async fn restore(&self, line: &Line) -> Result<(), Error> {
        let Some(Snapshot { cells, .. }) = self.snapshot(line).await? else {
            return Err(failed("its values are not kept any more"));
        };
        let call = python::call("restore", &[json!(self.place.folder)]);
        if let Some(reason) = line.call_alone::<Option<String>>(&call).await? {
            return Err(failed(&reason));
        }
        let of_cell = |cell: SnapshotCell| RanJob { job: cell.job, is_replayed: cell.is_replayed };
        self.ran().jobs = cells.into_iter().map(of_cell).collect();
        Ok(())
    }

    /// The session's definitions are dropped, and its values with them.
    pub(super) async fn forget(&self) {
        match tokio::fs::remove_dir_all(&self.place.folder).await {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::warn!(%error, "the values of a session are not removed");
            }
            _ => {}
        }
    }
}
