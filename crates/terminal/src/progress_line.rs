//! A line that says how far something is.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Paint, Tone, printable};

/// The last line of standard error, written anew as something goes on, and gone in the end; nothing where that is no terminal.
#[derive(Debug, Default)]
pub struct ProgressLine {
    is_shown: AtomicBool,
}

impl ProgressLine {
    /// It says this now.
    pub fn show(&self, text: &str) {
        let mut stderr = std::io::stderr();
        if stderr.is_terminal() {
            self.is_shown.store(true, Ordering::Relaxed);
            let text = Paint::stderr().tone(Tone::Faint, &printable(text));
            // A terminal that is gone ends the client elsewhere.
            write!(stderr, "\r\u{1b}[K{text}").and_then(|()| stderr.flush()).ok();
        }
    }

    /// Something comes in its place that stays, on a line of its own.
    pub fn note(&self, text: &str) {
        self.clear();
        super::note(text);
    }

    /// Something else comes in its place.
    pub fn clear(&self) {
        if self.is_shown.swap(false, Ordering::Relaxed) {
            eprint!("\r\u{1b}[K");
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.clear();
    }
}
