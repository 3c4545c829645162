//! The messages of dialect A, in one table: payload, type, group and sender. Source: draft-arcp-01, 6.2.

use schemars::{Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::artifact::{ArtifactFetch, ArtifactPut, ArtifactRelease, ArtifactSent};
use super::control::{
    Ack, Backpressure, Cancel, CancelAccepted, CancelRefused, CheckpointCreate, CheckpointRestore, Interrupt,
    Nack, Ping, Pong, Resume,
};
use super::execution::{
    AgentDelegate, AgentHandoff, ErrorPayload, JobAccepted, JobCancelled, JobCheckpoint, JobCompleted,
    JobHeartbeat, JobProgress, JobSchedule, JobStarted, ToolInvoke, ToolResult, WorkflowComplete,
    WorkflowStart,
};
use super::human::{
    HumanChoiceRequest, HumanChoiceResponse, HumanInputCancelled, HumanInputRequest, HumanInputResponse,
};
use super::permission::{
    LeaseExtended, LeaseGranted, LeaseRefresh, LeaseRevoked, PermissionDeny, PermissionGrant,
    PermissionRequest,
};
use super::session::{
    SessionAccepted, SessionAuthenticate, SessionChallenge, SessionClose, SessionEvicted, SessionOpen,
    SessionRefresh, SessionRejected, SessionUnauthenticated,
};
use super::stream::{StreamChunk, StreamClose, StreamError, StreamOpen};
use super::subscription::{Subscribe, SubscribeAccepted, SubscribeClosed, SubscribeEvent, Unsubscribe};
use super::telemetry::{EventEmit, Log, Metric, TraceSpan};

/// The groups in which the draft lists its message types. Source: draft-arcp-01, 6.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Identity and authentication of a session.
    Session,
    /// Control of the connection and of running work.
    Control,
    /// Tools, jobs, workflows and other agents.
    Execution,
    /// Streams and their chunks.
    Stream,
    /// Questions to humans and their answers.
    Human,
    /// Permissions and the leases they grant.
    Permission,
    /// Subscriptions of observers to events.
    Subscription,
    /// Artifacts that are stored by reference.
    Artifact,
    /// Events, logs, metrics and spans.
    Telemetry,
}

/// Which side may send a message. The draft states it only in its prose and examples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// Only the client may send it.
    Client,
    /// Only the runtime may send it.
    Runtime,
    /// Both sides may send it.
    Both,
}

macro_rules! messages {
    ($($variant:ident $payload:ident = $name:literal, $group:ident, $sender:ident;)*) => {
        /// A message type of the core protocol. Source: draft-arcp-01, 6.2.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum MessageType {
            $(#[doc = concat!("The message type with wire name `", $name, "`.")] $variant,)*
        }

        impl MessageType {
            /// All message types, in the order of the draft.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name of the message type in an envelope.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The message type with this wire name, if the core protocol has one.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }

            /// The group to which the message type belongs.
            pub const fn group(self) -> Group {
                match self { $(Self::$variant => Group::$group,)* }
            }

            /// Which side may send the message.
            pub const fn sender(self) -> Sender {
                match self { $(Self::$variant => Sender::$sender,)* }
            }

            /// Reads the payload of a message of this type.
            ///
            /// # Errors
            /// What is wrong with the payload.
            pub fn read(self, payload: Map<String, Value>) -> Result<Message, PayloadError> {
                match self { $(Self::$variant => read(payload).map(Message::$variant),)* }
            }
        }

        /// A message of dialect A. The list is closed: a further one is a missing case wherever messages are told apart.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Message {
            $(#[doc = concat!("A message of the type `", $name, "`.")] $variant($payload),)*
        }

        impl Message {
            /// The type of the message.
            pub const fn kind(&self) -> MessageType {
                match self { $(Self::$variant(_) => MessageType::$variant,)* }
            }

            /// The JSON schema of the payload of each type.
            pub fn schemas(generator: &mut SchemaGenerator) -> Vec<(&'static str, Schema)> {
                vec![$(($name, generator.subschema_for::<$payload>()),)*]
            }

            /// The payload of the message as JSON.
            ///
            /// # Errors
            /// The error of the JSON encoder, if it fails.
            pub fn payload(&self) -> Result<Value, serde_json::Error> {
                match self { $(Self::$variant(payload) => written(payload),)* }
            }
        }
    };
}

messages! {
    SessionOpen SessionOpen = "session.open", Session, Client;
    SessionChallenge SessionChallenge = "session.challenge", Session, Runtime;
    SessionAuthenticate SessionAuthenticate = "session.authenticate", Session, Client;
    SessionAccepted SessionAccepted = "session.accepted", Session, Runtime;
    SessionUnauthenticated SessionUnauthenticated = "session.unauthenticated", Session, Runtime;
    SessionRejected SessionRejected = "session.rejected", Session, Runtime;
    SessionRefresh SessionRefresh = "session.refresh", Session, Runtime;
    SessionEvicted SessionEvicted = "session.evicted", Session, Runtime;
    SessionClose SessionClose = "session.close", Session, Both;
    Ping Ping = "ping", Control, Both;
    Pong Pong = "pong", Control, Both;
    Ack Ack = "ack", Control, Both;
    Nack Nack = "nack", Control, Both;
    Cancel Cancel = "cancel", Control, Client;
    CancelAccepted CancelAccepted = "cancel.accepted", Control, Runtime;
    CancelRefused CancelRefused = "cancel.refused", Control, Runtime;
    Interrupt Interrupt = "interrupt", Control, Client;
    Resume Resume = "resume", Control, Client;
    Backpressure Backpressure = "backpressure", Control, Both;
    CheckpointCreate CheckpointCreate = "checkpoint.create", Control, Client;
    CheckpointRestore CheckpointRestore = "checkpoint.restore", Control, Client;
    ToolInvoke ToolInvoke = "tool.invoke", Execution, Client;
    ToolResult ToolResult = "tool.result", Execution, Runtime;
    ToolError ErrorPayload = "tool.error", Execution, Runtime;
    JobAccepted JobAccepted = "job.accepted", Execution, Runtime;
    JobStarted JobStarted = "job.started", Execution, Runtime;
    JobProgress JobProgress = "job.progress", Execution, Runtime;
    JobHeartbeat JobHeartbeat = "job.heartbeat", Execution, Runtime;
    JobCheckpoint JobCheckpoint = "job.checkpoint", Execution, Runtime;
    JobCompleted JobCompleted = "job.completed", Execution, Runtime;
    JobFailed ErrorPayload = "job.failed", Execution, Runtime;
    JobCancelled JobCancelled = "job.cancelled", Execution, Runtime;
    JobSchedule JobSchedule = "job.schedule", Execution, Client;
    WorkflowStart WorkflowStart = "workflow.start", Execution, Client;
    WorkflowComplete WorkflowComplete = "workflow.complete", Execution, Runtime;
    AgentDelegate AgentDelegate = "agent.delegate", Execution, Both;
    AgentHandoff AgentHandoff = "agent.handoff", Execution, Both;
    StreamOpen StreamOpen = "stream.open", Stream, Both;
    StreamChunk StreamChunk = "stream.chunk", Stream, Both;
    StreamClose StreamClose = "stream.close", Stream, Both;
    StreamError StreamError = "stream.error", Stream, Both;
    HumanInputRequest HumanInputRequest = "human.input.request", Human, Runtime;
    HumanInputResponse HumanInputResponse = "human.input.response", Human, Client;
    HumanChoiceRequest HumanChoiceRequest = "human.choice.request", Human, Runtime;
    HumanChoiceResponse HumanChoiceResponse = "human.choice.response", Human, Client;
    HumanInputCancelled HumanInputCancelled = "human.input.cancelled", Human, Both;
    PermissionRequest PermissionRequest = "permission.request", Permission, Runtime;
    PermissionGrant PermissionGrant = "permission.grant", Permission, Client;
    PermissionDeny PermissionDeny = "permission.deny", Permission, Client;
    LeaseGranted LeaseGranted = "lease.granted", Permission, Runtime;
    LeaseExtended LeaseExtended = "lease.extended", Permission, Runtime;
    LeaseRevoked LeaseRevoked = "lease.revoked", Permission, Runtime;
    LeaseRefresh LeaseRefresh = "lease.refresh", Permission, Client;
    Subscribe Subscribe = "subscribe", Subscription, Client;
    SubscribeAccepted SubscribeAccepted = "subscribe.accepted", Subscription, Runtime;
    SubscribeEvent SubscribeEvent = "subscribe.event", Subscription, Runtime;
    Unsubscribe Unsubscribe = "unsubscribe", Subscription, Both;
    SubscribeClosed SubscribeClosed = "subscribe.closed", Subscription, Runtime;
    ArtifactPut ArtifactPut = "artifact.put", Artifact, Client;
    ArtifactFetch ArtifactFetch = "artifact.fetch", Artifact, Client;
    ArtifactRef ArtifactSent = "artifact.ref", Artifact, Runtime;
    ArtifactRelease ArtifactRelease = "artifact.release", Artifact, Client;
    EventEmit EventEmit = "event.emit", Telemetry, Both;
    Log Log = "log", Telemetry, Both;
    Metric Metric = "metric", Telemetry, Both;
    TraceSpan TraceSpan = "trace.span", Telemetry, Both;
}

/// What is wrong with a payload, and in which field.
pub type PayloadError = serde_path_to_error::Error<serde_json::Error>;

fn read<P: DeserializeOwned>(payload: Map<String, Value>) -> Result<P, PayloadError> {
    serde_path_to_error::deserialize(Value::Object(payload))
}

fn written(payload: &impl Serialize) -> Result<Value, serde_json::Error> {
    serde_json::to_value(payload)
}

#[cfg(test)]
mod tests {
    use super::MessageType;

    #[test]
    fn the_draft_has_66_types_and_each_is_found_by_its_name() {
        assert_eq!(MessageType::ALL.len(), 66);
        for kind in MessageType::ALL {
            assert_eq!(MessageType::from_name(kind.name()), Some(*kind));
        }
        assert_eq!(MessageType::from_name("job.dance"), None);
    }
}
