//! The lines of the copy, in the order in which they are found, and those that are still to be sent.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use mainstay_client::Client;
use mainstay_model::{Content, HistoryLine, LineNumber, NewLine};

use super::{HERE, Place};

/// Where those begin that have no number yet.
const UNSENT: Place = 1 << 61;

#[derive(Default)]
/// The copy: the lines that are known, and those that are still to be sent.
pub(super) struct CachedHistory {
    pub(super) folder: String,
    pub(super) lines: BTreeMap<Place, Line>,
    /// The newest line that the daemon has listed.
    pub(super) listed: LineNumber,
    pub(super) unsent: VecDeque<Unsent>,
    /// How many lines were queued.
    pub(super) queued: Place,
    pub(super) client: Option<Arc<Client>>,
    /// How often the daemon was to be asked, and up to which of these times it was.
    pub(super) asked: u64,
    pub(super) answered: u64,
    /// Files to be removed once all that was read from them is sent, as they were then.
    pub(super) taken_over: Vec<(PathBuf, Vec<u8>)>,
}

/// A line of the copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(super) number: Option<LineNumber>,
    pub(super) folder: Option<String>,
    /// The text of the line, or its beginning.
    pub(crate) content: Content,
}

/// A line that the daemon does not have yet.
pub(super) struct Unsent {
    pub(super) line: NewLine,
    /// Where it stands until then: its place without the folder.
    pub(super) place: Place,
    /// It was read from a file.
    pub(super) is_of_file: bool,
}

impl CachedHistory {
    /// Those of this folder, and those of no folder, come first from now on.
    pub(super) fn enter(&mut self, folder: &str) {
        if self.folder == folder {
            return;
        }
        self.folder = folder.to_owned();
        let lines = std::mem::take(&mut self.lines);
        for (place, line) in lines {
            self.insert(place & !HERE, line);
        }
    }

    /// Takes a line in; `place` is without the folder.
    pub(super) fn insert(&mut self, place: Place, line: Line) {
        let is_here = line.folder.as_ref().is_none_or(|folder| *folder == self.folder);
        self.lines.insert(if is_here { place | HERE } else { place }, line);
    }

    pub(super) fn remove(&mut self, place: Place) -> Option<Line> {
        self.lines.remove(&(place | HERE)).or_else(|| self.lines.remove(&place))
    }

    pub(super) fn queue(&mut self, line: NewLine, is_of_file: bool) {
        let place = UNSENT + self.queued;
        self.queued += 1;
        let (folder, content) = (line.folder.clone(), Content::Text(line.text.clone()));
        self.insert(place, Line { number: None, folder, content });
        self.unsent.push_back(Unsent { line, place, is_of_file });
    }

    /// The daemon has the first so many of the lines that wait, under these numbers.
    pub(super) fn sent(&mut self, numbers: &[LineNumber]) {
        for number in numbers {
            let Some(Unsent { place, .. }) = self.unsent.pop_front() else { return };
            if let Some(line) = self.remove(place) {
                self.insert(numbered(*number), Line { number: Some(*number), ..line });
            }
        }
    }

    /// The daemon will never take the first line that waits.
    pub(super) fn refused(&mut self) {
        self.unsent.pop_front();
    }

    pub(super) fn list(&mut self, lines: Vec<HistoryLine>) {
        for HistoryLine { number, folder, content, at: _, session: _ } in lines {
            self.listed = self.listed.max(number);
            if !self.has_whole(number) {
                self.insert(numbered(number), Line { number: Some(number), folder, content });
            }
        }
    }

    /// Whether all that a line says is known.
    pub(super) fn has_whole(&self, number: LineNumber) -> bool {
        let place = numbered(number);
        let there = self.lines.get(&(place | HERE)).or_else(|| self.lines.get(&place));
        there.is_some_and(|line| matches!(line.content, Content::Text(_)))
    }

    /// The files whose lines are all sent.
    pub(super) fn done_files(&mut self) -> Vec<(PathBuf, Vec<u8>)> {
        match self.unsent.iter().any(|unsent| unsent.is_of_file) {
            true => Vec::new(),
            false => std::mem::take(&mut self.taken_over),
        }
    }
}

fn numbered(number: LineNumber) -> Place {
    Place::try_from(number.0).unwrap_or(UNSENT - 1)
}
