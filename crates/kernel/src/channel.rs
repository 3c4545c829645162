//! The channel to a worker: a local socket of this one start, and the first frames on it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use futures::{SinkExt, StreamExt};
use mainstay_model::{Error, RunnerInfo};
use mainstay_runner::{WarmUpPhase, WarmUpProgress};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio_util::codec::{FramedRead, FramedWrite, LengthDelimitedCodec};
use uuid::Uuid;

use crate::protocol::{FromWorker, PROTOCOL, ToWorker, decode, encode, frames};
use crate::startup_context::{ReadyMessage, StartupContext};

/// Frames from the worker.
pub(crate) type Incoming = FramedRead<OwnedReadHalf, LengthDelimitedCodec>;
/// Frames to the worker.
pub(crate) type Outgoing = FramedWrite<OwnedWriteHalf, LengthDelimitedCodec>;

/// How long whoever connects may take to say who it is.
const FIRST_FRAME: std::time::Duration = std::time::Duration::from_secs(10);

/// The id of the request that comes before a session.
const STANDBY_ID: u64 = 0;

/// The id of the request that begins a session; those after it count on.
pub(crate) const HELLO_ID: u64 = 1;

/// A socket that waits for one worker.
pub(crate) struct WorkerListener {
    listener: UnixListener,
    path: PathBuf,
    token: String,
}

impl WorkerListener {
    /// Opens a socket in `folder`, which must be the user's alone.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`] where it cannot be made.
    pub(crate) fn open(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(format!("{}.sock", Uuid::new_v4().simple()));
        let listener = UnixListener::bind(&path)
            .map_err(|error| failed(format!("the socket `{}` cannot be made: {error}", path.display())))?;
        Ok(Self { listener, path, token: Uuid::new_v4().simple().to_string() })
    }

    /// What the worker is told.
    pub(crate) fn address(&self) -> String {
        format!("unix:{}", self.path.display())
    }

    /// The secret the worker shows.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Waits for the worker; whoever shows another token is sent away.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`] where the socket fails.
    pub(crate) async fn accept(&self) -> Result<(Incoming, Outgoing), Error> {
        loop {
            let (stream, _) = self.listener.accept().await.map_err(|error| failed(error.to_string()))?;
            let (mut incoming, outgoing) = split(stream);
            let Ok(Some(Ok(frame))) = tokio::time::timeout(FIRST_FRAME, incoming.next()).await else {
                continue;
            };
            match decode(&frame) {
                Ok(FromWorker::Attach { token, protocol: PROTOCOL }) if token == self.token => {
                    return Ok((incoming, outgoing));
                }
                Ok(FromWorker::Attach { token, protocol }) if token == self.token => {
                    return Err(failed(format!("the worker speaks protocol {protocol}, not {PROTOCOL}")));
                }
                Ok(_) | Err(_) => tracing::warn!("a stranger knocked at a worker's socket"),
            }
        }
    }
}

impl Drop for WorkerListener {
    fn drop(&mut self) {
        // A socket that stays behind does no harm; its folder goes with the daemon.
        std::fs::remove_file(&self.path).ok();
    }
}

/// Has a worker get ready for a session that is not known yet, which is likely to have these arguments; gives its process.
///
/// # Errors
/// [`Error::WorkerFailed`] where the worker refuses or goes away.
pub(crate) async fn stand_by(
    incoming: &mut Incoming,
    outgoing: &mut Outgoing,
    arguments: Vec<String>,
) -> Result<u32, Error> {
    let request = ToWorker::StandBy { id: STANDBY_ID, arguments };
    outgoing.send(encode(&request)?).await.map_err(|error| failed(error.to_string()))?;
    while let Some(frame) = incoming.next().await {
        match decode(&frame.map_err(|error| failed(error.to_string()))?)? {
            FromWorker::StandsBy { id: STANDBY_ID, pid } => return Ok(pid),
            FromWorker::Failed { message, .. } => return Err(failed(message)),
            _ => {}
        }
    }
    Err(failed("it ended before it stood by".to_owned()))
}

/// Begins a session of the language, and waits until it accepts code. `variables` is what the worker's environment lacks.
///
/// # Errors
/// [`Error::WorkerFailed`] where the worker refuses or goes away.
pub(crate) async fn greet(
    incoming: &mut Incoming,
    outgoing: &mut Outgoing,
    beginning: &StartupContext,
    variables: &BTreeMap<String, String>,
) -> Result<RunnerInfo, Error> {
    let hello = ToWorker::Hello {
        id: HELLO_ID,
        protocol: PROTOCOL,
        working_directory: beginning.working_directory.display().to_string(),
        variables: variables.clone(),
        references: Vec::new(),
        arguments: beginning.hello_arguments(),
        project: beginning.hello_project(),
        profiles: beginning.hello_profiles(),
    };
    outgoing.send(encode(&hello)?).await.map_err(|error| failed(error.to_string()))?;
    loop {
        let frame = match incoming.next().await {
            Some(frame) => frame.map_err(|error| failed(error.to_string()))?,
            None => return Err(failed("it ended before it was ready".to_owned())),
        };
        match decode(&frame)? {
            FromWorker::Ready { id: HELLO_ID, kernel, version, runtime, pid, environment, startup } => {
                let kernel = kernel_name(&kernel, &version);
                return Ok(beginning.info(ReadyMessage { kernel, runtime, pid, environment, startup }));
            }
            FromWorker::Failed { message, .. } => return Err(failed(message)),
            FromWorker::Progress { phase, done, total } => {
                if let Some(phase) = phase_of(&phase) {
                    beginning.report.say(WarmUpProgress { phase, done, total });
                }
            }
            FromWorker::Attach { .. }
            | FromWorker::Ready { .. }
            | FromWorker::StandsBy { .. }
            | FromWorker::Compiled { .. }
            | FromWorker::Result(_)
            | FromWorker::Diagnostics { .. }
            | FromWorker::Completions { .. }
            | FromWorker::Members { .. }
            | FromWorker::Symbols { .. }
            | FromWorker::Values { .. }
            | FromWorker::Tests { .. }
            | FromWorker::Coverage { .. }
            | FromWorker::Measured { .. }
            | FromWorker::MeasuredTaken { .. }
            | FromWorker::Review { .. }
            | FromWorker::Descriptions { .. }
            | FromWorker::Swapped { .. }
            | FromWorker::Asks { .. }
            | FromWorker::Output { .. }
            | FromWorker::Display { .. }
            | FromWorker::Application { .. }
            | FromWorker::Interrupted { .. }
            | FromWorker::Ending { .. } => {}
        }
    }
}

/// A phase that is told of; others are passed over.
fn phase_of(name: &str) -> Option<WarmUpPhase> {
    serde_json::from_value(name.into()).ok()
}

/// How a kernel is called in events: its kind and the version of the language tool.
pub(crate) fn kernel_name(kernel: &str, version: &str) -> String {
    format!("{kernel} {version}")
}

fn split(stream: UnixStream) -> (Incoming, Outgoing) {
    let (read, write) = stream.into_split();
    (FramedRead::new(read, frames()), FramedWrite::new(write, frames()))
}

fn failed(reason: String) -> Error {
    Error::WorkerFailed { reason }
}
