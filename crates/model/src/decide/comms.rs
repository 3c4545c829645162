//! What follows from what front ends say to a kernel beside code.

use super::Draft;
use crate::agent::{WorkEnding, YieldReason};
use crate::event::{CancelEnding, Source};
use crate::session::RunningJob;

impl Draft<'_> {
    /// The kernel has done what it was told for.
    pub(super) fn comm_taken(&mut self, running: &RunningJob) {
        let ending = match running.cancel_requested {
            true => WorkEnding::Cancelled { by: CancelEnding::Yielded },
            false => WorkEnding::Done { reason: YieldReason::EndTurn, value: serde_json::Value::Null },
        };
        self.work_ended(running, Source::Worker, ending);
    }
}
