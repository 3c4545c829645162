//! The names of the kinds of events.

use serde::{Deserialize, Serialize};

use super::EventBody;
use crate::error::Error;

/// The name of a kind of event, as written in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventKind(&'static str);

impl EventKind {
    /// The name.
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

macro_rules! kinds {
    ($($variant:ident => $name:literal,)*) => {
        impl EventBody {
            /// Its kind as written in the log.
            pub const fn kind(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $name,)*
                }
            }
        }

        impl EventKind {
            /// Every kind there is.
            pub const ALL: &'static [EventKind] = &[$(EventKind($name),)*];
        }
    };
}

kinds! {
    SessionCreated => "sessionCreated",
    SessionForked => "sessionForked",
    EntriesMerged => "entriesMerged",
    SessionImported => "sessionImported",
    SessionRenamed => "sessionRenamed",
    WarmUpStarted => "warmUpStarted",
    WarmUpCompleted => "warmUpCompleted",
    SessionFaulted => "sessionFaulted",
    SessionReset => "sessionReset",
    SessionHardReset => "sessionHardReset",
    SessionStopped => "sessionStopped",
    SessionDeleted => "sessionDeleted",
    SessionUnloaded => "sessionUnloaded",
    SessionLoaded => "sessionLoaded",
    WorkerExited => "workerExited",
    CommandQueued => "commandQueued",
    CommandLeft => "commandLeft",
    AskRaised => "askRaised",
    AskEnded => "askEnded",
    EvalRequested => "evalRequested",
    OutputProduced => "outputProduced",
    OutputDisplayed => "outputDisplayed",
    OutputCleared => "outputCleared",
    CommPublished => "commPublished",
    OutputCut => "outputCut",
    CancelRequested => "cancelRequested",
    EvalTimedOut => "evalTimedOut",
    EvalCompleted => "evalCompleted",
    EvalFailed => "evalFailed",
    EvalCancelled => "evalCancelled",
    EvalInterrupted => "evalInterrupted",
    EnvironmentChanged => "environmentChanged",
    AssembliesChanged => "assembliesChanged",
    SourcesChanged => "sourcesChanged",
    JobRequested => "jobRequested",
    JobEnded => "jobEnded",
    MessageStreamed => "messageStreamed",
    PromptQueued => "promptQueued",
    QueueChanged => "queueChanged",
    AgentChanged => "agentChanged",
    AgentNoted => "agentNoted",
    MessageAdded => "messageAdded",
    TranscriptCompacted => "transcriptCompacted",
    EntryLabeled => "entryLabeled",
}
