//! The daemon itself: attaching to it, its status, its end.

use super::Nothing;
use crate::view::SessionView;
use mainstay_model::breaker::BreakerStatus;
use mainstay_model::client_info::ClientInfo;
use mainstay_model::{Limits, Principal, SessionKind, Timestamp};
use mainstay_runner::Environment;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

operations! {
    /// Shows a token. Must be the first request of a connection.
    "client/attach" Attach {
        /// The token of the principal that the client stands for.
        token: String,
        /// What the client is: `cli`, `terminal`.
        name: String,
        /// What the client has in its environment: the sessions that it creates get it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        environment: Option<Environment>,
    } -> Attached;

    /// The daemon and its sessions.
    "daemon/status" GetStatus {} -> DaemonStatus;

    /// An address that lets a browser in, once, on behalf of who asks.
    "daemon/link" GetLink {
        /// The page to open; the list of sessions where it does not say.
        #[serde(default)]
        session: Option<String>,
    } -> Link;

    /// Stops every session and ends the daemon.
    "daemon/stop" StopDaemon {} -> Nothing;

    /// Ends the daemon and begins it anew, in the same process: runners that outlive their daemon go on, and are adopted.
    "daemon/restart" RestartDaemon {
        /// The program that it begins anew as, an absolute path; the one at its own path where none is named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        program: Option<String>,
    } -> Nothing;

    /// The OpenRPC document of all methods.
    "rpc.discover" Discover {} -> serde_json::Value;
}

/// The daemon on the other side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Attached {
    /// The version of the daemon.
    pub version: String,
    /// The process id of the daemon.
    pub pid: u32,
    /// Whom it takes the client for.
    pub principal: Principal,
}

/// An address that works once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Link {
    /// The address of the page, with its token.
    pub url: String,
}

/// What the daemon says about itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DaemonStatus {
    /// The version of the daemon.
    pub version: String,
    /// The process id of the daemon.
    pub pid: u32,
    /// The loopback port it listens on.
    pub port: u16,
    /// The one on which it speaks the pi protocol alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pi_port: Option<u16>,
    /// Since when it runs.
    pub started_at: Timestamp,
    /// The home folder of the daemon.
    pub home: String,
    /// What the daemons of this home are known by, as `sha256:` and hexadecimal digits. Clients of ARCP are told the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Its resident memory, in bytes, where that can be told.
    pub resident_bytes: Option<u64>,
    /// The limits in force.
    pub limits: Limits,
    /// How many commands are under way in all sessions.
    pub commands: usize,
    /// How many sessions are being created, or wait for that.
    pub creations: usize,
    /// How many asks wait for an answer.
    pub asks: usize,
    /// How many subscriptions there are.
    pub subscribers: usize,
    /// The clients that are connected.
    pub clients: Vec<ClientInfo>,
    /// Whether runners of the kinds that were used are started.
    pub breakers: BTreeMap<SessionKind, BreakerStatus>,
    /// Whether turns begin with the providers of models that agents used.
    #[serde(default)]
    pub providers: BTreeMap<String, BreakerStatus>,
    /// The sessions that are not idle.
    pub live: Vec<SessionView>,
    /// How many sessions are stored.
    pub stored: usize,
}
