//! Transcripts: reading, labelling, merging, compacting and searching their entries.

use crate::Sent;
use crate::view::{EntryView, FoundView, LabelView, MergeView, SessionView};
use mainstay_model::{CommandId, Role, SessionKind, Timestamp};
use serde::{Deserialize, Serialize};
use std::ops::Range;

operations! {
    /// Entries of a session's transcript.
    "session/entries" ListEntries {
        /// Its id, the end of it, or its name.
        session: String,
        /// From the one with this index on.
        #[serde(default)]
        from: u64,
        /// At most so many, at most 1000; a page of large entries ends earlier.
        #[serde(default)]
        limit: Option<usize>,
        /// Large ones with all that they say instead of an object, at most 16 of them.
        #[serde(default)]
        full: bool,
    } -> Vec<EntryView>;

    /// Runs the inputs of another session's entries in a session, up to the first that does not run to its end.
    "session/merge" MergeSession {
        /// The session they run in: its id, the end of it, or its name.
        session: String,
        /// The client's name for the command: sent again under it, it goes on where it was cut off, and runs nothing twice.
        /// Each input is a command of its own: `NAME.1`, `NAME.2`, …
        #[serde(default)]
        command: Option<CommandId>,
        /// The session to merge from.
        from: String,
        /// Which entries of its transcript, each by the first index and the one after the last.
        entries: Vec<Range<u64>>,
    } -> MergeView;

    /// Puts entries of another session into a session's transcript, at a place. Nothing is copied; what is live is built anew with them.
    "session/insert" InsertEntries {
        /// The session whose transcript it is: its id, the end of it, or its name.
        session: String,
        /// The client's name for the command: sent again under it, it gets the first answer.
        #[serde(default)]
        command: Option<CommandId>,
        /// The session to pick from.
        from: String,
        /// Which entries of its transcript, each by the first index and the one after the last.
        entries: Vec<Range<u64>>,
        /// Behind how many entries; at the end where it does not say.
        #[serde(default)]
        at: Option<u64>,
    } -> Inserted;

    /// Has a summary stand for the beginning of a session's transcript. What it stands for stays readable.
    "session/compact" CompactSession {
        /// Its id, the end of it, or its name.
        session: String,
        /// For the entries before the one with this index; for fewer, where a call would lose its result.
        before: u64,
        /// The summary that replaces the older entries.
        summary: String,
        /// Under what name and conditions it is sent.
        #[serde(flatten)]
        sent: Sent,
    } -> Compacted;

    /// Gives an entry of a session's transcript a label, or takes it off. Forks that are made then have it too.
    "session/label" LabelEntry {
        /// Its id, the end of it, or its name.
        session: String,
        /// The index of the entry.
        entry: u64,
        /// The label; none to take it off.
        #[serde(default)]
        label: Option<String>,
        /// Under what name and conditions it is sent.
        #[serde(flatten)]
        sent: Sent,
    } -> SessionView;

    /// What entries of a session's transcript are called, in their order.
    "session/labels" ListLabels {
        /// Its id, the end of it, or its name.
        session: String,
    } -> Vec<LabelView>;

    /// Entries by the words in them, the best first.
    "session/search" SearchEntries {
        /// Words, all of which must be in an entry: `word other "several in a row" begin*`.
        words: String,
        /// Only in this session: its id, the end of it, or its name.
        #[serde(default)]
        session: Option<String>,
        /// Only in sessions that run in this folder.
        #[serde(default)]
        working_directory: Option<String>,
        /// Only in sessions whose work this does.
        #[serde(default)]
        kind: Option<SessionKind>,
        /// Only those with one of these roles.
        #[serde(default)]
        roles: Vec<Role>,
        /// Only those that came to be then or later.
        #[serde(default)]
        since: Option<Timestamp>,
        /// Only those that came to be before.
        #[serde(default)]
        until: Option<Timestamp>,
        /// Not the first so many.
        #[serde(default)]
        offset: usize,
        /// At most so many, at most 100; 20 where it does not say.
        #[serde(default)]
        limit: Option<usize>,
    } -> Vec<FoundView>;
}

/// A transcript whose beginning a summary stands for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Compacted {
    /// The session that was compacted.
    pub session: SessionView,
    /// For how many entries the summary stands.
    pub entries: u64,
    /// How many were asked for, where that would have parted what belongs together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<u64>,
}

/// Entries that were put into a transcript.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Inserted {
    /// The session that received the entries.
    pub session: SessionView,
    /// How many entries were inserted.
    pub entries: u64,
    /// Behind how many they stand.
    pub at: u64,
    /// Behind how many they were to stand, where that would have parted what belongs together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<u64>,
}
