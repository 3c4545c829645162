//! A session as clients see it.

use mainstay_model::session::{Parent, Rebuilt};
use mainstay_model::{
    Action, Capabilities, Capability, CommandId, JobId, Language, Principal, Seq, Session, SessionId,
    SessionKind, Source, Timestamp, TokenUsage, ValidityCounts, Version,
};
use mainstay_runner::{ResourceUsage, WarmUpProgress};
use serde::{Deserialize, Serialize};

use super::agent::AgentView;
use super::application::ApplicationView;
use super::startup::StartupView;

/// A session as clients see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionView {
    /// The id of the session.
    pub session: SessionId,
    /// The end of its id, enough to name it.
    pub short_id: String,
    /// What people call it.
    pub name: String,
    /// How its first input begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What does its work.
    pub kind: SessionKind,
    /// What it can do, where that is not what is usual of its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// The language of its code, where its kernel has said it, or its kind tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    /// The state of the session, by name.
    pub state: String,
    /// Why it is Faulted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// How far it is, where it is given its definitions back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUpProgress>,
    /// What its last rebuilding left otherwise than before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuilt: Option<Rebuilt>,
    /// How many of its evals do not surely hold any more; none where its code rests on nothing that could change, or that was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validity: Option<ValidityCounts>,
    /// How many commands have changed it.
    #[serde(default)]
    pub version: Version,
    /// The commands that wait for their turn, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<CommandId>,
    /// The principal that created the session.
    #[serde(default = "Principal::local")]
    pub owner: Principal,
    /// How many asks wait for an answer.
    #[serde(default, skip_serializing_if = "is_none")]
    pub asks: usize,
    /// What may be done now.
    pub offered: Vec<Action>,
    /// The folder its code runs in.
    pub working_directory: String,
    /// The project it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// What its worker brought in before its own code, in few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup: Option<StartupView>,
    /// The session it was forked off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Parent>,
    /// When it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
    /// When it came to be.
    pub created_at: Timestamp,
    /// When something last happened in it.
    pub last_activity: Timestamp,
    /// The sequence number of the session's newest event.
    pub last_seq: Seq,
    /// How many evals were accepted; in an agent's session, how many turns.
    pub evals: u64,
    /// How many of them did not run to their end; in an agent's session, how many of all its jobs.
    pub failures: u64,
    /// How many tokens its messages took.
    #[serde(default, skip_serializing_if = "TokenUsage::is_zero")]
    pub usage: TokenUsage,
    /// The job that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<JobId>,
    /// Who asked for the job that runs, where that connection has left since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orphaned: Option<Orphaned>,
    /// That its creator's environment was too large to be taken, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped_environment: Option<String>,
    /// How its agent goes on, where something is known of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentView>,
    /// The worker process, while there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerView>,
    /// The application of its project, where one is to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<ApplicationView>,
}

/// A job that runs though the connection which asked for it has left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Orphaned {
    /// What the client called itself.
    pub by: String,
    /// When the job was requested.
    pub requested_at: Timestamp,
}

impl Orphaned {
    /// The job that runs in a session, where a client asked for it.
    pub fn of(session: &Session) -> Option<Self> {
        let running = session.running()?;
        match &running.source {
            Source::Client { name, .. } => {
                Some(Self { by: name.clone(), requested_at: running.requested_at })
            }
            Source::Worker | Source::System => None,
        }
    }
}

/// A session's worker as clients see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerView {
    /// The language tool and its version.
    pub kernel: String,
    /// The runtime under it.
    pub runtime: String,
    /// The process id of the worker; 0 where it is no process of this machine.
    pub pid: u32,
    /// The memory and time that the worker uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<ResourceUsage>,
}

impl SessionView {
    /// What it can do.
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities.unwrap_or_else(|| Capabilities::of_kind(&self.kind))
    }

    /// Whether it has a conversation.
    pub fn is_agent(&self) -> bool {
        self.capabilities().has(Capability::Conversation)
    }

    /// The view of a session as committed.
    pub fn new(session: &Session, usage: Option<ResourceUsage>) -> Self {
        Self {
            session: session.id,
            short_id: session.id.short(),
            name: session.name.clone(),
            title: session.title.clone(),
            kind: session.kind.clone(),
            capabilities: session.capabilities,
            language: session.language(),
            state: session.state().name().to_owned(),
            fault: session.fault().map(str::to_owned),
            warm_up: None,
            rebuilt: session.rebuilt.clone(),
            validity: None,
            version: session.version,
            waiting: session.lane.iter().map(|waiting| waiting.command.clone()).collect(),
            owner: session.owner.clone(),
            asks: session.asks.len(),
            offered: session.offered(),
            working_directory: session.working_directory.clone(),
            project: session.project.clone(),
            startup: StartupView::of(session),
            forked_from: session.forked_from.clone(),
            deleted_at: session.deleted_at,
            created_at: session.created_at,
            last_activity: session.last_activity,
            last_seq: session.last_seq,
            evals: session.evals,
            failures: session.failures,
            usage: session.usage,
            running: session.running().map(|running| running.job),
            orphaned: None,
            dropped_environment: None,
            agent: Some(AgentView::new(session)).filter(|agent| *agent != AgentView::default()),
            worker: session.worker.as_ref().map(|worker| WorkerView {
                kernel: worker.kernel.clone(),
                runtime: worker.runtime.clone(),
                pid: worker.pid.unwrap_or_default(),
                usage,
            }),
            application: ApplicationView::of(session),
        }
    }
}

fn is_none(count: &usize) -> bool {
    *count == 0
}
