//! Dialect A of ARCP, "protocol 1.0": its messages, a file for each group of them, and its envelope. Source: draft-arcp-01.

pub mod artifact;
mod capabilities;
pub mod control;
mod envelope;
mod error;
pub mod execution;
mod extension;
pub mod human;
mod message;
mod payload;
pub mod permission;
pub mod session;
pub mod sidecar;
pub mod stream;
pub mod subscription;
pub mod telemetry;

pub use capabilities::{ArtifactRetention, Capabilities, HeartbeatRecovery};
pub use envelope::{DecodeError, Envelope, Priority, VERSION, decode};
pub use error::ErrorCode;
pub use extension::{OnUnknown, on_unknown};
pub use message::{Group, Message, MessageType, PayloadError, Sender};
