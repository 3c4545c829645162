//! The messages of the runner protocol. The contract is docs/runner-protocol.md.
//!
//! The daemon connects and says who it is and what for ([`Hello`]); the shim answers once ([`Welcome`]). From then on both sides send
//! messages of their own accord, in order.

use bytes::Bytes;
use mainstay_model::reload::Description;
use mainstay_model::replay::Snapshot;
use mainstay_model::{
    AskId, CommMessage, Diagnostic, Epoch, Error, JobId, JobSpec, NoticeNumber, QueuedPrompt, RunnerId,
    RunnerInfo, RunnerNotice, Seq, SessionId, SessionKind, Swap, TextPosition,
};
use mainstay_runner::query::{KernelAnswer, KernelQuery};
use mainstay_runner::{
    AgentQuestion, AskAnswer, CodeText, Completions, GivenToRunner, RunnerSpec, StoredProgress, Submission,
    Upcoming, WarmUpProgress,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of the runner protocol that is spoken here. Within one version members are only added, and are optional.
pub const PROTOCOL: u32 = 1;

/// The oldest version that is still understood here.
pub const OLDEST_PROTOCOL: u32 = 1;

/// How many notices the shim tells of which the daemon has not yet said that it took them ([`ToShim::Consumed`]). So answers to
/// questions never wait behind more.
pub const WINDOW: u64 = 256;

/// The first message of the daemon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hello {
    /// The newest version that the daemon speaks.
    pub protocol: u32,
    /// The oldest version that the daemon speaks.
    pub oldest_protocol: u32,
    /// The secret of the shim. The first who connects says what it is.
    pub token: String,
    /// The session that the shim is for.
    pub session: SessionId,
    /// The epoch in which the daemon owns the session.
    pub epoch: Epoch,
    /// What the daemon wants.
    pub purpose: Purpose,
}

/// What a daemon connects to a shim for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Purpose {
    /// To have the runner started. Only the first connection may.
    Start {
        /// What the runner is started for.
        spec: Box<RunnerSpec>,
        /// What the shim makes the runner's factory from.
        settings: Value,
        /// How the shim behaves without a daemon.
        terms: Terms,
    },
    /// To have a process started ahead of the session that it is for. Only the first connection may. The session and the epoch that go
    /// with this mean nothing. Once the process stands by ([`FromShim::StandsBy`]), the next message on this connection is another
    /// [`Hello`], of a session, to start its runner; without one the shim ends.
    StandBy {
        /// The kind of session that the process is for.
        kind: SessionKind,
        /// What it is started with; only the factory knows what that is.
        plan: Value,
        /// What the shim makes the runner's factory from.
        settings: Value,
    },
    /// To go on with the runner that another daemon had.
    Adopt {
        /// How much of the session is stored.
        stored: StoredProgress,
    },
    /// To end the runner.
    End,
}

/// How a shim behaves while no daemon has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Terms {
    /// How long it lives on without a daemon once its job has ended, in milliseconds.
    pub orphan_ms: u64,
    /// How many bytes of notices that are not acknowledged it keeps in memory.
    pub buffer_bytes: usize,
    /// How many more it keeps in a file. Then the worker waits.
    pub file_bytes: u64,
}

/// The answer to [`Hello`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Welcome {
    /// The shim obeys this connection from now on. For [`Purpose::Start`] the runner is being started, and [`FromShim::Started`] follows.
    Obeys {
        /// The version that both speak from now on.
        protocol: u32,
        /// The process of the shim.
        pid: u32,
    },
    /// The runner is adopted: its notices follow, from the one after those that are taken.
    Adopted {
        /// The version that both speak from now on.
        protocol: u32,
        /// The process of the shim.
        pid: u32,
        /// The runner that is adopted.
        runner: RunnerDescription,
        /// The number of the first notice that follows.
        next: NoticeNumber,
        /// What the runner was given.
        given: GivenToRunner,
        /// Whether it has ended meanwhile, so that it takes nothing more.
        #[serde(default)]
        is_gone: bool,
    },
    /// The shim does not obey this connection, and closes it.
    Refused {
        /// The reason of the refusal.
        reason: Refusal,
    },
}

/// Why a shim does not obey a daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Refusal {
    /// The token is not the shim's, or the session is not.
    Stranger,
    /// An owner of a newer epoch, or of this one, was here before.
    StaleEpoch {
        /// The newest epoch that the shim has seen.
        newest: Epoch,
    },
    /// The shim knows that more of the session was stored than the daemon has: the store was restored from a backup.
    StoreIsBehind {
        /// The event up to which the session was stored.
        stored: Seq,
    },
    /// The runner is not there: it is still being started for another daemon, and is ended with that.
    NoRunner,
    /// The shim speaks none of the daemon's versions.
    Protocol {
        /// The newest version that the shim speaks.
        newest: u32,
        /// The oldest version that the shim speaks.
        oldest: u32,
    },
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stranger => f.write_str("its token or its session is another"),
            Self::StaleEpoch { newest } => write!(f, "an owner of epoch {} was there before", newest.0),
            Self::StoreIsBehind { stored } => {
                write!(f, "the session was stored up to event {} when it was last heard", stored.0)
            }
            Self::NoRunner => f.write_str("its runner never came up"),
            Self::Protocol { newest, oldest } => {
                write!(f, "it speaks versions {oldest} to {newest} of the runner protocol")
            }
        }
    }
}

/// A runner as its shim describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunnerDescription {
    /// Names the runner from its start to its end.
    pub id: RunnerId,
    /// Whether it is an agent; else it is a kernel.
    pub is_agent: bool,
    /// Whether the shim takes the order to pause ([`ToShim::Pause`]).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pauses: bool,
    /// The runner's process, for clients.
    pub info: RunnerInfo,
}

/// What the daemon tells a shim after the first message. What comes twice is heeded once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ToShim {
    /// Run code as a job.
    Run {
        /// The code and its job, which names the order.
        submission: Submission,
    },
    /// These are run next.
    Expect {
        /// What is run next, in this order.
        upcoming: Vec<Upcoming>,
    },
    /// Build the session's project.
    Build {
        /// The job of the build.
        job: JobId,
    },
    /// Take what a front end says beside code.
    TakeComm {
        /// The job of the message.
        job: JobId,
        /// The message of the front end.
        message: Box<CommMessage>,
    },
    /// Have the agent do something.
    Work {
        /// The job of the work.
        job: JobId,
        /// What is to be done.
        work: JobSpec,
        /// Whether a grant bounds it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_bounded: bool,
    },
    /// Say something to the agent while it works.
    Steer {
        /// What the agent is told.
        queued: QueuedPrompt,
        /// The event that queued it, which names it.
        requested: Seq,
    },
    /// Hold back what the tools of a job are about to do, until an ask is answered.
    Pause {
        /// The job that pauses.
        job: JobId,
        /// The ask, which names the order.
        ask: AskId,
    },
    /// An ask is answered.
    Answer {
        /// The answer to the ask.
        answer: AskAnswer,
    },
    /// Interrupt a job. One that has ended is not meant any more.
    Interrupt {
        /// The job that was given last; none where none was.
        job: Option<JobId>,
    },
    /// The notices up to this one are durable.
    Acknowledge {
        /// The last notice that is.
        up_to: NoticeNumber,
        /// The event up to which the session is stored with that.
        stored: Seq,
    },
    /// The daemon has taken the notices up to this one in, and has room for more ([`WINDOW`]).
    Consumed {
        /// The last notice that was.
        up_to: NoticeNumber,
    },
    /// Answer a question about the session.
    Question {
        /// Names the question in this connection.
        id: u64,
        /// The question to the runner.
        question: ShimQuestion,
    },
    /// End the runner, and the shim.
    Kill,
}

/// What a runner is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ShimQuestion {
    /// What these do when they run.
    Describe {
        /// The codes in question.
        codes: Vec<CodeText>,
    },
    /// Have the project's code run as these files have it now.
    Swap {
        /// The paths of the files that changed.
        files: Vec<String>,
    },
    /// Start afresh in the same process.
    Reset,
    /// What is kept of the session's values.
    Snapshot,
    /// Drop what is kept of the session's values.
    ForgetSnapshot,
    /// Give the session's names the values that are kept.
    Restore,
    /// Check code without running it.
    Check {
        /// The code to be checked.
        code: String,
        /// The file it is from.
        file: Option<String>,
    },
    /// Complete at a cursor.
    Complete {
        /// The code to be completed.
        code: String,
        /// The place of the cursor.
        cursor: TextPosition,
    },
    /// A question to a kernel.
    Query {
        /// The question to the kernel.
        query: KernelQuery,
    },
    /// A question to an agent.
    Tell {
        /// The question to the agent.
        question: AgentQuestion,
    },
}

/// The answer to one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "answer", rename_all = "camelCase")]
pub enum ShimAnswer {
    /// The answer to [`ShimQuestion::Describe`].
    Described(Option<Vec<Description>>),
    /// The answer to [`ShimQuestion::Swap`].
    Swapped(Option<Swap>),
    /// The answer to [`ShimQuestion::Reset`].
    Reset(RunnerInfo),
    /// The answer to [`ShimQuestion::Snapshot`].
    Snapshot(Option<Snapshot>),
    /// The answer to [`ShimQuestion::ForgetSnapshot`].
    SnapshotForgotten,
    /// The answer to [`ShimQuestion::Restore`].
    Restored,
    /// The answer to [`ShimQuestion::Check`].
    Checked(Vec<Diagnostic>),
    /// The answer to [`ShimQuestion::Complete`].
    Completed(Completions),
    /// The answer to [`ShimQuestion::Query`].
    Queried(KernelAnswer),
    /// The answer to [`ShimQuestion::Tell`].
    Told(Value),
}

/// What a shim tells the daemon after [`Welcome`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum FromShim {
    /// How far the start is.
    Progress {
        /// How far it is.
        progress: WarmUpProgress,
    },
    /// The last lines that the runner said on its standard error while it starts.
    StartLines {
        /// The lines, where there are any.
        lines: Option<String>,
    },
    /// A process that was started ahead is ready for its session.
    StandsBy {
        /// The process that waits.
        pid: u32,
    },
    /// The runner takes work.
    Started {
        /// The runner that has come up.
        runner: RunnerDescription,
    },
    /// The runner did not come up, and the shim ends.
    NotStarted {
        /// The reason of the failure.
        error: Error,
    },
    /// The runner says something.
    Notice {
        /// The number of the notice in the runner's life.
        number: NoticeNumber,
        /// What the runner says there.
        notice: RunnerNotice,
    },
    /// The answer to a question.
    Answer {
        /// The name of the question.
        id: u64,
        /// The answer, or why there is none.
        answer: Result<ShimAnswer, Error>,
    },
}

/// Writes a message as the body of a frame.
///
/// # Errors
/// [`Error::WorkerFailed`] where it cannot be written as JSON.
pub(crate) fn encode(message: &impl Serialize) -> Result<Bytes, Error> {
    serde_json::to_vec(message).map(Bytes::from).map_err(|error| Error::WorkerFailed {
        reason: format!("a message of the runner protocol could not be written: {error}"),
    })
}

/// Reads the body of a frame.
///
/// # Errors
/// [`Error::WorkerFailed`] where it is not such a message.
pub(crate) fn decode<T: DeserializeOwned>(frame: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(frame).map_err(|error| Error::WorkerFailed {
        reason: format!("a message of the runner protocol is not understood: {error}"),
    })
}
