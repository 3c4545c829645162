//! What the engine needs of what does a session's work: a kernel, whatever its language, or an agent, whatever program that is.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use mainstay_model::reload::Description;
use mainstay_model::{
    AgentState, AskId, ChosenProject, CommMessage, CommandLine, Diagnostic, Error, JobId, JobSpec, Principal,
    ProjectChoice, QueuedPrompt, RunnerInfo, RunnerNotice, SessionId, SessionKind, TextPosition,
    TranscriptEntry,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::environments::Environment;
use crate::progress::Report;
use crate::query::{KernelAnswer, KernelQuery};

/// Starts runners of some kinds of session.
#[async_trait]
pub trait RunnerFactory: Send + Sync + 'static {
    /// Whether this factory starts runners for `kind`.
    fn serves(&self, kind: &SessionKind) -> bool;

    /// How an agent in this folder begins, of a creator with such an environment, as far as that is known before it is started.
    fn beginning(&self, _folder: &Path, _environment: &Environment) -> AgentState {
        AgentState::default()
    }

    /// Looks whether there is what sessions of such a kind in such a folder, of a creator with such an environment, would be started with,
    /// before one is created.
    ///
    /// # Errors
    /// [`Error::KernelUnknown`] where there is nothing of that name, [`Error::KernelUnavailable`] where this machine lacks something.
    async fn find(
        &self,
        _kind: &SessionKind,
        _folder: &Path,
        _environment: &Environment,
    ) -> Result<(), Error> {
        Ok(())
    }

    /// Which project a session in such a folder is for, asked once, when it is created. What is named is taken as it is, unless the factory
    /// knows better.
    ///
    /// # Errors
    /// [`Error::ProjectNotFound`] and [`Error::ProjectAmbiguous`] where a folder was named that does not have one project.
    async fn project(&self, _folder: &Path, wanted: &ProjectChoice) -> Result<ChosenProject, Error> {
        Ok(match wanted {
            ProjectChoice::At(project) => ChosenProject::One(project.clone()),
            ProjectChoice::OfFolder | ProjectChoice::Nothing => ChosenProject::Nothing,
        })
    }

    /// What the compiler of a new session is told, for good, where its creator asks for this.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for what cannot be told it.
    fn arguments(&self, asked: &[String]) -> Result<Vec<String>, Error> {
        match asked {
            [] => Ok(Vec::new()),
            asked => Err(Error::InvalidArgument {
                argument: "fsiArgs".to_owned(),
                reason: format!("`{}`: only F# sessions take options of the compiler", asked.join(" ")),
            }),
        }
    }

    /// Does what all such starts need and the first has to wait for, such as building the worker. Called before each start, and
    /// done at once where nothing is left to do.
    ///
    /// # Errors
    /// [`Error::KernelUnavailable`] where this machine lacks something.
    async fn prepare(&self, _spec: &RunnerSpec) -> Result<(), Error> {
        Ok(())
    }

    /// Finds out what a start needs besides, which may take long, such as what a project is made of: how long is for the factory to say,
    /// and does not count as starting. The start is given it.
    ///
    /// # Errors
    /// [`Error::KernelUnavailable`] where this machine lacks something.
    async fn gather(&self, _spec: &RunnerSpec) -> Result<Option<StartPreparation>, Error> {
        Ok(None)
    }

    /// Starts a runner and waits until it accepts code. Dropping the future undoes the start.
    ///
    /// # Errors
    /// [`Error::KernelUnavailable`] where this machine lacks something, [`Error::WorkerFailed`] where the process does not
    /// come up.
    async fn start(&self, spec: RunnerSpec) -> Result<StartedRunner, Error>;

    /// The sessions that it has files of, beside the log.
    async fn kept(&self) -> Vec<SessionId> {
        Vec::new()
    }

    /// Removes its files of a session that is gone.
    async fn forget(&self, _session: SessionId) {}
}

/// What a factory has found out for a start; only the factory knows what that is.
pub type StartPreparation = Arc<dyn Any + Send + Sync>;

/// What a runner is started for.
#[derive(Clone, Debug)]
pub struct RunnerSpec {
    /// The session that the runner works for.
    pub session: SessionId,
    /// The kind of it.
    pub kind: SessionKind,
    /// The principal that owns the session.
    pub owner: Principal,
    /// The folder its code runs in.
    pub working_directory: PathBuf,
    /// The project it is for.
    pub project: Option<PathBuf>,
    /// What the compiler of its language is told.
    pub arguments: Vec<String>,
    /// What it finds in its environment over the daemon's own.
    pub environment: Environment,
    /// What an agent goes on from; a kernel is told what to run again instead.
    pub conversation: Option<Conversation>,
    /// What its factory has found out before.
    pub gathered: Option<StartPreparation>,
    /// Where to say how far the start is.
    pub report: Report,
    /// Where to keep what it says on its standard error while it starts.
    pub last_lines: StartLines,
}

/// The last lines that a runner said on its standard error while it started. Whoever waits for a start that takes too long is told them.
#[derive(Clone, Debug, Default)]
pub struct StartLines(Arc<Mutex<Option<String>>>);

impl StartLines {
    /// Keeps them instead of those before.
    pub fn keep(&self, lines: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = lines;
    }

    /// All of them; none where nothing was said.
    pub fn text(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What an agent goes on from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conversation {
    /// What it is shown of its session's transcript, each entry with all of its text: the newest summary, then what that does not
    /// stand for.
    pub entries: Vec<(TranscriptEntry, String)>,
    /// How it went on when it was there last.
    pub state: Option<AgentState>,
    /// What people call it.
    pub name: String,
}

/// A runner that is there.
pub struct StartedRunner {
    /// The runner that was started.
    pub runner: Runner,
    /// What it says, in order; closed after [`RunnerNotice::Exited`].
    pub notices: mpsc::Receiver<RunnerNotice>,
}

/// What does one session's work, one job at a time. Dropping the last handle kills it.
#[derive(Clone)]
pub enum Runner {
    /// A kernel, which runs code.
    Kernel(Arc<dyn Kernel>),
    /// It is spoken to.
    Agent(Arc<dyn Agent>),
}

impl Runner {
    /// What both have in common.
    pub fn process(&self) -> &dyn Process {
        match self {
            Self::Kernel(kernel) => kernel.as_ref(),
            Self::Agent(agent) => agent.as_ref(),
        }
    }

    /// What runs code, where it does.
    pub fn kernel(&self) -> Option<&Arc<dyn Kernel>> {
        match self {
            Self::Kernel(kernel) => Some(kernel),
            Self::Agent(_) => None,
        }
    }
}

/// A process that does a session's work.
#[async_trait]
pub trait Process: Send + Sync {
    /// Describes the runner's process to clients.
    fn info(&self) -> RunnerInfo;

    /// Passes on the answer to an ask of the running job, or why there is none. Done once the worker has it.
    async fn answer(&self, ask: AskId, answer: Result<Value, Error>);

    /// Asks the running job to stop. Done once the worker has been told, so that no job after this one is meant; whether
    /// the job stops shows in its end.
    async fn interrupt(&self);

    /// Ends the process and all that it started, at once.
    fn kill(&self);

    /// What the process uses now; none where that cannot be told.
    fn usage(&self) -> Option<ResourceUsage>;
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

/// An agent that is spoken to.
#[async_trait]
pub trait Agent: Process {
    /// Does something. Done once the agent has it; what it says, and its end, come as notices.
    async fn work(&self, job: JobId, work: JobSpec);

    /// Says something to it while it works. Done once the agent has it; whether it has heard it shows in what it has still to hear.
    async fn steer(&self, queued: QueuedPrompt);

    /// Tells what it knows, also while it works.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`], with what it says itself where it refuses.
    async fn tell(&self, question: AgentQuestion) -> Result<Value, Error>;
}

/// What an agent may be asked about itself. It answers in its own words: each of pi's answers is that of its RPC mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AgentQuestion {
    /// The models it may use.
    Models,
    /// What can be prompted with a slash: commands of extensions, templates, skills.
    Commands,
    /// Asks for the agent's state.
    State,
    /// What its conversation came to.
    Statistics,
}

/// Code for a runner.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// What a process uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceUsage {
    /// Resident memory, in bytes.
    pub resident_bytes: u64,
    /// Processor time since its start, in milliseconds.
    pub cpu_ms: u64,
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
