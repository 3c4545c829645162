//! Sessions: opened, resumed, asked after, closed. Source: draft-arcp-1.1, 6; draft-arcp-02, 6.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::agent::InventoryEntry;
use super::job::{JobStatus, Lease};

macro_rules! features {
    ($($(#[doc = $doc:literal])* $variant:ident $text:literal;)*) => {
        /// Something that both sides must know before either uses it. Source: draft-arcp-1.1, 6.2.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Feature {
            $($(#[doc = $doc])* $variant,)*
        }

        impl Feature {
            /// Every feature there is, in the order of the draft.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The feature as it is written.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }
    };
}

features! {
    /// Both sides are heard of from time to time.
    Heartbeat "heartbeat";
    /// The client says how far it has come.
    Ack "ack";
    /// Jobs can be listed.
    ListJobs "list_jobs";
    /// Jobs of other sessions are observed.
    Subscribe "subscribe";
    /// A lease can expire.
    LeaseExpiresAt "lease_expires_at";
    /// Leases can have budgets.
    CostBudget "cost.budget";
    /// Leases can name models.
    ModelUse "model.use";
    /// Jobs can be given credentials.
    ProvisionedCredentials "provisioned_credentials";
    /// Jobs say how much of the work is done.
    Progress "progress";
    /// Large results come in parts.
    ResultChunk "result_chunk";
    /// Agents can have versions.
    AgentVersions "agent_versions";
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The features that both sides have, in the order of the first.
pub fn intersection(own: &[Feature], others: &[String]) -> Vec<Feature> {
    own.iter().copied().filter(|feature| others.iter().any(|other| other == feature.as_str())).collect()
}

/// A program, by name and version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Implementation {
    /// The name of the program.
    #[serde(default)]
    pub name: String,
    /// The version of the program.
    #[serde(default)]
    pub version: String,
}

/// How a client shows who it is. Source: draft-arcp-1.1, 6.1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Auth {
    /// The scheme, which is `bearer`.
    #[serde(default = "bearer")]
    pub scheme: String,
    /// The token of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

fn bearer() -> String {
    "bearer".to_owned()
}

/// What one side can do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Capabilities {
    /// The encodings that it reads.
    #[serde(default)]
    pub encodings: Vec<String>,
    /// The features that it has, also unknown ones.
    #[serde(default)]
    pub features: Vec<String>,
    /// The agents that a runtime has: names, or entries where versions are a feature of both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Value>,
}

impl Capabilities {
    /// Those of a runtime that has these features and agents.
    pub fn of_runtime(features: &[Feature], agents: Vec<InventoryEntry>, with_versions: bool) -> Self {
        let agents = match with_versions {
            true => serde_json::to_value(agents),
            false => serde_json::to_value(agents.into_iter().map(|agent| agent.name).collect::<Vec<_>>()),
        };
        Self {
            encodings: vec!["json".to_owned()],
            features: features.iter().map(ToString::to_string).collect(),
            agents: agents.ok(),
        }
    }

    /// Whether it lists agents, if only none.
    pub const fn lists_agents(&self) -> bool {
        self.agents.is_some()
    }
}

/// A client opens a session, or resumes one in the form of draft-arcp-02.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Hello {
    /// What the client is.
    #[serde(default)]
    pub client: Implementation,
    /// How the client shows who it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// What the client can do.
    #[serde(default)]
    pub capabilities: Capabilities,
    /// The session to be resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<Resume>,
}

/// A client resumes a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Resume {
    /// The session to be resumed, where the envelope does not name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The token that the client was given last.
    pub resume_token: String,
    /// The number of the last message that the client has.
    #[serde(default)]
    pub last_event_seq: u64,
    /// What the client is, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Implementation>,
    /// How the client shows who it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// What the client can do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
}

impl Hello {
    /// What a client says that resumes in the form of draft-arcp-1.1.
    pub fn of_resume(resume: &Resume) -> Self {
        Self {
            client: resume.client.clone().unwrap_or_default(),
            auth: resume.auth.clone(),
            capabilities: resume.capabilities.clone().unwrap_or_default(),
            resume: Some(resume.clone()),
        }
    }
}

/// A session was opened or resumed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Welcome {
    /// What the runtime is.
    pub runtime: Implementation,
    /// The name of the session. The draft has it in the envelope alone; clients read it here.
    #[serde(default)]
    pub session_id: String,
    /// The token with which the session can be resumed, once.
    #[serde(default)]
    pub resume_token: String,
    /// How long it can be resumed after its connection was lost, in seconds.
    #[serde(default)]
    pub resume_window_sec: u64,
    /// How often each side is to be heard of, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_interval_sec: Option<u64>,
    /// What the runtime can do.
    pub capabilities: Capabilities,
    /// When the session was accepted. The draft does not have it; clients read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_at: Option<Timestamp>,
}

/// One side wants to hear of the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Ping {
    /// What the answer repeats.
    pub nonce: String,
    /// When it was sent off.
    pub sent_at: Timestamp,
}

/// One side is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Pong {
    /// The nonce that is answered.
    pub ping_nonce: String,
    /// When the ping came.
    pub received_at: Timestamp,
}

/// A client says how far it has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Ack {
    /// The number of the last message that it has worked on.
    pub last_processed_seq: u64,
}

/// A client wants jobs listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ListJobs {
    /// Which jobs it wants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<JobFilter>,
    /// How many jobs it wants at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// The cursor of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Which jobs are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JobFilter {
    /// Jobs of one of these statuses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Vec<JobStatus>>,
    /// Jobs of this agent, with or without its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Jobs that were submitted after this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_after: Option<Timestamp>,
}

impl ListJobs {
    /// Whether a job is wanted.
    pub fn admits(&self, job: &JobEntry) -> bool {
        let Some(JobFilter { status, agent, created_after }) = &self.filter else { return true };
        let name = job.agent.split('@').next();
        status.as_ref().is_none_or(|wanted| wanted.contains(&job.status))
            && agent.as_ref().is_none_or(|wanted| job.agent == *wanted || name == Some(wanted))
            && created_after.is_none_or(|after| job.created_at > after)
    }
}

/// A job in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JobEntry {
    /// The name of the job.
    pub job_id: String,
    /// The agent that has the job, with its version.
    pub agent: String,
    /// How far the job is.
    pub status: JobStatus,
    /// What the job may do.
    #[serde(default)]
    pub lease: Lease,
    /// The job that asked for this one.
    pub parent_job_id: Option<String>,
    /// When the job was submitted.
    pub created_at: Timestamp,
    /// The same, under the name that clients read.
    pub submitted_at: Timestamp,
    /// The trace of which the job is part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// The number of the last message about the job in this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_event_seq: Option<u64>,
}

/// A page of a list of jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Jobs {
    /// The message that asked for it.
    pub request_id: String,
    /// The jobs, the oldest first.
    pub jobs: Vec<JobEntry>,
    /// The cursor of the next page, where there is one.
    pub next_cursor: Option<String>,
}

/// A client closes its session. What was `session.bye` in draft-arcp-02 is read as this.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Close {
    /// Why the session is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A session was closed in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Closed {}
