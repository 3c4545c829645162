//! The envelope of dialect A. Source: draft-arcp-01, 6.1.

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::message::{Message, MessageType};

/// The version in the envelopes of dialect A.
pub const VERSION: &str = "1.0";

/// The priority of a message. Source: draft-arcp-01, 6.5.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// The message may be delayed or dropped first.
    Low,
    /// The priority of messages that state none.
    #[default]
    Normal,
    /// The message is processed ahead of normal ones.
    High,
    /// The message must not be deferred.
    Critical,
}

macro_rules! envelope {
    ($($(#[doc = $doc:literal])* $field:ident: $type:ty,)*) => {
        /// A message of the core protocol with its envelope. Source: draft-arcp-01, 6.1.1.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Envelope {
            /// The id of the message, unique among all messages.
            pub id: String,
            /// The time at which the sender sent the message.
            pub timestamp: Timestamp,
            $($(#[doc = $doc])* pub $field: Option<$type>,)*
            /// The message that it carries.
            pub message: Message,
        }

        impl Envelope {
            /// An envelope with the required fields only.
            pub fn new(id: String, timestamp: Timestamp, message: Message) -> Self {
                Self { id, timestamp, $($field: None,)* message }
            }

            /// The text of the envelope: fields in the order of the draft, absent ones left out.
            ///
            /// # Errors
            /// The error of the JSON encoder, if it fails.
            pub fn encode(&self) -> Result<String, serde_json::Error> {
                #[derive(Serialize)]
                struct Written<'a> {
                    arcp: &'a str,
                    id: &'a str,
                    r#type: &'a str,
                    timestamp: Timestamp,
                    $(#[serde(skip_serializing_if = "Option::is_none")] $field: &'a Option<$type>,)*
                    payload: Value,
                }
                serde_json::to_string(&Written {
                    arcp: VERSION,
                    id: &self.id,
                    r#type: self.message.kind().name(),
                    timestamp: self.timestamp,
                    $($field: &self.$field,)*
                    payload: self.message.payload()?,
                })
            }
        }

        fn read_known(
            fields: &mut Map<String, Value>, id: &str, kind: MessageType,
        ) -> Result<Envelope, DecodeError> {
            Ok(Envelope {
                id: id.to_owned(),
                timestamp: required(fields, Some(id), "timestamp")?,
                $($field: optional(fields, Some(id), stringify!($field))?,)*
                message: kind.read(required(fields, Some(id), "payload")?).map_err(|error| {
                    DecodeError::Payload { id: id.to_owned(), kind, reason: error.to_string() }
                })?,
            })
        }
    };
}

envelope! {
    /// The logical sender of the message.
    source: String,
    /// The logical recipient of the message.
    target: String,
    /// The session, once one exists.
    session_id: String,
    /// The job that an event belongs to.
    job_id: String,
    /// The stream that an event belongs to.
    stream_id: String,
    /// The subscription that delivers the message.
    subscription_id: String,
    /// The trace of one request or workflow; any text.
    trace_id: String,
    /// The span of the current operation.
    span_id: String,
    /// The parent of the span.
    parent_span_id: String,
    /// The id of the command that the message answers.
    correlation_id: String,
    /// The id of the message that caused this one.
    causation_id: String,
    /// The key of the command's intent, distinct from the id.
    idempotency_key: String,
    /// The priority of the message; absent means normal.
    priority: Priority,
    /// The extension fields, by their namespaced names.
    extensions: Map<String, Value>,
}

/// Why a frame was not decoded, with what an answer needs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The frame is not JSON text.
    #[error("the frame is not JSON: {0}")]
    NotJson(String),
    /// The frame is JSON, but not an object.
    #[error("the frame is not a JSON object")]
    NotAnObject,
    /// A required field is absent.
    #[error("the envelope has no `{field}`")]
    MissingField {
        /// The id of the message, if it was read.
        id: Option<String>,
        /// The name of the field.
        field: &'static str,
    },
    /// A field has a value of a wrong shape.
    #[error("the envelope's `{field}` is invalid: {reason}")]
    InvalidField {
        /// The id of the message, if it was read.
        id: Option<String>,
        /// The name of the field.
        field: &'static str,
        /// What is wrong with the value.
        reason: String,
    },
    /// The envelope has another protocol version.
    #[error("the envelope has version `{version}`, expected `{VERSION}`")]
    WrongVersion {
        /// The id of the message.
        id: String,
        /// The version in the envelope.
        version: String,
    },
    /// The payload is not that of the type.
    #[error("the payload of `{}` is wrong: {reason}", kind.name())]
    Payload {
        /// The id of the message.
        id: String,
        /// The type of the message.
        kind: MessageType,
        /// What is wrong with the payload.
        reason: String,
    },
    /// The core protocol has no such type. Source: draft-arcp-01, 21.3.
    #[error("unknown message type `{kind}`")]
    UnknownType {
        /// The id of the message.
        id: String,
        /// The type in the envelope.
        kind: String,
        /// Whether the type is namespaced as extensions are.
        namespaced: bool,
        /// Whether `extensions.optional` is true.
        optional: bool,
    },
}

/// Decodes one frame. Unknown fields are ignored.
///
/// # Errors
/// The first problem found in the frame.
pub fn decode(frame: &str) -> Result<Envelope, DecodeError> {
    let value: Value = serde_json::from_str(frame).map_err(|e| DecodeError::NotJson(e.to_string()))?;
    let Value::Object(mut fields) = value else { return Err(DecodeError::NotAnObject) };
    let id: String = required(&mut fields, None, "id")?;
    if id.is_empty() || id.chars().count() > 256 || id.chars().any(char::is_control) {
        let reason = "expected 1 to 256 printable characters".to_owned();
        return Err(DecodeError::InvalidField { id: None, field: "id", reason });
    }
    let version: String = required(&mut fields, Some(&id), "arcp")?;
    if version != VERSION {
        return Err(DecodeError::WrongVersion { id, version });
    }
    let kind: String = required(&mut fields, Some(&id), "type")?;
    match MessageType::from_name(&kind) {
        Some(kind) => read_known(&mut fields, &id, kind),
        None => {
            let mark = fields.get("extensions").and_then(|extensions| extensions.get("optional"));
            let optional = mark == Some(&Value::Bool(true));
            let namespaced = is_namespaced(&kind);
            Err(DecodeError::UnknownType { id, kind, namespaced, optional })
        }
    }
}

/// Whether a type is `arcpx.…` or has a reverse-DNS prefix, with at least three parts.
/// Source: draft-arcp-01, 21.1.
/// A type whose first part also begins a core type, such as `job.a.b`, counts as core.
fn is_namespaced(kind: &str) -> bool {
    let first = kind.split('.').next().unwrap_or_default();
    let core = MessageType::ALL.iter().any(|known| known.name().split('.').next() == Some(first));
    !core && kind.split('.').count() >= 3 && kind.split('.').all(|part| !part.is_empty())
}

fn optional<T: DeserializeOwned>(
    fields: &mut Map<String, Value>,
    id: Option<&str>,
    field: &'static str,
) -> Result<Option<T>, DecodeError> {
    let value = fields.remove(field).unwrap_or_default();
    serde_json::from_value(value).map_err(|error| DecodeError::InvalidField {
        id: id.map(str::to_owned),
        field,
        reason: error.to_string(),
    })
}

fn required<T: DeserializeOwned>(
    fields: &mut Map<String, Value>,
    id: Option<&str>,
    field: &'static str,
) -> Result<T, DecodeError> {
    let missing = || DecodeError::MissingField { id: id.map(str::to_owned), field };
    optional(fields, id, field)?.ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_encodes_back_to_the_same_text() {
        let frame = r#"{"arcp":"1.0","id":"m1","type":"job.progress","timestamp":"2026-05-07T21:30:00Z",
            "session_id":"s","job_id":"j","priority":"high","payload":{"percent":42}}"#
            .replace("\n            ", "");
        assert_eq!(decode(&frame).unwrap().encode().unwrap(), frame);
    }

    #[test]
    fn an_unknown_type_says_whether_it_may_be_dropped() {
        let read = |kind: &str| {
            decode(&format!(r#"{{"arcp":"1.0","id":"m","type":"{kind}","extensions":{{"optional":true}}}}"#))
        };
        let unknown = |kind: &str, namespaced| {
            Err(DecodeError::UnknownType { id: "m".into(), kind: kind.into(), namespaced, optional: true })
        };
        assert_eq!(read("arcpx.acme.note.v1"), unknown("arcpx.acme.note.v1", true));
        assert_eq!(read("job.a.b"), unknown("job.a.b", false));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_decoded_or_refused_without_a_panic(text in ".*") {
            let _ = decode(&text);
        }
    }
}
