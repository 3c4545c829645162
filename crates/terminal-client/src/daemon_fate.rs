//! What has become of a daemon whose connection is lost: whether it was told to stop, and the way to the one that goes on in its place.

use std::time::Duration;

use mainstay_home::Home;
use mainstay_model::Error;
use tokio::time::{Instant, sleep};

use crate::connect::{Connection, connect_again, connect_any_version};

/// How long a daemon that stops in order may take until it counts as gone.
const LAST_WORDS: Duration = Duration::from_secs(20);
/// How long a supervisor is given to start another daemon before the client does.
const SUPERVISOR: Duration = Duration::from_secs(2);
/// The time between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(50);

/// What became of a daemon.
pub enum DaemonFate {
    /// It was told to stop.
    Stopped,
    /// The daemon crashed, or was killed.
    Crashed,
    /// It, or another in its place, can be reached.
    There(Box<Connection>),
}

impl DaemonFate {
    /// Waits until it is known what became of the daemon `pid`, whose connection is lost. One that stops in order takes its record with
    /// it.
    pub async fn of(home: &Home, name: &str, pid: u32) -> Self {
        let began = Instant::now();
        let mut crashed_at = None;
        loop {
            // First: one that has only begun to stop may still be reached.
            sleep(PAUSE).await;
            let record = home.daemon();
            match record {
                None => return Self::Stopped,
                Some(record) if record.pid == pid && !record.is_alive() => {
                    let crashed_at = *crashed_at.get_or_insert_with(Instant::now);
                    if crashed_at.elapsed() >= SUPERVISOR {
                        return Self::Crashed;
                    }
                }
                Some(_) => {
                    if let Ok(connection) = connect_any_version(home, name).await {
                        return Self::There(Box::new(connection));
                    }
                }
            }
            if began.elapsed() >= LAST_WORDS {
                return Self::Crashed;
            }
        }
    }
}

/// Connects to the daemon that goes on in the place of `lost`, whose connection was lost; starts it where nobody else does. One that was
/// told to stop is not started again.
///
/// # Errors
/// [`Error::DaemonNotRunning`] where it was told to stop, and what stands in the way of a connection.
pub async fn connect_to_next(home: &Home, name: &str, lost: &Connection) -> Result<Connection, Error> {
    match DaemonFate::of(home, name, lost.client.daemon.pid).await {
        DaemonFate::There(connection) => Ok(*connection),
        DaemonFate::Crashed => connect_again(home, name).await,
        DaemonFate::Stopped => Err(Error::DaemonNotRunning),
    }
}
