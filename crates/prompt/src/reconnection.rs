//! When the daemon goes away: find out whether that was meant, get another, and go on with the same session.

use std::time::Duration;

use mainstay_home::Home;
use mainstay_model::Error;
use mainstay_protocol::operations::GetSession;
use mainstay_terminal::{note, printable, show_error};
use mainstay_terminal_client::connect::{Connection, connect, connect_or_start};
use mainstay_terminal_client::link::Link;
use tokio::time::{Instant, sleep};

use crate::prompt_loop::{CLIENT_NAME, PromptLoop};

/// How long a daemon that stops in order may take until it counts as gone.
const LAST_WORDS: Duration = Duration::from_secs(20);
/// How long a supervisor is given to start another daemon before the client does.
const SUPERVISOR: Duration = Duration::from_secs(2);
/// The time between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(50);

/// What became of a daemon.
enum DaemonFate {
    /// It was told to stop.
    Stopped,
    /// The daemon crashed, or was killed.
    Crashed,
    /// It, or another in its place, can be reached.
    There(Box<Connection>),
}

impl PromptLoop {
    /// Connects again and goes on with the session; says whether that worked. A daemon that was told to stop is not started
    /// again before something is to be done.
    pub(crate) async fn reconnect(&mut self) -> bool {
        let was_parted = std::mem::replace(&mut self.is_disconnected, false);
        let connection = if was_parted {
            note("starting the daemon …");
            self.start_again().await
        } else {
            note("the connection to the daemon is lost");
            self.find_again().await
        };
        let resumed = match connection {
            Ok(Some(connection)) => self.resume(connection).await,
            Ok(None) => Ok(false),
            Err(error) => Err(error),
        };
        let is_back = resumed.unwrap_or_else(|error| {
            show_error(&error);
            false
        });
        self.is_disconnected = !is_back;
        self.update_source();
        is_back
    }

    async fn find_again(&mut self) -> Result<Option<Connection>, Error> {
        let pid = self.link.client.daemon.pid;
        let home = self.home.clone();
        let fate = tokio::select! {
            fate = fate(&home, pid) => fate,
            _ = self.interrupts.recv() => return Ok(None),
        };
        match fate {
            DaemonFate::There(connection) => Ok(Some(*connection)),
            DaemonFate::Stopped => {
                note("the daemon was stopped; what you run next starts it again");
                Ok(None)
            }
            DaemonFate::Crashed => {
                note("the daemon ended unexpectedly; starting another …");
                self.start_again().await
            }
        }
    }

    async fn start_again(&mut self) -> Result<Option<Connection>, Error> {
        tokio::select! {
            connection = connect_or_start(&self.home, CLIENT_NAME) => connection.map(Some),
            _ = self.interrupts.recv() => {
                note("not connected; what you run next tries again");
                Ok(None)
            }
        }
    }

    async fn resume(&mut self, connection: Connection) -> Result<bool, Error> {
        let session = connection.client.call(GetSession { session: self.link.reference() }).await?;
        let session = self.settled(&connection.client, session).await?;
        note(&format!("connected again: {} is {}", printable(&session.name), session.state));
        self.link = Link::resume(connection, session, self.link.seen()).await?;
        Ok(true)
    }
}

/// What becomes of a daemon whose connection is lost. One that stops in order takes its record with it.
async fn fate(home: &Home, pid: u32) -> DaemonFate {
    let began = Instant::now();
    let mut crashed_at = None;
    loop {
        let record = home.daemon();
        match record {
            None => return DaemonFate::Stopped,
            Some(record) if record.pid == pid && !record.is_alive() => {
                let crashed_at = *crashed_at.get_or_insert_with(Instant::now);
                if crashed_at.elapsed() >= SUPERVISOR {
                    return DaemonFate::Crashed;
                }
            }
            Some(_) => {
                if let Ok(connection) = connect(home, CLIENT_NAME).await {
                    return DaemonFate::There(Box::new(connection));
                }
            }
        }
        if began.elapsed() >= LAST_WORDS {
            return DaemonFate::Crashed;
        }
        sleep(PAUSE).await;
    }
}
