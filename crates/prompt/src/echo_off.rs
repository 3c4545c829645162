//! A terminal that shows nothing of what is typed but at the prompt, where it then stands.

use std::io::stdin;

use rustix::termios::{InputModes, LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// A quiet terminal, until this is dropped. Ctrl-C is a signal still. The editor goes over to its own mode and back to this one.
pub(crate) struct EchoOff {
    before: Termios,
}

impl EchoOff {
    /// None where the terminal cannot be told; then it shows twice what is typed ahead, and that is all.
    pub(crate) fn begin() -> Option<Self> {
        let before = tcgetattr(stdin()).ok()?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::IEXTEN);
        // An Enter that is typed ahead must reach the editor as one.
        quiet.input_modes.remove(InputModes::ICRNL);
        tcsetattr(stdin(), OptionalActions::Now, &quiet).ok()?;
        Some(Self { before })
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        tcsetattr(stdin(), OptionalActions::Now, &self.before).ok();
    }
}
