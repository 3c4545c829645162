//! What tools are called: those of F# sessions by upstream's names, which name the language, and for other kinds without it.

use mainstay_model::{Action, SessionKind};

use super::ask::AnswerAsk;
use super::cancel::CancelEval;
use super::eval::SendFsharpCode;
use super::events::GetRecentFsiEvents;
use super::explore::ExploreType;
use super::lifecycle::{ResetFsiSession, StopSession};
use super::query::{CheckFsharpCode, GetCompletions};
use super::rebuild::HardResetFsiSession;
use super::review::ReviewFsharpCode;
use super::status::GetFsiStatus;
use super::tests::RunTests;
use super::tool::Tool;

/// Which names fit a session. Calls take both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// Those of F#.
    Fsharp,
    /// Those of every other kind.
    Plain,
}

/// The tools for what a session of this kind offers.
pub(super) fn tools_for(kind: &SessionKind, actions: &[Action]) -> Vec<&'static str> {
    let names = Names::of_kind(kind);
    // Running code starts a session at rest; an agent's is started by prompting it.
    let has_tool = |action: &&Action| **action != Action::Start || Action::Eval.is_of(kind);
    actions.iter().filter(has_tool).filter_map(|action| names.of_action(*action)).collect()
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

    const fn of_action(self, action: Action) -> Option<&'static str> {
        match action {
            Action::Cancel => Some(self.of::<CancelEval>()),
            Action::Eval | Action::Start => Some(self.of::<SendFsharpCode>()),
            Action::Check => Some(self.of::<CheckFsharpCode>()),
            Action::Complete => Some(self.of::<GetCompletions>()),
            Action::Events => Some(self.of::<GetRecentFsiEvents>()),
            Action::Status => Some(self.of::<GetFsiStatus>()),
            Action::Reset => Some(self.of::<ResetFsiSession>()),
            Action::HardReset | Action::Rebuild => Some(self.of::<HardResetFsiSession>()),
            Action::Stop => Some(self.of::<StopSession>()),
            Action::Answer => Some(self.of::<AnswerAsk>()),
            Action::Explore => Some(self.of::<ExploreType>()),
            Action::Test => Some(self.of::<RunTests>()),
            Action::Review => Some(self.of::<ReviewFsharpCode>()),
            Action::Prompt
            | Action::Steer
            | Action::Refresh
            | Action::Comm
            | Action::Rename
            | Action::Compact
            | Action::Label
            | Action::Merge
            | Action::Delete
            | Action::Ask => None,
        }
    }
}
