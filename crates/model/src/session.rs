//! The session as its events tell it: the projection that commands are decided against.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::affordance::{Action, Reach, offered, reaches};
use crate::agent::{AgentState, JobKind, JobSpec, QueuedPrompt, WorkEnding};
use crate::ask::{Ask, AskEnding, PendingAsk, Raiser};
use crate::capability::{Capabilities, Capability};
use crate::entry::TranscriptEntry;
use crate::error::Error;
use crate::event::{Deadline, Event, EventBody, Metadata, Source, WarmUpReason};
use crate::fingerprint::{CommandFingerprint, Environment, Reference, References};
use crate::id::{AskId, CommandId, IdempotencyKey, JobId, Principal, Seq, SessionId, SessionKind, Version};
use crate::label::Labels;
use crate::language::Language;
use crate::message::TokenUsage;
use crate::replay::Divergence;
use crate::startup::Startup;
use crate::state::{SessionState, Transition, WaitReason, transition};
use crate::transcript::{Segment, Transcript};

/// A session, folded from its events. What grows with the transcript is not kept here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// The id of the session.
    pub id: SessionId,
    /// What does its work.
    pub kind: SessionKind,
    /// What people call it.
    pub name: String,
    /// How its first input begins; none where it has none, or that was withheld.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The principal that created the session.
    #[serde(default = "Principal::local", skip_serializing_if = "is_local")]
    pub owner: Principal,
    /// The folder its code runs in.
    pub working_directory: String,
    /// The project it is for.
    pub project: Option<String>,
    /// The projects that its folder had, where there were several and none was named: it is for none of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed_over: Vec<String>,
    /// What the compiler of its language is told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// What its creator calls it; none once it was unloaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// What it can do, where that was declared: [`Self::capabilities`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// When it came to be.
    pub created_at: Timestamp,
    /// When something last happened in it.
    pub last_activity: Timestamp,
    /// What it is doing.
    pub life: Activity,
    /// The sequence number of the newest event.
    pub last_seq: Seq,
    /// The event at which its definitions began: its creation or its last reset. Replay begins after it.
    pub definitions_since: Seq,
    /// How many evals were accepted.
    pub evals: u64,
    /// How many of them did not run to their end.
    pub failures: u64,
    /// The worker that is there, if one is.
    pub worker: Option<WorkerInfo>,
    /// The language of its code, as its kernel said last; see [`Session::language`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    /// When workers were lost, in a row; see [`crate::supervision`].
    pub losses: Vec<Timestamp>,
    /// How many commands have changed it.
    #[serde(default)]
    pub version: Version,
    /// The commands that wait for their turn, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lane: Vec<Waiting>,
    /// The asks that wait for an answer, in the order in which they were raised.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<PendingAsk>,
    /// The asks that were answered with a secret, as far as that may have to be known: an answer that is sent again is one to these.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub secret_asks: VecDeque<AskId>,
    /// What its last rebuilding left otherwise than before; none where that is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuilt: Option<Rebuilt>,
    /// What its transcript consists of.
    #[serde(default, skip_serializing_if = "Transcript::is_plain")]
    pub transcript: Transcript,
    /// The entries whose code its definitions begin with, while it was not reset: of the sessions it comes from, and since a merge its
    /// own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub begins_with: Vec<Segment>,
    /// The session it was forked off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Parent>,
    /// The last event that put entries of another session into its transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_at: Option<Seq>,
    /// When it was deleted. It is only there for those that begin with its entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
    /// When it was unloaded; none while it is loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unloaded_at: Option<Timestamp>,
    /// How many tokens its own messages took.
    #[serde(default, skip_serializing_if = "TokenUsage::is_zero")]
    pub usage: TokenUsage,
    /// What entries of its transcript are called; so many at most.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// What its code rests on besides itself; none where its worker does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surroundings: Option<Surroundings>,
    /// What its worker brought in before its own code, the last time one was warmed up; none where that is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup: Option<Box<Startup>>,
    /// What its project is made of and no build has taken in yet, with the event that told.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unbuilt: BTreeMap<String, Seq>,
    /// When the last build of its project that succeeded was requested: what was written before that is built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub built: Option<Timestamp>,
    /// How its agent goes on, as it said last; none where it has none, or none was there yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentState>,
    /// What its agent has still to hear, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queue: Vec<QueuedPrompt>,
    /// How many messages were added in it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub messages: u64,
    /// Whether a client's summary came while its agent worked, which was given the whole conversation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub summary_is_new: bool,
}

/// What a session's code rests on besides itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Surroundings {
    /// The runtime under the language.
    pub runtime: String,
    /// What its worker has, as it has it.
    #[serde(default, skip_serializing_if = "References::is_empty")]
    pub loaded: References,
    /// All that it ever rested on, as it is now, as far as that was looked at.
    #[serde(default, skip_serializing_if = "References::is_empty")]
    pub present: References,
}

impl Surroundings {
    /// What its worker runs code against.
    pub fn loaded(&self) -> Environment {
        Environment { runtime: self.runtime.clone(), references: self.loaded.clone() }
    }

    /// What a new worker would run it against.
    pub fn present(&self) -> Environment {
        Environment { runtime: self.runtime.clone(), references: self.present.clone() }
    }

    /// All that it ever rested on, once its worker has these: what a worker has anew is how it is now.
    pub(crate) fn present_with(&self, loaded: &References) -> References {
        let mut present = self.present.clone();
        for (name, reference) in loaded {
            if self.loaded.get(name) != Some(reference) || !present.contains_key(name) {
                present.insert(name.clone(), reference.clone());
            }
        }
        present
    }
}

/// The session that another was forked off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Parent {
    /// The session that was forked.
    pub session: SessionId,
    /// How many entries of its transcript the other began with.
    pub entries: u64,
}

/// A command that waits for its turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    /// The principal that sent the command.
    pub principal: Principal,
    /// The id of the command.
    pub command: CommandId,
    /// The event that accepted it, and has the whole of it.
    pub queued: Seq,
}

/// A session that was rebuilt, and is not quite what it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rebuilt {
    /// Whose part in it changed; the first [`DIVERGENCES_KEPT`] of them. The warm-up's event has all.
    pub diverged: Vec<Divergence>,
    /// Whether no eval has begun since.
    pub is_news: bool,
}

impl std::fmt::Display for Rebuilt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the session was rebuilt and is not quite what it was: ")?;
        for (index, divergence) in self.diverged.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{divergence}")?;
        }
        Ok(())
    }
}

/// How many divergences a session keeps of its last rebuilding.
pub const DIVERGENCES_KEPT: usize = 20;

/// How many of the asks that were answered with a secret a session knows at most.
const SECRET_ASKS_KEPT: usize = 64;

/// What a session is doing, with what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "state", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Activity {
    /// The session is idle, and has no worker.
    Uninitialized,
    /// A worker is starting for the session.
    WarmingUp {
        /// The reason for the warm-up.
        reason: WarmUpReason,
    },
    /// The session waits for code.
    Ready,
    /// The session runs a job.
    Evaluating {
        /// The job that is running.
        running: RunningJob,
    },
    /// A job waits for something from outside.
    Waiting {
        /// The job that waits.
        running: RunningJob,
        /// What the job waits for.
        reason: WaitReason,
    },
    /// The session is broken until it is reset.
    Faulted {
        /// The reason of the fault, for people.
        message: String,
    },
}

/// The job that runs, and whose command it answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunningJob {
    /// The id of the job.
    pub job: JobId,
    /// The command that asked for it.
    pub command: CommandId,
    /// The source that asked for the job.
    pub source: Source,
    /// What the command said.
    pub fingerprint: CommandFingerprint,
    /// The event that accepted it.
    pub requested: Seq,
    /// When the job was requested.
    pub requested_at: Timestamp,
    /// Whether someone asked for it to stop.
    pub cancel_requested: bool,
    /// The client's name for what it wants done once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<IdempotencyKey>,
    /// When its command must have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
    /// Whether its command has been answered already: it took longer than it may.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_answered: bool,
    /// Whether its code, and what comes of it, is stored nowhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withheld: bool,
    /// What kind of job it is.
    #[serde(default, skip_serializing_if = "JobKind::is_eval")]
    pub kind: JobKind,
}

impl RunningJob {
    /// One that an event has accepted, of which nothing else is known.
    fn begun(
        event: &Event,
        job: JobId,
        command: &CommandId,
        fingerprint: &CommandFingerprint,
        kind: JobKind,
    ) -> Self {
        Self {
            job,
            command: command.clone(),
            source: event.metadata.source.clone(),
            fingerprint: fingerprint.clone(),
            requested: event.seq,
            requested_at: event.at,
            cancel_requested: false,
            key: None,
            deadline: None,
            is_answered: false,
            withheld: false,
            kind,
        }
    }

    /// Whether it answers this command.
    pub fn answers(&self, principal: &Principal, command: &CommandId) -> bool {
        self.command == *command && self.source.principal() == *principal
    }
}

/// A worker that is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerInfo {
    /// The language tool and its version.
    pub kernel: String,
    /// The runtime under it.
    pub runtime: String,
    /// The process id of the worker, where it is a process of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Since when it is ready.
    pub ready_at: Timestamp,
}

/// How many characters of a session's first input are its title.
const TITLE_CHARACTERS: usize = 60;

/// How code begins: its first line that is not blank, cut where it is long.
pub(crate) fn title(code: &str) -> Option<String> {
    let line = code.lines().map(str::trim).find(|line| !line.is_empty())?;
    let mut title: String = line.chars().take(TITLE_CHARACTERS).collect();
    if title.len() < line.len() {
        title.push('…');
    }
    Some(title)
}

const fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_local(owner: &Principal) -> bool {
    *owner == Principal::local()
}

impl Session {
    /// Whether it is loaded, and has this alias where one is given.
    pub fn is_loaded_as(&self, alias: Option<&str>) -> bool {
        self.unloaded_at.is_none() && alias.is_none_or(|alias| self.alias.as_deref() == Some(alias))
    }

    /// The session that its first event begins; none where the event is not a creation.
    pub fn begin(event: &Event) -> Option<Self> {
        let EventBody::SessionCreated {
            kind,
            name,
            working_directory,
            project,
            passed_over,
            arguments,
            alias,
            capabilities,
        } = &event.body
        else {
            return None;
        };
        Some(Self {
            id: event.session,
            kind: kind.clone(),
            name: name.clone(),
            title: None,
            owner: event.metadata.source.principal(),
            working_directory: working_directory.clone(),
            project: project.clone(),
            passed_over: passed_over.clone(),
            arguments: arguments.clone(),
            alias: alias.clone(),
            capabilities: *capabilities,
            created_at: event.at,
            last_activity: event.at,
            life: Activity::Uninitialized,
            last_seq: event.seq,
            definitions_since: event.seq,
            evals: 0,
            failures: 0,
            worker: None,
            language: None,
            losses: Vec::new(),
            version: Version::ZERO,
            lane: Vec::new(),
            asks: Vec::new(),
            secret_asks: VecDeque::new(),
            rebuilt: None,
            transcript: Transcript::default(),
            begins_with: Vec::new(),
            forked_from: None,
            merged_at: None,
            deleted_at: None,
            unloaded_at: None,
            usage: TokenUsage::default(),
            labels: Labels::default(),
            surroundings: None,
            startup: None,
            unbuilt: BTreeMap::new(),
            built: None,
            agent: None,
            queue: Vec::new(),
            messages: 0,
            summary_is_new: false,
        })
    }

    /// The session that a whole sequence of events tells; none where it does not begin with a creation.
    pub fn fold<'a>(events: impl IntoIterator<Item = &'a Event>) -> Option<Self> {
        let mut events = events.into_iter();
        let mut session = Self::begin(events.next()?)?;
        events.for_each(|event| session.evolve(event));
        Some(session)
    }

    /// What it can do.
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities.unwrap_or_else(|| Capabilities::of_kind(&self.kind))
    }

    /// Whether it has a conversation: such a session is given prompts instead of code.
    pub fn is_agent(&self) -> bool {
        self.capabilities().has(Capability::Conversation)
    }

    /// Returns the state of the session.
    pub fn state(&self) -> SessionState {
        match &self.life {
            Activity::Uninitialized => SessionState::Uninitialized,
            Activity::WarmingUp { .. } => SessionState::WarmingUp,
            Activity::Ready => SessionState::Ready,
            Activity::Evaluating { .. } => SessionState::Evaluating,
            Activity::Waiting { reason, .. } => SessionState::Waiting(*reason),
            Activity::Faulted { .. } => SessionState::Faulted,
        }
    }

    /// The language of its code, where its kernel has said it, or its kind tells.
    pub fn language(&self) -> Option<Language> {
        self.language.clone().or_else(|| Language::of(&self.kind))
    }

    /// What clients are told that they may do now.
    pub fn offered(&self) -> Vec<Action> {
        offered(self.state(), self.capabilities())
    }

    /// Whether a request for `action` that comes to it like this is carried out, now or later.
    pub fn reaches(&self, action: Action, reach: Reach) -> bool {
        let has_object = match action {
            Action::Answer => !self.asks.is_empty(),
            _ => true,
        };
        // An agent is started by prompting it, and what is put into its conversation does not wait.
        let reach = if self.is_agent() { Reach::AtOnce } else { reach };
        has_object && action.is_of(self.capabilities()) && reaches(self.state(), action, reach)
    }

    /// Why an action is refused in its present state.
    pub fn refusal(&self, action: Action) -> Error {
        let fault = self.fault().map(str::to_owned);
        Error::NotOffered { action, state: self.state(), kind: self.kind.clone(), fault }
    }

    /// Why it is Faulted, for people.
    pub fn fault(&self) -> Option<&str> {
        match &self.life {
            Activity::Faulted { message } => Some(message),
            Activity::Uninitialized
            | Activity::WarmingUp { .. }
            | Activity::Ready
            | Activity::Evaluating { .. }
            | Activity::Waiting { .. } => None,
        }
    }

    /// The job that runs.
    pub fn running(&self) -> Option<&RunningJob> {
        match &self.life {
            Activity::Evaluating { running } | Activity::Waiting { running, .. } => Some(running),
            Activity::Uninitialized
            | Activity::WarmingUp { .. }
            | Activity::Ready
            | Activity::Faulted { .. } => None,
        }
    }

    /// The entries that its definitions begin with; none once it was reset.
    pub fn inherited(&self) -> Vec<Segment> {
        if self.was_reset() { Vec::new() } else { self.begins_with.clone() }
    }

    /// Whether its agent is shown an entry of its transcript: a reset lets it forget what was said before. What has been merged since it
    /// is shown.
    pub fn shows(&self, placed: &TranscriptEntry) -> bool {
        !self.was_reset() || placed.session == self.id && placed.first > self.definitions_since
    }

    /// Whether what its definitions began with was dropped.
    pub fn was_reset(&self) -> bool {
        self.definitions_since > self.merged_at.unwrap_or(Seq::ZERO.next())
    }

    /// Takes in one more event. Total: an event that does not fit the state leaves it as it is.
    pub fn evolve(&mut self, event: &Event) {
        self.last_seq = event.seq;
        self.last_activity = self.last_activity.max(event.at);
        self.leave_lane(event);
        match &event.body {
            EventBody::SessionCreated { .. }
            | EventBody::SessionImported { .. }
            | EventBody::OutputProduced { .. }
            | EventBody::OutputDisplayed { .. }
            | EventBody::OutputCleared { .. }
            | EventBody::CommPublished { .. }
            | EventBody::OutputCut { .. }
            | EventBody::CommandDequeued { .. } => {}
            EventBody::SessionForked(point) => {
                self.transcript = Transcript::beginning_with(point.segments.clone());
                self.begins_with.clone_from(&point.replay);
                self.forked_from = Some(Parent { session: point.from, entries: point.entries });
                self.labels.clone_from(&point.labels);
            }
            EventBody::EntriesMerged(point) => {
                self.transcript.clone_from(&point.transcript);
                self.begins_with.clone_from(&point.replay);
                (self.definitions_since, self.merged_at) = (event.seq, Some(event.seq));
                self.version = self.version.next();
            }
            EventBody::CommandQueued(queued) => self.lane.push(Waiting {
                principal: event.metadata.source.principal(),
                command: queued.command.clone(),
                queued: event.seq,
            }),
            EventBody::AskRaised(ask) => self.ask_raised(ask, event),
            EventBody::AskEnded { ask, ending } => self.ask_ended(*ask, ending),
            EventBody::SessionRenamed { name } => {
                self.name.clone_from(name);
                self.version = self.version.next();
            }
            EventBody::WarmUpStarted { reason } => self.start_warm_up(*reason),
            EventBody::WarmUpCompleted { kernel, runtime, language, pid, diverged, startup, .. } => {
                self.language.clone_from(language);
                let project = startup.as_ref().and_then(|startup| startup.project.as_ref());
                let unbuilt = project.iter().flat_map(|project| &project.unbuilt);
                self.unbuilt.extend(unbuilt.map(|file| (file.clone(), event.seq)));
                self.startup.clone_from(startup);
                self.surroundings = event.metadata.environment.as_ref().map(|_| Surroundings {
                    runtime: runtime.clone(),
                    ..self.surroundings.take().unwrap_or_default()
                });
                if self.step(Transition::WarmUpCompleted, Activity::Ready) {
                    let diverged: Vec<_> = diverged.iter().take(DIVERGENCES_KEPT).cloned().collect();
                    self.rebuilt = (!diverged.is_empty()).then_some(Rebuilt { diverged, is_news: true });
                    self.worker = Some(WorkerInfo {
                        kernel: kernel.clone(),
                        runtime: runtime.clone(),
                        pid: *pid,
                        ready_at: event.at,
                    });
                }
            }
            EventBody::SessionFaulted { message } => {
                let change = match self.state() {
                    SessionState::WarmingUp => Transition::WarmUpFailed,
                    SessionState::Uninitialized
                    | SessionState::Ready
                    | SessionState::Evaluating
                    | SessionState::Waiting(_)
                    | SessionState::Faulted => Transition::GiveUp,
                };
                if self.step(change, Activity::Faulted { message: message.clone() }) {
                    self.worker = None;
                }
            }
            EventBody::SessionReset | EventBody::SessionHardReset => {
                self.definitions_since = event.seq;
                self.losses.clear();
                self.version = self.version.next();
            }
            EventBody::SessionStopped => {
                self.step(Transition::Stop, Activity::Uninitialized);
                self.worker = None;
                self.summary_is_new = false;
                self.losses.clear();
            }
            EventBody::SessionDeleted => {
                self.deleted_at = Some(event.at);
                self.title = None;
            }
            EventBody::SessionUnloaded { .. } => (self.alias, self.unloaded_at) = (None, Some(event.at)),
            EventBody::SessionLoaded { alias } => {
                self.alias.clone_from(alias);
                self.unloaded_at = None;
            }
            EventBody::WorkerExited { attempt: 0, .. } => self.worker = None,
            EventBody::WorkerExited { attempt, .. } => {
                self.worker = None;
                self.losses.push(event.at);
                let keep = usize::try_from(*attempt).unwrap_or(usize::MAX);
                let surplus = self.losses.len().saturating_sub(keep);
                self.losses.drain(..surplus);
            }
            EventBody::EvalRequested { job, command, fingerprint, key, deadline, withheld, code, .. } => {
                let running = RunningJob {
                    key: key.clone(),
                    deadline: *deadline,
                    withheld: *withheld,
                    ..RunningJob::begun(event, *job, command, fingerprint, JobKind::Eval)
                };
                self.start_job(running, Some(code));
            }
            EventBody::JobRequested { job, command, fingerprint, key, deadline, work } => {
                let running = RunningJob {
                    key: key.clone(),
                    deadline: *deadline,
                    ..RunningJob::begun(event, *job, command, fingerprint, work.kind())
                };
                let said = match work {
                    JobSpec::Turn { prompt } => Some(prompt.text.as_str()),
                    JobSpec::Compaction { .. }
                    | JobSpec::Shell { .. }
                    | JobSpec::Setting(_)
                    | JobSpec::Build
                    | JobSpec::Rebuild
                    | JobSpec::Comm(_) => None,
                };
                self.start_job(running, said);
            }
            EventBody::JobEnded { job, ending, .. } => self.work_ended(*job, ending),
            EventBody::MessageStreamed(_) | EventBody::AgentNoted(_) => {}
            EventBody::PromptQueued(queued) => {
                self.queue.push(queued.clone());
                self.version = self.version.next();
            }
            EventBody::QueueChanged { queue } => self.queue.clone_from(queue),
            EventBody::AgentChanged(state) => self.agent = Some((**state).clone()),
            EventBody::CancelRequested { job } => {
                if let Some(running) = self.running_mut(*job) {
                    running.cancel_requested = true;
                    self.version = self.version.next();
                }
            }
            EventBody::EvalTimedOut { job, .. } => {
                if let Some(running) = self.running_mut(*job) {
                    (running.cancel_requested, running.is_answered) = (true, true);
                }
            }
            EventBody::EvalCompleted { job, .. } => {
                if self.end_job(*job, Transition::EvalCompleted) {
                    self.version = self.version.next();
                }
            }
            EventBody::EvalFailed { job, changes_state, .. } => {
                let is_counted = self.runs_what_counts();
                if self.end_job(*job, Transition::EvalFailed) {
                    self.failed(is_counted, *changes_state);
                }
            }
            EventBody::EvalCancelled { job, kept, .. } => {
                let is_counted = self.runs_what_counts();
                if self.end_job(*job, Transition::EvalCancelled) {
                    self.failed(is_counted, kept.is_some());
                }
            }
            EventBody::EnvironmentChanged { references } => {
                let surroundings = self.surroundings.get_or_insert_default();
                surroundings.present = surroundings.present_with(references);
                surroundings.loaded.clone_from(references);
            }
            EventBody::AssembliesChanged { new, changed, .. } => {
                self.surroundings.get_or_insert_default().present.clone_from(new);
                // Whoever built it has built its sources.
                if changed.iter().filter_map(|name| new.get(name)).any(|now| self.is_of_project(now)) {
                    self.unbuilt.clear();
                }
            }
            EventBody::SourcesChanged { changed, in_build } => {
                let build = self.build_under_way().filter(|_| *in_build);
                let told = build.map_or(event.seq, |build| build.requested);
                self.unbuilt.extend(changed.iter().map(|file| (file.clone(), told)));
            }
            EventBody::MessageAdded(message) => {
                self.usage = self.usage.plus(message.usage.unwrap_or_default());
                self.messages += 1;
            }
            EventBody::TranscriptCompacted(_) => {
                // What its agent does in a job is part of the job.
                if event.metadata.source != Source::Worker {
                    self.version = self.version.next();
                    self.summary_is_new = self.is_agent() && self.running().is_some();
                }
            }
            EventBody::EntryLabeled { entry, label } => {
                self.labels.set(*entry, event.at, label.clone());
                self.version = self.version.next();
            }
            EventBody::EvalInterrupted { job } => {
                let is_counted = self.runs_what_counts();
                if self.end_job(*job, Transition::EvalCancelled) {
                    self.failed(is_counted, false);
                }
            }
        }
    }

    /// A job begins; a turn, or an eval, with these words.
    fn start_job(&mut self, running: RunningJob, said: Option<&str>) {
        if !self.step(Transition::StartEval, Activity::Evaluating { running }) {
            return;
        }
        let Some(said) = said else { return };
        if self.evals == 0 {
            self.title = title(said);
        }
        self.evals += 1;
        if let Some(rebuilt) = &mut self.rebuilt {
            rebuilt.is_news = false;
        }
    }

    /// A job ended that is no eval. What was done has changed the session, whatever it was.
    fn work_ended(&mut self, job: JobId, ending: &WorkEnding) {
        let change = match ending {
            WorkEnding::Done { .. } => Transition::EvalCompleted,
            WorkEnding::Failed { .. } => Transition::EvalFailed,
            WorkEnding::Cancelled { .. } | WorkEnding::Interrupted => Transition::EvalCancelled,
        };
        let is_counted = self.runs_what_counts();
        let build = self.build_under_way().map(|build| (build.requested, build.requested_at));
        if !self.end_job(job, change) {
            return;
        }
        match (ending, build) {
            (WorkEnding::Done { .. }, Some((since, at))) => {
                self.unbuilt.retain(|_, told| *told > since);
                self.built = Some(at);
            }
            // What this build had is still not built, and the next time it is written may mend it: that is told.
            (_, Some((since, _))) => {
                for told in self.unbuilt.values_mut().filter(|told| **told <= since) {
                    *told = Seq::ZERO;
                }
            }
            (_, None) => {}
        }
        match ending {
            WorkEnding::Done { .. } => self.version = self.version.next(),
            WorkEnding::Failed { .. } | WorkEnding::Cancelled { .. } | WorkEnding::Interrupted => {
                self.failed(is_counted, false);
            }
        }
    }

    /// What its project is made of and no build has taken in yet, in a sentence; none where there is nothing.
    pub fn unbuilt_words(&self) -> Option<String> {
        const NAMED: usize = 3;
        let name = |path: &String| path.rsplit('/').next().unwrap_or(path).to_owned();
        let mut names: Vec<String> = self.unbuilt.keys().take(NAMED).map(name).collect();
        let more = self.unbuilt.len() - names.len();
        if more > 0 {
            names.push(format!("{more} more"));
        }
        let last = names.pop()?;
        let all = if names.is_empty() { last } else { format!("{} and {last}", names.join(", ")) };
        Some(format!("changed and not built yet: {all}; methods that are loaded are not exchanged in place"))
    }

    /// The job that builds its project, where one does.
    pub(crate) fn build_under_way(&self) -> Option<&RunningJob> {
        let running = self.running()?;
        match running.kind {
            JobKind::Build | JobKind::Rebuild => Some(running),
            JobKind::Eval
            | JobKind::Turn
            | JobKind::Compaction
            | JobKind::Shell
            | JobKind::Setting
            | JobKind::Comm => None,
        }
    }

    /// Whether it is known of a file of its project that the next build is to take it in. One that is under way may have missed it.
    pub(crate) fn is_known_unbuilt(&self, file: &str) -> bool {
        let since = self.build_under_way().map_or(Seq::ZERO, |build| build.requested);
        self.unbuilt.get(file).is_some_and(|told| *told > since)
    }

    fn is_of_project(&self, reference: &Reference) -> bool {
        let project = self.startup.as_ref().and_then(|startup| startup.project.as_ref());
        let mut assemblies = project.iter().flat_map(|project| &project.assemblies);
        assemblies.any(|assembly| reference.path.as_ref() == Some(&assembly.path))
    }

    /// Whether what runs is an eval or a turn: those are counted, and those of them that fail.
    fn runs_what_counts(&self) -> bool {
        self.running().is_some_and(|running| match running.kind {
            JobKind::Eval | JobKind::Turn => true,
            JobKind::Compaction
            | JobKind::Shell
            | JobKind::Setting
            | JobKind::Build
            | JobKind::Rebuild
            | JobKind::Comm => false,
        })
    }

    /// A job did not run to its end; it may have changed the session all the same.
    fn failed(&mut self, is_counted: bool, changes_state: bool) {
        self.failures += u64::from(is_counted);
        if changes_state {
            self.version = self.version.next();
        }
    }

    /// The ask with this id, while it waits for an answer.
    pub fn ask(&self, ask: AskId) -> Option<&PendingAsk> {
        self.asks.iter().find(|pending| pending.ask.ask == ask)
    }

    /// Whether an answer to this ask is a secret, also where it has been answered lately.
    pub fn is_secret(&self, ask: AskId) -> bool {
        self.secret_asks.contains(&ask)
            || self.ask(ask).is_some_and(|pending| pending.ask.question.is_secret())
    }

    /// The ask that this command raised, while it waits for an answer.
    pub fn ask_of(&self, principal: &Principal, command: &CommandId) -> Option<&PendingAsk> {
        self.asks.iter().find(|pending| pending.answers(principal, command))
    }

    fn ask_raised(&mut self, ask: &Ask, event: &Event) {
        let pending = PendingAsk {
            ask: ask.clone(),
            raised: event.seq,
            raised_at: event.at,
            source: event.metadata.source.clone(),
        };
        match &ask.raiser {
            Raiser::Command { .. } => self.asks.push(pending),
            Raiser::Job { job } => {
                // One of a job that does not run is over before it began.
                if let Some(running) = self.running().filter(|running| running.job == *job).cloned() {
                    self.asks.push(pending);
                    self.step(
                        Transition::StartWait(WaitReason::Ask),
                        Activity::Waiting { running, reason: WaitReason::Ask },
                    );
                }
            }
        }
    }

    fn ask_ended(&mut self, ask: AskId, ending: &AskEnding) {
        if *ending == AskEnding::Withheld {
            self.secret_asks.push_back(ask);
            if self.secret_asks.len() > SECRET_ASKS_KEPT {
                self.secret_asks.pop_front();
            }
        }
        self.asks.retain(|pending| pending.ask.ask != ask);
        let Some(running) = self.running().cloned() else { return };
        if !self.asks.iter().any(|pending| pending.is_of_job(running.job)) {
            self.step(Transition::EndWait, Activity::Evaluating { running });
        }
    }

    /// Whether a command waits for its turn.
    pub fn waits(&self, principal: &Principal, command: &CommandId) -> bool {
        self.lane.iter().any(|waiting| waiting.command == *command && waiting.principal == *principal)
    }

    /// A command that waited leaves the lane with the first event of its own.
    fn leave_lane(&mut self, event: &Event) {
        if self.lane.is_empty() {
            return;
        }
        let (principal, command) = if let EventBody::CommandDequeued { principal, command, .. } = &event.body
        {
            (principal, command)
        } else if let Metadata {
            source: Source::Client { principal, .. }, correlation: Some(command), ..
        } = &event.metadata
        {
            (principal, command)
        } else {
            return;
        };
        self.lane.retain(|waiting| waiting.command != *command || waiting.principal != *principal);
    }

    fn running_mut(&mut self, job: JobId) -> Option<&mut RunningJob> {
        match &mut self.life {
            Activity::Evaluating { running } | Activity::Waiting { running, .. } if running.job == job => {
                Some(running)
            }
            Activity::Evaluating { .. }
            | Activity::Waiting { .. }
            | Activity::Uninitialized
            | Activity::WarmingUp { .. }
            | Activity::Ready
            | Activity::Faulted { .. } => None,
        }
    }

    fn start_warm_up(&mut self, reason: WarmUpReason) {
        let change = match reason {
            WarmUpReason::Started => Transition::StartWarmUp,
            WarmUpReason::Reset => Transition::Reset,
            WarmUpReason::HardReset | WarmUpReason::Merged => Transition::HardReset,
            WarmUpReason::Refreshed
            | WarmUpReason::Cancelled
            | WarmUpReason::WorkerLost
            | WarmUpReason::DaemonLost => Transition::WorkerLost,
        };
        if self.step(change, Activity::WarmingUp { reason }) {
            self.worker = None;
            self.summary_is_new = false;
            if reason == WarmUpReason::Refreshed {
                self.version = self.version.next();
            }
        }
    }

    fn end_job(&mut self, job: JobId, change: Transition) -> bool {
        self.running().is_some_and(|running| running.job == job) && self.step(change, Activity::Ready)
    }

    /// Goes where the state machine allows it; says whether it did.
    fn step(&mut self, change: Transition, next: Activity) -> bool {
        let allowed = transition(self.state(), change).is_ok();
        if allowed {
            self.life = next;
            let running = self.running().map(|running| running.job);
            self.asks.retain(|pending| match pending.ask.raiser {
                Raiser::Job { job } => running == Some(job),
                Raiser::Command { .. } => true,
            });
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_line_that_says_something_and_short() {
        assert_eq!(title("\n  let rate = 2\nrate"), Some("let rate = 2".to_owned()));
        assert_eq!(title(" \n"), None);
        assert_eq!(title(&"é".repeat(60)), Some("é".repeat(60)));
        assert_eq!(title(&"é".repeat(61)), Some("é".repeat(60) + "…"));
    }
}
