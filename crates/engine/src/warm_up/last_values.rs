//! What each submission of a session gave when it ran last.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError};

use mainstay_model::JobId;
use mainstay_model::replay::{EvalValues, ReplayItem};

use crate::sync::Mutex;

/// What each submission of a session gave when it ran last, by its job. Its clones are the same; it is forgotten with the session's task.
/// For a new worker, what the log has of their first runs holds.
#[derive(Clone, Default)]
pub(crate) struct LastValues(Arc<Mutex<HashMap<JobId, EvalValues>>>);

impl LastValues {
    pub(super) fn of(&self, job: JobId) -> Option<EvalValues> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&job).cloned()
    }

    pub(super) fn note(&self, job: JobId, given: EvalValues) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(job, given);
    }

    pub(super) fn keep(&self, items: &[ReplayItem]) {
        let jobs: HashSet<JobId> = items.iter().map(|item| item.job).collect();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|job, _| jobs.contains(job));
    }
}
