//! A terminal that shows nothing of what is typed while code runs: it stands at the next prompt.

use std::io::stdin;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// A quiet terminal, until this is dropped. Ctrl-C is a signal still.
pub(super) struct Quiet {
    before: Termios,
}

impl Quiet {
    /// None where the terminal cannot be told; then it shows what is typed twice, and that is all.
    pub(super) fn begin() -> Option<Self> {
        let before = tcgetattr(stdin()).ok()?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON);
        tcsetattr(stdin(), OptionalActions::Now, &quiet).ok()?;
        Some(Self { before })
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        tcsetattr(stdin(), OptionalActions::Now, &self.before).ok();
    }
}
