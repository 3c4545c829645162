//! The message types of dialect A, in one table: wire name, group and sender. Source: draft-arcp-01, 6.2.

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

macro_rules! message_types {
    ($($variant:ident, $name:literal, $group:ident, $sender:ident;)*) => {
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
        }
    };
}

message_types! {
    SessionOpen, "session.open", Session, Client;
    SessionChallenge, "session.challenge", Session, Runtime;
    SessionAuthenticate, "session.authenticate", Session, Client;
    SessionAccepted, "session.accepted", Session, Runtime;
    SessionUnauthenticated, "session.unauthenticated", Session, Runtime;
    SessionRejected, "session.rejected", Session, Runtime;
    SessionRefresh, "session.refresh", Session, Runtime;
    SessionEvicted, "session.evicted", Session, Runtime;
    SessionClose, "session.close", Session, Both;
    Ping, "ping", Control, Both;
    Pong, "pong", Control, Both;
    Ack, "ack", Control, Both;
    Nack, "nack", Control, Both;
    Cancel, "cancel", Control, Client;
    CancelAccepted, "cancel.accepted", Control, Runtime;
    CancelRefused, "cancel.refused", Control, Runtime;
    Interrupt, "interrupt", Control, Client;
    Resume, "resume", Control, Client;
    Backpressure, "backpressure", Control, Both;
    CheckpointCreate, "checkpoint.create", Control, Client;
    CheckpointRestore, "checkpoint.restore", Control, Client;
    ToolInvoke, "tool.invoke", Execution, Client;
    ToolResult, "tool.result", Execution, Runtime;
    ToolError, "tool.error", Execution, Runtime;
    JobAccepted, "job.accepted", Execution, Runtime;
    JobStarted, "job.started", Execution, Runtime;
    JobProgress, "job.progress", Execution, Runtime;
    JobHeartbeat, "job.heartbeat", Execution, Runtime;
    JobCheckpoint, "job.checkpoint", Execution, Runtime;
    JobCompleted, "job.completed", Execution, Runtime;
    JobFailed, "job.failed", Execution, Runtime;
    JobCancelled, "job.cancelled", Execution, Runtime;
    JobSchedule, "job.schedule", Execution, Client;
    WorkflowStart, "workflow.start", Execution, Client;
    WorkflowComplete, "workflow.complete", Execution, Runtime;
    AgentDelegate, "agent.delegate", Execution, Both;
    AgentHandoff, "agent.handoff", Execution, Both;
    StreamOpen, "stream.open", Stream, Both;
    StreamChunk, "stream.chunk", Stream, Both;
    StreamClose, "stream.close", Stream, Both;
    StreamError, "stream.error", Stream, Both;
    HumanInputRequest, "human.input.request", Human, Runtime;
    HumanInputResponse, "human.input.response", Human, Client;
    HumanChoiceRequest, "human.choice.request", Human, Runtime;
    HumanChoiceResponse, "human.choice.response", Human, Client;
    HumanInputCancelled, "human.input.cancelled", Human, Both;
    PermissionRequest, "permission.request", Permission, Runtime;
    PermissionGrant, "permission.grant", Permission, Client;
    PermissionDeny, "permission.deny", Permission, Client;
    LeaseGranted, "lease.granted", Permission, Runtime;
    LeaseExtended, "lease.extended", Permission, Runtime;
    LeaseRevoked, "lease.revoked", Permission, Runtime;
    LeaseRefresh, "lease.refresh", Permission, Client;
    Subscribe, "subscribe", Subscription, Client;
    SubscribeAccepted, "subscribe.accepted", Subscription, Runtime;
    SubscribeEvent, "subscribe.event", Subscription, Runtime;
    Unsubscribe, "unsubscribe", Subscription, Both;
    SubscribeClosed, "subscribe.closed", Subscription, Runtime;
    ArtifactPut, "artifact.put", Artifact, Client;
    ArtifactFetch, "artifact.fetch", Artifact, Client;
    ArtifactRef, "artifact.ref", Artifact, Runtime;
    ArtifactRelease, "artifact.release", Artifact, Client;
    EventEmit, "event.emit", Telemetry, Both;
    Log, "log", Telemetry, Both;
    Metric, "metric", Telemetry, Both;
    TraceSpan, "trace.span", Telemetry, Both;
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
        assert_eq!(MessageType::from_name("arcpx.acme.note.v1"), None);
    }
}
