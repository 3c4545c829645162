//! The client's side: calls that wait for their answers, and the events of subscriptions.

use std::collections::HashMap;
use std::io::{Cursor, ErrorKind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use mainstay_model::{CommandId, Error, Event, Live, Outcome, Seq, SessionId};
use mainstay_runner::Environment;
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt, Chain};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::sleep;
use tokio_util::codec::{FramedParts, FramedRead, FramedWrite, LinesCodec};

use super::api::{
    Attach, Attached, EVENT_NOTIFICATION, GetCommand, LIVE_NOTIFICATION, ListEvents, Listen, LiveNotice,
    Method, WARM_UP_NOTIFICATION, WarmUpNotice,
};
use mainstay_gateway::json_rpc::{Incoming, Outgoing, Version, line};
use mainstay_gateway::notebook::{PAGE, RunRecords, known};

/// The time between two attempts to connect to a daemon that takes no connection now.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(20);

type Answer = Result<Box<RawValue>, Error>;
type PendingRequests = Arc<Mutex<Result<HashMap<u64, oneshot::Sender<Answer>>, Error>>>;

/// A connection to the daemon.
pub struct Client {
    outgoing: tokio::sync::Mutex<FramedWrite<OwnedWriteHalf, LinesCodec>>,
    /// Who waits for an answer; why the connection ended, once it has.
    waiting: PendingRequests,
    last_id: AtomicU64,
    warm_up: watch::Receiver<Option<WarmUpNotice>>,
    /// What is going on in sessions that are listened to, until someone takes it.
    live: Mutex<Option<mpsc::UnboundedReceiver<Live>>>,
    /// The daemon on the other side.
    pub daemon: Attached,
}

impl Client {
    /// Connects, shows the token, and gives the connection with the events of its subscriptions.
    ///
    /// # Errors
    /// [`Error::DaemonNotRunning`] where no daemon of this user listens; [`Error::Unauthorized`],
    /// [`Error::TooManyConnections`].
    pub async fn connect(
        socket: &Path,
        token: String,
        name: &str,
    ) -> Result<(Self, mpsc::UnboundedReceiver<Event>), Error> {
        Self::connect_with(socket, token, name, None).await
    }

    /// The same for a client that has this in its environment, which the sessions that it creates get.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub async fn connect_with(
        socket: &Path,
        token: String,
        name: &str,
        environment: Option<Environment>,
    ) -> Result<(Self, mpsc::UnboundedReceiver<Event>), Error> {
        let (read, write) = reach(socket).await?.into_split();
        let waiting: PendingRequests = Arc::new(Mutex::new(Ok(HashMap::new())));
        let (events_in, events) = mpsc::unbounded_channel();
        let (warm_up_in, warm_up) = watch::channel(None);
        let (live_in, live) = mpsc::unbounded_channel();
        let said = MessageSinks {
            waiting: Arc::clone(&waiting),
            events: events_in,
            live: live_in,
            warm_up: warm_up_in,
        };
        tokio::spawn(receive(FramedRead::new(read, LinesCodec::new()), said));
        let mut client = Self {
            outgoing: tokio::sync::Mutex::new(FramedWrite::new(write, LinesCodec::new())),
            waiting,
            last_id: AtomicU64::new(0),
            warm_up,
            live: Mutex::new(Some(live)),
            daemon: Attached {
                version: String::new(),
                pid: 0,
                principal: mainstay_model::Principal::local(),
            },
        };
        client.daemon = client.call(Attach { token, name: name.to_owned(), environment }).await?;
        Ok((client, events))
    }

    /// Calls a method and waits for its answer.
    ///
    /// # Errors
    /// What the daemon answers; as [`Client::lost`] where the connection ends.
    pub async fn call<M: Method>(&self, params: M) -> Result<M::Answer, Error> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let text = line(&Outgoing::Request { jsonrpc: Version::Two, id, method: M::NAME, params })?;
        let answer = self.expect(id)?;
        // Where nothing can be written any more, what the daemon said last is still to be read.
        self.outgoing.lock().await.send(text).await.ok();
        let result = answer.await.map_err(|_| self.lost())??;
        serde_json::from_str(result.get()).map_err(|error| Error::BadRequest {
            reason: format!("the daemon's answer to {}: {error}", M::NAME),
        })
    }

    /// What was said last of how far a followed session is that is given its definitions back.
    pub fn warm_up(&self) -> watch::Receiver<Option<WarmUpNotice>> {
        let mut warm_up = self.warm_up.clone();
        warm_up.mark_changed();
        warm_up
    }

    /// Listens to a session: what is going on in it, in order. A connection listens once.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn listen(&self, session: String) -> Result<mpsc::UnboundedReceiver<Live>, Error> {
        self.call(Listen { session }).await?;
        let taken = self.live.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.ok_or_else(|| Error::BadRequest { reason: "this connection listens already".to_owned() })
    }

    /// Why the connection ended: what the daemon said last, else that it does not run.
    pub fn lost(&self) -> Error {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.as_ref().err().cloned().unwrap_or(Error::DaemonNotRunning)
    }

    fn expect(&self, id: u64) -> Result<oneshot::Receiver<Answer>, Error> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let (sender, receiver) = oneshot::channel();
        waiting.as_mut().map_err(|error| error.clone())?.insert(id, sender);
        Ok(receiver)
    }
}

impl RunRecords for Client {
    async fn outcome(&self, command: &CommandId) -> Result<Option<Outcome>, Error> {
        known(self.call(GetCommand { command: command.clone() }).await.map(|status| status.outcome))
    }

    async fn events_after(&self, session: SessionId, after: Seq) -> Result<Vec<Event>, Error> {
        self.call(ListEvents { session: session.to_string(), after, limit: Some(PAGE) }).await
    }
}

/// Where what the daemon says goes.
struct MessageSinks {
    waiting: PendingRequests,
    events: mpsc::UnboundedSender<Event>,
    live: mpsc::UnboundedSender<Live>,
    warm_up: watch::Sender<Option<WarmUpNotice>>,
}

/// Reads answers and events until the connection ends; then nobody is left waiting.
async fn receive(mut incoming: FramedRead<OwnedReadHalf, LinesCodec>, said: MessageSinks) {
    let MessageSinks { waiting, events, live, warm_up } = said;
    let mut last_words = None;
    while let Some(Ok(text)) = incoming.next().await {
        let Ok(message) = serde_json::from_str::<Incoming>(&text) else { continue };
        last_words = None;
        match message {
            Incoming { method: Some(method), params: Some(params), .. } if method == EVENT_NOTIFICATION => {
                if let Ok(event) = serde_json::from_str(params.get()) {
                    // Nobody may be listening to events.
                    events.send(event).ok();
                }
            }
            Incoming { method: Some(method), params: Some(params), .. } if method == LIVE_NOTIFICATION => {
                if let Ok(notice) = serde_json::from_str::<LiveNotice>(params.get()) {
                    live.send(notice.live).ok();
                }
            }
            Incoming { method: Some(method), params: Some(params), .. } if method == WARM_UP_NOTIFICATION => {
                if let Ok(notice) = serde_json::from_str(params.get()) {
                    warm_up.send_replace(Some(notice));
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
                    .ok()
                    .and_then(|all| all.remove(&id));
                if let Some(asker) = asker {
                    asker.send(answer).ok();
                }
            }
            Incoming { error: Some(failure), .. } => {
                let error = failure.into();
                fail_all(&waiting, &error);
                last_words = Some(error);
            }
            Incoming { .. } => {}
        }
    }
    let ended = Err(last_words.unwrap_or(Error::DaemonNotRunning));
    *waiting.lock().unwrap_or_else(PoisonError::into_inner) = ended;
}

/// An error that names no request concerns every one.
fn fail_all(waiting: &PendingRequests, error: &Error) {
    let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
    for (_, asker) in waiting.iter_mut().flat_map(HashMap::drain) {
        asker.send(Err(error.clone())).ok();
    }
}

/// A connection that speaks another protocol from here on.
pub type Stream = (Chain<Cursor<Vec<u8>>, OwnedReadHalf>, OwnedWriteHalf);

/// Opens a connection that speaks another protocol from here on, which `attach` names. Also says which daemon answered.
///
/// # Errors
/// [`Error::DaemonNotRunning`], [`Error::Unauthorized`], [`Error::TooManyConnections`].
pub async fn attach<M: Method<Answer = Attached>>(
    socket: &Path,
    attach: M,
) -> Result<(Stream, Attached), Error> {
    let (read, write) = reach(socket).await?.into_split();
    let (mut incoming, mut outgoing) =
        (FramedRead::new(read, LinesCodec::new()), FramedWrite::new(write, LinesCodec::new()));
    let text = line(&Outgoing::Request { jsonrpc: Version::Two, id: 0, method: M::NAME, params: attach })?;
    // Where nothing can be written any more, what the daemon said last is still to be read.
    outgoing.send(text).await.ok();
    let answer = incoming.next().await.and_then(Result::ok).ok_or(Error::DaemonNotRunning)?;
    let unreadable = |error: serde_json::Error| Error::BadRequest { reason: error.to_string() };
    match serde_json::from_str::<Incoming>(&answer).map_err(unreadable)? {
        Incoming { error: Some(failure), .. } => Err(failure.into()),
        Incoming { error: None, result, .. } => {
            let result = result.as_deref().map_or("null", RawValue::get);
            let attached = serde_json::from_str(result).map_err(unreadable)?;
            // What the daemon said next may have been read already.
            let FramedParts { io, read_buf, .. } = incoming.into_parts();
            let stream = (AsyncReadExt::chain(Cursor::new(read_buf.to_vec()), io), outgoing.into_inner());
            Ok((stream, attached))
        }
    }
}

/// Connects to a daemon of this user: another's would be shown the token.
async fn reach(socket: &Path) -> Result<UnixStream, Error> {
    let stream = loop {
        match UnixStream::connect(socket).await {
            Ok(stream) => break stream,
            // It has as many clients waiting as the system lets wait: it is there, and whoever connects says how long it may take.
            Err(error) if error.kind() == ErrorKind::WouldBlock => sleep(BETWEEN_ATTEMPTS).await,
            Err(_) => return Err(Error::DaemonNotRunning),
        }
    };
    let listener = stream.peer_cred().map_err(|_| Error::DaemonNotRunning)?;
    if listener.uid() == rustix::process::geteuid().as_raw() {
        Ok(stream)
    } else {
        Err(Error::DaemonNotRunning)
    }
}
