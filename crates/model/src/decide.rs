//! The rules: what follows from a command, or from a notice of the worker, in a session's present state.
//!
//! [`decide`] is a pure function to events and effects. The engine appends the events with the outcomes in one
//! transaction, takes the events into the session, and carries out the effects.

use std::time::Duration;

use crate::Timestamp;
use crate::affordance::{Availability, availability};
use crate::command::{Command, SessionCommand};
use crate::error::Error;
use crate::eval::{EvalResult, Failure, RaisedError, WorkerExit};
use crate::event::{
    Blame, CancelEnding, Deadline, EventBody, Kept, Metadata, OutputStream, QueuedCommand, Source,
    WarmUpReason,
};
use crate::fingerprint::CommandFingerprint;
use crate::id::{CommandId, IdempotencyKey, JobId, Principal, Seq};
use crate::limits::Limits;
use crate::outcome::{EvalEnding, EvalOutcome, Outcome, Response};
use crate::replay::Divergence;
use crate::session::{Life, RunningJob, Session};
use crate::state::SessionState;
use crate::supervision::{Verdict, elapsed_ms, judge};

/// What a session is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A client's command.
    Command {
        /// Which.
        command: Command,
        /// The fingerprint it is stored under.
        fingerprint: CommandFingerprint,
        /// When it must have ended.
        deadline: Option<Deadline>,
        /// The job that will run it, where it needs one.
        job: JobId,
    },
    /// A client's command that has to wait for its turn.
    Queue {
        /// Whose.
        source: Source,
        /// The whole of it.
        queued: Box<QueuedCommand>,
    },
    /// A command that was accepted, and is not to begin any more.
    Leave {
        /// Which.
        identity: Identity,
        /// Why.
        error: Error,
    },
    /// A notice of the worker, or of the daemon about it.
    Notice(Notice),
}

/// What a command is known and answered by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Whose.
    pub principal: Principal,
    /// Which.
    pub command: CommandId,
    /// The client's name for what it wants done once.
    pub key: Option<IdempotencyKey>,
    /// What it says.
    pub fingerprint: CommandFingerprint,
}

impl Identity {
    /// Of a command that says what this fingerprint is of.
    pub fn of(command: &Command, fingerprint: CommandFingerprint) -> Self {
        Self {
            principal: command.source.principal(),
            command: command.id.clone(),
            key: command.key.clone(),
            fingerprint,
        }
    }

    fn of_running(running: &RunningJob) -> Self {
        Self {
            principal: running.source.principal(),
            command: running.command.clone(),
            key: running.key.clone(),
            fingerprint: running.fingerprint.clone(),
        }
    }

    /// The answer to the command.
    pub fn answer(self, outcome: Outcome) -> Answer {
        let Self { principal, command, key, fingerprint } = self;
        Answer { principal, command, key, fingerprint, outcome }
    }
}

/// What happened to a session's worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// It is there and has the session's definitions.
    WarmedUp {
        /// The worker.
        runner: RunnerInfo,
        /// How many submissions were replayed.
        replayed: u32,
        /// Whose part in the session is not what it was before.
        diverged: Vec<Divergence>,
        /// How long it took.
        took: Duration,
    },
    /// It could not be started.
    WarmUpFailed {
        /// Why.
        error: Error,
    },
    /// It was started and did not get ready. Another may.
    StartFailed {
        /// Why.
        reason: String,
    },
    /// It says something itself.
    Runner(RunnerNotice),
    /// A job printed more than is kept.
    OutputCut {
        /// The job.
        job: JobId,
        /// How many bytes were kept.
        limit: u64,
    },
    /// A job that was told to stop still runs after its grace.
    GraceExpired {
        /// Which.
        job: JobId,
    },
    /// The command of a running job takes longer than it may.
    DeadlineReached {
        /// The job.
        job: JobId,
    },
    /// The daemon was lost with it, and is back.
    DaemonLost,
    /// The daemon goes down in order.
    DaemonStopping,
}

/// What a runner says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunnerNotice {
    /// Something was printed.
    Output {
        /// The job that ran.
        job: Option<JobId>,
        /// Where.
        stream: OutputStream,
        /// What.
        text: String,
    },
    /// A job ended.
    Finished {
        /// Which.
        job: JobId,
        /// What came of it.
        report: JobReport,
    },
    /// It is gone. Always the last notice.
    Exited {
        /// How.
        exit: WorkerExit,
        /// What is known of why.
        last_words: Option<LastWords>,
    },
}

/// What is known of why a worker ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastWords {
    /// Whose code brought it about.
    pub blame: Blame,
    /// Why, where that is known.
    pub reason: Option<String>,
}

/// A runner that is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunnerInfo {
    /// The language tool and its version.
    pub kernel: String,
    /// The runtime under it.
    pub runtime: String,
    /// Its process id.
    pub pid: u32,
}

/// What came of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobReport {
    /// How it ended.
    pub ending: JobEnding,
    /// What it gave.
    pub result: EvalResult,
    /// Whether it must run again to rebuild the session.
    pub changes_state: bool,
    /// How long it ran.
    pub took: Duration,
}

/// How a worker says a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobEnding {
    /// It ran to its end.
    Completed,
    /// The code has errors.
    Rejected,
    /// An exception escaped.
    Raised(RaisedError),
    /// It yielded to an interrupt.
    Interrupted {
        /// How many bytes of the code had run to their end before, where that changed the session; else 0.
        kept: usize,
    },
}

/// What follows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The facts, in order.
    pub events: Vec<(Metadata, EventBody)>,
    /// The answers to commands that thereby end.
    pub outcomes: Vec<Answer>,
    /// What the engine does once the events are taken in, in order.
    pub effects: Vec<Effect>,
}

/// The outcome of one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whose command.
    pub principal: Principal,
    /// Which.
    pub command: CommandId,
    /// The client's name for what it wanted done once.
    pub key: Option<IdempotencyKey>,
    /// What it said.
    pub fingerprint: CommandFingerprint,
    /// The answer.
    pub outcome: Outcome,
}

/// Something to do outside the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Start a worker after a while, and replay into it what was defined since [`Session::definitions_since`].
    StartWorker {
        /// How long to wait.
        after: Duration,
    },
    /// Start afresh in the worker that is there; start one if none is.
    ResetWorker,
    /// Kill the worker.
    KillWorker,
    /// Run code.
    Run {
        /// The job.
        job: JobId,
        /// The code.
        code: String,
        /// The file whose text it is.
        file: Option<String>,
    },
    /// Ask the running job to stop; give [`Notice::GraceExpired`] if it does not in time.
    Interrupt {
        /// The job.
        job: JobId,
    },
}

/// What follows from `input` in `session`'s present state.
///
/// # Errors
/// [`Error::NotOffered`] where the state does not offer what a command asks, [`Error::NotRunning`] where a cancel finds
/// nothing of its target. A notice is never refused: one that comes too late decides nothing.
pub fn decide(session: &Session, input: Input, now: Timestamp, limits: &Limits) -> Result<Decision, Error> {
    let mut draft = Draft { session, now, decision: Decision::default() };
    match input {
        Input::Command { command, fingerprint, deadline, job } => {
            draft.command(command, fingerprint, deadline, job)?;
        }
        Input::Queue { source, queued } => {
            draft.record(of_command(source, &queued.command), EventBody::CommandQueued(queued));
        }
        Input::Leave { identity, error } => draft.turn_down(identity, error),
        Input::Notice(notice) => draft.notice(notice, limits),
    }
    Ok(draft.decision)
}

/// How a worker was lost.
struct Loss {
    exit: WorkerExit,
    reason: Option<String>,
    blame: Option<Blame>,
}

/// A decision in the making.
struct Draft<'a> {
    session: &'a Session,
    now: Timestamp,
    decision: Decision,
}

impl Draft<'_> {
    fn command(
        &mut self,
        command: Command,
        fingerprint: CommandFingerprint,
        deadline: Option<Deadline>,
        job: JobId,
    ) -> Result<(), Error> {
        let state = self.session.state();
        let action = command.body.action();
        if availability(state, action) == Availability::Refused {
            return Err(Error::NotOffered { action, state });
        }
        let metadata = of_command(command.source.clone(), &command.id);
        let identity = Identity::of(&command, fingerprint);
        if let Some(expected) = command.if_version
            && expected != self.session.version
        {
            let error = Error::VersionMismatch { expected, actual: self.session.version };
            self.turn_down(identity, error);
            return Ok(());
        }
        let response = match command.body {
            SessionCommand::Eval { code, file } => {
                let Identity { command, key, fingerprint, .. } = identity;
                let (code_to_run, file_to_run) = (code.clone(), file.clone());
                let requested =
                    EventBody::EvalRequested { job, command, fingerprint, key, deadline, code, file };
                self.record(metadata, requested);
                self.effect(Effect::Run { job, code: code_to_run, file: file_to_run });
                return Ok(());
            }
            SessionCommand::Cancel { target } => self.cancel(metadata, state, target)?,
            SessionCommand::Reset => {
                self.record(metadata.clone(), EventBody::SessionReset);
                let seq = self.record(metadata, EventBody::WarmUpStarted { reason: WarmUpReason::Reset });
                self.effect(Effect::ResetWorker);
                Response::Recorded { seq }
            }
            SessionCommand::HardReset => {
                self.end_running_by_kill();
                self.record(metadata.clone(), EventBody::SessionHardReset);
                let seq = self.record(metadata, EventBody::WarmUpStarted { reason: WarmUpReason::HardReset });
                self.effect(Effect::KillWorker);
                self.effect(Effect::StartWorker { after: Duration::ZERO });
                Response::Recorded { seq }
            }
            SessionCommand::Start => {
                let seq = self.record(metadata, EventBody::WarmUpStarted { reason: WarmUpReason::Started });
                self.effect(Effect::StartWorker { after: Duration::ZERO });
                Response::Recorded { seq }
            }
            SessionCommand::Stop => {
                self.end_running_by_kill();
                let seq = match state {
                    SessionState::Uninitialized => self.session.last_seq,
                    SessionState::WarmingUp
                    | SessionState::Ready
                    | SessionState::Evaluating
                    | SessionState::Waiting(_)
                    | SessionState::Faulted => self.record(metadata, EventBody::SessionStopped),
                };
                self.effect(Effect::KillWorker);
                Response::Recorded { seq }
            }
            SessionCommand::Rename { name } => {
                let seq = self.record(metadata, EventBody::SessionRenamed { name });
                Response::Recorded { seq }
            }
        };
        self.leave_lane_silently(&identity);
        self.answer(identity, Outcome::Done { response });
        Ok(())
    }

    /// Answers a command that is accepted and does not begin.
    fn turn_down(&mut self, identity: Identity, error: Error) {
        if self.session.waits(&identity.principal, &identity.command) {
            let (principal, command) = (identity.principal.clone(), identity.command.clone());
            self.record(
                of(Source::System),
                EventBody::CommandLeft { principal, command, error: Some(error.clone()) },
            );
        }
        self.answer(identity, Outcome::Failed { error });
    }

    /// A command that waited and changes nothing leaves the lane all the same.
    fn leave_lane_silently(&mut self, identity: &Identity) {
        let tells = self
            .decision
            .events
            .iter()
            .any(|(metadata, _)| metadata.correlation.as_ref() == Some(&identity.command));
        if !tells && self.session.waits(&identity.principal, &identity.command) {
            let (principal, command) = (identity.principal.clone(), identity.command.clone());
            self.record(of(Source::System), EventBody::CommandLeft { principal, command, error: None });
        }
    }

    fn cancel(
        &mut self,
        metadata: Metadata,
        state: SessionState,
        target: Option<CommandId>,
    ) -> Result<Response, Error> {
        let Some(running) = self.session.running() else {
            return Err(Error::NotOffered { action: crate::Action::Cancel, state });
        };
        if let Some(command) = target
            && !running.answers(&metadata.source.principal(), &command)
        {
            return Err(Error::NotRunning { command });
        }
        let job = running.job;
        if !running.cancel_requested {
            self.record(metadata, EventBody::CancelRequested { job });
            self.effect(Effect::Interrupt { job });
        }
        Ok(Response::Cancelling { job })
    }

    fn notice(&mut self, notice: Notice, limits: &Limits) {
        match notice {
            Notice::WarmedUp { runner, replayed, diverged, took } => {
                if matches!(self.session.life, Life::WarmingUp { .. }) {
                    let RunnerInfo { kernel, runtime, pid } = runner;
                    let duration_ms = milliseconds(took);
                    let body =
                        EventBody::WarmUpCompleted { kernel, runtime, pid, replayed, diverged, duration_ms };
                    self.record(of(Source::Worker), body);
                }
            }
            Notice::WarmUpFailed { error } => {
                if matches!(self.session.life, Life::WarmingUp { .. }) {
                    let message = format!("{error}. {}", error.next_step());
                    self.record(of(Source::System), EventBody::SessionFaulted { message });
                    self.effect(Effect::KillWorker);
                }
            }
            Notice::StartFailed { reason } => {
                let loss = Loss { exit: WorkerExit::Unknown, reason: Some(reason), blame: None };
                self.worker_lost(loss, limits);
            }
            Notice::Runner(notice) => self.runner_notice(notice, limits),
            Notice::OutputCut { job, limit } => {
                if let Some(running) = self.running(job) {
                    self.record(of_job(Source::Worker, &running), EventBody::OutputCut { job, limit });
                }
            }
            Notice::GraceExpired { job } => {
                if self.running(job).is_some_and(|running| running.cancel_requested) {
                    self.end_running_by_kill();
                    self.record(
                        of(Source::System),
                        EventBody::WarmUpStarted { reason: WarmUpReason::Cancelled },
                    );
                    self.effect(Effect::KillWorker);
                    self.effect(Effect::StartWorker { after: Duration::ZERO });
                }
            }
            Notice::DeadlineReached { job } => self.time_out(job),
            Notice::DaemonLost => self.daemon_lost(),
            Notice::DaemonStopping => {
                if let Some(running) = self.session.running().cloned() {
                    self.interrupt_running(&running);
                }
                if self.session.state() != SessionState::Uninitialized {
                    self.record(of(Source::System), EventBody::SessionStopped);
                }
                self.effect(Effect::KillWorker);
            }
        }
    }

    /// Answers the running command; its job is told to stop, and its end is an event and no second outcome.
    fn time_out(&mut self, job: JobId) {
        let Some(running) = self.running(job).filter(|running| !running.is_answered) else { return };
        let Some(Deadline { limit_ms, .. }) = running.deadline else { return };
        self.record(of_job(Source::System, &running), EventBody::EvalTimedOut { job, limit_ms });
        self.answer(Identity::of_running(&running), Outcome::Failed { error: Error::TimedOut { limit_ms } });
        if !running.cancel_requested {
            self.effect(Effect::Interrupt { job });
        }
    }

    fn runner_notice(&mut self, notice: RunnerNotice, limits: &Limits) {
        match notice {
            RunnerNotice::Output { job, stream, text } => {
                let metadata = match self.session.running() {
                    Some(running) if job == Some(running.job) => of_job(Source::Worker, running),
                    Some(_) | None => of(Source::Worker),
                };
                self.record(metadata, EventBody::OutputProduced { job, stream, text });
            }
            RunnerNotice::Finished { job, report } => {
                if let Some(running) = self.running(job) {
                    self.finish(&running, report, limits);
                }
            }
            RunnerNotice::Exited { exit, last_words } => {
                let (reason, blame) = match last_words {
                    Some(LastWords { blame, reason }) => (reason, Some(blame)),
                    None => (None, None),
                };
                self.worker_lost(Loss { exit, reason, blame }, limits);
            }
        }
    }

    fn finish(&mut self, running: &RunningJob, report: JobReport, limits: &Limits) {
        let JobReport { ending, result, changes_state, took } = report;
        let result = result.cut(limits.value_bytes);
        let (job, duration_ms) = (running.job, milliseconds(took));
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
                let error = error.cut(limits.value_bytes);
                (failed(Failure::Raised { error: error.clone() }), EvalEnding::Raised { error })
            }
            JobEnding::Interrupted { kept } if running.cancel_requested => {
                let bindings = || result.bindings.clone();
                let kept = (kept > 0).then(|| Kept { bytes: kept, bindings: bindings() });
                (EventBody::EvalCancelled { job, ending: CancelEnding::Yielded, kept }, EvalEnding::Cancelled)
            }
            JobEnding::Interrupted { .. } => {
                let error = RaisedError {
                    kind: "Interrupted".to_owned(),
                    message: "the code interrupted itself".to_owned(),
                    stack: None,
                };
                (failed(Failure::Raised { error: error.clone() }), EvalEnding::Raised { error })
            }
        };
        self.end_running(running, Source::Worker, body, ending, result, duration_ms);
    }

    fn worker_lost(&mut self, loss: Loss, limits: &Limits) {
        match self.session.state() {
            SessionState::Uninitialized | SessionState::Faulted => return,
            SessionState::WarmingUp
            | SessionState::Ready
            | SessionState::Evaluating
            | SessionState::Waiting(_) => {}
        }
        let verdict = self.verdict(&loss, limits);
        let Loss { exit, reason, blame } = loss;
        if let Some(running) = self.session.running().cloned() {
            self.end_running_by_exit(&running, exit, blame);
        }
        match verdict {
            Verdict::Restart { attempt, after_ms } => {
                let restart_after_ms = Some(after_ms);
                let exited = EventBody::WorkerExited { exit, attempt, restart_after_ms, reason, blame };
                self.record(of(Source::System), exited);
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

    /// Code that ends its worker with an exit code means to: the next worker is started at once, and it counts for nothing.
    fn verdict(&self, loss: &Loss, limits: &Limits) -> Verdict {
        let ends_itself = |running: &RunningJob| {
            matches!(loss.exit, WorkerExit::Code(_))
                && !loss.exit.is_from_outside()
                && loss.blame.is_none_or(|blame| blame.job == running.job)
        };
        if self.session.running().is_some_and(ends_itself) {
            return Verdict::Restart { attempt: 0, after_ms: 0 };
        }
        let ready_at = self.session.worker.as_ref().map(|worker| worker.ready_at);
        judge(&self.session.losses, ready_at, self.now, limits)
    }

    fn daemon_lost(&mut self) {
        match self.session.state() {
            SessionState::Uninitialized | SessionState::Faulted => {}
            SessionState::WarmingUp
            | SessionState::Ready
            | SessionState::Evaluating
            | SessionState::Waiting(_) => {
                if let Some(running) = self.session.running().cloned() {
                    self.interrupt_running(&running);
                }
                self.record(
                    of(Source::System),
                    EventBody::WarmUpStarted { reason: WarmUpReason::DaemonLost },
                );
                self.effect(Effect::StartWorker { after: Duration::ZERO });
            }
        }
    }

    /// A job whose worker was ended from outside, or by what another job had left running, was cut off. Everything
    /// else its code brought about itself.
    fn end_running_by_exit(&mut self, running: &RunningJob, exit: WorkerExit, blame: Option<Blame>) {
        if running.cancel_requested {
            self.end_running_by_kill();
        } else if exit.is_from_outside() || blame.is_some_and(|blame| blame.job != running.job) {
            self.interrupt_running(running);
        } else {
            let duration_ms = elapsed_ms(running.requested_at, self.now);
            let body = EventBody::EvalFailed {
                job: running.job,
                failure: Failure::WorkerExited { exit },
                result: EvalResult::default(),
                changes_state: false,
                duration_ms,
            };
            self.end_running(
                running,
                Source::System,
                body,
                EvalEnding::WorkerExited { exit },
                EvalResult::default(),
                duration_ms,
            );
        }
    }

    fn interrupt_running(&mut self, running: &RunningJob) {
        let duration_ms = elapsed_ms(running.requested_at, self.now);
        let body = EventBody::EvalInterrupted { job: running.job };
        self.end_running(
            running,
            Source::System,
            body,
            EvalEnding::Interrupted,
            EvalResult::default(),
            duration_ms,
        );
    }

    fn end_running_by_kill(&mut self) {
        if let Some(running) = self.session.running().cloned() {
            let body =
                EventBody::EvalCancelled { job: running.job, ending: CancelEnding::Killed, kept: None };
            let duration_ms = elapsed_ms(running.requested_at, self.now);
            self.end_running(
                &running,
                Source::System,
                body,
                EvalEnding::Cancelled,
                EvalResult::default(),
                duration_ms,
            );
        }
    }

    /// `ender` brought the end about: the worker that ran the job, or the daemon that killed it or found it gone.
    fn end_running(
        &mut self,
        running: &RunningJob,
        ender: Source,
        body: EventBody,
        ending: EvalEnding,
        result: EvalResult,
        duration_ms: u64,
    ) {
        let completed = self.record(of_job(ender, running), body);
        let outcome =
            EvalOutcome::new(running.job, running.requested, completed, ending, result, duration_ms);
        if !running.is_answered {
            let response = Response::Evaluated(outcome);
            self.answer(Identity::of_running(running), Outcome::Done { response });
        }
    }

    fn running(&self, job: JobId) -> Option<RunningJob> {
        self.session.running().filter(|running| running.job == job).cloned()
    }

    fn record(&mut self, metadata: Metadata, body: EventBody) -> Seq {
        self.decision.events.push((metadata, body));
        Seq(self.session.last_seq.0 + self.decision.events.len() as u64)
    }

    fn effect(&mut self, effect: Effect) {
        self.decision.effects.push(effect);
    }

    fn answer(&mut self, identity: Identity, outcome: Outcome) {
        self.decision.outcomes.push(identity.answer(outcome));
    }
}

fn of(source: Source) -> Metadata {
    Metadata { source, correlation: None, causation: None, environment: None }
}

fn of_command(source: Source, command: &CommandId) -> Metadata {
    Metadata { source, correlation: Some(command.clone()), causation: None, environment: None }
}

fn of_job(source: Source, running: &RunningJob) -> Metadata {
    Metadata {
        source,
        correlation: Some(running.command.clone()),
        causation: Some(running.requested),
        environment: None,
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
