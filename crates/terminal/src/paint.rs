//! Colours by their meaning, and whether a stream has them.

use std::io::IsTerminal;

/// A colour by its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
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
pub struct Paint {
    pub(crate) is_on: bool,
}

impl Paint {
    /// Decides whether standard output has colour.
    pub fn stdout() -> Self {
        Self { is_on: std::io::stdout().is_terminal() && wants_colour() }
    }

    /// Decides whether standard error has colour.
    pub fn stderr() -> Self {
        Self { is_on: std::io::stderr().is_terminal() && wants_colour() }
    }

    /// Returns paint that never colours.
    pub const fn plain() -> Self {
        Self { is_on: false }
    }

    /// Whether there is colour.
    pub fn is_on(self) -> bool {
        self.is_on
    }

    /// The text in the colour of its meaning.
    pub fn tone(self, tone: Tone, text: &str) -> String {
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
