//! A text that is longer than the screen, through the program that people page with.

use std::io::{IsTerminal, Write, stdout};
use std::process::{Command, Stdio};

use unicode_width::UnicodeWidthStr;

/// What pages where `PAGER` does not say.
const PAGER: &str = "less";
/// How `less` is to page where `LESS` does not say: with our colours, and ending by itself where all fits.
const LESS: &str = "FRX";

/// Shows a text: through `PAGER` where standard output is a terminal and it is longer than that, else as it is. What is not ours must be
/// printable in it.
pub async fn page(text: String) {
    let shown = tokio::task::spawn_blocking(move || {
        if !is_long(&text) || !paged(&text) {
            print!("{text}");
        }
    });
    // The thread ends with its text shown, or with a terminal that is gone.
    shown.await.ok();
}

fn is_long(text: &str) -> bool {
    let size = stdout().is_terminal().then(crossterm::terminal::size).and_then(Result::ok);
    size.is_some_and(|(columns, rows)| rows_of(text, usize::from(columns)) >= usize::from(rows))
}

/// How many rows a text takes. Colours count as if they were seen: what is nearly too long is paged.
fn rows_of(text: &str, columns: usize) -> usize {
    text.lines().map(|line| line.width().div_ceil(columns.max(1)).max(1)).sum()
}

/// Whether there was a program that showed it.
fn paged(text: &str) -> bool {
    let pager = std::env::var("PAGER").unwrap_or_else(|_| PAGER.to_owned());
    // Whoever wants no pager says so in this way.
    if pager.trim().is_empty() {
        return false;
    }
    let mut command = Command::new("sh");
    command.args(["-c", &pager]).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", LESS);
    }
    let Ok(mut child) = command.spawn() else { return false };
    if let Some(mut stdin) = child.stdin.take() {
        // Who has seen enough ends the program before its end.
        stdin.write_all(text.as_bytes()).ok();
    }
    // A shell says so where there is no such program.
    child.wait().is_ok_and(|status| !matches!(status.code(), Some(126 | 127)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_wrap_take_several_rows() {
        assert_eq!(rows_of("", 10), 0);
        assert_eq!(rows_of("a\n\nb", 10), 3);
        assert_eq!(rows_of("12345678901\n漢字漢字漢字", 10), 4);
    }
}
