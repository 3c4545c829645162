//! Asks that wait for an answer.

use mainstay_model::vote::Vote;
use mainstay_model::{AskId, CommandId, JobId, Question, SessionId, Source, Timestamp};
use serde::{Deserialize, Serialize};

/// An ask that waits for an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AskView {
    /// The id of the ask.
    pub ask: AskId,
    /// The end of its id, enough to name it.
    pub short_id: String,
    /// The session that raised the ask.
    pub session: SessionId,
    /// What people call that.
    pub session_name: String,
    /// What is asked, and what an answer must be.
    #[serde(flatten)]
    pub question: Question,
    /// Who asks: a client by its command, or the worker for its job.
    pub source: Source,
    /// The job that waits for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// The command that waits for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandId>,
    /// When it was raised.
    pub raised_at: Timestamp,
    /// When it must have been answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// The answers so far, where several principals must give the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub votes: Vec<Vote>,
}
