//! What people see. Data goes to standard output, everything else to standard error.
//!
//! One meaning a colour, and colour only on a terminal that has not asked for none (`NO_COLOR`):
//! red is an error, yellow a warning, green a good end, cyan a name that can be typed back, grey what may be skipped.
//! An error is one line that says what happened and one that says what to do next; where JSON is asked for, an object on one line.
//! A picture is drawn only on a terminal that shows pictures (`MAINSTAY_IMAGES`), in the place of the words for it.
//! What is not ours (names, diagnostics, values) goes through [`printable`] first, and what other people's code prints through [`printed`];
//! only what the user's own code prints does not.

mod displays;
mod hidden_input;
mod markdown;
mod next_step;
mod open_line;
mod pager;
mod pictures;
mod printed;
mod progress_line;
mod sequence;
mod syntax;

use std::borrow::Cow;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};

use mainstay_gateway::view::{EvalView, SessionView};
use mainstay_model::{Diagnostic, Error, ErrorCode, Severity, Timestamp, WorkerExit};
use unicode_width::UnicodeWidthStr;

pub(crate) use self::displays::{Surface, cut, display_text, result_text};
pub(crate) use self::hidden_input::HiddenInput;
pub(crate) use self::markdown::{events as markdown_events, is_blank_before, rendered as rendered_markdown};
pub(crate) use self::next_step::next_step;
pub(crate) use self::open_line::OpenLine;
pub(crate) use self::pager::page;
pub(crate) use self::printed::printed;
pub(crate) use self::progress_line::ProgressLine;
pub(crate) use self::sequence::DisplaySequence;
pub(crate) use self::syntax::syntax_colour;

/// A colour by its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Something failed and needs attention.
    Error,
    /// Something looks wrong but did not fail.
    Warning,
    /// Something ended as it should.
    Good,
    /// A name that can be typed back.
    Name,
    /// What may be skipped.
    Faint,
}

/// Whether and how a stream is coloured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    is_on: bool,
}

impl Paint {
    /// Decides whether standard output has colour.
    pub(crate) fn stdout() -> Self {
        Self { is_on: std::io::stdout().is_terminal() && wants_colour() }
    }

    /// Decides whether standard error has colour.
    pub(crate) fn stderr() -> Self {
        Self { is_on: std::io::stderr().is_terminal() && wants_colour() }
    }

    /// Returns paint that never colours.
    pub(crate) const fn plain() -> Self {
        Self { is_on: false }
    }

    /// Whether there is colour.
    pub(crate) fn is_on(self) -> bool {
        self.is_on
    }

    /// The text in the colour of its meaning.
    pub(crate) fn tone(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Error => "31",
            Tone::Warning => "33",
            Tone::Good => "32",
            Tone::Name => "36",
            Tone::Faint => "90",
        };
        if self.is_on { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

fn wants_colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Says what went wrong and what to do next.
pub(crate) fn show_error(error: &Error) {
    show_failure(&error.to_string(), error.code(), &next_step(error));
}

/// Whether what goes wrong is said as JSON.
static SAYS_JSON: AtomicBool = AtomicBool::new(false);

/// From now on what goes wrong is said as JSON, for scripts that asked for it.
pub(crate) fn say_failures_as_json() {
    SAYS_JSON.store(true, Ordering::Relaxed);
}

/// Says it in other words than the error's own.
pub(crate) fn show_failure(message: &str, code: ErrorCode, next_step: &str) {
    if SAYS_JSON.load(Ordering::Relaxed) {
        let error =
            serde_json::json!({ "code": code.to_string(), "message": message, "nextStep": next_step });
        eprintln!("{}", serde_json::json!({ "error": error }));
        return;
    }
    let paint = Paint::stderr();
    eprintln!("{} {} [{code}]", paint.tone(Tone::Error, "error:"), printable(message));
    eprintln!("  {next_step}");
}

/// The text with the signs of its control characters in their place, but for line ends and tabs: a terminal obeys none of it.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    let is_obeyed = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let sign = |c: char| match c {
        '\u{7f}' => '\u{2421}',
        c if !is_obeyed(c) => c,
        c => char::from_u32(0x2400 + u32::from(c)).filter(|_| c < ' ').unwrap_or(char::REPLACEMENT_CHARACTER),
    };
    Cow::Owned(text.replace("\r\n", "\n").chars().map(sign).collect())
}

/// Says something that is no data.
pub(crate) fn note(text: &str) {
    eprintln!("{}", Paint::stderr().tone(Tone::Faint, text));
}

/// Says what a rebuilding left otherwise than before, where no eval has begun since.
pub(crate) fn tell_news(session: &SessionView) {
    if let Some(rebuilt) = session.rebuilt.as_ref().filter(|rebuilt| rebuilt.is_news) {
        eprintln!("{}", Paint::stderr().tone(Tone::Warning, &printable(&rebuilt.to_string())));
    }
}

/// What came of an eval, beside what it printed: to be shown after its output. Code that calls `exit` has done what it wanted:
/// that is told, and is no error.
pub(crate) fn eval_summary(eval: &EvalView, own_exit: Option<i32>, code: &str, paint: Paint) -> String {
    let mut text = String::new();
    for diagnostic in eval.diagnostics.iter().filter(|diagnostic| diagnostic.severity != Severity::Hidden) {
        text.push_str(&diagnostic_text(diagnostic, code, paint));
    }
    if let Some(error) = &eval.error {
        let (tone, head) = match own_exit {
            // Python's message may be the code and nothing else.
            Some(code)
                if ["", "None"].contains(&error.message.trim())
                    || error.message.trim() == code.to_string() =>
            {
                (Tone::Faint, WorkerExit::Code(code).of_code())
            }
            Some(_) => (Tone::Faint, error.message.clone()),
            None => (Tone::Error, format!("{}: {}", error.kind, error.message)),
        };
        text.push_str(&paint.tone(tone, &printable(&head)));
        text.push('\n');
        if let Some(stack) = error.stack.as_ref().filter(|_| own_exit.is_none()) {
            match error.coloured_stack.as_ref().filter(|_| paint.is_on()) {
                Some(coloured) => text.push_str(&printed(coloured.trim_end(), paint)),
                None => text.push_str(&paint.tone(Tone::Faint, &printable(stack.trim_end()))),
            }
            text.push('\n');
        }
    }
    if eval.output_cut {
        text.push_str(
            &paint.tone(Tone::Warning, "output over `output-bytes-per-job` was left out, but for its end"),
        );
        text.push('\n');
    }
    text
}

/// A diagnostic with the line it is about, and carets under the range.
pub(crate) fn diagnostic_text(diagnostic: &Diagnostic, code: &str, paint: Paint) -> String {
    let (tone, word) = match diagnostic.severity {
        Severity::Error => (Tone::Error, "error"),
        Severity::Warning => (Tone::Warning, "warning"),
        Severity::Info => (Tone::Faint, "info"),
        Severity::Hidden => (Tone::Faint, "hidden"),
    };
    let (start, end) = (diagnostic.start, diagnostic.end);
    let head = paint.tone(tone, &format!("{word} {}", printable(&diagnostic.code)));
    let mut text = format!("{head} ({},{}): {}\n", start.line, start.column, printable(&diagnostic.message));
    if let Some(line) =
        code.lines().nth(start.line.saturating_sub(1) as usize).filter(|line| !line.trim().is_empty())
    {
        let first = width_before(line, start.column);
        let last = if end.line == start.line {
            width_before(line, end.column)
        } else {
            width_before(line, u32::MAX)
        };
        let number = start.line.to_string();
        let carets = "^".repeat(last.saturating_sub(first).max(1));
        let line = printable(line);
        text.push_str(&format!("{} {line}\n", paint.tone(Tone::Faint, &format!("{number} |"))));
        text.push_str(&format!(
            "{} {}{}\n",
            paint.tone(Tone::Faint, &format!("{} |", " ".repeat(number.len()))),
            " ".repeat(first),
            paint.tone(tone, &carets)
        ));
    }
    text
}

/// How many columns of a terminal the characters before `column` take; columns of a diagnostic count UTF-16 code units from 1.
fn width_before(line: &str, column: u32) -> usize {
    let mut units = 0;
    let before: String = line
        .chars()
        .take_while(|c| {
            units += c.len_utf16();
            units < column as usize
        })
        .collect();
    printable(&before).width()
}

/// How long ago something was, for people: `just now`, `5 min ago`, `2 h ago`, `3 days ago`.
pub(crate) fn ago(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second().saturating_sub(then.as_second()).max(0);
    match seconds {
        0..60 => "just now".to_owned(),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..172_800 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

/// So many of something: `1 entry`, `2 entries`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {noun}s"),
    }
}

/// Bytes for people: `512 B`, `3.4 MB`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];
    UNITS.iter().find(|(_, size)| count >= *size).map_or_else(
        || format!("{count} B"),
        |(unit, size)| format!("{:.1} {unit}", count as f64 / *size as f64),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_model::TextPosition;

    #[test]
    fn a_diagnostic_points_at_its_range() {
        let diagnostic = Diagnostic {
            severity: Severity::Error,
            code: "FS0039".to_owned(),
            message: "The value or constructor 'b' is not defined.".to_owned(),
            file: None,
            start: TextPosition { line: 2, column: 9 },
            end: TextPosition { line: 2, column: 10 },
        };
        insta::assert_snapshot!(diagnostic_text(&diagnostic, "let f a =\n    a + b\n", Paint::plain()), @r"
        error FS0039 (2,9): The value or constructor 'b' is not defined.
        2 |     a + b
          |         ^
        ");
    }

    #[test]
    fn carets_stand_under_wide_characters_too() {
        let diagnostic = Diagnostic {
            severity: Severity::Warning,
            code: "FS0020".to_owned(),
            message: "two lines\nand \u{1b}[2J".to_owned(),
            file: None,
            start: TextPosition { line: 1, column: 8 },
            end: TextPosition { line: 1, column: 9 },
        };
        insta::assert_snapshot!(diagnostic_text(&diagnostic, "\"漢字🙂\" + b", Paint::plain()), @r#"
        warning FS0020 (1,8): two lines
        and ␛[2J
        1 | "漢字🙂" + b
          |          ^
        "#);
    }

    #[test]
    fn control_characters_are_shown_and_not_obeyed() {
        assert_eq!(printable("a\r\n\tb"), "a\r\n\tb".replace('\r', ""));
        assert_eq!(printable("\u{1b}[31m\u{7}\u{7f}\u{9b}"), "␛[31m␇␡\u{fffd}");
        assert_eq!(printable("größe"), "größe");
    }

    #[test]
    fn times_and_sizes_are_for_people() {
        let now = Timestamp::from_second(1_000_000).unwrap();
        let before = |seconds: i64| ago(Timestamp::from_second(1_000_000 - seconds).unwrap(), now);
        assert_eq!(
            [before(5), before(65), before(7_200), before(200_000)],
            ["just now", "1 min ago", "2 h ago", "2 days ago"]
        );
        assert_eq!([bytes(12), bytes(3_400_000)], ["12 B", "3.4 MB"]);
    }
}
