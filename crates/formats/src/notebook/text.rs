//! Notebooks that are text: each cell begins with a line that marks it.

use std::fmt::{self, Display, Formatter};

use super::{Cell, CellKind};

/// A text in cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// What stands before the first cell, and is none.
    before: String,
    cells: Vec<TextCell>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct TextCell {
    kind: CellKind,
    /// The line that marks it, with its end; empty for the first one where there is no mark.
    mark: String,
    body: String,
}

impl Text {
    /// Parts a text at the lines that `mark` knows. What is before the first one is a cell too, unless it is blank.
    pub(super) fn read(text: &str, unmarked: CellKind, mark: impl Fn(&str) -> Option<CellKind>) -> Self {
        let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let (before, text) = text.split_at(start);
        let mut first = TextCell { kind: unmarked, mark: String::new(), body: String::new() };
        let mut marked: Vec<TextCell> = Vec::new();
        for line in text.split_inclusive('\n') {
            match mark(line.trim_end()) {
                Some(kind) => {
                    marked.push(TextCell { kind, mark: line.to_owned(), body: String::new() });
                }
                None => marked.last_mut().unwrap_or(&mut first).body.push_str(line),
            }
        }
        if first.body.trim().is_empty() {
            return Self { before: format!("{before}{}", first.body), cells: marked };
        }
        marked.insert(0, first);
        Self { before: before.to_owned(), cells: marked }
    }

    pub(super) fn cells(&self) -> Vec<Cell> {
        let mut line = 1 + line_ends(&self.before);
        let mut cells = Vec::with_capacity(self.cells.len());
        for TextCell { kind, mark, body } in &self.cells {
            line += line_ends(mark);
            cells.push(Cell::new(kind.clone(), body, line));
            line += line_ends(body);
        }
        cells
    }
}

impl Display for Text {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.before)?;
        self.cells.iter().try_for_each(|TextCell { mark, body, .. }| write!(f, "{mark}{body}"))
    }
}

fn line_ends(text: &str) -> u32 {
    u32::try_from(text.matches('\n').count()).unwrap_or(u32::MAX)
}
