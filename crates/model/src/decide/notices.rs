//! What follows from what the worker says, and from what happens to it.

use std::time::Duration;

use super::losses::Loss;
use super::{Draft, Effect, LastWords, Notice, RunnerInfo, RunnerNotice, milliseconds, of, of_job};
use crate::agent::JobKind;
use crate::error::Error;
use crate::eval::WorkerExit;
use crate::event::{EventBody, Metadata, Source, WarmUpReason};
use crate::fingerprint::Reference;
use crate::id::JobId;
use crate::session::Activity;

/// What to look at when an agent cannot be started.
const AGENT_SETTINGS: &str = "`mainstay agent list` shows which agents are used.";

impl Draft<'_> {
    pub(super) fn notice(&mut self, notice: Notice) {
        match notice {
            Notice::WarmedUp { runner, replayed, diverged, reload, restored, took } => {
                if let Activity::WarmingUp { reason } = self.session.life {
                    let RunnerInfo { kernel, runtime, language, pid, references, startup } = runner;
                    let environment = match references {
                        Some(references) => self.rests_on(&runtime, Some(references)),
                        None => None,
                    };
                    let duration_ms = milliseconds(took);
                    let body = EventBody::WarmUpCompleted {
                        kernel,
                        runtime,
                        language,
                        pid,
                        replayed,
                        diverged,
                        startup,
                        reload: (reason == WarmUpReason::Refreshed).then_some(reload),
                        restored,
                        duration_ms,
                    };
                    self.record(Metadata { environment, ..of(Source::Worker) }, body);
                }
            }
            Notice::LookedAt { found } => {
                // Where a reference is another file by now, what was looked at does not say how that one is.
                let known = self.session.surroundings.as_ref().map(|known| &known.present);
                let is_known = |name: &str, found: &Reference| {
                    known.is_some_and(|known| known.get(name).is_some_and(|known| known.path == found.path))
                };
                self.found(found.into_iter().filter(|(name, found)| is_known(name, found)).collect());
            }
            Notice::DelegationEnded { given_at, unspent } => self.delegation_ended(given_at, unspent),
            Notice::ParentEnded { principal, command, error } => {
                self.parent_ended(&principal, &command, error);
            }
            Notice::Written { files } => self.written(files),
            Notice::Swapped { swap } => self.sources_swapped(swap),
            Notice::WarmUpFailed { error } => {
                if matches!(self.session.life, Activity::WarmingUp { .. }) {
                    let is_agents = self.session.is_agent();
                    let next_step = match &error {
                        Error::KernelUnavailable { .. } if is_agents => AGENT_SETTINGS.to_owned(),
                        error => error.next_step(),
                    };
                    let message = format!("{error}. {next_step}");
                    self.record(of(Source::System), EventBody::SessionFaulted { message });
                    self.effect(Effect::KillWorker);
                }
            }
            Notice::StartFailed { reason } => {
                let (exit, reason, diagnostics) = (WorkerExit::Unknown, Some(reason), Vec::new());
                let loss = Loss { exit, reason, blame: None, diagnostics };
                self.worker_lost(loss);
            }
            Notice::Runner(notice) => self.runner_notice(notice),
            Notice::OutputCut { job, limit } => {
                if let Some(running) = self.running(job) {
                    self.record(of_job(Source::Worker, &running), EventBody::OutputCut { job, limit });
                }
            }
            Notice::GraceExpired { job } => {
                if let Some(running) = self.running(job).filter(|running| running.cancel_requested) {
                    self.kill_running(running.grace_ms);
                    self.record(
                        of(Source::System),
                        EventBody::WarmUpStarted { reason: WarmUpReason::Cancelled },
                    );
                    self.effect(Effect::KillWorker);
                    self.effect(Effect::StartWorker { after: Duration::ZERO });
                }
            }
            Notice::DeadlineReached { job } => self.time_out(job),
            Notice::AskOverdue { ask } => self.ask_overdue(ask),
            Notice::Compacted(compaction) => self.agent_compacted(compaction),
            Notice::Idle => self.rest_while_idle(),
            Notice::JobLost { job } => self.job_lost(job),
            Notice::DaemonLost => self.daemon_lost(),
            Notice::DaemonStopping => self.daemon_stopping(),
        }
    }

    /// Records what the worker put out while this job ran; of code that is withheld nothing.
    fn output(&mut self, job: Option<JobId>, body: EventBody) {
        let metadata = match self.session.running() {
            Some(running) if job == Some(running.job) && running.withheld => return,
            Some(running) if job == Some(running.job) => of_job(Source::Worker, running),
            Some(_) | None => of(Source::Worker),
        };
        self.record(metadata, body);
    }

    fn runner_notice(&mut self, notice: RunnerNotice) {
        match notice {
            RunnerNotice::Output { job, stream, text } => {
                self.output(job, EventBody::OutputProduced { job, stream, text });
            }
            RunnerNotice::Display { job, display } => {
                self.output(job, EventBody::OutputDisplayed { job, display });
            }
            RunnerNotice::Cleared { job, is_replaced } => {
                self.output(Some(job), EventBody::OutputCleared { job, is_replaced });
            }
            RunnerNotice::Comm { job, message } => {
                self.output(job, EventBody::CommPublished { job, message });
            }
            RunnerNotice::CommTaken { job } => {
                if let Some(running) = self.running(job).filter(|running| running.kind == JobKind::Comm) {
                    self.comm_taken(&running);
                }
            }
            RunnerNotice::Checks { job, check, operation } => self.check_operation(job, check, &operation),
            RunnerNotice::Asks { job, ask, question, timeout_ms } => {
                self.job_asks(job, ask, question, timeout_ms);
            }
            RunnerNotice::Application(notice) => self.application_notice(notice),
            RunnerNotice::Agent(notice) => self.agent_notice(notice),
            // What is said of a job of another kind says nothing: only code runs to an end, and only a project is built.
            RunnerNotice::Finished { job, report } => {
                if let Some(running) = self.running(job).filter(|running| running.kind == JobKind::Eval) {
                    self.finish(&running, report);
                }
            }
            RunnerNotice::Built { job, report } => {
                if let Some(running) = self.running(job).filter(|running| running.kind.is_build()) {
                    self.built(&running, report);
                }
            }
            RunnerNotice::Exited { exit, last_words } => {
                let (reason, blame, diagnostics) = match last_words {
                    Some(LastWords { blame, reason, diagnostics }) => (reason, Some(blame), diagnostics),
                    None => (None, None, Vec::new()),
                };
                self.worker_lost(Loss { exit, reason, blame, diagnostics });
            }
        }
    }
}
