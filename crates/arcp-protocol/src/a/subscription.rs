//! Subscriptions of observers. Source: draft-arcp-01, 13.

use serde_json::Value;

use super::envelope::Priority;
use super::error::ErrorCode;
use super::payload::payloads;

payloads! {
    /// Which messages an observer wants: all conditions hold, and of each one of its values. Source: draft-arcp-01, 13.2.
    Filter {} optional {
        /// Messages of these sessions only.
        session_id: Vec<String>,
        /// Messages of these traces only.
        trace_id: Vec<String>,
        /// Messages of these jobs only.
        job_id: Vec<String>,
        /// Messages of these streams only.
        stream_id: Vec<String>,
        /// Messages of these types only.
        types: Vec<String>,
        /// Messages of at least this priority.
        min_priority: Priority,
    }

    /// Where a subscription begins. Source: draft-arcp-01, 13.1 and 13.3.
    Since {} optional {
        /// The last message that the observer has.
        after_message_id: String,
    }

    /// A client wants to be told of what happens. Source: draft-arcp-01, 13.1.
    Subscribe {} optional {
        /// What it wants to be told of.
        filter: Filter,
        /// Where it wants to begin.
        since: Since,
    }

    /// A subscription has begun. Source: draft-arcp-01, 13.1.
    SubscribeAccepted {
        /// The name of the subscription.
        subscription_id: String,
    } optional {}

    /// A message is delivered to an observer. Source: draft-arcp-01, 13.1.
    SubscribeEvent {
        /// The message, with its envelope.
        event: Value,
    } optional {}

    /// A subscription is to end. Source: draft-arcp-01, 13.4.
    Unsubscribe {} optional {
        /// The subscription, where the envelope does not name it.
        subscription_id: String,
        /// Why it is to end.
        reason: String,
    }

    /// A subscription was ended by the runtime. Source: draft-arcp-01, 13.4.
    SubscribeClosed {} optional {
        /// Why: `BACKPRESSURE_OVERFLOW` and others.
        code: ErrorCode,
        /// Why it was ended, in a word.
        reason: String,
        /// The message behind which the observer can go on.
        after_message_id: String,
    }
}

impl Default for Filter {
    /// A filter that lets everything through.
    fn default() -> Self {
        Self {
            session_id: None,
            trace_id: None,
            job_id: None,
            stream_id: None,
            types: None,
            min_priority: None,
        }
    }
}
