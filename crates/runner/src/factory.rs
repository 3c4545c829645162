//! Who starts runners, and what a start is given.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use mainstay_model::{
    AgentState, AskId, Capabilities, ChosenProject, Epoch, Error, JobId, Limits, NoticeNumber, Principal,
    ProjectChoice, RunnerId, RunnerNotice, Seq, SessionId, SessionKind, TakenNotices, TranscriptEntry,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::environment::Environment;
use crate::progress::Report;
use crate::runner::Runner;

/// Starts runners of some kinds of session.
#[async_trait]
pub trait RunnerFactory: Send + Sync + 'static {
    /// Whether this factory starts runners for `kind`.
    fn serves(&self, kind: &SessionKind) -> bool;

    /// What sessions of such a kind can do. It is stored with each session when that is created.
    fn capabilities(&self, kind: &SessionKind) -> Capabilities;

    /// How long a job of such a session may take to stop once it was asked to, in milliseconds. One that takes longer costs its runner
    /// its life.
    fn cancel_grace_ms(&self, _kind: &SessionKind, limits: &Limits) -> u64 {
        limits.cancel_grace_ms
    }

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
    /// and does not count as starting. The start is given it ([`RunnerSpec::gathered`]).
    ///
    /// # Errors
    /// [`Error::KernelUnavailable`] where this machine lacks something.
    async fn gather(&self, _spec: &RunnerSpec, _observer: &StartObserver) -> Result<Option<Value>, Error> {
        Ok(None)
    }

    /// What a process is started with for such a session, as far as it can be before the session is known: a process that was started ahead
    /// with an equal plan can be handed to the session. Nothing of the session is in it that another with an equal plan has not. None where
    /// this factory starts nothing ahead.
    async fn standby_plan(&self, _spec: &RunnerSpec) -> Option<Value> {
        None
    }

    /// Starts a process ahead, and waits until it has done all that can be done for a session that is not known yet. The next
    /// [`start`](Self::start) of this factory takes the process where the plan of its session is equal, and ends it otherwise. Gives the process.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    async fn stand_by(&self, _plan: Value) -> Result<u32, Error> {
        Err(Error::KernelUnavailable { reason: "its kind is never started ahead".to_owned() })
    }

    /// Waits until the process that stands by has ended by itself. Dropping the future changes nothing.
    async fn standby_ended(&self) {
        std::future::pending().await
    }

    /// Starts a runner and waits until it accepts code. Dropping the future undoes the start.
    ///
    /// # Errors
    /// [`Error::KernelUnavailable`] where this machine lacks something, [`Error::WorkerFailed`] where the process does not
    /// come up.
    async fn start(&self, spec: RunnerSpec, observer: StartObserver) -> Result<StartedRunner, Error>;

    /// Starts a runner beside the one that a session has, with the same project as that was started with, and waits until it accepts code. It has
    /// nothing of what the session has done, runs no scripts of the user's, and ends with this process. Dropping the future undoes the start.
    ///
    /// # Errors
    /// As [`start`](Self::start); [`Error::MirrorUnavailable`] where there is no such thing for its kind, or nothing of a project to load.
    async fn start_mirror(&self, spec: RunnerSpec, _observer: StartObserver) -> Result<StartedRunner, Error> {
        Err(Error::MirrorUnavailable { reason: format!("sessions of kind `{}` have none", spec.kind) })
    }

    /// Finds the runner of a session that has outlived the daemon that started it ([`Process::outlives_daemon`](crate::Process::outlives_daemon)), and takes it over:
    /// from now on it heeds nobody who had it before. It is told which of its notices are taken, and gives all later ones, from the
    /// first that it has kept: [`StartedRunner::next`] is at most the one after those taken. None where it is gone. It must not take long:
    /// the session waits for it.
    ///
    /// What the runner was given last may not have come there. So the daemon gives it the running job again, and the answers and
    /// prompts that job was given; of what comes twice, the runner heeds the first.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`] where it is there and cannot be spoken to, or has obeyed the owner of a newer epoch, or knows more of
    /// the session as stored than is stored: then the store was restored from a backup.
    async fn adopt(&self, _spec: &RunnerSpec, _stored: StoredProgress) -> Result<Option<FoundRunner>, Error> {
        Ok(None)
    }

    /// Ends the runner of a session that has outlived the daemon that started it, where there is one: the session does not go on with
    /// it. Done when it is gone, and with it all that it started.
    async fn end_left(&self, _spec: &RunnerSpec) {}

    /// The sessions that it has files of, beside the log.
    async fn kept(&self) -> Vec<SessionId> {
        Vec::new()
    }

    /// Removes its files of a session that is gone.
    async fn forget(&self, _session: SessionId) {}
}

/// What a runner is started for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunnerSpec {
    /// The session that the runner works for.
    pub session: SessionId,
    /// The epoch in which whoever starts or adopts the runner owns the session. A runner that outlives its daemon obeys only the newest.
    pub epoch: Epoch,
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
    /// What its factory has found out before ([`RunnerFactory::gather`]); only the factory knows what that is.
    pub gathered: Option<Value>,
}

/// Who watches a start.
#[derive(Clone, Debug, Default)]
pub struct StartObserver {
    /// Is told how far the start is.
    pub report: Report,
    /// Keeps what the runner says on its standard error while it starts.
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Conversation {
    /// What it is shown of its session's transcript, each entry with all of its text: the newest summary, then what that does not
    /// stand for.
    pub entries: Vec<(TranscriptEntry, String)>,
    /// How it went on when it was there last.
    pub state: Option<AgentState>,
    /// What people call it.
    pub name: String,
}

/// How much of a session is stored, as a runner that is adopted is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredProgress {
    /// Which of the runner's notices are taken.
    pub taken: TakenNotices,
    /// The session's last event.
    pub last_seq: Seq,
}

/// A runner that has outlived the daemon that started it, and is adopted.
pub struct FoundRunner {
    /// The runner as if it had just been started.
    pub started: StartedRunner,
    /// What it remembers of what it was given.
    pub given: GivenToRunner,
    /// Whether it has ended meanwhile: it takes nothing more, and [`RunnerNotice::Exited`] is among what it still has to say.
    pub is_gone: bool,
}

/// What a runner remembers of what it was given. It is for whoever adopts the runner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GivenToRunner {
    /// The last jobs that it was given, the newest last: at least the one that runs.
    pub jobs: Vec<JobId>,
    /// The asks of the running job that were not answered yet.
    pub unanswered: Vec<AskId>,
    /// What its tools were about to do and do not know whether they may: the check, and the notice that asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<(AskId, NoticeNumber)>,
    /// The secret answers that the running job was given. They are stored nowhere, and so come only from here.
    pub secrets: Vec<Value>,
}

/// A runner that is there.
pub struct StartedRunner {
    /// Names the runner from its start to its end.
    pub id: RunnerId,
    /// The runner that was started.
    pub runner: Runner,
    /// The number of the first notice in `notices`; each later one has the next. The first notice of a runner's life is 1. By
    /// these numbers notices are stored as taken, and acknowledged ([`Process::acknowledge`](crate::Process::acknowledge)).
    pub next: NoticeNumber,
    /// What it says, in order; closed after [`RunnerNotice::Exited`].
    pub notices: mpsc::Receiver<RunnerNotice>,
}

impl StartedRunner {
    /// A runner that has just begun its life, and gives these notices from the first one on.
    pub fn new(runner: Runner, notices: mpsc::Receiver<RunnerNotice>) -> Self {
        let id = RunnerId::from_uuid(Uuid::now_v7());
        Self { id, runner, next: NoticeNumber::default().next(), notices }
    }
}
