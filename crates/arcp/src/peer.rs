//! Who is connected, to what, and how that ends.

use mainstay_engine::Client;
use mainstay_gateway::daemon::Daemon;
use mainstay_model::{Access, Timestamp};
use mainstay_runner::Environment;

use crate::live_sessions::LiveSessions;
use crate::settings::{NAME_CHARS, Settings};

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
    pub(crate) async fn client_of(&self, token: Option<&str>, name: &str) -> Option<Client> {
        let access = match (&self.attached, token) {
            // Whoever started the bridge has shown the token for it.
            (Some(attached), None | Some("")) => attached.access.clone(),
            (_, Some(token)) => self.daemon.tokens.admit(token, Timestamp::now()).await?.access,
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
