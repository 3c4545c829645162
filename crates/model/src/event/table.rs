//! The table of event kinds: the stored name and the subject of each. Readers that treat all events of a subject alike need no match.

use serde::{Deserialize, Serialize};

use super::EventBody;
use crate::error::Error;

/// The name of a kind of event, as written in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventKind(&'static str);

impl EventKind {
    /// Returns the stored name of the kind.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl std::fmt::Display for EventKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::str::FromStr for EventKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL.iter().find(|kind| kind.0 == text).copied().ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|kind| kind.0).collect();
            let reason = format!("there is no `{text}`; there are {}", names.join(", "));
            Error::InvalidArgument { argument: "kind of event".to_owned(), reason }
        })
    }
}

// By hand: derived, it would only be read from text that is never freed.
impl<'de> Deserialize<'de> for EventKind {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Serialize for EventKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0)
    }
}

impl schemars::JsonSchema for EventKind {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "EventKind".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let names: Vec<_> = Self::ALL.iter().map(|kind| kind.0).collect();
        schemars::json_schema!({ "type": "string", "description": "The name of a kind of event.", "enum": names })
    }
}

/// What a kind of event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// The session as a whole: its name, its reset, its end.
    Session,
    /// The worker: started, ready, lost.
    Worker,
    /// The commands that wait for their turn.
    Lane,
    /// Questions and their answers.
    Ask,
    /// A job that runs code, from its request to its end.
    Eval,
    /// What code printed or showed.
    Output,
    /// What the session's code refers to: assemblies, source files.
    Environment,
    /// An agent's jobs and messages, and builds, which are jobs without code too.
    Agent,
    /// Which entries the transcript has: forked, merged, imported, summarized, labelled.
    Transcript,
}

macro_rules! table {
    ($($variant:ident => $name:literal, $subject:ident;)*) => {
        impl EventBody {
            /// Its kind as written in the log.
            pub const fn kind(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $name,)*
                }
            }

            /// What it is about.
            pub const fn subject(&self) -> Subject {
                match self {
                    $(Self::$variant { .. } => Subject::$subject,)*
                }
            }
        }

        impl EventKind {
            /// Every kind there is.
            pub const ALL: &'static [EventKind] = &[$(EventKind($name),)*];
        }
    };
}

table! {
    SessionCreated => "sessionCreated", Session;
    SessionForked => "sessionForked", Transcript;
    EntriesMerged => "entriesMerged", Transcript;
    SessionImported => "sessionImported", Transcript;
    SessionRenamed => "sessionRenamed", Session;
    WarmUpStarted => "warmUpStarted", Worker;
    WarmUpCompleted => "warmUpCompleted", Worker;
    SessionFaulted => "sessionFaulted", Session;
    SessionReset => "sessionReset", Session;
    SessionHardReset => "sessionHardReset", Session;
    SessionStopped => "sessionStopped", Session;
    SessionDeleted => "sessionDeleted", Session;
    SessionUnloaded => "sessionUnloaded", Session;
    SessionLoaded => "sessionLoaded", Session;
    WorkerExited => "workerExited", Worker;
    CommandQueued => "commandQueued", Lane;
    CommandDequeued => "commandLeft", Lane;
    AskRaised => "askRaised", Ask;
    AskVoted => "askVoted", Ask;
    AskEnded => "askEnded", Ask;
    EvalRequested => "evalRequested", Eval;
    OutputProduced => "outputProduced", Output;
    OutputDisplayed => "outputDisplayed", Output;
    OutputCleared => "outputCleared", Output;
    CommPublished => "commPublished", Output;
    OutputCut => "outputCut", Output;
    CancelRequested => "cancelRequested", Eval;
    EvalTimedOut => "evalTimedOut", Eval;
    JobDenied => "jobDenied", Eval;
    LeaseChanged => "leaseChanged", Agent;
    JobDelegated => "jobDelegated", Agent;
    DelegationEnded => "delegationEnded", Agent;
    JobHandedOver => "jobHandedOver", Agent;
    EvalCompleted => "evalCompleted", Eval;
    EvalFailed => "evalFailed", Eval;
    EvalCancelled => "evalCancelled", Eval;
    EvalInterrupted => "evalInterrupted", Eval;
    EnvironmentChanged => "environmentChanged", Environment;
    AssembliesChanged => "assembliesChanged", Environment;
    SourcesChanged => "sourcesChanged", Environment;
    SourcesSwapped => "sourcesSwapped", Environment;
    ApplicationStarted => "applicationStarted", Environment;
    ApplicationEnded => "applicationEnded", Environment;
    JobRequested => "jobRequested", Agent;
    JobEnded => "jobEnded", Agent;
    MessageStreamed => "messageStreamed", Agent;
    PromptQueued => "promptQueued", Agent;
    QueueChanged => "queueChanged", Agent;
    AgentChanged => "agentChanged", Agent;
    AgentNoted => "agentNoted", Agent;
    MessageAdded => "messageAdded", Agent;
    TranscriptCompacted => "transcriptCompacted", Transcript;
    EntryLabeled => "entryLabeled", Transcript;
}
