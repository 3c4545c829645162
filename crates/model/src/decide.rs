//! The rules: what follows from a command, or from a notice of the worker, in a session's present state.
//!
//! [`decide`] is a pure function to events and effects. The engine appends the events with the outcomes in one
//! transaction, takes the events into the session, and carries out the effects.
//!
//! Here is what goes in and what comes out. What follows from a command is in [`commands`], from what the worker says in
//! [`notices`]; how jobs end, workers are lost and asks are answered has a file each.

mod agents;
mod asks;
mod builds;
mod commands;
mod comms;
mod grants;
mod job_endings;
mod losses;
mod notices;

use std::time::Duration;

use uuid::Uuid;

use crate::Timestamp;
use crate::agent::{JobSpec, QueuedPrompt};
use crate::application::{ApplicationNotice, EndedApplication};
use crate::command::Command;
use crate::command_line::CommandLine;
use crate::error::Error;
use crate::event::{Deadline, EventBody, Metadata, QueuedCommand, Source};
use crate::fingerprint::{CommandFingerprint, Environment, EnvironmentFingerprint, Reference, References};
use crate::grant::Amounts;
use crate::id::{AskId, CommandId, IdempotencyKey, JobId, Principal, Seq};
use crate::limits::Limits;
use crate::message::Compaction;
use crate::outcome::Outcome;
use crate::reload::Reload;
use crate::replay::{Divergence, Restored};
use crate::runner_notice::{BuildReport, JobEnding, JobReport, LastWords, RunnerInfo, RunnerNotice};
use crate::session::{RunningJob, Session};
use crate::state::SessionState;
use crate::swap::Swap;

pub use crate::identity::Identity;

/// What a session is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A command that a client sent.
    Command {
        /// The command that was sent.
        command: Command,
        /// The fingerprint it is stored under.
        fingerprint: CommandFingerprint,
        /// When it must have ended.
        deadline: Option<Deadline>,
        /// Names what it brings about, where it does: a job, or an ask.
        fresh: Uuid,
    },
    /// A client's command that has to wait for its turn.
    Queue {
        /// The source of the command.
        source: Source,
        /// The whole of it.
        queued: Box<QueuedCommand>,
    },
    /// A command that was accepted, and is not to begin any more.
    Leave {
        /// The identity of the command that leaves the queue.
        identity: Identity,
        /// The error that the command ends with.
        error: Error,
    },
    /// A notice of the worker, or of the daemon about it.
    Notice(Notice),
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

    /// Of the command that a running job is of.
    pub fn of_running(running: &RunningJob) -> Self {
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

/// A file that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenFile {
    /// The path of the file.
    pub path: String,
    /// When the file was written or put in its place last; none where that is not known, as of one that is not there.
    pub written: Option<Timestamp>,
}

/// What happened to a session's worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// It is there and has the session's definitions.
    WarmedUp {
        /// The runner that is ready.
        runner: RunnerInfo,
        /// How many submissions were replayed.
        replayed: u32,
        /// Whose part in the session is not what it was before.
        diverged: Vec<Divergence>,
        /// What of that is to be told where something had changed that the session's code uses.
        reload: Box<Reload>,
        /// What it has by a snapshot; none where there was none.
        restored: Option<Box<Restored>>,
        /// How long it took.
        took: Duration,
    },
    /// It could not be started.
    WarmUpFailed {
        /// The reason why the warm-up failed.
        error: Error,
    },
    /// It was started and did not get ready. Another may.
    StartFailed {
        /// The reason why the start failed.
        reason: String,
    },
    /// It says something itself.
    Runner(RunnerNotice),
    /// A job printed more than is kept.
    OutputCut {
        /// The job whose output was cut.
        job: JobId,
        /// How many bytes were kept.
        limit: u64,
    },
    /// A job that was told to stop still runs after its grace.
    GraceExpired {
        /// The job whose grace expired.
        job: JobId,
    },
    /// The command of a running job takes longer than it may.
    DeadlineReached {
        /// The job whose deadline was reached.
        job: JobId,
    },
    /// An ask has not been answered in time.
    AskOverdue {
        /// The ask whose deadline has passed.
        ask: AskId,
    },
    /// An agent shortened what it is shown: it was looked up what the summary stands for.
    Compacted(Compaction),
    /// An agent had nothing to do for as long as it may.
    Idle,
    /// A task that a job of the session gave to another has ended, or was never begun.
    DelegationEnded {
        /// The event with which the task was given.
        given_at: Seq,
        /// What it left of what went with the task.
        unspent: Amounts,
    },
    /// The job that gave the running one its task has come to its end, and this one is to stop.
    ParentEnded {
        /// The principal of the command that is to stop.
        principal: Principal,
        /// The command that is to stop.
        command: CommandId,
        /// The job that had given it its task, and how that ended.
        error: Error,
    },
    /// Changed sources of its project were put into the worker, or could not be.
    Swapped {
        /// What came of it.
        swap: Swap,
    },
    /// What the session's code rests on was looked at.
    LookedAt {
        /// It, by name, as it is now.
        found: References,
    },
    /// Files of the session's folder were written.
    Written {
        /// The files, as they are now.
        files: Vec<WrittenFile>,
    },
    /// The daemon that had the session is gone, another goes on with its runner, and the running job never came there: its code, which is
    /// withheld, went with the daemon.
    JobLost {
        /// The job that nobody can run.
        job: JobId,
    },
    /// The daemon that had the session is gone, and another has taken over.
    DaemonLost,
    /// The daemon goes down in order.
    DaemonStopping,
}

/// The events, answers and effects that follow from an input.
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
    /// The principal that sent the command.
    pub principal: Principal,
    /// The id of the command.
    pub command: CommandId,
    /// The client's name for what it wanted done once.
    pub key: Option<IdempotencyKey>,
    /// The fingerprint of the command's content.
    pub fingerprint: CommandFingerprint,
    /// The outcome of the command.
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
    /// Have the worker that is there run again what depends on what has changed; start one in its place where that cannot be.
    Reload,
    /// Start afresh in the worker that is there; start one if none is.
    ResetWorker,
    /// Kill the worker's process.
    KillWorker,
    /// Run code in the worker.
    Run {
        /// The job that runs the code.
        job: JobId,
        /// The code to be run.
        code: String,
        /// The file whose text it is.
        file: Option<String>,
        /// The command line that the code is given.
        command_line: Option<CommandLine>,
    },
    /// Have the agent do something, once that it was asked to is durable.
    Work {
        /// Whether a grant bounds it: then what its tools are about to do is checked before.
        is_bounded: bool,
        /// The job that does the work.
        job: JobId,
        /// The work for the agent.
        work: JobSpec,
    },
    /// Say something to the agent while it works.
    Steer {
        /// The prompt that steers the turn.
        queued: QueuedPrompt,
    },
    /// Have the agent hold back what its tools are about to do, until it is given the answer to an ask.
    Pause {
        /// The job that pauses.
        job: JobId,
        /// The ask how it is to go on.
        ask: AskId,
    },
    /// Give the running job the answer to its ask, or say why there is none.
    Answer {
        /// The ask that is answered.
        ask: AskId,
        /// The answer, or why there is none.
        answer: Result<serde_json::Value, Error>,
    },
    /// Ask the running job to stop; give [`Notice::GraceExpired`] if it does not in time.
    Interrupt {
        /// The job to be interrupted.
        job: JobId,
    },
}

/// What follows from `input` in `session`'s present state. Nothing follows in one that was deleted.
///
/// # Errors
/// [`Error::SessionNotFound`] for what clients want of a session that was deleted,
/// [`Error::NotOffered`] where the state does not offer what a command asks, [`Error::NotRunning`] where a cancel finds
/// nothing of its target, [`Error::AskNotPending`] and [`Error::AnswerInvalid`] for an answer, [`Error::TooManyAsks`] for
/// an ask. A notice is never refused: one that comes too late decides nothing.
pub fn decide(session: &Session, input: Input, now: Timestamp, limits: &Limits) -> Result<Decision, Error> {
    if session.deleted_at.is_some() {
        return match input {
            Input::Notice(_) => Ok(Decision::default()),
            Input::Command { .. } | Input::Queue { .. } | Input::Leave { .. } => {
                Err(Error::SessionNotFound { reference: session.id.to_string() })
            }
        };
    }
    let mut draft = Draft { session, now, limits, decision: Decision::default() };
    match input {
        Input::Command { command, fingerprint, deadline, fresh } => {
            draft.command(command, fingerprint, deadline, fresh)?;
        }
        Input::Queue { source, queued } => {
            draft.record(of_command(source, &queued.command), EventBody::CommandQueued(queued));
        }
        Input::Leave { identity, error } => draft.turn_down(identity, error),
        Input::Notice(notice) => draft.notice(notice),
    }
    Ok(draft.decision)
}

/// A decision in the making.
pub(crate) struct Draft<'a> {
    pub(crate) session: &'a Session,
    now: Timestamp,
    pub(crate) limits: &'a Limits,
    decision: Decision,
}

impl Draft<'_> {
    fn running(&self, job: JobId) -> Option<RunningJob> {
        self.session.running().filter(|running| running.job == job).cloned()
    }

    pub(crate) fn record(&mut self, metadata: Metadata, body: EventBody) -> Seq {
        self.decision.events.push((metadata, body));
        Seq(self.session.last_seq.0 + self.decision.events.len() as u64)
    }

    pub(crate) fn effect(&mut self, effect: Effect) {
        self.decision.effects.push(effect);
    }

    fn answer(&mut self, identity: Identity, outcome: Outcome) {
        self.decision.outcomes.push(identity.answer(outcome));
    }
}

impl Draft<'_> {
    /// Takes in what a worker says that the session's code rests on. Gives the name of what it runs against from here on.
    fn rests_on(&mut self, runtime: &str, references: Option<References>) -> Option<EnvironmentFingerprint> {
        let before = self.session.surroundings.clone().unwrap_or_default();
        let references = match references {
            Some(references) => references,
            None => self.session.surroundings.as_ref()?.loaded.clone(),
        };
        if references != before.loaded {
            self.found(before.present_with(&references));
            self.record(of(Source::Worker), EventBody::EnvironmentChanged { references: references.clone() });
        }
        Some(Environment { runtime: runtime.to_owned(), references }.fingerprint())
    }

    /// Takes in that files were written: those that its project is made of, unless that is known.
    fn written(&mut self, files: Vec<WrittenFile>) {
        let project = self.session.startup.as_ref().and_then(|startup| startup.project.as_ref());
        let Some(project) = project else { return };
        let is_before = |file: &WrittenFile, build: Option<Timestamp>| {
            file.written.zip(build).is_some_and(|(written, build)| written < build)
        };
        let is_news = |file: &WrittenFile| {
            project.sources.contains(&file.path)
                && !is_before(file, self.session.built)
                && !self.session.is_known_unbuilt(&file.path)
        };
        let build = self.session.build_under_way().map(|build| build.requested_at);
        let (in_build, unbuilt): (Vec<_>, Vec<_>) =
            files.into_iter().filter(is_news).partition(|file| is_before(file, build));
        for (files, in_build) in [(in_build, true), (unbuilt, false)] {
            let changed: Vec<String> = files.into_iter().map(|file| file.path).collect();
            if !changed.is_empty() {
                self.record(of(Source::System), EventBody::SourcesChanged { changed, in_build });
            }
        }
    }

    /// Takes in that changed sources were put into the worker, or were not. Of a worker that is gone, that says nothing.
    fn sources_swapped(&mut self, swap: Swap) {
        let is_up = !matches!(
            self.session.state(),
            SessionState::Uninitialized | SessionState::WarmingUp | SessionState::Faulted
        );
        let waited = swap.files.keys().any(|file| self.session.unbuilt.contains_key(file));
        if is_up && (waited || swap.is_renewed || !swap.is_nothing()) {
            let swap = Swap { is_renewed: false, ..swap };
            self.record(of(Source::System), EventBody::SourcesSwapped(Box::new(swap)));
        }
    }

    /// Takes in that the application runs, or runs no more. What is known already is no news.
    fn application_notice(&mut self, notice: ApplicationNotice) {
        let known = self.session.application.as_ref().map(|known| &known.application);
        let body = match notice {
            ApplicationNotice::Started(application) if known == Some(&application) => return,
            ApplicationNotice::Started(application) => EventBody::ApplicationStarted(Box::new(application)),
            ApplicationNotice::Ended(ending) => match known {
                Some(known) => {
                    let name = known.name.clone();
                    EventBody::ApplicationEnded(Box::new(EndedApplication { name, ending }))
                }
                None => return,
            },
        };
        self.record(of(Source::Worker), body);
    }

    /// Takes in how what the session's code rests on is now. What it had not rested on before is no change.
    fn found(&mut self, new: References) {
        let old = self.session.surroundings.as_ref().map(|known| known.present.clone()).unwrap_or_default();
        let is_other = |(name, before): &(&String, &Reference)| {
            new.get(*name).is_some_and(|now| now.hash != before.hash)
        };
        let changed: Vec<String> = old.iter().filter(is_other).map(|(name, _)| name.clone()).collect();
        if !changed.is_empty() {
            let new =
                old.iter().map(|(name, before)| (name.clone(), new.get(name).unwrap_or(before).clone()));
            let new = new.collect();
            self.record(of(Source::System), EventBody::AssembliesChanged { old, new, changed });
        }
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
