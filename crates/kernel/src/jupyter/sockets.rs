//! The sockets of a front end, connected to a kernel that may only just be coming up.

use std::time::Duration;

use mainstay_model::Error;
use tokio::time::sleep;
use zeromq::util::PeerIdentity;
use zeromq::{DealerSocket, ReqSocket, Socket, SocketOptions};

use super::connection::{Channel, Connection};
use super::published::Published;

/// How long is waited at first before something is tried again.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// And at the most.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// All sockets of a kernel.
pub(super) struct Sockets {
    pub(super) shell: DealerSocket,
    pub(super) published: Published,
    pub(super) stdin: DealerSocket,
    pub(super) control: DealerSocket,
    pub(super) heartbeat: ReqSocket,
}

/// Pauses that become longer.
#[derive(Debug)]
pub(super) struct Pauses(Duration);

impl Pauses {
    pub(super) const fn new() -> Self {
        Self(FIRST_PAUSE)
    }

    pub(super) async fn pause(&mut self) {
        sleep(self.0).await;
        self.0 = (self.0 * 2).min(LONGEST_PAUSE);
    }
}

impl Sockets {
    /// Connects to all channels, however long the kernel takes to open them: who waits says when it has been long enough.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`] where a place of the connection file is none.
    pub(super) async fn connect(connection: &Connection, session: &str) -> Result<Self, Error> {
        let mut pauses = Pauses::new();
        while connection.sockets().iter().any(|path| !path.exists()) {
            pauses.pause().await;
        }
        // What a kernel asks on one channel it asks whoever sent the request on another.
        let identified = || {
            let mut options = SocketOptions::default();
            options.peer_identity(session.parse::<PeerIdentity>().unwrap_or_default());
            options
        };
        let dealer = || DealerSocket::with_options(identified());
        let at = |channel| connection.endpoint(channel);
        Ok(Self {
            published: Published::at(at(Channel::Iopub)).await?,
            shell: connected(&at(Channel::Shell), dealer).await?,
            stdin: connected(&at(Channel::Stdin), dealer).await?,
            control: connected(&at(Channel::Control), dealer).await?,
            heartbeat: connected(&at(Channel::Heartbeat), ReqSocket::new).await?,
        })
    }
}

/// A kernel that comes up may refuse or drop a connection that it takes a moment later.
pub(super) async fn connected<S: Socket>(endpoint: &str, new: impl Fn() -> S) -> Result<S, Error> {
    let mut pauses = Pauses::new();
    loop {
        let mut socket = new();
        match socket.connect(endpoint).await {
            Ok(()) => return Ok(socket),
            Err(zeromq::ZmqError::Endpoint(error)) => return Err(failed(&error.to_string())),
            Err(error) => tracing::debug!(%error, endpoint, "a kernel does not take a connection yet"),
        }
        pauses.pause().await;
    }
}

pub(super) fn failed(reason: &str) -> Error {
    Error::WorkerFailed { reason: reason.to_owned() }
}
