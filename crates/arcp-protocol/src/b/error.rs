//! The codes of errors. Source: draft-arcp-1.1, 12.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $variant:ident $text:literal $retryable:literal;)*) => {
        /// A code of the protocol for what went wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $($(#[doc = $doc])* $variant,)*
        }

        impl ErrorCode {
            /// Every code there is, in the order of the draft.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The code as it is written.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }

            /// Whether the same request may succeed later, where nothing else is known.
            pub const fn is_retryable(self) -> bool {
                match self {
                    $(Self::$variant => $retryable,)*
                }
            }
        }
    };
}

codes! {
    /// A lease, or the rights of the principal, do not cover the operation.
    PermissionDenied "PERMISSION_DENIED" false;
    /// A delegated lease would do more than the one it comes from.
    LeaseSubsetViolation "LEASE_SUBSET_VIOLATION" false;
    /// There is no such job, or it may not be seen.
    JobNotFound "JOB_NOT_FOUND" false;
    /// The idempotency key stands for another job.
    DuplicateKey "DUPLICATE_KEY" false;
    /// There is no such agent.
    AgentNotAvailable "AGENT_NOT_AVAILABLE" false;
    /// The agent is not there in this version.
    AgentVersionNotAvailable "AGENT_VERSION_NOT_AVAILABLE" false;
    /// A client cancelled the job.
    Cancelled "CANCELLED" false;
    /// The job took longer than it may.
    Timeout "TIMEOUT" false;
    /// The session can no longer be resumed.
    ResumeWindowExpired "RESUME_WINDOW_EXPIRED" false;
    /// The other side was not heard of.
    HeartbeatLost "HEARTBEAT_LOST" false;
    /// The lease of the job has expired.
    LeaseExpired "LEASE_EXPIRED" false;
    /// A budget of the job is spent.
    BudgetExhausted "BUDGET_EXHAUSTED" false;
    /// The message is not as the protocol wants it.
    InvalidRequest "INVALID_REQUEST" false;
    /// The client has not shown who it is.
    Unauthenticated "UNAUTHENTICATED" false;
    /// Something failed in the runtime.
    InternalError "INTERNAL_ERROR" true;
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Something that went wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ErrorPayload {
    /// The code, of the protocol or of an agent.
    pub code: String,
    /// What went wrong, for people.
    #[serde(default)]
    pub message: String,
    /// Whether the same request may succeed later.
    #[serde(default)]
    pub retryable: bool,
    /// More about what happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

impl ErrorPayload {
    /// An error of this code.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let retryable = code.is_retryable();
        Self { code: code.as_str().to_owned(), message: message.into(), retryable, details: None }
    }
}
