//! How a job ends, and its command with it.

use super::{Draft, Effect, Identity, JobEnding, JobReport, milliseconds, of_job};
use crate::agent::WorkEnding;
use crate::diagnostic::Diagnostic;
use crate::error::Error;
use crate::eval::{EvalResult, Failure, RaisedError, WorkerExit};
use crate::event::{Blame, CancelEnding, CompletedPart, Deadline, EventBody, Metadata, Source};
use crate::id::JobId;
use crate::outcome::{EvalEnding, EvalOutcome, Outcome, Response, WithheldResult};
use crate::session::RunningJob;
use crate::supervision::elapsed_ms;

impl Draft<'_> {
    /// Answers the running command; its job is told to stop, and its end is an event and no second outcome.
    pub(super) fn time_out(&mut self, job: JobId) {
        let Some(running) = self.running(job).filter(|running| !running.is_answered) else { return };
        let expires_at = running.grants.as_ref().and_then(|grants| grants.expires_at());
        let is_first = |deadline: &Deadline| expires_at.is_none_or(|at| deadline.at <= at);
        let limit_ms = match (running.deadline.filter(is_first), expires_at) {
            (Some(Deadline { limit_ms, .. }), _) => limit_ms,
            (None, Some(at)) => return self.deny(&running, Error::GrantExpired { at }),
            (None, None) => return,
        };
        self.record(of_job(Source::System, &running), EventBody::EvalTimedOut { job, limit_ms });
        self.answer(Identity::of_running(&running), Outcome::Failed { error: Error::TimedOut { limit_ms } });
        if !running.cancel_requested {
            self.stop(job);
        }
    }

    /// Tells a job to stop. It hears so before it hears that its asks have no answer: else it would go on as if nobody had
    /// answered.
    pub(crate) fn stop(&mut self, job: JobId) {
        self.effect(Effect::Interrupt { job });
        self.cancel_asks(job);
    }

    pub(super) fn finish(&mut self, running: &RunningJob, report: JobReport) {
        let JobReport { ending, result, changes_state, took, references } = report;
        let runtime =
            self.session.surroundings.as_ref().map(|known| known.runtime.clone()).unwrap_or_default();
        // Withheld code names nothing, files included.
        let environment = self.rests_on(&runtime, references.filter(|_| !running.withheld));
        let result = result.cut(self.limits.value_bytes);
        let (job, duration_ms) = (running.job, milliseconds(took));
        let (ending, result, live) = match running.withheld {
            true => {
                let live = WithheldResult::of(&ending, result);
                (ending.withheld(), EvalResult::default(), Some(live))
            }
            false => (ending, result, None),
        };
        let failed = |failure| EventBody::EvalFailed {
            job,
            failure,
            result: result.clone(),
            changes_state,
            duration_ms,
        };
        let (body, ending) = match ending {
            JobEnding::Completed => (
                EventBody::EvalCompleted { job, result: result.clone(), changes_state, duration_ms },
                EvalEnding::Completed,
            ),
            JobEnding::Rejected => (failed(Failure::Rejected), EvalEnding::Rejected),
            JobEnding::Raised(error) => {
                let error = error.cut(self.limits.value_bytes);
                (failed(Failure::Raised { error: error.clone() }), EvalEnding::Raised { error })
            }
            JobEnding::Interrupted { kept } if running.cancel_requested => {
                let bindings = || result.bindings.clone();
                let kept = (kept > 0).then(|| CompletedPart { bytes: kept, bindings: bindings() });
                (
                    EventBody::EvalCancelled { job, ending: CancelEnding::Yielded, kept, grace_ms: None },
                    EvalEnding::Cancelled,
                )
            }
            JobEnding::Interrupted { .. } => {
                let error = RaisedError {
                    kind: "Interrupted".to_owned(),
                    message: "the code interrupted itself".to_owned(),
                    stack: None,
                    coloured_stack: None,
                };
                (failed(Failure::Raised { error: error.clone() }), EvalEnding::Raised { error })
            }
        };
        let metadata = Metadata { environment, ..of_job(Source::Worker, running) };
        self.end_running(running, metadata, body, ending, result, duration_ms);
        if let Some(live) = live {
            self.tell_live(live);
        }
    }

    /// Who asked is told once what is not stored.
    fn tell_live(&mut self, live: WithheldResult) {
        let told = self.decision.outcomes.iter_mut().find_map(|answer| answer.outcome.live_mut());
        if let Some(told) = told {
            *told = live;
        }
    }

    /// A job whose worker was ended from outside, or by what another job had left running, was cut off. Everything
    /// else its code brought about itself.
    pub(super) fn end_running_by_exit(
        &mut self,
        running: &RunningJob,
        exit: WorkerExit,
        blame: Option<Blame>,
        diagnostics: Vec<Diagnostic>,
    ) {
        if running.cancel_requested {
            self.end_running_by_kill();
        } else if !running.kind.is_eval()
            || exit.is_from_outside()
            || blame.is_some_and(|blame| blame.job != running.job)
        {
            self.interrupt_running(running);
        } else {
            let duration_ms = elapsed_ms(running.requested_at, self.now);
            let result = EvalResult { diagnostics, ..EvalResult::default() };
            let body = EventBody::EvalFailed {
                job: running.job,
                failure: Failure::WorkerExited { exit },
                result: result.clone(),
                changes_state: false,
                duration_ms,
            };
            self.end_running(
                running,
                of_job(Source::System, running),
                body,
                EvalEnding::WorkerExited { exit },
                result,
                duration_ms,
            );
        }
    }

    pub(super) fn interrupt_running(&mut self, running: &RunningJob) {
        if !running.kind.is_eval() {
            return self.work_ended(running, Source::System, WorkEnding::Interrupted);
        }
        let duration_ms = elapsed_ms(running.requested_at, self.now);
        let body = EventBody::EvalInterrupted { job: running.job };
        self.end_running(
            running,
            of_job(Source::System, running),
            body,
            EvalEnding::Interrupted,
            EvalResult::default(),
            duration_ms,
        );
    }

    pub(crate) fn end_running_by_kill(&mut self) {
        self.kill_running(None);
    }

    /// Ends the running job by killing its worker, since it did not stop within the time that its cancel gave, where one was given.
    pub(super) fn kill_running(&mut self, grace_ms: Option<u64>) {
        if let Some(running) = self.session.running().cloned() {
            if !running.kind.is_eval() {
                let ending = WorkEnding::Cancelled { by: CancelEnding::Killed };
                return self.work_ended_within(&running, Source::System, ending, grace_ms);
            }
            let body = EventBody::EvalCancelled {
                job: running.job,
                ending: CancelEnding::Killed,
                kept: None,
                grace_ms,
            };
            let duration_ms = elapsed_ms(running.requested_at, self.now);
            self.end_running(
                &running,
                of_job(Source::System, &running),
                body,
                EvalEnding::Cancelled,
                EvalResult::default(),
                duration_ms,
            );
        }
    }

    /// The metadata's source brought the end about: the worker that ran the job, or the daemon that killed it or found it gone.
    pub(super) fn end_running(
        &mut self,
        running: &RunningJob,
        metadata: Metadata,
        body: EventBody,
        ending: EvalEnding,
        result: EvalResult,
        duration_ms: u64,
    ) {
        self.drop_asks(running.job);
        let completed = self.record(metadata, body);
        let outcome = EvalOutcome {
            withheld: running.withheld,
            live: running.withheld.then(Box::default),
            ..EvalOutcome::new(running.job, running.requested, completed, ending, result, duration_ms)
        };
        if !running.is_answered {
            let response = Response::Evaluated(outcome);
            self.answer(Identity::of_running(running), Outcome::Done { response });
        }
    }
}
