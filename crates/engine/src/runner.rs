//! What the engine needs of a worker, whatever its language.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use mainstay_model::{
    AskId, Diagnostic, Error, JobId, RunnerInfo, RunnerNotice, SessionId, SessionKind, TextPosition,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;

/// Starts runners of some kinds of session.
#[async_trait]
pub trait RunnerFactory: Send + Sync + 'static {
    /// Whether this factory starts runners for `kind`.
    fn serves(&self, kind: &SessionKind) -> bool;

    /// Does what all starts need and the first has to wait for, such as building the worker. Called before each start, and
    /// done at once where nothing is left to do.
    ///
    /// # Errors
    /// [`Error::KernelUnavailable`] where this machine lacks something.
    async fn prepare(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Starts a runner and waits until it accepts code. Dropping the future undoes the start.
    ///
    /// # Errors
    /// [`Error::KernelUnavailable`] where this machine lacks something, [`Error::WorkerFailed`] where the process does not
    /// come up.
    async fn start(&self, spec: RunnerSpec) -> Result<StartedRunner, Error>;
}

/// What a runner is started for.
#[derive(Clone, Debug)]
pub struct RunnerSpec {
    /// Its session.
    pub session: SessionId,
    /// The kind of it.
    pub kind: SessionKind,
    /// The folder its code runs in.
    pub working_directory: PathBuf,
}

/// A runner that accepts code.
pub struct StartedRunner {
    /// It.
    pub runner: Arc<dyn Runner>,
    /// What it says, in order; closed after [`RunnerNotice::Exited`].
    pub notices: mpsc::Receiver<RunnerNotice>,
}

/// A worker that runs one session's code, one job at a time. Dropping the last handle kills it.
#[async_trait]
pub trait Runner: Send + Sync {
    /// What it is.
    fn info(&self) -> RunnerInfo;

    /// Runs code. Done once the worker has it; what it prints, and its end, come as notices.
    async fn run(&self, submission: Submission);

    /// Passes on the answer to an ask of the running job, or why there is none. Done once the worker has it.
    async fn answer(&self, ask: AskId, answer: Result<Value, Error>);

    /// Asks the running job to stop. Done once the worker has been told, so that no job after this one is meant; whether
    /// the job stops shows in its end.
    async fn interrupt(&self);

    /// Starts afresh in the same process.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`].
    async fn reset(&self) -> Result<RunnerInfo, Error>;

    /// Checks code without running it, also while a job runs.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`].
    async fn check(&self, code: String, file: Option<String>) -> Result<Vec<Diagnostic>, Error>;

    /// Completes at a cursor, also while a job runs.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`].
    async fn complete(&self, code: String, cursor: TextPosition) -> Result<Completions, Error>;

    /// Lists the members of a namespace, module or type.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`], [`Error::InvalidArgument`] where nothing has that name.
    async fn explore(&self, name: String) -> Result<Members, Error>;

    /// Ends the process and all that it started, at once.
    fn kill(&self);

    /// What the process uses now; none where that cannot be told.
    fn usage(&self) -> Option<ResourceUsage>;
}

/// Code for a runner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// The job.
    pub job: JobId,
    /// The code.
    pub code: String,
    /// The file whose text it is, absolute.
    pub file: Option<String>,
}

/// What a process uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceUsage {
    /// Resident memory, in bytes.
    pub resident_bytes: u64,
    /// Processor time since its start, in milliseconds.
    pub cpu_ms: u64,
}

/// What could stand at a cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Completions {
    /// The choices.
    pub items: Vec<CompletionItem>,
    /// Where the text begins that a choice replaces; it ends at the cursor.
    pub start: Option<TextPosition>,
}

/// One choice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompletionItem {
    /// What is inserted.
    pub label: String,
    /// What it is: `method`, `property`, `module`, …
    pub kind: String,
    /// Its type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What its author says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documentation: Option<String>,
}

/// What a namespace, module or type holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Members {
    /// Its name.
    pub name: String,
    /// What it is: `namespace`, `module`, `type`.
    pub kind: String,
    /// What it holds.
    pub members: Vec<Member>,
}

/// One member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: String,
    /// Its type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// What its author says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documentation: Option<String>,
}
