//! Which daemon of a home runs, and what a starting daemon writes for the process that started it.

use std::net::SocketAddr;
use std::path::PathBuf;

use mainstay_model::{Position, Timestamp};
use mainstay_protocol::view::ErrorView;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

/// This program's version; a daemon and its clients must have the same.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The daemon that runs, as `daemon.json` says. Source: seed 000, "Daemon State File".
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DaemonRecord {
    /// The process id of the daemon.
    pub pid: u32,
    /// The loopback port it listens on.
    pub port: u16,
    /// The address by which other machines reach it, where they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<SocketAddr>,
    /// The version of the daemon.
    pub version: String,
    /// Since when it runs.
    pub started_at: Timestamp,
    /// The local socket it listens on.
    pub socket: PathBuf,
    /// Whether it has ended and begins anew in the same process: whoever needs a daemon waits for it, and starts none beside it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub begins_anew: bool,
    /// Why it could not begin anew, where that is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl DaemonRecord {
    /// Whether the process of the daemon lives.
    pub fn is_alive(&self) -> bool {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        pid.is_some_and(|pid| test_kill_process(pid).is_ok())
    }
}

/// What a starting daemon writes for the process that started it: one line when it is ready or has failed, and lines before that while it is not
/// ready yet.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Announcement {
    /// The daemon makes the entries of an old store, and has come this far.
    Transcribes {
        /// Up to this event, in the order of the log.
        reached: Position,
        /// The position of the last event to be transcribed.
        last: Position,
    },
    /// The daemon is ready and serves clients.
    Ready(DaemonRecord),
    /// The daemon failed to start.
    Failed(ErrorView),
}

/// Says, for people, how far a daemon is that makes the entries of an old store.
pub fn transcribing(reached: Position, last: Position) -> String {
    format!("the store is made ready: {reached} of {last} events")
}
