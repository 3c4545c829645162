//! What a compiler says of code, with the line and the place in it.

use mainstay_model::{Diagnostic, Severity};
use unicode_width::UnicodeWidthStr;

use super::{Paint, Tone, printable};

/// A diagnostic with the line it is about, and carets under the range.
pub fn diagnostic_text(diagnostic: &Diagnostic, code: &str, paint: Paint) -> String {
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
}
