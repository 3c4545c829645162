//! What follows from what front ends say to a kernel beside code.

use super::Draft;
use crate::agent::{WorkEnding, YieldReason};
use crate::error::Error;
use crate::event::{CancelEnding, Source};
use crate::session::RunningJob;

impl Draft<'_> {
    /// Only Jupyter kernels know of comms.
    pub(super) fn check_comms(&self) -> Result<(), Error> {
        let kind = &self.session.kind;
        match kind.is_fsharp() {
            false => Ok(()),
            true => Err(Error::InvalidArgument {
                argument: "comm".to_owned(),
                reason: format!("sessions of kind {kind} know none; those of Jupyter kernels do"),
            }),
        }
    }

    /// The kernel has done what it was told for.
    pub(super) fn comm_taken(&mut self, running: &RunningJob) {
        let ending = match running.cancel_requested {
            true => WorkEnding::Cancelled { by: CancelEnding::Yielded },
            false => WorkEnding::Done { reason: YieldReason::EndTurn, value: serde_json::Value::Null },
        };
        self.work_ended(running, Source::Worker, ending);
    }
}
