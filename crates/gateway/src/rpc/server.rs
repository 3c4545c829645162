//! The daemon's local socket: who may connect, and how many.

use std::path::Path;
use std::sync::Arc;

use mainstay_engine::Engine;
use mainstay_model::{Error, Timestamp};
use tokio::net::UnixListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::connection;

/// What every connection needs to know of the daemon.
#[derive(Clone)]
pub struct Daemon {
    /// Its sessions.
    pub engine: Engine,
    /// The secret clients show.
    pub token: Arc<str>,
    /// Its version.
    pub version: &'static str,
    /// The loopback port it listens on.
    pub port: u16,
    /// Since when it runs.
    pub started_at: Timestamp,
    /// Its home folder.
    pub home: Arc<Path>,
    /// Cancelled when the daemon is asked to stop.
    pub stop: CancellationToken,
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
    let places = Arc::new(Semaphore::new(daemon.engine.limits().connections));
    loop {
        let accepted = tokio::select! {
            () = daemon.stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else { continue };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            tracing::warn!("a connection is refused: as many as may be are open");
            continue;
        };
        let daemon = daemon.clone();
        tokio::spawn(async move {
            connection::serve(stream, daemon).await;
            drop(place);
        });
    }
}
