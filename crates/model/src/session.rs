//! The session as its events tell it: the projection that commands are decided against.

mod access;
mod application;
mod asks;
mod build;
mod delegations;
mod evolve;
mod jobs;
mod running_job;
mod surroundings;
mod worker;

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::affordance::{Action, Reach, offered, reaches};
use crate::agent::{AgentState, QueuedPrompt};
use crate::application::SessionApplication;
use crate::ask::PendingAsk;
use crate::capability::{Capabilities, Capability};
use crate::entry::TranscriptEntry;
use crate::error::Error;
use crate::event::{Event, EventBody, WarmUpReason};
use crate::id::{AskId, CommandId, Principal, Seq, SessionId, SessionKind, Version};
use crate::label::Labels;
use crate::language::Language;
use crate::message::TokenUsage;
use crate::replay::Divergence;
use crate::startup::Startup;
use crate::state::{SessionState, WaitReason};
use crate::swap::SwapObstacle;
use crate::transcript::{Segment, Transcript};

pub use self::delegations::{Delegation, OPEN_DELEGATIONS};
pub(crate) use self::jobs::title;
pub use self::running_job::RunningJob;
pub use self::surroundings::Surroundings;

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
    /// Why the worker does not run what was saved of these, the first reason of each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub obstacles: BTreeMap<String, SwapObstacle>,
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
    /// The tasks that its jobs gave to others and that have not ended, as far as it knows. What is to stop is here until it has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delegations: Vec<Delegation>,
    /// Whether a client's summary came while its agent worked, which was given the whole conversation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub summary_is_new: bool,
    /// The application of its project, where one is to run: a new worker starts it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<Box<SessionApplication>>,
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
            obstacles: BTreeMap::new(),
            built: None,
            agent: None,
            queue: Vec::new(),
            messages: 0,
            delegations: Vec::new(),
            summary_is_new: false,
            application: None,
        })
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

    /// Whether a command waits for its turn.
    pub fn waits(&self, principal: &Principal, command: &CommandId) -> bool {
        self.lane.iter().any(|waiting| waiting.command == *command && waiting.principal == *principal)
    }
}
