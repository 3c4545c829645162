//! Jobs: submitted, accepted, cancelled, observed, ended. Source: draft-arcp-1.1, 7; draft-arcp-02, 7.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::agent::AgentRef;

/// What a job may do: patterns by capability. Source: draft-arcp-1.1, 9.2.
pub type Lease = BTreeMap<String, Vec<String>>;

/// What bounds a lease beside its patterns. Source: draft-arcp-1.1, 9.5.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LeaseConstraints {
    /// When the lease expires, in UTC, ending in `Z`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// A client submits a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Submit {
    /// The agent that is given the job.
    pub agent: AgentRef,
    /// What the agent is given.
    #[serde(default)]
    pub input: Value,
    /// What the job wants to be allowed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lease_request: Lease,
    /// What bounds what it may do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_constraints: Option<LeaseConstraints>,
    /// What is the same where the job is submitted again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// How long the job may take, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runtime_sec: Option<u32>,
}

/// A job was accepted by its session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Accepted {
    /// The name of the job.
    pub job_id: String,
    /// The agent that has the job, with its version.
    #[serde(default)]
    pub agent: String,
    /// What the job may do.
    #[serde(default)]
    pub lease: Lease,
    /// What bounds what it may do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_constraints: Option<LeaseConstraints>,
    /// What is left of each budget. The draft has numbers, clients read texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BTreeMap<String, Value>>,
    /// Credentials for what the job pays for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Vec<Value>>,
    /// When the job was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_at: Option<Timestamp>,
    /// The trace of which the job is part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// The job that asked for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_job_id: Option<String>,
    /// The request of that job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegate_id: Option<String>,
    /// The message that submitted the job. The draft does not have it; clients match answers by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// A client wants a job to stop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Cancel {
    /// Why the job is to stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The job, where the envelope does not name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
}

/// A job was told to stop. How it ends is told by its terminal message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Cancelled {
    /// Why the job is to stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How far a job is. Source: draft-arcp-02, 7.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobStatus {
    /// The job waits for its turn.
    Pending,
    /// The job runs now.
    Running,
    /// The job did what it was to do.
    Success,
    /// The job did not succeed.
    Error,
    /// The job was told to stop.
    Cancelled,
    /// The job took longer than it may.
    TimedOut,
}

impl JobStatus {
    /// Whether nothing follows it.
    pub const fn is_terminal(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinalStatus {
    /// The job did what it was to do.
    Success,
    /// The job did not succeed.
    Error,
    /// The job was told to stop.
    Cancelled,
    /// The job took longer than it may.
    TimedOut,
}

/// A job ended with a result: whole, or in parts that came before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JobResult {
    /// How the job ended.
    pub final_status: FinalStatus,
    /// The result, where it is whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// The name of the result, where it came in parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_id: Option<String>,
    /// How many bytes the parts have together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_size: Option<u64>,
    /// What the result is, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// When the job ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
}

impl JobResult {
    /// A result that is whole.
    pub fn inline(final_status: FinalStatus, result: Value, at: Timestamp) -> Self {
        let (result, completed_at) = (Some(result), Some(at));
        Self { final_status, result, result_id: None, result_size: None, summary: None, completed_at }
    }

    /// A result that came in parts.
    pub fn chunked(result_id: String, bytes: u64, at: Timestamp) -> Self {
        Self {
            final_status: FinalStatus::Success,
            result: None,
            result_id: Some(result_id),
            result_size: Some(bytes),
            summary: None,
            completed_at: Some(at),
        }
    }
}

/// A job ended without a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JobError {
    /// How the job ended.
    pub final_status: FinalStatus,
    /// The code of the protocol, or of the agent.
    pub code: String,
    /// What went wrong, for people.
    #[serde(default)]
    pub message: String,
    /// Whether the same job may succeed later.
    #[serde(default)]
    pub retryable: bool,
    /// More about what happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// When the job ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
}

/// A client wants to be told of a job of another session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Subscribe {
    /// The job of which it wants to be told.
    pub job_id: String,
    /// The last number that it has of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_event_seq: Option<u64>,
    /// Whether it wants to be told what happened before.
    #[serde(default)]
    pub history: bool,
}

/// A client is told of a job from here on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Subscribed {
    /// The message that asked for it. The draft does not have it; clients match answers by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The job of which it is told.
    pub job_id: String,
    /// How far the job is.
    pub current_status: JobStatus,
    /// The agent that has the job, with its version.
    pub agent: String,
    /// What the job may do.
    #[serde(default)]
    pub lease: Lease,
    /// What bounds what it may do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_constraints: Option<LeaseConstraints>,
    /// What is left of each budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BTreeMap<String, Value>>,
    /// The job that asked for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_job_id: Option<String>,
    /// The trace of which the job is part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// The number of the session's last message before.
    #[serde(default)]
    pub subscribed_from: u64,
    /// Whether what happened before is told.
    #[serde(default)]
    pub replayed: bool,
}

/// A client wants to be told no more of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Unsubscribe {
    /// The job of which it wants to be told no more.
    pub job_id: String,
}
