//! Dialect A of ARCP, "protocol 1.0": its envelope, types and error codes. Most payload types do not live
//! here yet. Source: draft-arcp-01.

mod capabilities;
mod envelope;
mod error;
mod extension;
mod message_type;

pub use capabilities::{ArtifactRetention, Capabilities, HeartbeatRecovery};
pub use envelope::{DecodeError, Envelope, Priority, VERSION, decode};
pub use error::ErrorCode;
pub use extension::{OnUnknown, on_unknown};
pub use message_type::{Group, MessageType, Sender};
