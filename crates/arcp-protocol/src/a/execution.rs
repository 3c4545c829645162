//! Tools, jobs, schedules, workflows and other agents. Source: draft-arcp-01, 10, 14 and 18.1.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::artifact::ArtifactRef;
use super::error::ErrorCode;
use super::payload::payloads;

/// How far a job is. Source: draft-arcp-01, 10.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// The runtime has the job, and has not begun it.
    Accepted,
    /// The job waits for its turn.
    Queued,
    /// The job runs now.
    Running,
    /// The job waits for something from outside.
    Blocked,
    /// The job was suspended, and can go on.
    Paused,
    /// The job did what it was to do.
    Completed,
    /// The job did not succeed.
    Failed,
    /// The job was told to stop.
    Cancelled,
}

/// When a job is to run: in exactly one of three ways. Source: draft-arcp-01, 10.6.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "WrittenWhen", into = "WrittenWhen")]
pub enum When {
    /// Once, at this time.
    At(Timestamp),
    /// Again and again, by a rule of RFC 5545 (RRULE).
    Every(String),
    /// Once, so many seconds after it was accepted.
    After(u64),
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
struct WrittenWhen {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    every: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<u64>,
}

impl TryFrom<WrittenWhen> for When {
    type Error = &'static str;

    fn try_from(WrittenWhen { at, every, after }: WrittenWhen) -> Result<Self, Self::Error> {
        match (at, every, after) {
            (Some(at), None, None) => Ok(Self::At(at)),
            (None, Some(every), None) => Ok(Self::Every(every)),
            (None, None, Some(after)) => Ok(Self::After(after)),
            _ => Err("`when` has exactly one of `at`, `every` and `after`"),
        }
    }
}

impl From<When> for WrittenWhen {
    fn from(when: When) -> Self {
        match when {
            When::At(at) => Self { at: Some(at), ..Self::default() },
            When::Every(every) => Self { every: Some(every), ..Self::default() },
            When::After(after) => Self { after: Some(after), ..Self::default() },
        }
    }
}

payloads! {
    /// A client invokes a tool. Source: draft-arcp-01, 24.
    ToolInvoke {
        /// The name of the tool.
        tool: String,
    } optional {
        /// What the tool is given.
        arguments: Map<String, Value>,
    }

    /// A tool gave a result: itself, or where it can be fetched. Source: draft-arcp-01, 16.1 and 24.
    ToolResult {} optional {
        /// The result of the tool.
        value: Value,
        /// Where the result can be fetched.
        result_ref: ArtifactRef,
    }

    /// Something that went wrong. Source: draft-arcp-01, 18.1.
    ErrorPayload {
        /// The code of the protocol or of a deployment.
        code: ErrorCode,
        /// What went wrong, for people.
        message: String,
    } optional {
        /// Whether the same command may succeed later.
        retryable: bool,
        /// More about what went wrong.
        details: Value,
        /// The error that led to this one.
        cause: Value,
        /// The trace that it belongs to.
        trace_id: String,
    }

    /// A command became a job. Source: draft-arcp-01, 6.3.
    JobAccepted {} optional {
        /// The name of the job, which the envelope has too.
        job_id: String,
        /// How far the job is.
        state: JobState,
    }

    /// A job began to run. Source: draft-arcp-01, 6.3.
    JobStarted {} optional {
        /// Which attempt it is, from 1.
        attempt: u32,
    }

    /// A job says how far it has come. Source: draft-arcp-01, 10.1.
    JobProgress {} optional {
        /// How much is done, of a hundred.
        percent: serde_json::Number,
        /// What is being done.
        message: String,
        /// The state that the job is in.
        state: JobState,
    }

    /// A job is alive. Source: draft-arcp-01, 10.3.
    JobHeartbeat {
        /// The number of the heartbeat, from 1.
        sequence: u64,
        /// Within how many milliseconds the next one comes.
        deadline_ms: u64,
        /// How far the job is.
        state: JobState,
    } optional {}

    /// A job can be resumed from here. Source: draft-arcp-01, 10.1 and 19.
    JobCheckpoint {
        /// The name of the checkpoint.
        checkpoint_id: String,
    } optional {
        /// What the checkpoint is called.
        label: String,
    }

    /// A job did what it was to do. Source: draft-arcp-01, 6.3.
    JobCompleted {} optional {
        /// The result of the job.
        value: Value,
        /// Where the result can be fetched.
        result_ref: ArtifactRef,
    }

    /// A job was cancelled. Source: draft-arcp-01, 10.4.
    JobCancelled {} optional {
        /// Why: `ABORTED` where it had to be killed.
        code: ErrorCode,
        /// Why it was cancelled, in a word.
        reason: String,
        /// The same for people.
        message: String,
    }

    /// A command that is to run later. Source: draft-arcp-01, 10.6.
    ScheduledCommand {
        /// The type of the command.
        r#type: String,
        /// The payload of the command.
        payload: Map<String, Value>,
    } optional {}

    /// A client wants a command to run later. Source: draft-arcp-01, 10.6.
    JobSchedule {
        /// The command that is to run.
        job: ScheduledCommand,
        /// When it is to run.
        when: When,
    } optional {}

    /// A client starts a workflow, whose form is its own. Source: draft-arcp-01, 6.3.
    WorkflowStart {
        /// The name of the workflow.
        workflow: String,
    } optional {
        /// What the workflow is given.
        arguments: Map<String, Value>,
    }

    /// A workflow came to its end. Source: draft-arcp-01, 6.3.
    WorkflowComplete {} optional {
        /// The result of the workflow.
        value: Value,
        /// Where the result can be fetched.
        result_ref: ArtifactRef,
    }

    /// What a delegated task is given. Source: draft-arcp-01, 14.
    DelegateContext {} optional {
        /// The trace that the task belongs to.
        trace_id: String,
        /// An artifact that both agents read.
        shared_memory_ref: Value,
        /// The permissions that the other agent has from this one.
        permissions_inherited: Vec<String>,
    }

    /// An agent gives a task to another. Source: draft-arcp-01, 14.
    AgentDelegate {
        /// The agent that is given the task.
        target: String,
        /// What the agent is to do.
        task: String,
    } optional {
        /// What goes with the task.
        context: DelegateContext,
        /// The folder of the agent's session, absolute: a field of this runtime.
        working_directory: String,
        /// The session that does it, by id or name: a field of this runtime.
        session: String,
    }

    /// An agent leaves a session or a job to another. Source: draft-arcp-01, 14.
    AgentHandoff {
        /// The agent that goes on.
        target: String,
        /// The runtime of that agent, to be verified.
        runtime: super::session::Identity,
    } optional {
        /// What goes with it.
        context: DelegateContext,
    }
}
