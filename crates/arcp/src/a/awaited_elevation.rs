//! What is kept of a request for more trust until somebody has decided. Source: draft-arcp-01, 15.6.

use mainstay_model::{AskId, Seq, SessionId};

/// How the permission is called that raises the trust in a job; the level follows.
pub(super) const PERMISSION: &str = "trust.elevate.";

/// A request of the client that is answered once somebody has decided.
pub(super) struct Awaited {
    /// The message that asks.
    pub(super) message: String,
    /// The session of the engine that has the job.
    pub(super) home: SessionId,
    /// The ask on which somebody decides.
    pub(super) ask: AskId,
    /// The event that raised the ask.
    pub(super) raised: Seq,
}
