//! Sessions as files: what is exported of one, line by line, and how such a file is read. Source: seed 004, "Future
//! Considerations"; protocols/transcripts.md.
//!
//! A file has a [`Header`], then [`Item`]s, each on one line as JSON, the last of which is [`Item::End`] with the hash of all
//! lines before it. Cells are their events, without who caused them: so whoever reads the file can rebuild the session, and
//! the entries that the events come to are those that were exported.

use serde::{Deserialize, Serialize};

mod claude_code;
mod displays;
mod documents;
mod foreign;
mod format;
mod import;
mod kernel;
mod messages;
mod outputs;
mod pi;
pub mod pi_messages;

pub use documents::{dib, item_markdown, markdown, notebook, script};
pub use format::Format;
pub use import::{ImportFormat, SessionFile, read_session_file, session_file_text};
pub use kernel::Kernel;
pub use outputs::{Outputs, coloured_traceback};
pub use pi::message as pi_message;

use crate::Timestamp;
use crate::ask::Raiser;
use crate::entry::{EntryHash, Origin};
use crate::error::Error;
use crate::event::{Event, EventBody, Metadata, Source};
use crate::id::{AskId, JobId, Position, Seq, SessionId, SessionKind};
use crate::message::Compaction;
use crate::notebook::Language;
use crate::object::ObjectHash;
use crate::transcribe::Transcriber;
use crate::transcript::{CompactedEntries, Segment, joined, slice};

/// What every such file begins with.
const FORMAT: &str = "mainstay.session";
/// The version of the format. Newer ones are refused, older ones are read.
const VERSION: u32 = 1;

/// The first line of a session file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    format: String,
    version: u32,
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// Picks out of a session's events what is exported.
#[derive(Debug)]
pub struct Collector {
    kind: SessionKind,
    transcriber: Transcriber,
    cell: Option<Cell>,
}

#[derive(Debug)]
struct Cell {
    job: JobId,
    asks: Vec<AskId>,
    events: Vec<ExportedEvent>,
}

impl Collector {
    /// For a session of this kind.
    pub fn new(kind: SessionKind) -> Self {
        Self { kind, transcriber: Transcriber::default(), cell: None }
    }

    /// Takes in the next event; gives what is complete with it.
    pub fn push(&mut self, event: &Event) -> Option<Item> {
        let entries = self.transcriber.push(&self.kind, event);
        let said = ExportedEvent { at: event.at, body: event.body.clone() };
        match &event.body {
            EventBody::EvalRequested { job, .. } => {
                self.cell = Some(Cell { job: *job, asks: Vec::new(), events: vec![said] });
                None
            }
            EventBody::SessionReset | EventBody::SessionHardReset => {
                self.cell = None;
                Some(Item::Reset { at: event.at })
            }
            EventBody::MessageAdded(_) | EventBody::TranscriptCompacted(_) => {
                let entries = entries.iter().map(|entry| entry.entry.hash()).collect();
                Some(Item::Message { entries, event: said })
            }
            body => {
                let cell = self.cell.as_mut()?;
                if !cell.has(body) {
                    return None;
                }
                cell.events.push(said);
                body.job_end()?;
                let Cell { events, .. } = self.cell.take()?;
                let entries = entries.iter().map(|entry| entry.entry.hash()).collect();
                Some(Item::Cell { entries, events })
            }
        }
    }
}

impl Cell {
    /// Whether an event belongs to it.
    fn has(&mut self, body: &EventBody) -> bool {
        match body {
            EventBody::AskRaised(ask) => {
                let is_own = matches!(ask.raiser, Raiser::Job { job } if job == self.job);
                self.asks.extend(is_own.then_some(ask.ask));
                is_own
            }
            EventBody::AskEnded { ask, .. } => self.asks.contains(ask),
            body => body.job_part().is_some_and(|(job, _)| job == self.job),
        }
    }
}

/// Writes a file, line by line.
#[derive(Debug, Default)]
pub struct Lines {
    items: u64,
    hasher: blake3::Hasher,
}

impl Lines {
    /// Writes the first line of the file.
    pub fn header(&mut self, header: &Header) -> String {
        self.line(header)
    }

    /// The line of an item.
    pub fn item(&mut self, item: &Item) -> String {
        self.items += 1;
        self.line(item)
    }

    /// Writes the last line of the file.
    pub fn end(self) -> String {
        let hash = ObjectHash::from_stored(self.hasher.finalize().to_hex().to_string());
        let end = Item::End { items: self.items, hash };
        Self::default().line(&end)
    }

    fn line(&mut self, said: &impl Serialize) -> String {
        // What is written here has no keys that are not texts, and so always is JSON.
        let mut line = serde_json::to_string(said).unwrap_or_default();
        line.push('\n');
        self.hasher.update(line.as_bytes());
        line
    }
}

/// A file that was read, and is what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The first line of the file.
    pub header: Header,
    /// What stands between that and the end.
    pub items: Vec<Item>,
    /// The hash of all lines but the last.
    pub hash: ObjectHash,
}

/// Reads a file.
///
/// # Errors
/// [`Error::ImportInvalid`] with the line that is not as it should be: one that was cut off or changed, or of a newer format.
pub fn read(text: &str) -> Result<Imported, Error> {
    let invalid = |line: usize, reason: String| Error::ImportInvalid { line: line as u64 + 1, reason };
    let mut lines = text.split_inclusive('\n').enumerate();
    let (_, first) = lines.next().ok_or_else(|| invalid(0, "the file is empty".to_owned()))?;
    let header = read_header(first).map_err(|reason| invalid(0, reason))?;
    let mut hasher = blake3::Hasher::new();
    hasher.update(first.as_bytes());
    let (mut items, mut entries) = (Vec::new(), 0);
    for (number, line) in lines.by_ref() {
        let item: Item = serde_json::from_str(line).map_err(|error| invalid(number, error.to_string()))?;
        if let Item::End { items: count, hash } = &item {
            let found = ObjectHash::from_stored(hasher.finalize().to_hex().to_string());
            if *hash != found || *count != items.len() as u64 {
                return Err(invalid(
                    number,
                    "the lines before it are not those that were written".to_owned(),
                ));
            }
            if lines.next().is_some() {
                return Err(invalid(number + 1, "there is more after the end".to_owned()));
            }
            return Ok(Imported { header, items, hash: found });
        }
        check_item(&header.kind, &item, entries).map_err(|reason| invalid(number, reason.to_owned()))?;
        entries += item.entries();
        hasher.update(line.as_bytes());
        items.push(item);
    }
    Err(invalid(items.len() + 1, "the end is missing: the file was cut off".to_owned()))
}

fn read_header(line: &str) -> Result<Header, String> {
    let header: Header = serde_json::from_str(line)
        .map_err(|error| format!("this is no exported session, nor one of Claude Code or pi: {error}"))?;
    match (header.format.as_str(), header.version) {
        (FORMAT, 1..=VERSION) => Ok(header),
        (FORMAT, version) => Err(format!("it has version {version}, and this program knows {VERSION}")),
        (format, _) => Err(format!("this is `{format}`, and no exported session")),
    }
}

/// A cell must be one, a message too, and come to the entries it says; a summary is of some of the entries before it.
fn check_item(kind: &SessionKind, item: &Item, before: u64) -> Result<(), &'static str> {
    let events = match item {
        Item::Cell { events, .. } => events.as_slice(),
        Item::Message { event, .. } => std::slice::from_ref(event),
        Item::Label { entry, label, .. } => {
            let is_label =
                *entry < before && !label.trim().is_empty() && !label.chars().any(char::is_control);
            return if is_label { Ok(()) } else { Err("it is no label of an entry before it") };
        }
        Item::Reset { .. } | Item::End { .. } => return Ok(()),
    };
    let mut collector = Collector::new(kind.clone());
    let mut found = Vec::new();
    for (said, seq) in events.iter().zip(1..) {
        found.extend(collector.push(&said.event(SessionId::from_uuid(uuid::Uuid::nil()), Seq(seq))));
    }
    if let Item::Message {
        event: ExportedEvent { body: EventBody::TranscriptCompacted(compaction), .. },
        ..
    } = item
    {
        let is_before = |covers: &Segment| {
            covers.session == OF_THE_FILE && covers.from < covers.to && covers.to <= before
        };
        if !compaction.covers.iter().all(is_before) {
            return Err("its summary is not of what is before it");
        }
    }
    match found.as_slice() {
        [found] if found == item => Ok(()),
        _ => Err("its events do not come to its entries"),
    }
}

impl ExportedEvent {
    fn event(&self, session: SessionId, seq: Seq) -> Event {
        let metadata =
            Metadata { source: Source::System, correlation: None, causation: None, environment: None };
        Event { session, seq, position: Position::ZERO, at: self.at, metadata, body: self.body.clone() }
    }
}

/// Where an event of an imported cell belongs: the command it is of, and the event that accepted that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedEvent {
    /// When it was recorded.
    pub at: Timestamp,
    /// The event that accepted the cell; none for that one itself.
    pub causation: Option<Seq>,
    /// What the event says.
    pub body: EventBody,
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
const OF_THE_FILE: SessionId = SessionId::from_uuid(uuid::Uuid::nil());

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

/// The events of a session that was imported, of which the first gets this seq.
pub fn placed(items: Vec<Item>, session: SessionId, first: Seq) -> Vec<PlacedEvent> {
    let mut events = Vec::new();
    for item in items {
        let requested = Seq(first.0 + events.len() as u64);
        match item {
            Item::Cell { events: said, .. } => {
                events.extend(said.into_iter().enumerate().map(|(index, ExportedEvent { at, body })| {
                    PlacedEvent { at, causation: (index > 0).then_some(requested), body }
                }));
            }
            Item::Message { event: ExportedEvent { at, body }, .. } => {
                events.push(PlacedEvent { at, causation: None, body: imported(body, session) });
            }
            Item::Reset { at } => {
                events.push(PlacedEvent { at, causation: None, body: EventBody::SessionReset });
            }
            Item::Label { at, entry, label } => {
                let entry = Origin { session, number: entry };
                let body = EventBody::EntryLabeled { entry, label: Some(label) };
                events.push(PlacedEvent { at, causation: None, body });
            }
            Item::End { .. } => {}
        }
    }
    events
}

/// What a summary stands for are the numbers of the session's own entries now.
fn imported(body: EventBody, session: SessionId) -> EventBody {
    let EventBody::TranscriptCompacted(mut compaction) = body else { return body };
    compaction.covers.iter_mut().for_each(|segment| segment.session = session);
    EventBody::TranscriptCompacted(compaction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::display::{Bundle, Display};
    use crate::eval::{EvalResult, Failure, RaisedError};
    use crate::event::{CancelEnding, OutputStream};
    use crate::fingerprint::CommandFingerprint;
    use crate::id::CommandId;
    use crate::notebook::ScriptLanguage;

    fn said(at: i64, body: EventBody) -> ExportedEvent {
        ExportedEvent { at: Timestamp::from_second(at).unwrap(), body }
    }

    fn bodies() -> Vec<ExportedEvent> {
        let job = JobId::from_uuid(uuid::Uuid::from_u128(1));
        let requested = EventBody::EvalRequested {
            job,
            command: CommandId::new("c").unwrap(),
            fingerprint: CommandFingerprint::from_stored("f".to_owned()),
            key: None,
            deadline: None,
            code: "1 + 1".to_owned(),
            file: None,
            command_line: None,
            withheld: false,
            origin: None,
        };
        let printed =
            |job| EventBody::OutputProduced { job, stream: OutputStream::Stdout, text: "hello\n".to_owned() };
        let result = EvalResult { display: "val it : int = 2".to_owned(), ..EvalResult::default() };
        let completed = EventBody::EvalCompleted { job, result, changes_state: false, duration_ms: 1 };
        let bodies = [
            EventBody::SessionStopped,
            requested,
            EventBody::SessionRenamed { name: "other".to_owned() },
            printed(Some(job)),
            printed(None),
            completed,
            EventBody::SessionHardReset,
        ];
        (1..).zip(bodies).map(|(at, body)| said(at, body)).collect()
    }

    /// The file of a session with these events.
    fn file(bodies: &[ExportedEvent]) -> String {
        let kind = SessionKind::fsharp();
        let header = Header::new("lab".to_owned(), kind.clone(), None, "/lab".to_owned(), None);
        let (mut lines, mut collector) = (Lines::default(), Collector::new(kind));
        let mut file = lines.header(&header);
        for (said, seq) in bodies.iter().zip(1..) {
            let event = said.event(SessionId::from_uuid(uuid::Uuid::nil()), Seq(seq));
            file.extend(collector.push(&event).map(|item| lines.item(&item)));
        }
        file + &lines.end()
    }

    #[test]
    fn a_file_has_the_cells_and_nothing_else() {
        insta::assert_snapshot!(file(&bodies()), @r#"
        {"format":"mainstay.session","version":1,"name":"lab","kind":"fsharp","workingDirectory":"/lab"}
        {"item":"cell","entries":["8fd85fb74390de7fbbe8d0cf4583832090dca2c1929d2f0666bfca86d33732f8","b97da08a745b78269467fdfcf2da9a6889238a075ec2b61a3cf52d059832bd71"],"events":[{"at":"1970-01-01T00:00:02Z","kind":"evalRequested","body":{"job":"00000000-0000-0000-0000-000000000001","command":"c","fingerprint":"f","code":"1 + 1"}},{"at":"1970-01-01T00:00:04Z","kind":"outputProduced","body":{"job":"00000000-0000-0000-0000-000000000001","stream":"stdout","text":"hello\n"}},{"at":"1970-01-01T00:00:06Z","kind":"evalCompleted","body":{"job":"00000000-0000-0000-0000-000000000001","result":{"display":"val it : int = 2"},"changesState":false,"durationMs":1}}]}
        {"item":"reset","at":"1970-01-01T00:00:07Z"}
        {"item":"end","items":2,"hash":"185e1d56ce0d61712dc14da42a7ebe8a91a580c6b83745b93becab1f28f5cb01"}
        "#);
    }

    #[test]
    fn a_label_is_of_an_entry_before_it() {
        let cell = read(&file(&bodies())).unwrap().items.swap_remove(0);
        let read_with = |entry, label: &str| {
            let label = Item::Label { at: Timestamp::UNIX_EPOCH, entry, label: label.to_owned() };
            let mut lines = Lines::default();
            let file = lines.header(&header()) + &lines.item(&cell) + &lines.item(&label) + &lines.end();
            read(&file).map(|imported| placed(imported.items, OF_THE_FILE, Seq(3)).pop().unwrap().body)
        };
        let entry = Origin { session: OF_THE_FILE, number: 1 };
        let label = Some("the good one".to_owned());
        assert_eq!(read_with(1, "the good one"), Ok(EventBody::EntryLabeled { entry, label }));
        for (entry, label) in [(2, "the good one"), (1, " "), (1, "a\nb")] {
            let Err(Error::ImportInvalid { line: 3, reason }) = read_with(entry, label) else {
                panic!("{entry} {label:?} was read")
            };
            assert_eq!(reason, "it is no label of an entry before it");
        }
    }

    #[test]
    fn what_is_read_is_exported_again_byte_by_byte() {
        let first = file(&bodies());
        let imported = read(&first).unwrap();
        let events = placed(imported.items, OF_THE_FILE, Seq(3));
        assert_eq!(
            events.iter().map(|event| event.causation).collect::<Vec<_>>(),
            [None, Some(Seq(3)), Some(Seq(3)), None]
        );
        let bodies: Vec<ExportedEvent> =
            events.into_iter().map(|event| ExportedEvent { at: event.at, body: event.body }).collect();
        assert_eq!(file(&bodies), first);
        assert_eq!(read(&file(&[])).unwrap().items, []);
    }

    #[test]
    fn a_file_that_was_changed_anywhere_is_refused() {
        let file = file(&bodies());
        for (index, byte) in file.bytes().enumerate() {
            for other in [byte ^ 1, b' '] {
                let mut changed = file.clone().into_bytes();
                changed[index] = other;
                if let (Ok(changed), true) = (String::from_utf8(changed), other != byte) {
                    let is_last_line_end = index + 1 == file.len();
                    assert!(read(&changed).is_err() || is_last_line_end, "byte {index}: {changed}");
                }
            }
            let cut = read(&file[..index]);
            assert!(cut.is_err() || index + 1 == file.len(), "cut at {index}");
        }
        assert!(read(&(file.clone() + "\n")).is_err());
        let newer = file.replacen("\"version\":1", "\"version\":2", 1);
        let Err(Error::ImportInvalid { line: 1, reason }) = read(&newer) else { panic!("it was read") };
        assert_eq!(reason, "it has version 2, and this program knows 1");
    }

    /// A session in which a cell is rejected, one raises and one prints a fence, after a reset.
    fn items() -> Vec<Item> {
        let mut items = read(&file(&bodies())).unwrap().items;
        let job = JobId::from_uuid(uuid::Uuid::from_u128(1));
        let Item::Cell { events, .. } = items[0].clone() else { panic!("no cell") };
        let coded = |text: &str, end: Vec<EventBody>| {
            let mut said = vec![events[0].clone()];
            let EventBody::EvalRequested { code, .. } = &mut said[0].body else { panic!("no request") };
            *code = text.to_owned();
            said.extend(end.into_iter().map(|body| ExportedEvent { at: Timestamp::UNIX_EPOCH, body }));
            Item::Cell { entries: Vec::new(), events: said }
        };
        let failed = |failure| EventBody::EvalFailed {
            job,
            failure,
            result: EvalResult::default(),
            changes_state: false,
            duration_ms: 1,
        };
        let raised = RaisedError {
            kind: "E".to_owned(),
            message: "no".to_owned(),
            stack: Some("at f\nat g".to_owned()),
            coloured_stack: None,
        };
        let printed = EventBody::OutputProduced {
            job: Some(job),
            stream: OutputStream::Stderr,
            text: "```".to_owned(),
        };
        items.push(coded("oops\nagain", vec![failed(Failure::Rejected)]));
        items.push(coded("f ()", vec![printed, failed(Failure::Raised { error: raised })]));
        items.push(coded("let x = 1\n", vec![events.last().unwrap().body.clone()]));
        items
    }

    /// A cell that prints, shows a bar twice and a picture, prints, and has a value in two forms.
    fn showing() -> Vec<ExportedEvent> {
        let job = JobId::from_uuid(uuid::Uuid::from_u128(1));
        let shows = |id: Option<&str>, is_value, forms: serde_json::Value| {
            let id = id.map(|id| crate::id::DisplayId::new(id).unwrap());
            let data: Bundle = serde_json::from_value(forms).unwrap();
            EventBody::OutputDisplayed {
                job: Some(job),
                display: Box::new(Display { id, is_value, is_update: false, is_in_place: false, data }),
            }
        };
        let mut said = bodies();
        let (before, completed) = (said[3].clone(), said[5].clone());
        let table = serde_json::json!({ "schema": { "fields": [{ "name": "x" }] }, "data": [{ "x": 1 }] });
        let shown = [
            shows(Some("bar"), false, serde_json::json!({ "text/plain": "10 %" })),
            shows(None, false, serde_json::json!({ "image/png": "iVBORw==" })),
            before.body.clone(),
            shows(Some("bar"), false, serde_json::json!({ "text/plain": "100 %\ndone" })),
            shows(
                None,
                true,
                serde_json::json!({ "application/vnd.dataresource+json": table, "text/plain": "x" }),
            ),
        ];
        said.truncate(4);
        said.extend(shown.map(|body| ExportedEvent { at: before.at, body }));
        said.push(completed);
        said
    }

    #[test]
    fn displays_come_back_from_a_file() {
        let first = file(&showing());
        let imported = read(&first).unwrap();
        assert_eq!(imported.items[0].entries(), 5);
        let events = placed(imported.items, OF_THE_FILE, Seq(3));
        let bodies: Vec<ExportedEvent> =
            events.into_iter().map(|event| ExportedEvent { at: event.at, body: event.body }).collect();
        assert_eq!(file(&bodies), first);
    }

    #[test]
    fn people_see_displays_in_markdown_where_they_were_shown() {
        insta::assert_snapshot!(markdown(&header(), &kernel(), &read(&file(&showing())).unwrap().items), @"
        # lab

        ```fsharp
        1 + 1
        ```

        ```text
        hello
        ```

        ```text
        100 %
        done
        ```

        ![image/png, 4 bytes](data:image/png;base64,iVBORw==)

        ```text
        hello
        val it : int = 2
        ```

        | x |
        | --- |
        | 1 |
        ");
    }

    #[test]
    fn people_see_a_progress_bar_as_one_line_and_a_notebook_has_all_of_it() {
        let mut said = bodies();
        if let EventBody::OutputProduced { text, .. } = &mut said[3].body {
            *text = "\r 50%\r100%\u{1b}[32m done\u{1b}[0m\n".to_owned();
        }
        let items = read(&file(&said)).unwrap().items;
        let markdown = markdown(&header(), &kernel(), &items);
        assert!(markdown.contains("\n100% done\n"), "{markdown}");
        let notebook = notebook(&kernel(), &items).to_string();
        assert!(notebook.contains(r"\r 50%\r100%\u001b[32m done\u001b[0m\n"), "{notebook}");
    }

    #[test]
    fn people_see_both_streams_in_order_and_that_code_was_cut_off() {
        let mut said = bodies();
        let job = JobId::from_uuid(uuid::Uuid::from_u128(1));
        let printed =
            |stream, text: &str| EventBody::OutputProduced { job: Some(job), stream, text: text.to_owned() };
        said[3].body = printed(OutputStream::Stderr, "first\n");
        said[4].body = printed(OutputStream::Stdout, "second\n");
        said[5].body = EventBody::EvalCancelled { job, ending: CancelEnding::Yielded, kept: None };
        let markdown = markdown(&header(), &kernel(), &read(&file(&said)).unwrap().items);
        assert!(markdown.contains("\nfirst\nsecond\n(cancelled)\n"), "{markdown}");
    }

    #[test]
    fn a_notebook_has_displays_as_jupyter_has_them() {
        let notebook = notebook(&kernel(), &read(&file(&showing())).unwrap().items);
        let outputs: Vec<String> =
            notebook["cells"][0]["outputs"].as_array().unwrap().iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(outputs.join("\n"), @r#"
        {"name":"stdout","output_type":"stream","text":["hello\n"]}
        {"data":{"text/plain":["100 %\n","done"]},"metadata":{},"output_type":"display_data"}
        {"data":{"image/png":"iVBORw==","text/plain":["[image/png, 4 bytes]"]},"metadata":{},"output_type":"display_data"}
        {"name":"stdout","output_type":"stream","text":["hello\n"]}
        {"data":{"application/vnd.dataresource+json":{"data":[{"x":1}],"schema":{"fields":[{"name":"x"}]}},"text/plain":["val it : int = 2"]},"execution_count":1,"metadata":{},"output_type":"execute_result"}
        "#);
    }

    fn kernel() -> Kernel {
        Kernel::of(&SessionKind::fsharp(), None)
    }

    fn header() -> Header {
        Header::new("lab".to_owned(), SessionKind::fsharp(), None, "/lab".to_owned(), None)
    }

    #[test]
    fn people_read_markdown() {
        insta::assert_snapshot!(markdown(&header(), &kernel(), &items()), @"
        # lab

        ```fsharp
        1 + 1
        ```

        ```text
        hello
        val it : int = 2
        ```

        ---

        *reset: what is above was dropped*

        ```fsharp
        oops
        again
        ```

        ```text
        rejected
        ```

        ```fsharp
        f ()
        ```

        ````text
        ```
        E: no
        at f
        at g
        ````

        ```fsharp
        let x = 1
        ```

        ```text
        val it : int = 2
        ```
        ");
    }

    #[test]
    fn a_script_has_what_ran_to_its_end_since_the_last_reset() {
        insta::assert_snapshot!(script(ScriptLanguage::FSharp, &kernel(), &items()), @"
        // %%
        // did not run to its end: rejected
        // oops
        // again

        // %%
        // did not run to its end: E
        // f ()

        // %%
        let x = 1
        ");
    }

    #[test]
    fn a_script_and_a_polyglot_notebook_read_back_as_the_same_cells() {
        use crate::notebook::{Notebook, NotebookFormat};
        let code = |format, text: String| -> Vec<String> {
            let cells = Notebook::read(format, &text).unwrap().cells();
            cells.into_iter().filter(|cell| cell.is_code()).map(|cell| cell.source).collect()
        };
        let of_script = code(
            NotebookFormat::Script(ScriptLanguage::FSharp),
            script(ScriptLanguage::FSharp, &kernel(), &items()),
        );
        assert_eq!(of_script.len(), 3);
        assert_eq!(code(NotebookFormat::Dib, dib(&kernel(), &items())), of_script);
    }

    #[test]
    fn a_notebook_has_every_cell_with_its_outputs() {
        let notebook = serde_json::to_string_pretty(&notebook(&kernel(), &items())).unwrap();
        insta::assert_snapshot!(notebook, @r#"
        {
          "cells": [
            {
              "cell_type": "code",
              "execution_count": 1,
              "id": "cell-1",
              "metadata": {},
              "outputs": [
                {
                  "name": "stdout",
                  "output_type": "stream",
                  "text": [
                    "hello\n"
                  ]
                },
                {
                  "data": {
                    "text/plain": [
                      "val it : int = 2"
                    ]
                  },
                  "execution_count": 1,
                  "metadata": {},
                  "output_type": "execute_result"
                }
              ],
              "source": [
                "1 + 1"
              ]
            },
            {
              "cell_type": "code",
              "execution_count": 2,
              "id": "cell-2",
              "metadata": {},
              "outputs": [
                {
                  "ename": "rejected",
                  "evalue": "",
                  "output_type": "error",
                  "traceback": []
                }
              ],
              "source": [
                "oops\n",
                "again"
              ]
            },
            {
              "cell_type": "code",
              "execution_count": 3,
              "id": "cell-3",
              "metadata": {},
              "outputs": [
                {
                  "name": "stderr",
                  "output_type": "stream",
                  "text": [
                    "```"
                  ]
                },
                {
                  "ename": "E",
                  "evalue": "no",
                  "output_type": "error",
                  "traceback": [
                    "E: no",
                    "at f",
                    "at g"
                  ]
                }
              ],
              "source": [
                "f ()"
              ]
            },
            {
              "cell_type": "code",
              "execution_count": 4,
              "id": "cell-4",
              "metadata": {},
              "outputs": [
                {
                  "data": {
                    "text/plain": [
                      "val it : int = 2"
                    ]
                  },
                  "execution_count": 4,
                  "metadata": {},
                  "output_type": "execute_result"
                }
              ],
              "source": [
                "let x = 1\n"
              ]
            }
          ],
          "metadata": {
            "kernelspec": {
              "display_name": ".NET (F#)",
              "language": "F#",
              "name": ".net-fsharp"
            },
            "language_info": {
              "name": "F#"
            }
          },
          "nbformat": 4,
          "nbformat_minor": 5
        }
        "#);
    }
}
