//! The line editor, on a thread of its own while someone types, so that events and completions go on.
//!
//! It can be interrupted by the bell: what was typed is taken off the screen, others print, and it is put back below.

use std::io::Write;
use std::sync::Arc;

use crossterm::{QueueableCommand, cursor, terminal};
use mainstay_model::{Language, SessionKind};
use mainstay_protocol::view::SessionView;
use mainstay_terminal::Paint;
use reedline::{
    Color, DefaultHinter, EditCommand, Highlighter, IdeMenu, MenuBuilder, Reedline, ReedlineMenu, Signal,
    StyledText,
};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use unicode_width::UnicodeWidthStr;

use crate::command::PromptLanguage;
use crate::completeness::CompletenessCheck;
use crate::completion::{DaemonCompleter, Source};
use crate::highlight::CodeHighlighter;
use crate::history::SharedHistory;
use crate::history_cache::HistoryCache;
use crate::keys::{Enter, Hints, Keys, MENU, SubmitRule, SubmitValidator};
use crate::line_prompt::{Bell, INDICATOR, LinePrompt};

/// How many choices the menu shows at once.
const MENU_ROWS: u16 = 12;
/// How wide the documentation beside it is at most.
const DOCUMENTATION_COLUMNS: u16 = 60;

/// What came of reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// A command or code.
    Text(String),
    /// Ctrl-C: the line is dropped.
    Dropped,
    /// Ctrl-D on an empty line.
    End,
    /// The bell rang. What was typed is put back when reading goes on.
    Interrupted,
}

/// The line editor of the prompt.
pub(crate) struct Editor {
    setup: Setup,
    /// None while it reads.
    line: Option<Reedline>,
    bell: Arc<Bell>,
}

/// What an editor is made from.
struct Setup {
    purpose: Purpose,
    paint: Paint,
}

/// What the line that is typed is for.
enum Purpose {
    /// Code, or words, and commands, which are completed, coloured and kept.
    Input {
        kind: SessionKind,
        language: Option<Language>,
        history: HistoryCache,
        source: Source,
        runtime: Handle,
    },
    /// An answer, which is none of it.
    Answer,
    /// An answer that is shown to nobody.
    Secret,
}

/// An editor that reads.
pub(crate) struct Reading {
    thread: JoinHandle<(Reedline, std::io::Result<Signal>)>,
    prompt: LinePrompt,
}

impl Editor {
    /// An editor for a session that knows what was submitted before, and asks `source` for completions.
    pub(crate) fn new(
        session: &SessionView,
        history: HistoryCache,
        source: Source,
        paint: Paint,
    ) -> std::io::Result<Self> {
        let (kind, language) = (session.kind.clone(), session.language.clone());
        let purpose = Purpose::Input { kind, language, history, source, runtime: Handle::current() };
        Self::of(Setup { purpose, paint })
    }

    /// An editor of answers to one question.
    pub(crate) fn for_answers(paint: Paint, are_secret: bool) -> std::io::Result<Self> {
        let purpose = if are_secret { Purpose::Secret } else { Purpose::Answer };
        Self::of(Setup { purpose, paint })
    }

    fn of(setup: Setup) -> std::io::Result<Self> {
        let bell = Arc::new(Bell::default());
        let line = setup.make(&bell)?;
        Ok(Self { setup, line: Some(line), bell })
    }

    /// Takes what was typed when the bell rang.
    pub(crate) fn take_text(&mut self) -> String {
        let line = self.line.take();
        line.map_or_else(String::new, |line| line.current_buffer_contents().to_owned())
    }

    /// Has this typed already.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn put(&mut self, text: String) -> std::io::Result<()> {
        let mut line = match self.line.take() {
            Some(line) => line,
            None => self.setup.make(&self.bell)?,
        };
        line.run_edit_commands(&[EditCommand::InsertString(text)]);
        self.line = Some(line);
        Ok(())
    }

    /// What interrupts the reading.
    pub(crate) fn bell(&self) -> Arc<Bell> {
        Arc::clone(&self.bell)
    }

    /// Starts to read a line.
    pub(crate) fn read(&mut self, prompt: LinePrompt) -> std::io::Result<Reading> {
        let mut line = match self.line.take() {
            Some(line) => line,
            None => self.setup.make(&self.bell)?,
        };
        self.bell.silence();
        let prompt = prompt.with_bell(Arc::clone(&self.bell));
        let shown = prompt.clone();
        let thread = tokio::task::spawn_blocking(move || {
            let signal = line.read_line(&shown);
            (line, signal)
        });
        Ok(Reading { thread, prompt })
    }

    /// Takes the editor back after it has read.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn finish(&mut self, done: ReadResult, prompt: &LinePrompt) -> std::io::Result<Typed> {
        let (line, signal) = done.map_err(std::io::Error::other)?;
        match signal? {
            Signal::Success(text) => self.keep(line, Typed::Text(text)),
            Signal::CtrlC => self.keep(line, Typed::Dropped),
            Signal::CtrlD => self.keep(line, Typed::End),
            Signal::ExternalBreak(_) => {
                self.withdraw(line, prompt)?;
                Ok(Typed::Interrupted)
            }
            // There are no host commands, and what else may come is not for us.
            _ => self.keep(line, Typed::Dropped),
        }
    }

    fn keep(&mut self, line: Reedline, typed: Typed) -> std::io::Result<Typed> {
        self.line = Some(line);
        Ok(typed)
    }

    /// Takes what was typed off the screen. An editor that goes on would paint over what is printed meanwhile, so another
    /// takes its place, with the same text and cursor.
    fn withdraw(&mut self, line: Reedline, prompt: &LinePrompt) -> std::io::Result<()> {
        let (text, at) = (line.current_buffer_contents().to_owned(), line.current_insertion_point());
        drop(line);
        erase(prompt.rows_above_cursor(text.get(..at).unwrap_or(&text), terminal::size()?.0))?;
        let mut line = self.setup.make(&self.bell)?;
        line.run_edit_commands(&[
            EditCommand::InsertString(text),
            EditCommand::MoveToPosition { position: at, select: false },
        ]);
        self.line = Some(line);
        Ok(())
    }
}

/// How reading on the thread ended.
pub(crate) type ReadResult = Result<(Reedline, std::io::Result<Signal>), tokio::task::JoinError>;

impl Reading {
    /// Waits until someone has typed something, or the bell has rung. Dropping the future loses nothing.
    pub(crate) async fn done(&mut self) -> ReadResult {
        (&mut self.thread).await
    }

    /// The prompt it reads under.
    pub(crate) fn prompt(&self) -> &LinePrompt {
        &self.prompt
    }
}

impl Setup {
    fn make(&self, bell: &Arc<Bell>) -> std::io::Result<Reedline> {
        let enter = Arc::new(Enter::default());
        let line = Reedline::create()
            .with_edit_mode(Box::new(Keys::new(Arc::clone(&enter), Arc::clone(bell))))
            .with_break_signal(Arc::clone(&bell.breaks))
            .with_ansi_colors(self.paint.is_on())
            .use_bracketed_paste(true);
        match &self.purpose {
            Purpose::Input { kind, language, history, source, runtime } => {
                let prompt_language = PromptLanguage::of(kind);
                let completer = DaemonCompleter::new(Arc::clone(source), prompt_language, runtime.clone());
                let history = SharedHistory::new(history.clone(), runtime.clone());
                let rule = match prompt_language {
                    PromptLanguage::Fsharp => SubmitRule::Fsharp,
                    PromptLanguage::Foreign => {
                        SubmitRule::Kernel(CompletenessCheck::new(Arc::clone(source), runtime.clone()))
                    }
                    PromptLanguage::Words => SubmitRule::Words,
                };
                let line = line.with_validator(Box::new(SubmitValidator::new(Arc::clone(&enter), rule)));
                let highlighter = CodeHighlighter::new(prompt_language, language.clone());
                Ok(self.for_input(line, highlighter, enter, history, completer))
            }
            Purpose::Answer => Ok(line.with_highlighter(Box::new(Plain))),
            Purpose::Secret => Ok(line.with_highlighter(Box::new(Masked))),
        }
    }

    fn for_input(
        &self,
        line: Reedline,
        highlighter: CodeHighlighter,
        enter: Arc<Enter>,
        history: SharedHistory,
        completer: DaemonCompleter,
    ) -> Reedline {
        let faint = if self.paint.is_on() { Color::DarkGray.normal() } else { Default::default() };
        let hints = Hints::new(DefaultHinter::default().with_style(faint), Arc::clone(&enter));
        let menu = IdeMenu::default()
            .with_name(MENU)
            .with_marker(INDICATOR)
            .with_max_completion_height(MENU_ROWS)
            .with_max_completion_width(u16::MAX)
            .with_min_description_width(DOCUMENTATION_COLUMNS / 2)
            .with_max_description_width(DOCUMENTATION_COLUMNS)
            .with_correct_cursor_pos(true)
            .with_word_chars("_'");
        line.with_history(Box::new(history))
            .with_history_exclusion_prefix(Some(" ".to_owned()))
            .with_highlighter(Box::new(highlighter))
            .with_hinter(Box::new(hints))
            .with_completer(Box::new(completer))
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
            .with_quick_completions(true)
            .with_partial_completions(true)
    }
}

/// No colours: an answer is no code.
struct Plain;

impl Highlighter for Plain {
    fn highlight(&self, line: &str, _: usize) -> StyledText {
        let mut text = StyledText::new();
        text.push((Default::default(), line.to_owned()));
        text
    }
}

/// Stars in the place of a secret.
struct Masked;

impl Highlighter for Masked {
    fn highlight(&self, line: &str, _: usize) -> StyledText {
        let mut text = StyledText::new();
        text.push((Default::default(), "*".repeat(line.width())));
        text
    }
}

/// Takes the line off the screen that the cursor stands on.
pub(crate) fn clear_line() -> std::io::Result<()> {
    erase(0)
}

/// Clears the screen from `rows` above the cursor down, and goes there.
fn erase(rows: u16) -> std::io::Result<()> {
    let mut screen = std::io::stdout();
    if rows > 0 {
        screen.queue(cursor::MoveUp(rows))?;
    }
    screen.queue(cursor::MoveToColumn(0))?.queue(terminal::Clear(terminal::ClearType::FromCursorDown))?;
    screen.flush()
}
