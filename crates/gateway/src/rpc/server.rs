//! The daemon's local socket: who may connect, and how many.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mainstay_engine::Engine;
use mainstay_model::{Error, Timestamp};
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection;
use crate::bounded_listener::BoundedListener;
use crate::tokens::Tokens;
use crate::{DefaultKind, Kinds};

/// How long what is left to answer may take once every session is at rest.
pub(crate) const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// What every connection needs to know of the daemon.
#[derive(Clone)]
pub struct Daemon {
    /// The engine that runs the sessions.
    pub engine: Engine,
    /// The secrets clients show.
    pub tokens: Arc<Tokens>,
    /// The version of the daemon.
    pub version: &'static str,
    /// The loopback port it listens on.
    pub port: u16,
    /// The one on which it speaks the pi protocol alone.
    pub pi_port: Option<u16>,
    /// Since when it runs.
    pub started_at: Timestamp,
    /// The home folder of the daemon.
    pub home: Arc<Path>,
    /// What sessions are for whose kind nobody says.
    pub default_kind: DefaultKind,
    /// The kinds of sessions that are known here.
    pub kinds: Kinds,
    /// Cancelled when the daemon is asked to stop.
    pub stop: CancellationToken,
    /// Cancelled when every session is at rest: connections end once what they asked is answered.
    pub stopped: CancellationToken,
    /// What the connections of the pi protocol share.
    pub pi: Arc<crate::pi::Shared>,
    /// What requests over HTTP share.
    pub http: Arc<crate::http::Shared>,
    /// What the connections of MCP share.
    pub mcp: Arc<crate::mcp::Shared>,
    /// The connections and requests that the end of the daemon waits for.
    pub answering: TaskTracker,
}

impl Daemon {
    /// Puts every session to rest and answers what waited for that.
    pub async fn shut_down(&self) {
        self.engine.shut_down().await;
        self.stopped.cancel();
        self.answering.close();
        if tokio::time::timeout(LAST_ANSWERS, self.answering.wait()).await.is_err() {
            tracing::warn!(left = self.answering.len(), "connections are cut: their clients do not read");
        }
    }
}

/// Opens the socket, the user's alone.
///
/// # Errors
/// [`Error::DaemonFailed`].
pub fn listen(path: &Path) -> Result<UnixListener, Error> {
    use std::os::unix::fs::PermissionsExt;
    let failed = |error: std::io::Error| Error::DaemonFailed {
        reason: format!("the socket `{}` cannot be made: {error}", path.display()),
    };
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    Ok(listener)
}

/// Serves connections until the daemon stops.
pub async fn serve(listener: UnixListener, daemon: Daemon) {
    let limit = daemon.engine.limits().connections;
    let full = connection::failure(&serde_json::Value::Null, Error::TooManyConnections { limit });
    let door = BoundedListener::new(listener, limit, format!("{full}\n").into_bytes());
    while let Some((stream, place)) = door.next(&daemon.stop).await {
        let serving = daemon.clone();
        daemon.answering.spawn(async move {
            connection::serve(stream, serving).await;
            drop(place);
        });
    }
}
