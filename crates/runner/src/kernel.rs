//! Kernels: workers that run code.

use async_trait::async_trait;
use mainstay_model::reload::Description;
use mainstay_model::replay::Snapshot;
use mainstay_model::{CommMessage, CommandLine, Diagnostic, Error, JobId, RunnerInfo, Swap, TextPosition};
use serde::{Deserialize, Serialize};

use crate::query::{KernelAnswer, KernelQuery};
use crate::runner::Process;

/// A worker that runs code.
#[async_trait]
pub trait Kernel: Process {
    /// Runs code. Done once the worker has it; what it prints, and its end, come as notices.
    async fn run(&self, submission: Submission);

    /// Says what a replay goes on with: these are run next, in this order, each as a job of its own. A kernel may run those of them that
    /// only define ahead of their turn, together, as long as each has the same end as alone.
    async fn expect(&self, _upcoming: Vec<Upcoming>) {}

    /// Says of each of these what it does when it runs, as far as that matters to running it again; none where that is not known of any code.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`].
    async fn describe(&self, _codes: Vec<CodeText>) -> Result<Option<Vec<Description>>, Error> {
        Ok(None)
    }

    /// Has the project's code run as these files have it now, in the process that is there, also while a job runs; none where the kernel
    /// exchanges no code. Source: `protocols/fsharp-live.md`.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`].
    async fn swap(&self, _files: Vec<String>) -> Result<Option<Swap>, Error> {
        Ok(None)
    }

    /// The same of sources that may be in no file yet.
    ///
    /// # Errors
    /// As [`Kernel::swap`].
    async fn swap_texts(&self, _sources: Vec<SourceText>) -> Result<Option<Swap>, Error> {
        Ok(None)
    }

    /// The same of all files of the project that are not as they were built. Where they cannot be put in together, those are that can alone.
    ///
    /// # Errors
    /// As [`Kernel::swap`].
    async fn swap_all(&self) -> Result<Option<Swap>, Error> {
        Ok(None)
    }

    /// Builds the session's project, beside the session: done once that has begun. What the build prints and what comes of it come as
    /// notices; an interrupt ends it.
    async fn build(&self, job: JobId);

    /// Takes what a front end says beside code, and does what it is for. Done once the worker has it; what follows, and its end, come as
    /// notices. Only a kernel that knows of comms is told to.
    async fn take_comm(&self, job: JobId, _message: CommMessage) {
        tracing::error!(%job, "a kernel that knows of no comms was told something in one");
        self.kill();
    }

    /// Starts afresh in the same process.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`].
    async fn reset(&self) -> Result<RunnerInfo, Error>;

    /// What an earlier worker of the session has kept of its values; none where nothing is kept.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`] where that cannot be read.
    async fn snapshot(&self) -> Result<Option<Snapshot>, Error> {
        Ok(None)
    }

    /// Drops what an earlier worker has kept: it is not what the session has now.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`] where the worker is gone.
    async fn forget_snapshot(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Gives the session's names the values of [`Kernel::snapshot`], once those submissions have run again that have to.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`] where it cannot; the session is then to be reset.
    async fn restore(&self) -> Result<(), Error> {
        Err(Error::WorkerFailed { reason: "this kernel keeps no values".to_owned() })
    }

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

    /// Answers what is asked of what its session has, also while a job runs. Nothing of the session's is run for it.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`], also where it cannot tell; [`Error::InvalidArgument`] where nothing has the name that is asked for.
    async fn query(&self, query: KernelQuery) -> Result<KernelAnswer, Error>;
}

/// A source file of a project as it is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceText {
    /// The path of the file, absolute.
    pub path: String,
    /// Its text, which may not be saved yet; none where the file is to be read.
    pub text: Option<String>,
}

/// Code for a runner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Submission {
    /// The job that runs the code.
    pub job: JobId,
    /// The code to be run.
    pub code: String,
    /// The file whose text it is, absolute.
    pub file: Option<String>,
    /// The command line that the code is given; without it, the session's own.
    pub command_line: Option<CommandLine>,
    /// Whether what it defines is told to nobody who asks what the session has.
    pub is_withheld: bool,
}

/// Code that a replay goes on with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Upcoming {
    /// The job that will run it.
    pub job: JobId,
    /// The code, which is the same when its turn comes.
    pub code: String,
    /// The file it is from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// Code that a kernel is asked about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CodeText {
    /// The code that is asked about.
    pub code: String,
    /// The file it is from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// What could stand at a cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Completions {
    /// The completions, best first.
    pub items: Vec<CompletionItem>,
    /// Where the text begins that a choice replaces; it ends at the cursor.
    pub start: Option<TextPosition>,
}

/// One completion that the kernel proposes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompletionItem {
    /// The text that is inserted.
    pub label: String,
    /// What it is: `method`, `property`, `module`, …
    pub kind: String,
    /// The type of the completed name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What its author says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documentation: Option<String>,
}
