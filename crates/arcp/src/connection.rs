//! A connection, whatever carries it: the first frame chooses the dialect, which serves the rest.

use futures::{Stream, StreamExt};
use mainstay_arcp_protocol::Dialect;
use mainstay_engine::Client;
use mainstay_gateway::daemon::Daemon;
use mainstay_model::Access;
use mainstay_runner::Environment;
use tokio::time::timeout;

use crate::frames::{Incoming, Outbox};
use crate::live_sessions::LiveSessions;
use crate::settings::Settings;
use crate::{a, b};

/// How much is kept of what a client calls itself, in characters.
pub(crate) const NAME_CHARS: usize = 200;

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The client closed it.
    Gone,
    /// The client has no session.
    Refused,
    /// The client does not answer.
    Silent,
    /// Another connection resumed the session.
    Replaced,
    /// The daemon goes down.
    ShutDown,
}

/// Who is connected, and to what.
pub(crate) struct Peer {
    pub(crate) daemon: Daemon,
    pub(crate) settings: Settings,
    pub(crate) live: LiveSessions,
    /// What is known of a client that was let in before its first frame.
    pub(crate) attached: Option<Attached>,
}

impl Peer {
    /// The client that shows this token, and calls itself this; none where the token is not good.
    pub(crate) fn client_of(&self, token: Option<&str>, name: &str) -> Option<Client> {
        let access = match (&self.attached, token) {
            // Whoever started the bridge has shown the token for it.
            (Some(attached), None | Some("")) => attached.access.clone(),
            (_, Some(token)) => self.daemon.tokens.access_of(token)?,
            (None, None) => return None,
        };
        let name: String = name.chars().take(NAME_CHARS).collect();
        let client = self.daemon.engine.attach(access, &format!("arcp:{name}")).as_connection();
        let environment = self.attached.as_ref().and_then(|attached| attached.environment.clone());
        Some(client.with_environment(environment))
    }
}

/// A client of the local socket, which showed the daemon's token.
pub(crate) struct Attached {
    pub(crate) access: Access,
    /// The folder in which the client works.
    pub(crate) folder: Option<String>,
    /// What the client has in its environment.
    pub(crate) environment: Option<Environment>,
}

/// Serves a connection until one of the two goes.
pub(crate) async fn serve(
    peer: Peer,
    mut incoming: impl Stream<Item = Incoming> + Send + Unpin,
    outbox: Outbox,
) -> End {
    // A client that opens nothing costs no more than its connection.
    let first = timeout(peer.settings.handshake(), first_frame(&mut incoming)).await;
    let first = match first {
        Ok(Some(Incoming::Text(text))) => text,
        Ok(Some(Incoming::Binary | Incoming::TooLarge | Incoming::Alive)) | Err(_) => return End::Refused,
        Ok(None) => return End::Gone,
    };
    match Dialect::of_first_frame(&first) {
        Ok(Dialect::B) => b::serve(peer, incoming, outbox, &first).await,
        Ok(Dialect::A) => a::serve(peer, incoming, outbox, &first).await,
        Err(error) => {
            outbox.send(b::refusal_of_frame(&error)).await;
            End::Refused
        }
    }
}

/// The first frame that the client itself sends.
async fn first_frame(incoming: &mut (impl Stream<Item = Incoming> + Unpin)) -> Option<Incoming> {
    loop {
        match incoming.next().await? {
            Incoming::Alive => {}
            frame => return Some(frame),
        }
    }
}
