//! The way to a daemon: the one that runs, of whatever version, else one that is started.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use mainstay_client::{Stream, attach};
use mainstay_home::environment::client_environment;
use mainstay_home::{DaemonRecord, Home};
use mainstay_mcp::AttachMcp;
use mainstay_model::{Error, SessionId};
use mainstay_terminal_client::connect::{StartOptions, start};

use super::core::DaemonEnd;

/// What it takes to reach a daemon.
#[derive(Clone)]
pub(super) struct Reach {
    home: Home,
    /// The folder that the client works in.
    folder: String,
    /// The process id of the daemon whose answer is waited for; 0 while none is.
    asked: Arc<AtomicU32>,
}

/// A daemon that was reached.
pub(super) struct Reached {
    pub(super) stream: Stream,
    pub(super) version: String,
    /// What the home says of the daemon that was reached.
    pub(super) record: DaemonRecord,
}

impl Reach {
    pub(super) fn new(home: Home, folder: String) -> Self {
        Self { home, folder, asked: Arc::default() }
    }

    /// The daemon whose answer is waited for.
    pub(super) fn asked(&self) -> Option<u32> {
        Some(self.asked.load(Ordering::Relaxed)).filter(|pid| *pid != 0)
    }

    /// Connects to the daemon, for a client that used this session last. Where none runs, one is started if that is wanted.
    pub(super) async fn daemon(self, session: Option<SessionId>, starts: bool) -> Result<Reached, Error> {
        match self.running(session).await {
            Err(Error::DaemonNotRunning) if starts => {
                start(&self.home, StartOptions::default()).await?;
                self.running(session).await
            }
            reached => reached,
        }
    }

    async fn running(&self, session: Option<SessionId>) -> Result<Reached, Error> {
        let record = self.home.daemon().ok_or(Error::DaemonNotRunning)?;
        // A daemon makes the token where there is none.
        let token = self.home.shown_token().ok_or(Error::DaemonNotRunning)?;
        self.asked.store(record.pid, Ordering::Relaxed);
        let working_directory = Some(self.folder.clone());
        let mcp = AttachMcp { token, working_directory, session, environment: client_environment() };
        let attached = attach(&record.socket, mcp).await;
        self.asked.store(0, Ordering::Relaxed);
        let (stream, attached) = attached?;
        Ok(Reached { stream, version: attached.version, record })
    }

    /// How a daemon has ended whose connection is lost.
    pub(super) fn end_of(&self, lost: &DaemonRecord) -> DaemonEnd {
        let begins_anew = |now: &DaemonRecord| now.begins_anew || now.started_at > lost.started_at;
        match self.home.daemon().filter(|now| now.pid == lost.pid) {
            Some(now) if begins_anew(&now) => DaemonEnd::BeginsAnew,
            Some(_) | None => DaemonEnd::Lost,
        }
    }
}

/// Whether a daemon may be reached a little later.
pub(super) fn is_passing(error: &Error) -> bool {
    matches!(
        error,
        Error::DaemonNotRunning
            | Error::DaemonStopping
            | Error::StoreLocked
            | Error::TooManyConnections { .. }
    )
}
