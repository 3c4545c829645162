//! A terminal that does not show what is typed, as for a password.

use std::io::stdin;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// A terminal that shows nothing of a line that is typed, until this is dropped.
pub struct HiddenInput {
    before: Termios,
}

impl HiddenInput {
    /// None where standard input is no terminal.
    pub fn begin() -> Option<Self> {
        let before = tcgetattr(stdin()).ok()?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        tcsetattr(stdin(), OptionalActions::Now, &hidden).ok()?;
        Some(Self { before })
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        tcsetattr(stdin(), OptionalActions::Now, &self.before).ok();
        // Nor was the end of the line shown.
        eprintln!();
    }
}
