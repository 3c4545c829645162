//! What a terminal shows of printed text: lines that `\r`, `\b` and cursor movements have written over, and colours (ECMA-48).
//!
//! The log keeps what was printed as it was printed. Whoever shows it to people or to models folds it here first, so that a progress bar
//! is one line everywhere. [`grid`] is where the text stands and what each control does.

mod grid;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt::{self, Debug, Formatter};
use std::time::Duration;

use vte::ansi::{Processor, Timeout};

use self::grid::Grid;
use crate::event::OutputStream;

/// What control sequences begin with.
const SEQUENCE: &str = "\u{1b}[";
/// Digits of a sequence that may say that the last character is repeated.
const LONGEST_COUNT: usize = 20;

/// A terminal that printed text is written to. Sequences that it does not know have no effect, nor has the one that repeats a character.
#[derive(Default)]
pub struct Screen {
    parser: Processor<NeverHeldBack>,
    grid: Grid,
    /// The beginning of a sequence whose end is to come.
    begun: String,
}

/// Text that was written to one stream in one style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The stream it was written to.
    pub stream: OutputStream,
    /// The style of the text.
    pub style: Style,
    /// The text, with its line ends.
    pub text: String,
}

/// How text looks, as "select graphic rendition" (SGR) sets it. The default is the terminal's own look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// The colour of the text.
    pub foreground: Option<Colour>,
    /// The colour behind it.
    pub background: Option<Colour>,
    /// Whether the text is bold.
    pub is_bold: bool,
    /// Whether the text is faint.
    pub is_faint: bool,
    /// Whether the text is italic.
    pub is_italic: bool,
    /// Underlined, in whatever way.
    pub is_underlined: bool,
    /// Foreground and background are exchanged.
    pub is_reversed: bool,
    /// Whether the text is crossed out.
    pub is_struck: bool,
}

/// A colour of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// One of the palette of 256: 0 to 7 are the plain colours, 8 to 15 the bright ones.
    Indexed(u8),
    /// A colour of red, green and blue.
    Rgb(u8, u8, u8),
}

/// The text as a terminal shows it in the end, without colours. What has no control characters but line ends and tabs stays as it is.
pub fn settled(text: &str) -> Cow<'_, str> {
    if text.contains(|c: char| c.is_control() && c != '\n' && c != '\t') {
        Cow::Owned(Screen::of(text).text())
    } else {
        Cow::Borrowed(text)
    }
}

impl Screen {
    /// One to which this was printed, all to standard output.
    pub fn of(text: &str) -> Self {
        let mut screen = Self::default();
        screen.print(OutputStream::Stdout, text);
        screen
    }

    /// Writes a piece of text. What is begun in one piece, be it a line or a sequence, goes on in the next.
    pub fn print(&mut self, stream: OutputStream, text: &str) {
        self.grid.write_to(stream, text.len());
        let begun = std::mem::take(&mut self.begun);
        let text = if begun.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(begun + text) };
        let mut rest = &*text;
        while let Some((before, after)) = rest.split_once(SEQUENCE) {
            self.parser.advance(&mut self.grid, before.as_bytes());
            // What controls stand in a sequence is no end of it.
            let is_inside = |byte: &u8| matches!(byte, b'0'..=b';' | ..=0x1a | 0x1c..=0x1f | 0x7f);
            let count = after.bytes().take_while(is_inside).count();
            rest = match after.as_bytes().get(count) {
                // The parser would carry it out one by one, 65,535 times for nine bytes.
                Some(b'b') => &after[count + 1..],
                None if count <= LONGEST_COUNT => {
                    SEQUENCE.clone_into(&mut self.begun);
                    self.begun.push_str(after);
                    return;
                }
                Some(_) | None => {
                    self.parser.advance(&mut self.grid, SEQUENCE.as_bytes());
                    after
                }
            };
        }
        let whole = rest.strip_suffix('\u{1b}').unwrap_or(rest);
        self.begun.push_str(&rest[whole.len()..]);
        self.parser.advance(&mut self.grid, whole.as_bytes());
    }

    /// What stands on it, from its first line to its last.
    pub fn runs(&self) -> Vec<Run> {
        self.grid.runs()
    }

    /// The text of what stands on it.
    pub fn text(&self) -> String {
        self.runs().into_iter().map(|run| run.text).collect()
    }

    /// How many bytes of text stand on it.
    pub fn bytes(&self) -> usize {
        self.grid.settled_bytes() + self.grid.row_bytes()
    }

    /// How many of them are in lines that cannot be written over any more.
    pub fn settled_bytes(&self) -> usize {
        self.grid.settled_bytes()
    }

    /// Takes off the lines that cannot be written over any more, as a screen of their own.
    pub fn split_settled(&mut self) -> Self {
        Self { grid: self.grid.split_settled(), ..Self::default() }
    }

    /// Forgets the first lines, until no more than so many bytes are left, or only what stands in the cursor's row and below. What is
    /// left of a line whose beginning is forgotten can be the end of a long one only.
    pub fn keep_end(&mut self, bytes: usize) {
        self.grid.forget(self.bytes().saturating_sub(bytes));
    }
}

impl Debug for Screen {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Screen").field(&self.text()).finish()
    }
}

/// Screens show at once what a program would have held back until all of it is there: here nothing is seen half done.
#[derive(Debug, Default)]
struct NeverHeldBack;

impl Timeout for NeverHeldBack {
    fn set_timeout(&mut self, _: Duration) {}

    fn clear_timeout(&mut self) {}

    fn pending_timeout(&self) -> bool {
        false
    }
}
