//! What every session's task shares with the engine.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mainstay_log::Log;
use mainstay_model::validity::Records;
use mainstay_model::{
    Capabilities, ChosenProject, CreateSession, Epoch, Error, Limits, Seq, Session, SessionId, SessionKind,
};
use mainstay_runner::{Environment, RunnerFactory, RunnerSpec};
use tokio::sync::{Notify, Semaphore};

use crate::breakers::Breakers;
use crate::environments::Environments;
use crate::hub::Hub;
use crate::lease::LeaseKeeper;
use crate::mirror::{Measurements, Mirrors};
use crate::open_tasks::Delegations;
use crate::presence::Clients;
use crate::single_process::SingleProcess;
use crate::sync::Mutex;
use crate::warm_up_progress::WarmUps;
use crate::watch::Watch;

/// What is known of each session's evals, up to an event.
pub(crate) type KnownRecords = Mutex<HashMap<SessionId, (Seq, Arc<Records>)>>;

/// What every session's task shares with the engine.
pub(crate) struct Shared {
    pub(crate) log: Arc<dyn Log>,
    /// Renews the lease of all sessions of this engine.
    pub(crate) lease: LeaseKeeper,
    pub(crate) hub: Arc<Hub>,
    pub(crate) limits: Limits,
    pub(crate) factories: Vec<Arc<dyn RunnerFactory>>,
    /// What sessions' creators have in their environments.
    pub(crate) environments: Environments,
    /// How many workers may start at once.
    pub(crate) starts: Arc<Semaphore>,
    /// How many more sessions may be live.
    pub(crate) live: Arc<Semaphore>,
    /// What is true only as long as no other process uses the store.
    pub(crate) single_process: SingleProcess,
    /// Whether runners are started.
    pub(crate) breakers: Arc<Breakers>,
    /// Sent when there is a new schedule.
    pub(crate) schedules: Arc<Notify>,
    /// The tasks that jobs gave to others.
    pub(crate) delegations: Arc<Delegations>,
    /// The clients that are connected.
    pub(crate) clients: Arc<Clients>,
    /// The present state of the files that the code of sessions depends on.
    pub(crate) watch: Watch,
    /// What their evals ran against.
    pub(crate) records: KnownRecords,
    /// The processes in which unsaved texts run.
    pub(crate) mirrors: Mirrors,
    /// The lines that their tests run, as far as they were measured.
    pub(crate) measurements: Measurements,
    /// How far those are that are given their definitions back.
    pub(crate) warm_ups: Arc<WarmUps>,
}

impl Shared {
    /// Whether sessions of a kind can be started here.
    pub(crate) fn serves(&self, kind: &SessionKind) -> bool {
        self.factory_of(kind).is_some()
    }

    /// Who starts runners for sessions of a kind.
    pub(crate) fn factory_of(&self, kind: &SessionKind) -> Option<&Arc<dyn RunnerFactory>> {
        self.factories.iter().find(|factory| factory.serves(kind))
    }

    /// What sessions of a kind can do.
    pub(crate) fn capabilities_of(&self, kind: &SessionKind) -> Capabilities {
        self.factory_of(kind)
            .map_or_else(|| Capabilities::of_kind(kind), |factory| factory.capabilities(kind))
    }

    /// Refuses what needs a worker where there is none of the kind.
    pub(crate) fn must_serve(&self, kind: &SessionKind) -> Result<(), Error> {
        if self.serves(kind) { Ok(()) } else { Err(Error::KernelUnknown { kind: kind.clone() }) }
    }

    /// What a runner of a session is started for.
    pub(crate) fn runner_spec(&self, session: &Session, epoch: Epoch) -> RunnerSpec {
        RunnerSpec {
            session: session.id,
            epoch,
            kind: session.kind.clone(),
            owner: session.owner.clone(),
            working_directory: PathBuf::from(&session.working_directory),
            project: session.project.as_ref().map(PathBuf::from),
            arguments: session.arguments.clone(),
            environment: self.environments.of(session.id),
            conversation: None,
            gathered: None,
        }
    }

    /// Refuses to create what could not be started here.
    pub(crate) async fn must_find(
        &self,
        kind: &SessionKind,
        folder: &Path,
        environment: &Environment,
    ) -> Result<(), Error> {
        match self.factory_of(kind) {
            Some(factory) => factory.find(kind, folder, environment).await,
            None => Err(Error::KernelUnknown { kind: kind.clone() }),
        }
    }

    /// What a session that is to be created is for.
    pub(crate) async fn project_of(&self, create: &CreateSession) -> Result<ChosenProject, Error> {
        match self.factory_of(&create.kind) {
            Some(factory) => factory.project(Path::new(&create.working_directory), &create.project).await,
            // What only reads an agent's conversation needs nobody who goes on with it.
            None => Ok(ChosenProject::Nothing),
        }
    }

    /// What the compiler of a session that is to be created is told.
    pub(crate) fn arguments_of(&self, create: &CreateSession) -> Result<Vec<String>, Error> {
        match self.factory_of(&create.kind) {
            Some(factory) => factory.arguments(&create.arguments),
            None => Ok(Vec::new()),
        }
    }
}
