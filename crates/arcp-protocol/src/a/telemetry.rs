//! Events, logs, metrics and spans. Source: draft-arcp-01, 13.3 and 17.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use super::payload::payloads;

/// The names of metrics that every runtime uses for the same. Source: draft-arcp-01, 17.3.1.
pub const STANDARD_METRICS: [(&str, &str); 8] = [
    ("tokens.used", "tokens"),
    ("cost.usd", "usd"),
    ("gpu.seconds", "seconds"),
    ("tool.invocations", "count"),
    ("latency.ms", "ms"),
    ("bytes.in", "bytes"),
    ("bytes.out", "bytes"),
    ("errors.total", "count"),
];

/// How important a line of a log is. Source: draft-arcp-01, 17.2.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// It traces each step that is made.
    Trace,
    /// It helps to find a mistake.
    Debug,
    /// It says what goes on.
    Info,
    /// It says what may go wrong.
    Warn,
    /// It says what went wrong.
    Error,
    /// It says what stops everything.
    Critical,
}

payloads! {
    /// An event of any kind, such as `subscription.backfill_complete`. Source: draft-arcp-01, 13.3.
    EventEmit {
        /// The type of the event.
        r#type: String,
    } optional {
        /// What the event says.
        data: Value,
    }

    /// A line of a log. Source: draft-arcp-01, 17.2.
    Log {
        /// How important the line is.
        level: LogLevel,
        /// The text of the line.
        message: String,
    } optional {
        /// What belongs to the line.
        attributes: Map<String, Value>,
    }

    /// Something that was measured. Source: draft-arcp-01, 17.3.
    Metric {
        /// The name of the metric.
        name: String,
        /// The number that was measured.
        value: Number,
    } optional {
        /// The unit of the number.
        unit: String,
        /// What the number belongs to.
        dims: Map<String, Value>,
    }

    /// A span of a trace. Source: draft-arcp-01, 17.1.
    TraceSpan {
        /// The name of the span.
        name: String,
    } optional {
        /// When the span began.
        started_at: Timestamp,
        /// When the span ended.
        ended_at: Timestamp,
        /// What belongs to the span.
        attributes: Map<String, Value>,
    }
}
