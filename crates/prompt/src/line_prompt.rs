//! The prompt, and the bell with which other tasks ask the editor to make room for what they have to say.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mainstay_terminal::printable;
use reedline::{Color, Prompt, PromptEditMode, PromptHistorySearch, PromptHistorySearchStatus};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A longer name is cut: the code needs the line.
const LONGEST_NAME: usize = 24;

/// Rung to interrupt the editor. While the history is searched it waits: what is on the screen then is not what was typed.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    /// What the editor looks at.
    pub(crate) breaks: Arc<AtomicBool>,
    is_wanted: AtomicBool,
    is_searching: AtomicBool,
}

impl Bell {
    /// Asks for an interruption.
    pub(crate) fn ring(&self) {
        self.is_wanted.store(true, Ordering::SeqCst);
        if !self.is_searching() {
            self.breaks.store(true, Ordering::SeqCst);
        }
    }

    /// Takes back what was asked for; the editor stands still.
    pub(crate) fn silence(&self) {
        self.is_wanted.store(false, Ordering::SeqCst);
        self.is_searching.store(false, Ordering::SeqCst);
        self.breaks.store(false, Ordering::SeqCst);
    }

    /// Whether the history is searched.
    pub(crate) fn is_searching(&self) -> bool {
        self.is_searching.load(Ordering::SeqCst)
    }

    fn painted(&self, is_search: bool) {
        self.is_searching.store(is_search, Ordering::SeqCst);
        if !is_search && self.is_wanted.load(Ordering::SeqCst) {
            self.breaks.store(true, Ordering::SeqCst);
        }
    }
}

/// What stands between the name and the code; a menu shows the same.
pub(crate) const INDICATOR: &str = "> ";

/// What stands before the line that is typed: `name> `, or a question.
#[derive(Clone, Debug)]
pub(crate) struct LinePrompt {
    start: String,
    indicator: &'static str,
    colour: Color,
    next: String,
    bell: Arc<Bell>,
    /// Whether what a search has found is of another folder.
    is_elsewhere: Arc<AtomicBool>,
}

impl LinePrompt {
    /// The prompt of a session.
    pub(crate) fn session(name: &str) -> Self {
        let name = printable(name);
        let mut short: String = name.chars().take(LONGEST_NAME).collect();
        if short.len() < name.len() {
            short.push('…');
        }
        let next = format!("{:>width$} ", "·", width = short.width() + 1);
        let (bell, is_elsewhere) = (Arc::default(), Arc::default());
        Self { start: short, indicator: INDICATOR, colour: Color::Cyan, next, bell, is_elsewhere }
    }

    /// A question, of which this is the last line.
    pub(crate) fn question(text: &str) -> Self {
        let next = String::new();
        let (bell, is_elsewhere) = (Arc::default(), Arc::default());
        Self { start: text.to_owned(), indicator: " ", colour: Color::Default, next, bell, is_elsewhere }
    }

    /// The prompt of a line that steers an agent.
    pub(crate) fn steering() -> Self {
        Self { colour: Color::Yellow, ..Self::session("steer") }
    }

    /// The prompt where this says whether what a search has found is of another folder.
    pub(crate) fn searching(self, is_elsewhere: Arc<AtomicBool>) -> Self {
        Self { is_elsewhere, ..self }
    }

    /// The prompt of an editor with this bell.
    pub(crate) fn with_bell(self, bell: Arc<Bell>) -> Self {
        Self { bell, ..self }
    }

    /// How many rows the cursor stands below the prompt's first, with `before_cursor` typed, on a terminal so many columns wide.
    pub(crate) fn rows_above_cursor(&self, before_cursor: &str, columns: u16) -> u16 {
        let columns = usize::from(columns.max(1));
        let (mut row, mut column) = (0_u16, 0_usize);
        for (index, line) in before_cursor.split('\n').enumerate() {
            let first = || format!("{}{}", self.start, self.indicator);
            let start = if index == 0 { first() } else { self.next.clone() };
            if index > 0 {
                (row, column) = (row.saturating_add(1), 0);
            }
            for width in start.chars().chain(line.chars()).map(|c| c.width().unwrap_or(0)) {
                if column + width > columns {
                    (row, column) = (row.saturating_add(1), 0);
                }
                column += width;
            }
        }
        // A cursor behind a full row stands on the next.
        if column >= columns { row.saturating_add(1) } else { row }
    }
}

impl Prompt for LinePrompt {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.start)
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        self.bell.painted(false);
        Cow::Borrowed(self.indicator)
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.next)
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        self.bell.painted(true);
        let outcome = match search.status {
            PromptHistorySearchStatus::Passing if self.is_elsewhere.load(Ordering::SeqCst) => {
                "search, other folders"
            }
            PromptHistorySearchStatus::Passing => "search",
            PromptHistorySearchStatus::Failing => "nothing found",
        };
        Cow::Owned(format!(" ({outcome}: {}) ", printable(&search.term)))
    }

    fn get_prompt_color(&self) -> Color {
        self.colour
    }

    fn get_indicator_color(&self) -> Color {
        self.colour
    }

    fn get_prompt_multiline_color(&self) -> Color {
        Color::DarkGray
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(typed: &str, columns: u16) -> u16 {
        LinePrompt::session("abc").rows_above_cursor(typed, columns)
    }

    #[test]
    fn lines_and_full_rows_put_the_cursor_further_down() {
        assert_eq!(rows("", 10), 0);
        assert_eq!(rows("1234", 10), 0);
        assert_eq!(rows("12345", 10), 1, "five for the prompt, five typed");
        assert_eq!(rows("123456", 10), 1);
        assert_eq!(rows("1\n2\n", 10), 2);
        assert_eq!(rows("1\n123456", 10), 2);
    }

    #[test]
    fn a_question_that_is_longer_than_a_row_is_counted_too() {
        let rows = |typed: &str| LinePrompt::question("What is it called?").rows_above_cursor(typed, 10);
        assert_eq!([rows(""), rows("1"), rows("12\n3")], [1, 2, 3]);
    }

    #[test]
    fn a_wide_character_that_does_not_fit_wraps_early() {
        assert_eq!(rows("1234漢", 10), 1);
        assert_eq!(rows("漢漢", 10), 0);
    }

    #[test]
    fn later_lines_begin_under_the_first() {
        let prompt = LinePrompt::session("scratch");
        assert_eq!(prompt.render_prompt_multiline_indicator().width(), "scratch> ".width());
    }

    #[test]
    fn the_bell_waits_for_the_end_of_a_search() {
        let bell = Arc::new(Bell::default());
        let prompt = LinePrompt::session("abc").with_bell(Arc::clone(&bell));
        let search = PromptHistorySearch::new(PromptHistorySearchStatus::Passing, String::new());
        prompt.render_prompt_history_search_indicator(search);
        bell.ring();
        assert!(!bell.breaks.load(Ordering::SeqCst));
        prompt.render_prompt_indicator(PromptEditMode::Emacs);
        assert!(bell.breaks.load(Ordering::SeqCst));
    }
}
