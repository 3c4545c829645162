//! The error codes of dialect A. Source: draft-arcp-01, 18.2 and 18.3.

use serde::{Deserialize, Serialize};

macro_rules! error_codes {
    ($($variant:ident, $name:literal, $retryable:literal;)*) => {
        /// An error code of the draft, or one of a deployment. Source: draft-arcp-01, 18.2.
        #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(from = "String", into = "String")]
        pub enum ErrorCode {
            $(#[doc = concat!("The error code with wire name `", $name, "`.")] $variant,)*
            /// A code that the draft does not have, kept as it was read.
            Other(String),
        }

        impl ErrorCode {
            /// The codes of the draft, in its order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name of the code in a payload.
            pub fn name(&self) -> &str {
                match self { $(Self::$variant => $name,)* Self::Other(name) => name }
            }

            /// Whether the operation may be tried again where the error does not say.
            /// Codes that the draft lists on neither side are not retryable.
            pub const fn default_retryable(&self) -> bool {
                match self { $(Self::$variant => $retryable,)* Self::Other(_) => false }
            }
        }

        impl From<&str> for ErrorCode {
            fn from(name: &str) -> Self {
                match name {
                    $($name => Self::$variant,)*
                    "RATE_LIMITED" => Self::ResourceExhausted,
                    other => Self::Other(other.to_owned()),
                }
            }
        }
    };
}

impl From<String> for ErrorCode {
    fn from(name: String) -> Self {
        Self::from(name.as_str())
    }
}

impl From<ErrorCode> for String {
    fn from(code: ErrorCode) -> Self {
        code.name().to_owned()
    }
}

error_codes! {
    Ok, "OK", false;
    Cancelled, "CANCELLED", false;
    Unknown, "UNKNOWN", false;
    InvalidArgument, "INVALID_ARGUMENT", false;
    DeadlineExceeded, "DEADLINE_EXCEEDED", true;
    NotFound, "NOT_FOUND", false;
    AlreadyExists, "ALREADY_EXISTS", false;
    PermissionDenied, "PERMISSION_DENIED", false;
    ResourceExhausted, "RESOURCE_EXHAUSTED", true;
    FailedPrecondition, "FAILED_PRECONDITION", false;
    Aborted, "ABORTED", true;
    OutOfRange, "OUT_OF_RANGE", false;
    Unimplemented, "UNIMPLEMENTED", false;
    Internal, "INTERNAL", true;
    Unavailable, "UNAVAILABLE", true;
    DataLoss, "DATA_LOSS", false;
    Unauthenticated, "UNAUTHENTICATED", false;
    HeartbeatLost, "HEARTBEAT_LOST", false;
    LeaseExpired, "LEASE_EXPIRED", false;
    LeaseRevoked, "LEASE_REVOKED", false;
    BackpressureOverflow, "BACKPRESSURE_OVERFLOW", false;
}

#[cfg(test)]
mod tests {
    use super::ErrorCode;

    #[test]
    fn the_21_codes_aliases_and_namespaced_codes_are_read() {
        assert_eq!(ErrorCode::ALL.len(), 21);
        for code in ErrorCode::ALL {
            assert_eq!(&ErrorCode::from(code.name()), code);
        }
        assert_eq!(ErrorCode::from("RATE_LIMITED"), ErrorCode::ResourceExhausted);
        assert_eq!(ErrorCode::from("arcpx.acme.QUOTA").name(), "arcpx.acme.QUOTA");
    }
}
