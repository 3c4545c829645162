//! What a tool needs: of its session, of the machine, and of whoever waits for its answer.

use mainstay_model::affordance::{Reach, reaches};
use mainstay_model::{Action, Session, SessionState};

/// The argument that says how many seconds a call waits for its end.
pub(super) const WAIT: &str = "wait";

/// What a tool asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Needs {
    /// Of the session that is meant.
    pub(super) action: Option<Action>,
    /// When that does it.
    pub(super) works: Works,
    /// Whether the tool needs the machine's files.
    pub(super) files: bool,
}

/// In which states of the session that is meant a tool does what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Works {
    /// In all, and without a session too.
    Always,
    /// Where the action can be reached in a session that is there.
    In(Action, Reach),
    /// The same; where there is no session, one is created.
    InAny(Action, Reach),
}

impl Works {
    /// Whether it does now; without a session, for want of one.
    pub(super) fn now(self, session: Option<&Session>) -> bool {
        match (self, session) {
            (Self::Always, _) => true,
            (Self::In(..), None) => false,
            (Self::InAny(action, reach), None) => reaches(SessionState::Uninitialized, action, reach),
            (Self::In(action, reach) | Self::InAny(action, reach), Some(session)) => {
                session.reaches(action, reach)
            }
        }
    }

    /// Whether it comes after what runs in its session.
    pub(super) fn is_in_turn(self) -> bool {
        match self {
            Self::Always => false,
            Self::In(_, reach) | Self::InAny(_, reach) => reach == Reach::InTurn,
        }
    }

    /// Whether it is for this action, and does it in a session that is in this state.
    pub(super) fn does(self, wanted: Action, state: SessionState) -> bool {
        match self {
            Self::Always => false,
            Self::In(action, reach) | Self::InAny(action, reach) => {
                action == wanted && reaches(state, action, reach)
            }
        }
    }
}

/// Who sees to it that a call is answered before its client's patience ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    /// Its server, as fits the client; what it began goes on.
    Briefly,
    /// The same, after the seconds that the argument [`WAIT`] says, where it is there.
    AsAsked,
    /// The tool waits by itself.
    Itself,
}
