//! Starting the application again that a session had when its worker was lost, rebuilt or reset.

use mainstay_model::{
    ApplicationEnding, ApplicationNotice, Error, JobEnding, JobId, JobReport, Notice, RunnerNotice, Session,
    SessionApplication,
};
use mainstay_runner::Submission;
use uuid::Uuid;

use super::WarmUp;
use super::replay::{ReplayFailed, ReplayRun, end_of};
use crate::sync::time::timeout_at;

impl WarmUp {
    /// Starts the session's application again, where one is to run, with what it was given. Where it does not start, that is told, and the
    /// session is ready without it.
    pub(super) async fn start_application(
        &self,
        session: &Session,
        run: &mut ReplayRun<'_>,
    ) -> Result<(), ReplayFailed> {
        let Some(SessionApplication { application, .. }) = session.application.as_deref() else {
            return Ok(());
        };
        let job = application.job.unwrap_or_else(|| JobId::from_uuid(Uuid::now_v7()));
        let (code, runner) = (application.start().code(), run.runner);
        let started = async {
            runner.run(Submission { job, code, file: None, command_line: None, is_withheld: false }).await;
            end_of(job, std::iter::empty(), runner, run.notices, Some(self)).await
        };
        let ended = timeout_at(run.deadline.into(), started).await.unwrap_or_else(|_| {
            let limit_ms = self.limits.replay_ms;
            let reason = format!("the application did not start again within {limit_ms} ms");
            Err(ReplayFailed::Error(Error::WorkerFailed { reason }))
        });
        let failure = match &ended {
            Ok(report) => failure_of(report),
            Err(ReplayFailed::Error(error)) => Some(error.to_string()),
            // It would end the next worker too.
            Err(ReplayFailed::Exited { exit, .. }) if !exit.is_from_outside() => {
                Some("its start ended the worker".to_owned())
            }
            Err(ReplayFailed::Exited { .. }) => None,
        };
        if let Some(message) = failure {
            let ended = ApplicationNotice::Ended(ApplicationEnding::Failed { message });
            self.tell(Notice::Runner(RunnerNotice::Application(ended))).await;
        }
        ended.map(drop)
    }
}

/// Why it did not start; none where it did.
fn failure_of(report: &JobReport) -> Option<String> {
    match &report.ending {
        JobEnding::Completed => None,
        JobEnding::Raised(error) => Some(error.message.clone()),
        JobEnding::Rejected => {
            let first = report.result.diagnostics.first().map(|one| one.message.clone());
            Some(first.unwrap_or_else(|| "the compiler rejected its start".to_owned()))
        }
        JobEnding::Interrupted { .. } => Some("its start was interrupted".to_owned()),
    }
}
