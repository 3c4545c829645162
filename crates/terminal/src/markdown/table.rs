//! A table of Markdown as lines.

use pulldown_cmark::Alignment;

use super::{Words, faint};

/// The text between two columns.
const BETWEEN: &str = " │ ";
/// No column is narrower, where its words are not.
const NARROWEST: usize = 6;

/// A table that is being read.
pub(super) struct Table {
    sides: Vec<Alignment>,
    rows: Vec<Vec<Words>>,
}

impl Table {
    pub(super) fn new(sides: Vec<Alignment>) -> Self {
        Self { sides, rows: Vec::new() }
    }

    pub(super) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn push(&mut self, cell: Words) {
        self.rows.last_mut().into_iter().for_each(|row| row.push(cell.clone()));
    }

    /// Lines of at most so many columns, as far as words allow: the widest columns are wrapped.
    pub(super) fn lines(&self, columns: usize) -> Vec<String> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |at: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(at));
            cells.map(Words::width).max().unwrap_or(0).max(1)
        };
        let widths = fitted((0..count).map(width).collect(), columns);
        let mut lines = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            lines.extend(self.row_lines(row, &widths));
            if index == 0 {
                let parts: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(faint(&parts.join("─┼─")));
            }
        }
        lines
    }

    fn row_lines(&self, row: &[Words], widths: &[usize]) -> Vec<String> {
        let cell =
            |(at, width): (usize, &usize)| row.get(at).map(|words| words.lines(*width)).unwrap_or_default();
        let cells: Vec<_> = widths.iter().enumerate().map(cell).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0).max(1);
        let line = |at: usize| {
            let parts = cells.iter().zip(widths).enumerate().map(|(column, (lines, room))| {
                let (text, width) = lines.get(at).cloned().unwrap_or_default();
                let spare = room.saturating_sub(width);
                let before = match self.sides.get(column) {
                    Some(Alignment::Right) => spare,
                    Some(Alignment::Center) => spare / 2,
                    Some(Alignment::Left | Alignment::None) | None => 0,
                };
                format!("{}{text}{}", " ".repeat(before), " ".repeat(spare - before))
            });
            parts.collect::<Vec<_>>().join(&faint(BETWEEN)).trim_end().to_owned()
        };
        (0..height).map(line).collect()
    }
}

/// The widths, narrowed until the whole fits.
fn fitted(mut widths: Vec<usize>, columns: usize) -> Vec<usize> {
    let room = columns.saturating_sub(3 * widths.len().saturating_sub(1));
    while widths.iter().sum::<usize>() > room {
        let Some(widest) = widths.iter_mut().max().filter(|widest| **widest > NARROWEST) else { break };
        *widest -= 1;
    }
    widths
}
