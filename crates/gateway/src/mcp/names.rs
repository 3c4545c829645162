//! What tools are called: those of F# sessions by upstream's names, which name the language, and for other kinds without it.

use mainstay_model::SessionKind;

use super::tool::Tool;

/// Which names fit a session. Calls take both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// Those of F#.
    Fsharp,
    /// Those of every other kind.
    Plain,
}

/// What a tool is for sessions of other kinds than F#.
#[derive(Clone, Copy)]
pub(super) struct Plain {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
}

impl Names {
    /// Those that fit a kind of session.
    pub(super) fn of_kind(kind: &SessionKind) -> Self {
        if kind.is_fsharp() { Self::Fsharp } else { Self::Plain }
    }

    /// The name of a tool.
    pub(super) const fn of<T: Tool>(self) -> &'static str {
        match (self, T::PLAIN) {
            (Self::Plain, Some(plain)) => plain.name,
            (Self::Fsharp | Self::Plain, _) => T::NAME,
        }
    }

    /// What it does.
    pub(super) const fn description<T: Tool>(self) -> &'static str {
        match (self, T::PLAIN) {
            (Self::Plain, Some(plain)) => plain.description,
            (Self::Fsharp | Self::Plain, _) => T::DESCRIPTION,
        }
    }
}
