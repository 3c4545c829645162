//! The control of connections and of what runs. Source: draft-arcp-01, 6.3, 10.4, 10.5, 11.2 and 19.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::ErrorCode;
use super::payload::payloads;

/// What is to be cancelled. Source: draft-arcp-01, 10.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CancelTarget {
    /// A job is to be cancelled.
    Job,
    /// A stream is to be cancelled.
    Stream,
    /// A session is to be cancelled.
    Session,
}

payloads! {
    /// One side wants to hear of the other.
    Ping {} optional {
        /// What the answer repeats.
        nonce: Value,
    }

    /// One side is there, and says so.
    Pong {} optional {
        /// The nonce that is answered.
        nonce: Value,
    }

    /// A command was taken. Source: draft-arcp-01, 6.3.
    Ack {} optional {
        /// More about what was taken.
        details: Value,
    }

    /// A command was refused. Source: draft-arcp-01, 6.3 and 18.1.
    Nack {
        /// Why the command was refused.
        code: ErrorCode,
        /// The same for people.
        message: String,
    } optional {
        /// Whether the same command may succeed later.
        retryable: bool,
        /// More about what is wrong.
        details: Value,
    }

    /// A client wants something to stop. Source: draft-arcp-01, 10.4.
    Cancel {
        /// What is to stop.
        target: CancelTarget,
        /// The name of what is to stop.
        target_id: String,
    } optional {
        /// Why it is to stop.
        reason: String,
        /// How long it may take to stop in order, in milliseconds.
        deadline_ms: u64,
    }

    /// What was to be cancelled will stop. Source: draft-arcp-01, 10.4.
    CancelAccepted {} optional {
        /// How long that may take, in milliseconds.
        deadline_ms: u64,
    }

    /// What was to be cancelled goes on, or has ended. Source: draft-arcp-01, 10.4.
    CancelRefused {
        /// Why: `not_cancellable`, `already_terminal` and others.
        reason: String,
    } optional {
        /// Why, as a code of the protocol.
        code: ErrorCode,
        /// The same for people.
        message: String,
        /// More about it, such as what to do next. Source: draft-arcp-01, 18.1.
        details: Value,
    }

    /// A client wants a job to pause and to ask. Source: draft-arcp-01, 10.5.
    Interrupt {
        /// What is to pause.
        target: CancelTarget,
        /// The name of what is to pause.
        target_id: String,
    } optional {
        /// What the job is to ask about.
        prompt: String,
    }

    /// A client goes on where it was. Source: draft-arcp-01, 19.
    Resume {} optional {
        /// The last message that the client has.
        after_message_id: String,
        /// The last checkpoint that the client has.
        checkpoint_id: String,
        /// Whether streams that are open are told of too.
        include_open_streams: bool,
    }

    /// One side cannot read a stream as fast as it comes. Source: draft-arcp-01, 11.2.
    Backpressure {} optional {
        /// How many chunks it can read in a second.
        desired_rate_per_second: u64,
        /// How many bytes its buffer has left.
        buffer_remaining_bytes: u64,
        /// Why it cannot read faster.
        reason: String,
    }

    /// A client wants a checkpoint. Source: draft-arcp-01, 6.2.
    CheckpointCreate {} optional {
        /// What the checkpoint is called.
        label: String,
    }

    /// A client wants to go back to a checkpoint. Source: draft-arcp-01, 6.2.
    CheckpointRestore {
        /// The checkpoint to go back to.
        checkpoint_id: String,
    } optional {}
}
