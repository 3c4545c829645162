//! What follows when a session's project was built.

use std::time::Duration;

use super::{BuildReport, Draft, Effect, of_job};
use crate::agent::{JobKind, WorkEnding, YieldReason};
use crate::error::Error;
use crate::event::{CancelEnding, EventBody, Source, WarmUpReason};
use crate::session::RunningJob;

impl Draft<'_> {
    /// Only what a session has can be built.
    pub(crate) fn check_project(&self) -> Result<(), Error> {
        match self.session.project {
            Some(_) => Ok(()),
            None => Err(Error::InvalidArgument {
                argument: "rebuild".to_owned(),
                reason: "the session has no project; a session is given one when it is created".to_owned(),
            }),
        }
    }

    /// Nothing has happened to the session yet; where there is something new, a new worker has it.
    pub(super) fn built(&mut self, running: &RunningJob, report: BuildReport) {
        let BuildReport { built, diagnostics, by_warm_compiler } = report;
        match built {
            // Also where the build was done before it heard of it: who cancels it wants to keep what there is.
            Ok(()) | Err(_) if running.cancel_requested => {
                let by = CancelEnding::Yielded;
                self.work_ended(running, Source::Worker, WorkEnding::Cancelled { by });
            }
            Ok(()) => {
                let value = serde_json::to_value(&diagnostics).unwrap_or_default();
                let reason = if by_warm_compiler { YieldReason::WarmCompiler } else { YieldReason::EndTurn };
                let done = WorkEnding::Done { reason, value };
                self.work_ended(running, Source::Worker, done);
                let metadata = of_job(Source::System, running);
                let reason = if running.kind == JobKind::Build {
                    WarmUpReason::Refreshed
                } else {
                    self.record(metadata.clone(), EventBody::SessionHardReset);
                    WarmUpReason::HardReset
                };
                self.record(metadata, EventBody::WarmUpStarted { reason });
                self.effect(Effect::KillWorker);
                self.effect(Effect::StartWorker { after: Duration::ZERO });
            }
            Err(message) => {
                self.work_ended(running, Source::Worker, WorkEnding::Failed { message, diagnostics });
            }
        }
    }
}
