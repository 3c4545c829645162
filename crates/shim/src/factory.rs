//! A factory that starts in shims what another starts in its own process, and finds again what has outlived its daemon.

use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mainstay_model::{
    AgentState, Capabilities, ChosenProject, Error, Limits, ProjectChoice, SessionId, SessionKind,
};
use mainstay_runner::{
    Environment, FoundRunner, RunnerFactory, RunnerSpec, StartObserver, StartedRunner, StoredProgress,
};
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::activity::Activity;
use crate::ending::{FAREWELL, end, lives, remove_sockets, wait_for_end};
use crate::folder::{ShimFolder, ShimRecord, make_sockets, socket_in};
use crate::leftover::Leftover;
use crate::messages::{FromShim, Hello, OLDEST_PROTOCOL, PROTOCOL, Purpose, Refusal, Terms, Welcome};
use crate::proxy::{ShimProcess, started};
use crate::standby::{Standby, StandbyKeeper, StandbyTerms};
use crate::stream::{Incoming, Outgoing, connect, greet};

/// Counts runners that were started, by kind and by whether their process was started ahead.
const STARTS: &str = "mainstay_runner_starts_total";

/// How long a shim may take to answer. One whose machine is busy or whose disk is slow must not lose what it runs.
pub(crate) const GREETING: Duration = Duration::from_secs(10);

/// Starts the process of a shim ([`host::serve`](crate::host::serve)), for this folder of a session and with this socket. It must belong
/// to nobody: neither the end of this process nor that of its group or terminal may reach it. It may block for some milliseconds.
pub type LaunchShim = Arc<dyn Fn(&ShimFolder, UnixListener) -> std::io::Result<()> + Send + Sync>;

/// How shims are started.
#[derive(Clone)]
pub struct ShimSettings {
    /// Starts the process of one.
    pub launch: LaunchShim,
    /// The folder of all shims of the home.
    pub shims: PathBuf,
    /// The folder of sockets.
    pub run: PathBuf,
    /// What a shim makes the runner's factory from. It may hold secrets of the user.
    pub factory: Value,
    /// How shims behave without a daemon. Where they are not to live without one at all (`orphan_ms` is 0), runners are started in this
    /// process.
    pub terms: Terms,
    /// When a process is started ahead; none where never.
    pub standby: Option<StandbyTerms>,
    /// What users wait for just now, in all shims of the daemon.
    pub activity: Activity,
}

/// Starts in shims what `inner` starts.
pub struct Shims {
    inner: Arc<dyn RunnerFactory>,
    settings: Arc<ShimSettings>,
    standby: StandbyKeeper,
}

impl Shims {
    /// Starts in shims what this factory starts.
    pub fn around(inner: Arc<dyn RunnerFactory>, settings: Arc<ShimSettings>) -> Self {
        Self { inner, standby: StandbyKeeper::new(Arc::clone(&settings)), settings }
    }

    fn folder(&self, session: SessionId) -> ShimFolder {
        ShimFolder::of(&self.settings.shims, session)
    }

    /// Waits for the end of the shim that was there before: it was told to end, and what lies on disk for it goes with it.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`] where it is that of an owner who came later.
    async fn make_way(&self, spec: &RunnerSpec) -> Result<(), Error> {
        let Some(record) = self.folder(spec.session).record().filter(lives) else { return Ok(()) };
        if record.epoch > spec.epoch {
            let newest = record.epoch;
            return Err(refused(&Refusal::StaleEpoch { newest }));
        }
        end(&record).await;
        Ok(())
    }

    /// Starts a runner in a shim that is started for it.
    async fn start_anew(&self, spec: RunnerSpec, observer: &StartObserver) -> Result<StartedRunner, Error> {
        self.make_way(&spec).await?;
        let stream = launch_shim(&self.settings, &self.folder(spec.session)).await?;
        let hello = self.hello(spec, uuid::Uuid::new_v4().simple().to_string());
        let (incoming, outgoing, welcome) = greet(stream, &hello, GREETING).await?;
        let process = obeying(&welcome)?;
        self.started(incoming, outgoing, process, observer).await?
    }

    /// Starts a runner in a shim that stood by.
    ///
    /// # Errors
    /// The shim is gone, and nothing has come of it; what the runner itself failed with is the inner error.
    async fn hand_over(
        &self,
        standby: Standby,
        spec: RunnerSpec,
        observer: &StartObserver,
    ) -> Result<Result<StartedRunner, Error>, Error> {
        self.make_way(&spec).await?;
        let Standby { token, mut incoming, mut outgoing, process, .. } = standby;
        outgoing.send(&self.hello(spec, token)).await?;
        let welcome = timeout(GREETING, incoming.next::<Welcome>()).await.map_err(|_| its_shim_ended())?;
        obeying(&welcome?.ok_or_else(its_shim_ended)?)?;
        self.started(incoming, outgoing, process, observer).await
    }

    fn hello(&self, spec: RunnerSpec, token: String) -> Hello {
        let ShimSettings { factory, terms, .. } = self.settings.as_ref();
        Hello {
            protocol: PROTOCOL,
            oldest_protocol: OLDEST_PROTOCOL,
            token,
            session: spec.session,
            epoch: spec.epoch,
            purpose: Purpose::Start { spec: Box::new(spec), settings: factory.clone(), terms: *terms },
        }
    }

    /// Waits until a shim that obeys has started its runner.
    async fn started(
        &self,
        mut incoming: Incoming,
        outgoing: Outgoing,
        process: ShimProcess,
        observer: &StartObserver,
    ) -> Result<Result<StartedRunner, Error>, Error> {
        loop {
            match incoming.next::<FromShim>().await? {
                Some(FromShim::Progress { progress }) => observer.report.say(progress),
                Some(FromShim::StartLines { lines }) => observer.last_lines.keep(lines),
                Some(FromShim::Started { runner }) => {
                    let first = mainstay_model::NoticeNumber::default().next();
                    let activity = &self.settings.activity;
                    return Ok(Ok(started(runner, first, process, incoming, outgoing, activity)));
                }
                Some(FromShim::NotStarted { error }) => return Ok(Err(error)),
                Some(FromShim::Notice { .. } | FromShim::Answer { .. } | FromShim::StandsBy { .. }) => {
                    return Err(beside_the_point());
                }
                None => return Err(its_shim_ended()),
            }
        }
    }

    /// Starts a runner, in the standby where that has this plan.
    async fn start_with(
        &self,
        plan: Option<&Value>,
        spec: RunnerSpec,
        observer: &StartObserver,
    ) -> Result<StartedRunner, Error> {
        let standby = match plan {
            Some(plan) => self.standby.take(plan).await,
            None => None,
        };
        let kind = spec.kind.to_string();
        if let Some(standby) = standby {
            match self.hand_over(standby, spec.clone(), observer).await {
                Ok(started) => {
                    metrics::counter!(STARTS, "kind" => kind, "process" => "standby").increment(1);
                    return started;
                }
                Err(error) => tracing::warn!(%error, "a process that was started ahead could not be taken"),
            }
        }
        metrics::counter!(STARTS, "kind" => kind, "process" => "new").increment(1);
        self.start_anew(spec, observer).await
    }

    /// Says hello to the shim of a record, and continues it where it is suspended; none where it is gone.
    async fn visit(
        &self,
        record: &ShimRecord,
        spec: &RunnerSpec,
        purpose: Purpose,
    ) -> Result<Option<(Incoming, Outgoing, Welcome)>, Error> {
        let Some(stream) = connect(&record.socket).await? else { return Ok(None) };
        ShimProcess { pid: record.pid, started: record.started }.wake();
        let hello = Hello {
            protocol: PROTOCOL,
            oldest_protocol: OLDEST_PROTOCOL,
            token: record.token.clone(),
            session: spec.session,
            epoch: spec.epoch,
            purpose,
        };
        greet(stream, &hello, GREETING).await.map(Some)
    }
}

#[async_trait]
impl RunnerFactory for Shims {
    fn serves(&self, kind: &SessionKind) -> bool {
        self.inner.serves(kind)
    }

    fn capabilities(&self, kind: &SessionKind) -> Capabilities {
        self.inner.capabilities(kind)
    }

    fn cancel_grace_ms(&self, kind: &SessionKind, limits: &Limits) -> u64 {
        self.inner.cancel_grace_ms(kind, limits)
    }

    fn beginning(&self, folder: &Path, environment: &Environment) -> AgentState {
        self.inner.beginning(folder, environment)
    }

    async fn find(&self, kind: &SessionKind, folder: &Path, environment: &Environment) -> Result<(), Error> {
        self.inner.find(kind, folder, environment).await
    }

    async fn project(&self, folder: &Path, wanted: &ProjectChoice) -> Result<ChosenProject, Error> {
        self.inner.project(folder, wanted).await
    }

    fn arguments(&self, asked: &[String]) -> Result<Vec<String>, Error> {
        self.inner.arguments(asked)
    }

    async fn prepare(&self, spec: &RunnerSpec) -> Result<(), Error> {
        self.inner.prepare(spec).await
    }

    async fn gather(&self, spec: &RunnerSpec, observer: &StartObserver) -> Result<Option<Value>, Error> {
        self.inner.gather(spec, observer).await
    }

    async fn start(&self, spec: RunnerSpec, observer: StartObserver) -> Result<StartedRunner, Error> {
        if self.settings.terms.orphan_ms == 0 {
            return self.inner.start(spec, observer).await;
        }
        let _waits = self.settings.activity.begins();
        let plan = match self.standby.is_on() {
            true => self.inner.standby_plan(&spec).await,
            false => None,
        };
        let kind = spec.kind.clone();
        let started = self.start_with(plan.as_ref(), spec, &observer).await?;
        if let Some(plan) = plan {
            self.standby.want(kind, plan);
        }
        Ok(started)
    }

    /// In this process: it is to end with the daemon.
    async fn start_mirror(&self, spec: RunnerSpec, observer: StartObserver) -> Result<StartedRunner, Error> {
        let _waits = self.settings.activity.begins();
        self.inner.start_mirror(spec, observer).await
    }

    async fn adopt(&self, spec: &RunnerSpec, stored: StoredProgress) -> Result<Option<FoundRunner>, Error> {
        let folder = self.folder(spec.session);
        let left = || Leftover::of(&folder, stored, spec.epoch);
        let Some(record) = folder.record() else { return Ok(left()) };
        let visited = match self.visit(&record, spec, Purpose::Adopt { stored }).await {
            Ok(visited) => visited,
            // It may be just ending, and leaves then what it has to say.
            Err(_) if timeout(FAREWELL, wait_for_end(&record)).await.is_ok() => return Ok(left()),
            Err(error) => return Err(error),
        };
        match visited {
            Some((incoming, outgoing, Welcome::Adopted { pid, runner, next, given, is_gone, .. })) => {
                let process = ShimProcess::of(pid);
                let activity = &self.settings.activity;
                let started = started(runner, next, process, incoming, outgoing, activity);
                Ok(Some(FoundRunner { started, given, is_gone }))
            }
            Some((_, _, Welcome::Refused { reason: Refusal::NoRunner })) => Ok(left()),
            None => match timeout(FAREWELL, wait_for_end(&record)).await {
                Ok(()) => Ok(left()),
                Err(_) => Err(Error::WorkerFailed {
                    reason: format!("its shim (process {}) lives, and its socket is gone", record.pid),
                }),
            },
            Some((_, _, Welcome::Refused { reason })) => Err(refused(&reason)),
            Some((_, _, Welcome::Obeys { .. })) => Ok(None),
        }
    }

    async fn end_left(&self, spec: &RunnerSpec) {
        let folder = self.folder(spec.session);
        if let Some(record) = folder.record() {
            let visited = self.visit(&record, spec, Purpose::End).await;
            let has_ended = match visited {
                Ok(Some((mut incoming, _outgoing, Welcome::Obeys { .. }))) => {
                    let end = async { while let Ok(Some(_)) = incoming.next::<FromShim>().await {} };
                    timeout(FAREWELL, end).await.is_ok()
                }
                Ok(None) => !lives(&record),
                Ok(Some(_)) | Err(_) => false,
            };
            match has_ended {
                true => remove_sockets(&record).await,
                false => drop(end(&record).await),
            }
        }
        folder.remove();
        self.inner.end_left(spec).await;
    }

    async fn kept(&self) -> Vec<SessionId> {
        let mut kept = self.inner.kept().await;
        kept.extend(ShimFolder::sessions(&self.settings.shims));
        kept.sort_unstable();
        kept.dedup();
        kept
    }

    async fn forget(&self, session: SessionId) {
        let folder = self.folder(session);
        if let Some(record) = folder.record() {
            end(&record).await;
        }
        folder.remove();
        self.inner.forget(session).await;
    }
}

/// Starts the process of a shim with this folder, which is made, and connects to it.
pub(crate) async fn launch_shim(settings: &ShimSettings, folder: &ShimFolder) -> Result<UnixStream, Error> {
    folder.make()?;
    let socket = socket_in(&make_sockets(&settings.run)?);
    let listener = UnixListener::bind(&socket).map_err(|error| unavailable(&error))?;
    let (launch, folder) = (Arc::clone(&settings.launch), folder.clone());
    let launched = tokio::task::spawn_blocking(move || launch(&folder, listener)).await;
    launched.unwrap_or_else(|ended| Err(ended.into())).map_err(|error| unavailable(&error))?;
    let began = connect(&socket).await?;
    began.ok_or_else(|| Error::WorkerFailed { reason: "its shim ended before it began".to_owned() })
}

/// The process of a shim that was told to start a runner.
fn obeying(welcome: &Welcome) -> Result<ShimProcess, Error> {
    match welcome {
        Welcome::Obeys { pid, .. } => Ok(ShimProcess::of(*pid)),
        Welcome::Refused { reason } => Err(refused(reason)),
        Welcome::Adopted { .. } => Err(beside_the_point()),
    }
}

fn its_shim_ended() -> Error {
    Error::WorkerFailed { reason: "its shim ended".to_owned() }
}

fn refused(reason: &Refusal) -> Error {
    Error::WorkerFailed { reason: format!("its shim does not obey: {reason}") }
}

fn beside_the_point() -> Error {
    Error::WorkerFailed { reason: "its shim said something that does not belong there".to_owned() }
}

fn unavailable(error: &std::io::Error) -> Error {
    Error::KernelUnavailable { reason: format!("its shim cannot be started: {error}") }
}
