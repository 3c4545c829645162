//! The first request of a connection of the local socket that speaks ARCP, or asks about its sessions.

use mainstay_arcp_protocol::Dialect;
use mainstay_model::Timestamp;
use mainstay_protocol::json_rpc::Method;
use mainstay_protocol::operations::Attached;
use mainstay_runner::Environment;
use serde::{Deserialize, Serialize};

/// Shows the token, and turns a connection of the local socket into one of ARCP, an envelope a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttachArcp {
    /// The token of the principal that the client stands for.
    pub token: String,
    /// The folder the client works in, absolute: where sessions work whose job names no folder.
    #[serde(default)]
    pub working_directory: Option<String>,
    /// What the client has in its environment: the sessions that it creates get it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Environment>,
    /// What the connection is for.
    #[serde(default, skip_serializing_if = "Purpose::is_serve")]
    pub purpose: Purpose,
}

/// What a connection of the local socket is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Purpose {
    /// The client speaks ARCP over it.
    #[default]
    Serve,
    /// The client is told what a session of its principal was told, behind a number, and nothing else.
    Replay {
        /// The name of the session.
        session: String,
        /// The number behind which it begins.
        after: u64,
    },
    /// The client is told which sessions its principal can resume, each as a line of JSON ([`ResumableSession`]).
    Sessions,
}

impl Purpose {
    fn is_serve(&self) -> bool {
        *self == Self::Serve
    }
}

/// A session that can be resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResumableSession {
    /// The name of the session.
    pub session: String,
    /// What the client calls itself.
    pub client: String,
    /// The dialect that the client speaks.
    pub dialect: Dialect,
    /// When the session was opened.
    pub opened_at: Timestamp,
    /// Until when the session can be resumed, as it is now.
    pub expires_at: Timestamp,
    /// The features that both sides have.
    pub features: Vec<String>,
    /// Whether its client has closed it.
    pub is_closed: bool,
}

impl Method for AttachArcp {
    const NAME: &'static str = "arcp/attach";
    type Answer = Attached;
}
