//! Reading a file, and checking that it is what was written.

use super::collector::Collector;
use super::item::OF_THE_FILE;
use super::item::{ExportedEvent, FORMAT, Header, Item, VERSION};
use mainstay_model::error::Error;
use mainstay_model::event::EventBody;
use mainstay_model::id::{Seq, SessionId, SessionKind};
use mainstay_model::object::ObjectHash;
use mainstay_model::transcript::Segment;

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
