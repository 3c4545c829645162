//! The client's side: calls that wait for their answers, and the events of subscriptions.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::{SinkExt, StreamExt};
use mainstay_model::{Error, Event};
use serde_json::value::RawValue;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio_util::codec::{FramedRead, FramedWrite, LinesCodec};

use super::api::{Attach, AttachMcp, Attached, EVENT_NOTIFICATION, Method};
use super::codec::{Incoming, Outgoing, Version, line};

type Answer = Result<Box<RawValue>, Error>;
type Waiting = Arc<Mutex<Option<HashMap<u64, oneshot::Sender<Answer>>>>>;

/// A connection to the daemon.
pub struct Client {
    outgoing: tokio::sync::Mutex<FramedWrite<OwnedWriteHalf, LinesCodec>>,
    waiting: Waiting,
    last_id: AtomicU64,
    /// The daemon on the other side.
    pub daemon: Attached,
}

impl Client {
    /// Connects, shows the token, and gives the connection with the events of its subscriptions.
    ///
    /// # Errors
    /// [`Error::DaemonNotRunning`] where nobody listens; [`Error::Unauthorized`].
    pub async fn connect(
        socket: &Path,
        token: String,
        name: &str,
    ) -> Result<(Self, mpsc::UnboundedReceiver<Event>), Error> {
        let stream = UnixStream::connect(socket).await.map_err(|_| Error::DaemonNotRunning)?;
        let (read, write) = stream.into_split();
        let waiting: Waiting = Arc::new(Mutex::new(Some(HashMap::new())));
        let (events_in, events) = mpsc::unbounded_channel();
        tokio::spawn(receive(FramedRead::new(read, LinesCodec::new()), Arc::clone(&waiting), events_in));
        let mut client = Self {
            outgoing: tokio::sync::Mutex::new(FramedWrite::new(write, LinesCodec::new())),
            waiting,
            last_id: AtomicU64::new(0),
            daemon: Attached {
                version: String::new(),
                pid: 0,
                principal: mainstay_model::Principal::local(),
            },
        };
        client.daemon = client.call(Attach { token, name: name.to_owned() }).await?;
        Ok((client, events))
    }

    /// Calls a method and waits for its answer.
    ///
    /// # Errors
    /// What the daemon answers; [`Error::DaemonNotRunning`] where the connection is lost.
    pub async fn call<M: Method>(&self, params: M) -> Result<M::Answer, Error> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let text = line(&Outgoing::Request { jsonrpc: Version::Two, id, method: M::NAME, params })?;
        let answer = self.expect(id)?;
        self.outgoing.lock().await.send(text).await.map_err(|_| Error::DaemonNotRunning)?;
        let result = answer.await.map_err(|_| Error::DaemonNotRunning)??;
        serde_json::from_str(result.get()).map_err(|error| Error::BadRequest {
            reason: format!("the daemon's answer to {}: {error}", M::NAME),
        })
    }

    fn expect(&self, id: u64) -> Result<oneshot::Receiver<Answer>, Error> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let (sender, receiver) = oneshot::channel();
        waiting.as_mut().ok_or(Error::DaemonNotRunning)?.insert(id, sender);
        Ok(receiver)
    }
}

/// Reads answers and events until the connection ends; then nobody is left waiting.
async fn receive(
    mut incoming: FramedRead<OwnedReadHalf, LinesCodec>,
    waiting: Waiting,
    events: mpsc::UnboundedSender<Event>,
) {
    while let Some(Ok(text)) = incoming.next().await {
        let Ok(message) = serde_json::from_str::<Incoming>(&text) else { continue };
        match message {
            Incoming { method: Some(method), params: Some(params), .. } if method == EVENT_NOTIFICATION => {
                if let Ok(event) = serde_json::from_str(params.get()) {
                    // Nobody may be listening to events.
                    events.send(event).ok();
                }
            }
            Incoming { id: Some(id), result, error, .. } => {
                let answer = match (result, error) {
                    (_, Some(failure)) => Err(failure.into()),
                    (Some(result), None) => Ok(result),
                    (None, None) => {
                        Err(Error::BadRequest { reason: "an answer without a result".to_owned() })
                    }
                };
                let asker = waiting
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .as_mut()
                    .and_then(|all| all.remove(&id));
                if let Some(asker) = asker {
                    asker.send(answer).ok();
                }
            }
            Incoming { error: Some(failure), .. } => fail_all(&waiting, &failure.into()),
            Incoming { .. } => {}
        }
    }
    waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
}

/// An error that names no request concerns every one.
fn fail_all(waiting: &Waiting, error: &Error) {
    let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
    for (_, asker) in waiting.iter_mut().flat_map(HashMap::drain) {
        asker.send(Err(error.clone())).ok();
    }
}

/// Opens a connection that speaks MCP, for a client that works in `working_directory`.
///
/// # Errors
/// [`Error::DaemonNotRunning`], [`Error::Unauthorized`].
pub async fn attach_mcp(
    socket: &Path,
    token: String,
    working_directory: String,
) -> Result<(OwnedReadHalf, OwnedWriteHalf), Error> {
    let stream = UnixStream::connect(socket).await.map_err(|_| Error::DaemonNotRunning)?;
    let (read, write) = stream.into_split();
    let (mut incoming, mut outgoing) =
        (FramedRead::new(read, LinesCodec::new()), FramedWrite::new(write, LinesCodec::new()));
    let params = AttachMcp { token, working_directory: Some(working_directory) };
    let text = line(&Outgoing::Request { jsonrpc: Version::Two, id: 0, method: AttachMcp::NAME, params })?;
    outgoing.send(text).await.map_err(|_| Error::DaemonNotRunning)?;
    let answer = incoming.next().await.and_then(Result::ok).ok_or(Error::DaemonNotRunning)?;
    match serde_json::from_str::<Incoming>(&answer) {
        // The daemon says nothing more until it is asked, so nothing is lost with the buffers.
        Ok(Incoming { error: None, .. }) => Ok((incoming.into_inner(), outgoing.into_inner())),
        Ok(Incoming { error: Some(failure), .. }) => Err(failure.into()),
        Err(error) => Err(Error::BadRequest { reason: error.to_string() }),
    }
}
