//! What a file consists of: its header, and an item for each cell and each message.

use mainstay_model::entry::EntryHash;
use mainstay_model::event::{Event, EventBody, Metadata, Source};
use mainstay_model::id::{Position, Seq, SessionId, SessionKind};
use mainstay_model::message::Compaction;
use mainstay_model::object::ObjectHash;
use mainstay_model::transcribe::Transcriber;
use mainstay_model::transcript::{CompactedEntries, Segment, joined, slice};
use mainstay_model::{Language, Timestamp};
use serde::{Deserialize, Serialize};

/// What every such file begins with.
pub(crate) const FORMAT: &str = "mainstay.session";
/// The version of the format. Newer ones are refused, older ones are read.
pub(super) const VERSION: u32 = 1;

/// The first line of a session file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    pub(super) format: String,
    pub(super) version: u32,
    /// What people call the session.
    pub name: String,
    /// What does its work.
    pub kind: SessionKind,
    /// The language of its code, where that was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    /// The folder its code ran in.
    pub working_directory: String,
    /// The project it was for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
}

/// Every line of a session file after the first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "item", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Item {
    /// An input and what came of it.
    Cell {
        /// The entries it comes to.
        entries: Vec<EntryHash>,
        /// Its events, in order.
        events: Vec<ExportedEvent>,
    },
    /// A message, or a summary of what was said before. What that stands for is said by the entries' numbers in this file, as
    /// those of a session without an id.
    Message {
        /// The entries it comes to.
        entries: Vec<EntryHash>,
        /// The event that holds the message.
        event: ExportedEvent,
    },
    /// Everything before it was dropped.
    Reset {
        /// When the reset happened.
        at: Timestamp,
    },
    /// What an entry before it is called.
    Label {
        /// When the label was set.
        at: Timestamp,
        /// The entry's number in this file, from 0.
        entry: u64,
        /// The text of the label.
        label: String,
    },
    /// The last line, which says that the file is whole.
    End {
        /// How many items there are before it.
        items: u64,
        /// The hash of all lines before it, with their line ends.
        hash: ObjectHash,
    },
}

/// An event, without who caused it and where it stood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ExportedEvent {
    /// When it was recorded.
    pub at: Timestamp,
    /// What the event says.
    #[serde(flatten)]
    pub body: EventBody,
}

impl Header {
    /// Creates the header of a session.
    pub fn new(
        name: String,
        kind: SessionKind,
        language: Option<Language>,
        working_directory: String,
        project: Option<String>,
    ) -> Self {
        let format = FORMAT.to_owned();
        Self { format, version: VERSION, name, kind, language, working_directory, project }
    }
}

impl ExportedEvent {
    pub(super) fn event(&self, session: SessionId, seq: Seq) -> Event {
        let metadata =
            Metadata { source: Source::System, correlation: None, causation: None, environment: None };
        Event { session, seq, position: Position::ZERO, at: self.at, metadata, body: self.body.clone() }
    }
}

impl Item {
    /// It, where the transcript of the session it is taken from consists of these segments, and so many of their entries are before it:
    /// what a summary stands for is said by indices in that transcript, which are the numbers in the file.
    #[must_use]
    pub fn in_file(self, segments: &[Segment], before: u64) -> Self {
        let Self::Message {
            event: ExportedEvent { at, body: EventBody::TranscriptCompacted(compaction) },
            ..
        } = self
        else {
            return self;
        };
        let covers = indices_of(&slice(segments, 0..before), &compaction.covers);
        let body = EventBody::TranscriptCompacted(Box::new(Compaction { covers, ..*compaction }));
        Self::message(at, body)
    }

    /// A message, or a summary, as an item.
    pub fn message(at: Timestamp, body: EventBody) -> Self {
        let event = ExportedEvent { at, body };
        let transcribed =
            Transcriber::default().push(&SessionKind::fsharp(), &event.event(OF_THE_FILE, Seq::ZERO));
        let entries = transcribed.iter().map(|entry| entry.entry.hash()).collect();
        Self::Message { entries, event }
    }

    /// How many entries it comes to.
    pub fn entries(&self) -> u64 {
        match self {
            Self::Cell { entries, .. } | Self::Message { entries, .. } => entries.len() as u64,
            Self::Reset { .. } | Self::Label { .. } | Self::End { .. } => 0,
        }
    }
}

/// The session that a file's own numbers are of.
pub(super) const OF_THE_FILE: SessionId = SessionId::from_uuid(uuid::Uuid::nil());

/// Entries that are numbered in a file.
pub const fn numbered(from: u64, to: u64) -> Segment {
    Segment::new(OF_THE_FILE, from, to)
}

/// The indices at which these entries stand in a transcript, as segments of a file.
fn indices_of(transcript: &[Segment], entries: &[Segment]) -> Vec<Segment> {
    let mut covered = CompactedEntries::of(entries);
    let numbers = transcript
        .iter()
        .flat_map(|segment| (segment.from..segment.to).map(|number| (segment.session, number)));
    let of_these = (0..).zip(numbers).filter(|(_, (session, number))| covered.take(*session, *number));
    joined(of_these.map(|(index, _)| numbered(index, index + 1)).collect())
}
