//! The durable log: events, outcomes, projections and objects.
//!
//! [`Log`] says what a store does, in plain data: it is the sum of one trait for each subject. [`sqlite`] is the embedded
//! store. What is appended together is there together or not at all, and what `append` has answered survives the loss of
//! the process and of the machine. Nothing here decides anything: the rules are in `model`, and who may append is the
//! engine's.

mod append_error;
mod artifacts;
pub mod backup;
mod directory;
mod entry_index;
mod event_log;
pub mod examination;
#[cfg(feature = "failpoints")]
pub mod failpoint;
pub mod finding;
mod maintenance;
pub mod objects;
pub mod ownership;
mod precision;
mod prompt_history;
mod resumable_connections;
mod schedules;
pub mod sqlite;
mod sync;
pub mod trace;

pub use append_error::{AppendError, FailedAppend, Refusal};
pub use artifacts::{Artifact, Artifacts, NewArtifact};
pub use directory::{Directory, SessionFilter};
pub use entry_index::{EntryFilter, EntryIndex};
pub use event_log::{Append, Appended, EventLog, KeyScope, NewEvent, StoredOutcome};
pub use examination::{Examination, Progress, Stage};
pub use finding::{Finding, Weight};
pub use mainstay_model::Epoch;
pub use maintenance::Maintenance;
pub use objects::{ObjectHash, Objects};
pub use ownership::{ClaimError, Clock, LeaseTerms, OwnerId, SystemClock};
pub use prompt_history::{HistoryFilter, PromptHistory};
pub use resumable_connections::{ResumableConnection, ResumableConnections};
pub use schedules::{AddedSchedule, DueSchedules, Schedules, StoredSchedule};
pub use sqlite::{Sharing, SqliteLog, SqliteOptions, examine, manifest, restore};

/// A store of sessions: all that a daemon needs of one.
pub trait Log:
    EventLog
    + Directory
    + Objects
    + Artifacts
    + EntryIndex
    + PromptHistory
    + ResumableConnections
    + Schedules
    + Maintenance
{
}

impl<L> Log for L where
    L: EventLog
        + Directory
        + Objects
        + Artifacts
        + EntryIndex
        + PromptHistory
        + ResumableConnections
        + Schedules
        + Maintenance
{
}
