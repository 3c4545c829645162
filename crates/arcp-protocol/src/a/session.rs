//! Sessions: opened, authenticated, refreshed, evicted, closed. Source: draft-arcp-01, 8 and 9.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Capabilities;
use super::error::ErrorCode;
use super::payload::payloads;

/// How a client shows who it is. Source: draft-arcp-01, 8.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuthScheme {
    /// An opaque token that the runtime knows.
    Bearer,
    /// A certificate that the transport has checked.
    Mtls,
    /// An access token of OAuth 2.0.
    Oauth2,
    /// A JWT that is signed for this runtime.
    SignedJwt,
    /// Nothing, where anonymous clients are allowed.
    None,
}

payloads! {
    /// The credentials of a client. Source: draft-arcp-01, 8.2.
    Auth {
        /// How the client shows who it is.
        scheme: AuthScheme,
    } optional {
        /// The token of the scheme.
        token: String,
    }

    /// What a client or a runtime is. Source: draft-arcp-01, 8.2 and 8.3.
    Identity {
        /// The name of the program.
        kind: String,
    } optional {
        /// The version of the program.
        version: String,
        /// The hash that identifies the program or its certificate.
        fingerprint: String,
        /// Whom the client acts for.
        principal: String,
        /// How far the runtime is trusted.
        trust_level: TrustLevel,
    }

    /// A client opens a session. Source: draft-arcp-01, 8.1.
    SessionOpen {} optional {
        /// The credentials of the client.
        auth: Auth,
        /// What the client is.
        client: Identity,
        /// What the client can do.
        capabilities: Capabilities,
    }

    /// The runtime wants better credentials. Source: draft-arcp-01, 8.1.
    SessionChallenge {} optional {
        /// What the answer is to prove.
        challenge: String,
        /// The schemes that would do.
        schemes: Vec<AuthScheme>,
        /// When the answer must be there.
        expires_at: Timestamp,
    }

    /// A client answers a challenge, or refreshes its session. Source: draft-arcp-01, 8.1 and 8.4.
    SessionAuthenticate {
        /// The credentials of the client.
        auth: Auth,
    } optional {}

    /// How long a session is good. Source: draft-arcp-01, 8.3.
    SessionLease {
        /// When the session must have been refreshed.
        expires_at: Timestamp,
    } optional {}

    /// A session is open. Source: draft-arcp-01, 8.3.
    SessionAccepted {
        /// The name of the session.
        session_id: String,
    } optional {
        /// What the runtime is.
        runtime: Identity,
        /// What both sides can do.
        capabilities: Capabilities,
        /// How long the session is good.
        lease: SessionLease,
    }

    /// A client has not shown who it is. Source: draft-arcp-01, 6.2.
    SessionUnauthenticated {
        /// Why its credentials are not good.
        code: ErrorCode,
        /// The same for people.
        message: String,
    } optional {}

    /// A session is refused. Source: draft-arcp-01, 7 and 8.1.
    SessionRejected {
        /// Why the session is refused.
        code: ErrorCode,
        /// The same for people.
        message: String,
    } optional {
        /// The capabilities that are wanted and not there.
        unsupported: Vec<String>,
    }

    /// A client must authenticate again. Source: draft-arcp-01, 8.4.
    SessionRefresh {
        /// When it must have done so.
        deadline: Timestamp,
    } optional {
        /// Why it must do so.
        reason: String,
    }

    /// A session was ended by its runtime. Source: draft-arcp-01, 8.5 and 10.4.
    SessionEvicted {} optional {
        /// Why, as a code of the protocol.
        code: ErrorCode,
        /// Why it was ended, in a word.
        reason: String,
        /// The same for people.
        message: String,
    }

    /// A session is closed in order. Source: draft-arcp-01, 9.
    SessionClose {} optional {
        /// Why the session is closed.
        reason: String,
        /// What becomes of its open jobs.
        jobs: OpenJobs,
    }
}

/// What becomes of the open jobs of a session that is closed. Source: draft-arcp-01, 9.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OpenJobs {
    /// They are told to stop.
    Cancel,
    /// The session is closed once they have ended.
    Complete,
    /// They go on, and can be resumed later.
    Detach,
}

/// How far someone is trusted. Source: draft-arcp-01, 15.3.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum TrustLevel {
    /// It comes from outside.
    Untrusted,
    /// It has limited access only.
    Constrained,
    /// It belongs to the house.
    Trusted,
    /// It may do everything there is.
    Privileged,
}
