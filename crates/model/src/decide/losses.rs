//! What follows from the loss of a worker, or of the daemon with it.

use std::time::Duration;

use super::{Draft, Effect, of};
use crate::application::{ApplicationEnding, EndedApplication, SessionApplication};
use crate::diagnostic::Diagnostic;
use crate::eval::WorkerExit;
use crate::event::{Blame, EventBody, Source, WarmUpReason};
use crate::id::JobId;
use crate::session::RunningJob;
use crate::state::SessionState;
use crate::supervision::{Verdict, judge};

/// How a worker was lost.
pub(super) struct Loss {
    pub(super) exit: WorkerExit,
    pub(super) reason: Option<String>,
    pub(super) blame: Option<Blame>,
    /// Of the running job's code.
    pub(super) diagnostics: Vec<Diagnostic>,
}

impl Draft<'_> {
    pub(super) fn worker_lost(&mut self, loss: Loss) {
        match self.session.state() {
            SessionState::Uninitialized | SessionState::Faulted => return,
            SessionState::WarmingUp
            | SessionState::Ready
            | SessionState::Evaluating
            | SessionState::Waiting(_) => {}
        }
        let verdict = self.verdict(&loss);
        let Loss { exit, reason, blame, diagnostics } = loss;
        // They may quote the code.
        let is_withheld = self.session.running().is_some_and(|running| running.withheld);
        let (reason, diagnostics) = if is_withheld { (None, Vec::new()) } else { (reason, diagnostics) };
        if let Some(running) = self.session.running().cloned() {
            self.end_running_by_exit(&running, exit, blame, diagnostics);
        }
        match verdict {
            Verdict::Restart { attempt, after_ms } => {
                let restart_after_ms = Some(after_ms);
                let exited = EventBody::WorkerExited { exit, attempt, restart_after_ms, reason, blame };
                self.record(of(Source::System), exited);
                self.application_lost(blame);
                self.record(
                    of(Source::System),
                    EventBody::WarmUpStarted { reason: WarmUpReason::WorkerLost },
                );
                self.effect(Effect::KillWorker);
                self.effect(Effect::StartWorker { after: Duration::from_millis(after_ms) });
            }
            Verdict::GiveUp { attempt } => {
                let last = reason.clone().unwrap_or_else(|| exit.to_string());
                let exited = EventBody::WorkerExited { exit, attempt, restart_after_ms: None, reason, blame };
                self.record(of(Source::System), exited);
                let message = format!("the worker was lost {attempt} times in a row, last by {last}");
                self.record(of(Source::System), EventBody::SessionFaulted { message });
                self.effect(Effect::KillWorker);
            }
        }
    }

    /// An application whose code ended the worker is not started again: it might end the next one too.
    fn application_lost(&mut self, blame: Option<Blame>) {
        let Some(SessionApplication { application, .. }) = self.session.application.as_deref() else {
            return;
        };
        if blame.is_some_and(|blame| blame.is_sure && Some(blame.job) == application.job) {
            let ending = ApplicationEnding::Failed { message: "its code ended the worker".to_owned() };
            let ended = EndedApplication { name: application.name.clone(), ending };
            self.record(of(Source::System), EventBody::ApplicationEnded(Box::new(ended)));
        }
    }

    /// Code that ends its worker with an exit code means to: the next worker is started at once, and it counts for nothing.
    fn verdict(&self, loss: &Loss) -> Verdict {
        let ends_itself = |running: &RunningJob| {
            matches!(loss.exit, WorkerExit::Code(_))
                && !loss.exit.is_from_outside()
                && loss.blame.is_none_or(|blame| blame.job == running.job)
        };
        if self.session.running().is_some_and(ends_itself) {
            return Verdict::Restart { attempt: 0, after_ms: 0 };
        }
        let ready_at = self.session.worker.as_ref().map(|worker| worker.ready_at);
        judge(&self.session.losses, ready_at, self.now, self.limits)
    }

    /// An agent with nothing to do costs a process for nothing: its conversation is in the log.
    pub(super) fn rest_while_idle(&mut self) {
        if self.session.state() == SessionState::Ready && self.session.lane.is_empty() {
            self.record(of(Source::System), EventBody::SessionStopped);
            self.effect(Effect::KillWorker);
        }
    }

    /// The daemon that was to give a job to the runner is gone, and nobody else can.
    pub(super) fn job_lost(&mut self, job: JobId) {
        if let Some(running) = self.running(job) {
            self.cut_off(&running);
        }
    }

    /// A job that is lost with a daemon was interrupted, unless it was to end anyway.
    fn cut_off(&mut self, running: &RunningJob) {
        match running.cancel_requested {
            true => self.end_running_by_kill(),
            false => self.interrupt_running(running),
        }
    }

    pub(super) fn daemon_stopping(&mut self) {
        if let Some(running) = self.session.running().cloned() {
            self.interrupt_running(&running);
        }
        if self.session.state() != SessionState::Uninitialized {
            self.record(of(Source::System), EventBody::SessionStopped);
        }
        self.effect(Effect::KillWorker);
    }

    pub(super) fn daemon_lost(&mut self) {
        match self.session.state() {
            // The daemon stopped in order, and what waited goes on now.
            SessionState::Uninitialized if !self.session.lane.is_empty() => {
                self.record(of(Source::System), EventBody::WarmUpStarted { reason: WarmUpReason::Started });
                self.effect(Effect::StartWorker { after: Duration::ZERO });
            }
            SessionState::Uninitialized | SessionState::Faulted => {}
            SessionState::WarmingUp
            | SessionState::Ready
            | SessionState::Evaluating
            | SessionState::Waiting(_) => {
                if let Some(running) = self.session.running().cloned() {
                    self.cut_off(&running);
                }
                // An agent starts when it has something to do.
                if self.session.is_agent() && self.session.lane.is_empty() {
                    self.record(of(Source::System), EventBody::SessionStopped);
                    return self.effect(Effect::KillWorker);
                }
                self.record(
                    of(Source::System),
                    EventBody::WarmUpStarted { reason: WarmUpReason::DaemonLost },
                );
                self.effect(Effect::StartWorker { after: Duration::ZERO });
            }
        }
    }
}
