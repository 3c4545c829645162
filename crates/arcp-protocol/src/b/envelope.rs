//! The envelope of dialect B, and the closed list of its messages. Source: draft-arcp-1.1, 5; draft-arcp-02, 5.

use schemars::{Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::error::ErrorPayload;
use super::event::Event;
use super::job::{
    Accepted, Cancel, Cancelled, JobError, JobResult, Submit, Subscribe, Subscribed, Unsubscribe,
};
use super::session::{Ack, Close, Closed, Hello, Jobs, ListJobs, Ping, Pong, Resume, Welcome};

/// The version that this dialect's envelopes are marked with.
pub const VERSION: &str = "1.1";

macro_rules! messages {
    ($($(#[doc = $doc:literal])* $variant:ident $name:literal $payload:ty;)*) => {
        /// A message of dialect B. The list is closed: a further one is a missing case wherever messages are told apart.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Message {
            $($(#[doc = $doc])* $variant($payload),)*
        }

        impl Message {
            /// The types of all messages.
            pub const TYPES: &'static [&'static str] = &[$($name,)*];

            /// The type of the message, as it is written.
            pub const fn kind(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)*
                }
            }

            /// The JSON schema of the payload of each type.
            pub fn schemas(generator: &mut SchemaGenerator) -> Vec<(&'static str, Schema)> {
                vec![$(($name, generator.subschema_for::<$payload>()),)*]
            }

            fn payload(&self) -> Value {
                match self {
                    $(Self::$variant(payload) => value_of(payload),)*
                }
            }

            /// Reads the payload of a message of this type; none where there is no such type.
            fn read(kind: &str, payload: Value) -> Option<Result<Self, serde_json::Error>> {
                Some(match kind {
                    $($name => read_payload(payload).map(Self::$variant),)*
                    // What closed a session in draft-arcp-02.
                    "session.bye" => read_payload(payload).map(Self::SessionClose),
                    _ => return None,
                })
            }
        }
    };
}

messages! {
    /// A client opens a session.
    SessionHello "session.hello" Hello;
    /// A session was opened or resumed.
    SessionWelcome "session.welcome" Welcome;
    /// A client resumes a session.
    SessionResume "session.resume" Resume;
    /// One side wants to hear of the other.
    SessionPing "session.ping" Ping;
    /// One side is there.
    SessionPong "session.pong" Pong;
    /// A client says how far it has come.
    SessionAck "session.ack" Ack;
    /// A client wants jobs listed.
    SessionListJobs "session.list_jobs" ListJobs;
    /// A page of a list of jobs.
    SessionJobs "session.jobs" Jobs;
    /// A client closes its session.
    SessionClose "session.close" Close;
    /// A session was closed in order.
    SessionClosed "session.closed" Closed;
    /// A request was refused.
    SessionError "session.error" ErrorPayload;
    /// A client submits a job.
    JobSubmit "job.submit" Submit;
    /// A job was accepted by its session.
    JobAccepted "job.accepted" Accepted;
    /// Something happened to a job.
    JobEvent "job.event" Event;
    /// A job ended with a result.
    JobResult "job.result" JobResult;
    /// A job ended without a result.
    JobError "job.error" JobError;
    /// A client wants a job to stop.
    JobCancel "job.cancel" Cancel;
    /// A job was told to stop.
    JobCancelled "job.cancelled" Cancelled;
    /// A client wants to be told of a job.
    JobSubscribe "job.subscribe" Subscribe;
    /// A client is told of a job.
    JobSubscribed "job.subscribed" Subscribed;
    /// A client wants to be told no more of a job.
    JobUnsubscribe "job.unsubscribe" Unsubscribe;
}

fn value_of(payload: &impl Serialize) -> Value {
    // No payload has a map whose keys are no texts, which is all that cannot be written.
    serde_json::to_value(payload).unwrap_or_default()
}

fn read_payload<P: DeserializeOwned>(payload: Value) -> Result<P, serde_json::Error> {
    serde_json::from_value(payload)
}

/// A message with what goes around it.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    /// The name of the message, which no other has.
    pub id: String,
    /// The session that the message belongs to, once there is one.
    pub session_id: Option<String>,
    /// The trace that the message belongs to.
    pub trace_id: Option<String>,
    /// The job that the message is about.
    pub job_id: Option<String>,
    /// The number of the message in its session.
    pub event_seq: Option<u64>,
    /// The message that it carries.
    pub message: Message,
}

impl Envelope {
    /// The envelope as it is written: its fields in the order of the draft, without those that are absent.
    pub fn encode(&self) -> String {
        #[derive(Serialize)]
        struct Written<'a> {
            arcp: &'a str,
            id: &'a str,
            r#type: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            session_id: &'a Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            trace_id: &'a Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            job_id: &'a Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            event_seq: Option<u64>,
            payload: Value,
        }
        let Self { id, session_id, trace_id, job_id, event_seq, message } = self;
        let (arcp, r#type, payload) = (VERSION, message.kind(), message.payload());
        let written =
            Written { arcp, id, r#type, session_id, trace_id, job_id, event_seq: *event_seq, payload };
        serde_json::to_string(&written).unwrap_or_default()
    }
}

/// Why a frame cannot be read, with what an answer needs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The frame is no JSON.
    #[error("the frame is no JSON: {0}")]
    NotJson(String),
    /// The frame is no object of JSON.
    #[error("an envelope is an object of JSON")]
    NotAnObject,
    /// A field is missing, or is not what it must be.
    #[error("the envelope's `{field}` must be {must}")]
    Field {
        /// The id of the message, where it has one.
        id: Option<String>,
        /// The field that is wrong.
        field: &'static str,
        /// What the field must be.
        must: &'static str,
    },
    /// The version of the envelope is another.
    #[error("the envelope's `arcp` is `{version}`; this session speaks {VERSION}")]
    Version {
        /// The id of the message.
        id: String,
        /// The version that it is marked with.
        version: String,
    },
    /// There is no message of this type.
    #[error("there is no message of the type `{kind}`")]
    UnknownType {
        /// The id of the message.
        id: String,
        /// The type of the message.
        kind: String,
    },
    /// The payload is not that of the type.
    #[error("the payload of `{kind}` is wrong: {reason}")]
    Payload {
        /// The id of the message.
        id: String,
        /// The job that the message is about, where it says so.
        job_id: Option<String>,
        /// The type of the message.
        kind: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl DecodeError {
    /// The id of the message, where it has one.
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::NotJson(_) | Self::NotAnObject => None,
            Self::Field { id, .. } => id.as_deref(),
            Self::Version { id, .. } | Self::UnknownType { id, .. } | Self::Payload { id, .. } => Some(id),
        }
    }
}

/// Reads an envelope. Unknown fields are ignored.
///
/// # Errors
/// What is wrong with it.
pub fn decode(frame: &str) -> Result<Envelope, DecodeError> {
    let value = serde_json::from_str(frame).map_err(|error| DecodeError::NotJson(error.to_string()))?;
    let Value::Object(mut fields) = value else { return Err(DecodeError::NotAnObject) };
    let id = text(&mut fields, &None, "id")?.filter(|id| is_id(id));
    let wrong = |field, must| DecodeError::Field { id: id.clone(), field, must };
    let Some(id) = id.clone() else {
        return Err(wrong("id", "a text of 1 to 256 printable characters"));
    };
    let known = Some(id.clone());
    let version = text(&mut fields, &known, "arcp")?.ok_or_else(|| wrong("arcp", "a text"))?;
    // Draft-arcp-02 has 1, and what is 1.x can be read.
    if version != "1" && !version.starts_with("1.") {
        return Err(DecodeError::Version { id, version });
    }
    let kind = text(&mut fields, &known, "type")?.ok_or_else(|| wrong("type", "a text"))?;
    let session_id = text(&mut fields, &known, "session_id")?;
    let trace_id = text(&mut fields, &known, "trace_id")?;
    let job_id = text(&mut fields, &known, "job_id")?;
    let event_seq = match fields.remove("event_seq") {
        None | Some(Value::Null) => None,
        Some(value) => Some(value.as_u64().ok_or_else(|| wrong("event_seq", "a number from 0 on"))?),
    };
    let payload = match fields.remove("payload") {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(payload @ Value::Object(_)) => payload,
        Some(_) => return Err(wrong("payload", "an object")),
    };
    match Message::read(&kind, payload) {
        Some(Ok(message)) => Ok(Envelope { id, session_id, trace_id, job_id, event_seq, message }),
        Some(Err(error)) => Err(DecodeError::Payload { id, job_id, kind, reason: error.to_string() }),
        None => Err(DecodeError::UnknownType { id, kind }),
    }
}

fn text(
    fields: &mut Map<String, Value>,
    id: &Option<String>,
    field: &'static str,
) -> Result<Option<String>, DecodeError> {
    match fields.remove(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(DecodeError::Field { id: id.clone(), field, must: "a text" }),
    }
}

fn is_id(text: &str) -> bool {
    !text.is_empty() && text.len() <= 256 && !text.chars().any(char::is_control)
}
