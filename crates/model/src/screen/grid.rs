//! Where printed text stands: rows that can be written over, and above them what cannot any more.

use std::collections::VecDeque;

use unicode_width::UnicodeWidthChar;
use vte::ansi::{Attr, ClearMode, Color, Handler, LineClearMode, NamedColor};

use super::{Colour, Run, Style};
use crate::event::OutputStream;

/// How many rows, counted from the last one, can be written over.
const HEIGHT: usize = 64;
/// How many columns a row has. A longer line goes on in the next row, and `\r` leads to the beginning of that row only.
const WIDTH: usize = 1024;
/// Columns from one tab stop to the next.
const TAB: usize = 8;
/// How many combining characters a character has at most.
const MARKS: usize = 8;
/// How many characters may come to stand on the screen for each byte that is printed: a few bytes can ask for a character 65,535 times over,
/// or for blanks up to a far column.
const GLYPHS_PER_BYTE: usize = 4;
/// And how many besides.
const SPARE_GLYPHS: usize = 16 * WIDTH;

/// The rows, and the cursor in them.
#[derive(Debug)]
pub(super) struct Grid {
    /// What stands above the rows.
    settled: Vec<Run>,
    /// There is always one.
    rows: VecDeque<Row>,
    row: usize,
    column: usize,
    ink: Ink,
    saved: (usize, usize),
    /// How many characters may still come to stand here.
    room: usize,
}

/// What the cursor writes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ink {
    stream: OutputStream,
    style: Style,
}

#[derive(Debug, Default)]
struct Row {
    glyphs: Vec<Glyph>,
    width: usize,
    /// Whether one of its characters is not as wide as one column: else their columns are their places.
    is_uneven: bool,
    /// Whether its line goes on in the next row.
    is_wrapped: bool,
}

/// A character where it stands. A combining one has no width and stands behind what it belongs to.
#[derive(Clone, Copy, Debug)]
struct Glyph {
    symbol: char,
    width: usize,
    ink: Ink,
}

impl Default for Grid {
    fn default() -> Self {
        let ink = Ink { stream: OutputStream::Stdout, style: Style::default() };
        let rows = VecDeque::from([Row::default()]);
        Self { settled: Vec::new(), rows, row: 0, column: 0, ink, saved: (0, 0), room: SPARE_GLYPHS }
    }
}

impl Grid {
    /// What is printed next goes to this stream, and has so many bytes.
    pub(super) fn write_to(&mut self, stream: OutputStream, bytes: usize) {
        self.ink.stream = stream;
        self.room = self.room.saturating_add(bytes.saturating_mul(GLYPHS_PER_BYTE));
    }

    pub(super) fn runs(&self) -> Vec<Run> {
        let mut runs = self.settled.clone();
        // Below the cursor there may be rows whose text was cleared away.
        let last = self.rows.iter().rposition(|row| !row.glyphs.is_empty()).unwrap_or_default();
        for row in self.rows.iter().take(last.max(self.row)) {
            row.push_to(&mut runs);
            row.end_in(&mut runs);
        }
        self.rows.iter().skip(last.max(self.row)).take(1).for_each(|row| row.push_to(&mut runs));
        runs
    }

    pub(super) fn settled_bytes(&self) -> usize {
        self.settled.iter().map(|run| run.text.len()).sum()
    }

    pub(super) fn row_bytes(&self) -> usize {
        let bytes = |row: &Row| row.glyphs.iter().map(|glyph| glyph.symbol.len_utf8()).sum::<usize>();
        self.rows.iter().map(bytes).sum::<usize>() + self.rows.len() - 1
    }

    pub(super) fn split_settled(&mut self) -> Self {
        Self { settled: std::mem::take(&mut self.settled), ..Self::default() }
    }

    /// Forgets so many bytes from the beginning, and what is left of the line they end in of what stands above the rows; but nothing of
    /// the cursor's row. Rows in which bytes are forgotten cannot be written over any more.
    pub(super) fn forget(&mut self, bytes: usize) {
        while self.row > 0 && self.settled_bytes() < bytes {
            self.settle_first();
        }
        let mut left = bytes;
        let mut is_inside_line = false;
        self.settled.retain_mut(|run| {
            let mut end = run.text.floor_char_boundary(left);
            left = left.saturating_sub(run.text.len());
            if end > 0 {
                is_inside_line = !run.text[..end].ends_with('\n');
            }
            if is_inside_line {
                match run.text[end..].find('\n') {
                    Some(line_end) => (end, is_inside_line) = (end + line_end + 1, false),
                    None => end = run.text.len(),
                }
            }
            run.text.drain(..end);
            !run.text.is_empty()
        });
    }

    /// The row of the cursor; its column is reached.
    fn current(&mut self) -> &mut Row {
        let blank = Glyph::blank(Ink { style: Style::default(), ..self.ink });
        // The cursor never leaves the rows.
        let row = &mut self.rows[self.row];
        let missing = self.column.saturating_sub(row.width);
        self.room = self.room.saturating_sub(missing);
        row.glyphs.extend(std::iter::repeat_n(blank, missing));
        row.width += missing;
        row
    }

    /// To the next row, which is there from now on.
    fn go_down(&mut self, is_wrapped: bool) {
        self.rows[self.row].is_wrapped |= is_wrapped;
        self.column = 0;
        self.row += 1;
        if self.row < self.rows.len() {
            return;
        }
        self.rows.push_back(Row::default());
        if self.rows.len() > HEIGHT {
            self.settle_first();
        }
    }

    /// The first row cannot be written over any more; the cursor is below it.
    fn settle_first(&mut self) {
        if let Some(row) = self.rows.pop_front() {
            row.push_to(&mut self.settled);
            row.end_in(&mut self.settled);
        }
        self.row -= 1;
        self.saved.0 = self.saved.0.saturating_sub(1);
    }

    fn put(&mut self, glyph: Glyph) {
        if self.room == 0 {
            return;
        }
        self.room -= 1;
        if self.column + glyph.width > WIDTH {
            self.go_down(true);
        }
        let column = self.column;
        self.current().put(column, glyph);
        self.column += glyph.width;
    }

    /// Clears these columns of the cursor's row.
    fn blank(&mut self, from: usize, to: usize) {
        let blank = Glyph::blank(Ink { style: Style::default(), ..self.ink });
        let row = &mut self.rows[self.row];
        let to = to.min(row.width);
        if from < to {
            row.replace(from, to, std::iter::repeat_n(blank, to - from), blank);
        }
    }

    fn clear_right(&mut self) {
        let column = self.column;
        self.rows[self.row].truncate(column);
    }
}

impl Row {
    /// Writes over what stands from this column on.
    fn put(&mut self, column: usize, glyph: Glyph) {
        self.is_uneven |= glyph.width != 1;
        if glyph.width == 0 {
            // It belongs to what stands before the cursor.
            let index = if column >= self.width { self.glyphs.len() } else { self.find(column).0 };
            let marks = self.glyphs[..index].iter().rev().take_while(|before| before.width == 0).take(MARKS);
            if marks.count() < MARKS {
                self.glyphs.insert(index, glyph);
            }
        } else if column >= self.width {
            self.width += glyph.width;
            self.glyphs.push(glyph);
        } else {
            self.replace(column, column + glyph.width, [glyph], Glyph::blank(glyph.ink));
        }
    }

    /// Puts something else into these columns, which begin in the row; what is only half written over leaves blanks.
    fn replace(&mut self, from: usize, to: usize, new: impl IntoIterator<Item = Glyph>, blank: Glyph) {
        let (first, before) = self.find(from);
        let (mut last, mut after) = (first, before);
        while let Some(covered) = self.glyphs.get(last).filter(|covered| after < to || covered.width == 0) {
            after += covered.width;
            last += 1;
        }
        let left = std::iter::repeat_n(blank, from - before);
        let right = std::iter::repeat_n(blank, after.saturating_sub(to));
        self.glyphs.splice(first..last, left.chain(new).chain(right));
        self.width = self.width.max(to);
    }

    /// What stands in a column, and in which column that begins.
    fn find(&self, column: usize) -> (usize, usize) {
        if !self.is_uneven {
            return (column.min(self.width), column.min(self.width));
        }
        let mut start = 0;
        for (index, glyph) in self.glyphs.iter().enumerate() {
            if glyph.width > 0 && start + glyph.width > column {
                return (index, start);
            }
            start += glyph.width;
        }
        (self.glyphs.len(), start)
    }

    fn truncate(&mut self, column: usize) {
        if column >= self.width {
            return;
        }
        let (index, start) = self.find(column);
        self.glyphs.truncate(index);
        self.width = start;
    }

    fn push_to(&self, runs: &mut Vec<Run>) {
        for glyph in &self.glyphs {
            run_of(runs, glyph.ink).text.push(glyph.symbol);
        }
    }

    fn end_in(&self, runs: &mut Vec<Run>) {
        if self.is_wrapped {
            return;
        }
        match runs.last_mut() {
            Some(run) => run.text.push('\n'),
            None => {
                let ink = Ink { stream: OutputStream::Stdout, style: Style::default() };
                run_of(runs, ink).text.push('\n');
            }
        }
    }
}

impl Glyph {
    fn blank(ink: Ink) -> Self {
        Self { symbol: ' ', width: 1, ink }
    }
}

/// The last run, if it is written with this ink, or a new one.
fn run_of(runs: &mut Vec<Run>, Ink { stream, style }: Ink) -> &mut Run {
    let is_same = runs.last().is_some_and(|run| run.stream == stream && run.style == style);
    if !is_same {
        runs.push(Run { stream, style, text: String::new() });
    }
    let last = runs.len() - 1;
    &mut runs[last]
}

impl Handler for Grid {
    fn input(&mut self, symbol: char) {
        let width = symbol.width().unwrap_or_default();
        self.put(Glyph { symbol, width, ink: self.ink });
    }

    fn put_tab(&mut self, count: u16) {
        for _ in 0..count {
            let width = TAB - self.column % TAB;
            self.put(Glyph { symbol: '\t', width, ink: self.ink });
        }
    }

    fn linefeed(&mut self) {
        self.go_down(false);
    }

    fn newline(&mut self) {
        self.go_down(false);
    }

    fn carriage_return(&mut self) {
        self.column = 0;
    }

    fn backspace(&mut self) {
        self.column = self.column.saturating_sub(1);
    }

    fn move_up(&mut self, rows: usize) {
        self.row = self.row.saturating_sub(rows);
    }

    fn move_down(&mut self, rows: usize) {
        self.row = self.row.saturating_add(rows).min(self.rows.len() - 1);
    }

    fn move_up_and_cr(&mut self, rows: usize) {
        self.move_up(rows);
        self.column = 0;
    }

    fn move_down_and_cr(&mut self, rows: usize) {
        self.move_down(rows);
        self.column = 0;
    }

    fn move_forward(&mut self, columns: usize) {
        self.goto_col(self.column.saturating_add(columns));
    }

    fn move_backward(&mut self, columns: usize) {
        self.column = self.column.saturating_sub(columns);
    }

    fn goto_col(&mut self, column: usize) {
        self.column = column.min(WIDTH - 1);
    }

    fn goto_line(&mut self, row: i32) {
        self.row = usize::try_from(row).unwrap_or_default().min(self.rows.len() - 1);
    }

    fn goto(&mut self, row: i32, column: usize) {
        self.goto_line(row);
        self.goto_col(column);
    }

    fn save_cursor_position(&mut self) {
        self.saved = (self.row, self.column);
    }

    fn restore_cursor_position(&mut self) {
        let (row, column) = self.saved;
        self.row = row.min(self.rows.len() - 1);
        self.column = column;
    }

    fn erase_chars(&mut self, count: usize) {
        self.blank(self.column, self.column.saturating_add(count));
    }

    fn clear_line(&mut self, mode: LineClearMode) {
        match mode {
            LineClearMode::Right => self.clear_right(),
            LineClearMode::Left => self.blank(0, self.column + 1),
            LineClearMode::All => self.rows[self.row].truncate(0),
        }
    }

    fn clear_screen(&mut self, mode: ClearMode) {
        match mode {
            ClearMode::Below => {
                self.clear_right();
                self.rows.truncate(self.row + 1);
            }
            ClearMode::Above => {
                self.rows.iter_mut().take(self.row).for_each(|row| *row = Row::default());
                self.blank(0, self.column + 1);
            }
            ClearMode::All => self.rows.iter_mut().for_each(|row| *row = Row::default()),
            // What has left the screen of a terminal is read again by people, and here by programs.
            ClearMode::Saved => {}
        }
    }

    fn reset_state(&mut self) {
        self.ink.style = Style::default();
    }

    fn terminal_attribute(&mut self, attribute: Attr) {
        let style = &mut self.ink.style;
        match attribute {
            Attr::Reset => *style = Style::default(),
            Attr::Bold => style.is_bold = true,
            Attr::Dim => style.is_faint = true,
            Attr::Italic => style.is_italic = true,
            Attr::Underline
            | Attr::DoubleUnderline
            | Attr::Undercurl
            | Attr::DottedUnderline
            | Attr::DashedUnderline => style.is_underlined = true,
            Attr::Reverse => style.is_reversed = true,
            Attr::Strike => style.is_struck = true,
            Attr::CancelBold => style.is_bold = false,
            Attr::CancelBoldDim => (style.is_bold, style.is_faint) = (false, false),
            Attr::CancelItalic => style.is_italic = false,
            Attr::CancelUnderline => style.is_underlined = false,
            Attr::CancelReverse => style.is_reversed = false,
            Attr::CancelStrike => style.is_struck = false,
            Attr::Foreground(colour) => style.foreground = colour_of(colour),
            Attr::Background(colour) => style.background = colour_of(colour),
            // Hidden text is what somebody looks for in a log.
            Attr::BlinkSlow
            | Attr::BlinkFast
            | Attr::Hidden
            | Attr::CancelBlink
            | Attr::CancelHidden
            | Attr::UnderlineColor(_) => {}
        }
    }
}

/// None is the terminal's own.
fn colour_of(colour: Color) -> Option<Colour> {
    match colour {
        Color::Spec(rgb) => Some(Colour::Rgb(rgb.r, rgb.g, rgb.b)),
        Color::Indexed(index) => Some(Colour::Indexed(index)),
        Color::Named(NamedColor::Foreground | NamedColor::Background) => None,
        // The palette's first sixteen stand in its order.
        Color::Named(name) => {
            u8::try_from(name as usize).ok().filter(|index| *index < 16).map(Colour::Indexed)
        }
    }
}
