//! Showing what an agent does: what it says on standard output, and all else on standard error, thoughts only where that is a terminal. What
//! it says is laid out on a terminal that has colours, and elsewhere as it is written.

use std::io::{IsTerminal, Write, stderr, stdout};

use super::RenderItem;
use super::outcome::short_text;
use super::stream::MarkdownStream;
use crate::{OpenLine, Paint, ProgressLine, Surface, Tone, printable, printed};

/// Columns of what goes on just now: a line that wraps could not be taken off the screen.
const PASSING_COLUMNS: usize = 70;

/// Where a terminal does not say how wide it is.
const COLUMNS: usize = 80;

/// Where it is shown, and what stands there.
pub struct Screen {
    paint: Paint,
    /// What the agent says and is not shown yet; none where it is shown as it is written.
    stream: Option<MarkdownStream>,
    /// What was said last and has no end yet.
    begun: OpenLine,
    /// Where that was said.
    voice: LineKind,
    passing: ProgressLine,
    /// What shows the whole of what is cut.
    whole: &'static str,
}

/// Whose line is begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineKind {
    Answer,
    Thinking,
}

impl Screen {
    /// With nothing on it; `whole` is the command that shows the whole of what is cut.
    pub fn new(whole: &'static str) -> Self {
        Self {
            paint: Paint::stderr(),
            stream: Paint::stdout().is_on().then(MarkdownStream::default),
            begun: OpenLine::default(),
            voice: LineKind::Answer,
            passing: ProgressLine::default(),
            whole,
        }
    }

    /// Shows the items in order.
    pub fn show(&mut self, told: impl IntoIterator<Item = RenderItem>) {
        told.into_iter().for_each(|told| self.show_one(told));
    }

    fn show_one(&mut self, told: RenderItem) {
        match told {
            RenderItem::Answer(text) => {
                self.turn_to(LineKind::Answer);
                let shown = match &mut self.stream {
                    Some(stream) => stream.push(&text, columns()),
                    None => printable(&text).into_owned(),
                };
                self.say(&shown);
            }
            RenderItem::Output(text) => {
                self.turn_to(LineKind::Answer);
                self.say(&printed(&text, Paint::stdout()));
            }
            RenderItem::Thinking(text) if stderr().is_terminal() => {
                self.turn_to(LineKind::Thinking);
                self.say(&printable(&text));
            }
            RenderItem::Thinking(_) => {}
            RenderItem::Break => {
                self.end_line();
                self.stream.iter_mut().for_each(MarkdownStream::begin_anew);
            }
            RenderItem::Tool(outcome) => {
                self.make_room();
                eprint!("{}", short_text(&outcome, self.columns_below(), self.whole, self.paint));
            }
            RenderItem::Line(tone, text) => {
                self.make_room();
                eprintln!("{}", self.paint.tone(tone, &printable(&text)));
            }
            // On a line that has not ended it would write over what was said.
            RenderItem::Passing(text) => {
                self.say_the_rest();
                if !self.begun.is_begun() {
                    let line: String = text.chars().take(PASSING_COLUMNS).collect();
                    self.passing.show(&line);
                }
            }
        }
    }

    /// How many columns what stands below a tool's call has; none where people do not look.
    fn columns_below(&self) -> Option<usize> {
        stderr().is_terminal().then(columns)
    }

    /// Shows what is left of what the agent said: something else follows.
    fn say_the_rest(&mut self) {
        if let Some(stream) = &mut self.stream {
            let shown = stream.pause();
            self.say(&shown);
        }
    }

    fn turn_to(&mut self, voice: LineKind) {
        if self.voice != voice {
            self.make_room();
            self.voice = voice;
        }
    }

    fn say(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.passing.clear();
        // A terminal that is gone ends the client elsewhere.
        match self.voice {
            LineKind::Answer => {
                print!("{text}");
                stdout().flush().ok();
            }
            LineKind::Thinking => eprint!("{}", self.paint.tone(Tone::Faint, text)),
        }
        self.begun.push(text);
    }

    /// What is not said by the agent begins on a line of its own; a file has only what it says.
    pub fn make_room(&mut self) {
        self.passing.clear();
        if self.voice == LineKind::Thinking || stdout().is_terminal() {
            self.end_line();
        }
    }

    /// What follows begins on a line of its own.
    pub fn end_line(&mut self) {
        self.say_the_rest();
        self.passing.clear();
        if self.begun.take() {
            match self.voice {
                LineKind::Answer => println!(),
                LineKind::Thinking => eprintln!(),
            }
        }
    }
}

/// How many columns what is said has.
fn columns() -> usize {
    Surface::stdout().columns().unwrap_or(COLUMNS)
}
