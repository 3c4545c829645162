//! Which tools there are. The list is one for a principal, whatever sessions it has and what they do: of the clients that people use one asks
//! for it once in its life, and each change costs a model what it has read already. Which tools work just now is what is [`Offered`] by a
//! session's status and by refusals. Every call is checked by the engine all the same.

use std::fmt::{Display, Formatter};

use mainstay_engine::Client;
use mainstay_model::affordance::{Reach, reaches};
use mainstay_model::{Action, Capabilities, Right, Session, SessionKind, SessionState};
use schemars::JsonSchema;
use serde::Serialize;

use super::names::Names;
use super::tool::{Listed, TOOLS};

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
    fn now(self, session: Option<&Session>) -> bool {
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

/// The tools that do what they are for in a session as it is now. Whatever else is listed would be refused.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct Offered {
    names: Vec<&'static str>,
    /// The other tools that are listed.
    #[serde(skip)]
    others: Vec<&'static str>,
}

impl Offered {
    /// Those for a client in a session, by the names that it is shown; where there is none, in the one of this kind that running code would
    /// create.
    pub(super) fn now(client: &Client, session: Option<&Session>, kind: &SessionKind, names: Names) -> Self {
        let capabilities = session.map_or_else(|| Capabilities::of_kind(kind), Session::capabilities);
        let is_driven = session.is_none_or(|session| client.drives(session));
        let is_offered = |tool: &&'static Listed| {
            let Needs { action, works, files: _ } = tool.needs;
            let may =
                |action: Action| action.is_of(capabilities) && (is_driven || action.right() == Right::See);
            action.is_none_or(may) && works.now(session)
        };
        let (offered, others): (Vec<_>, Vec<_>) = of_principal(client).partition(is_offered);
        let named = |tools: Vec<&'static Listed>| tools.into_iter().map(|tool| tool.name(names)).collect();
        Self { names: named(offered), others: named(others) }
    }

    /// Of an answer that says nothing of them.
    pub(super) const fn nothing() -> Self {
        Self { names: Vec::new(), others: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

impl Display for Offered {
    /// The shorter of what is offered and what is not: models pay for each name.
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { names, others } = self;
        match others.len() {
            0 => f.write_str("all tools"),
            count if count < names.len() => write!(f, "all tools but {}", others.join(", ")),
            _ => f.write_str(&names.join(", ")),
        }
    }
}

/// The tools that a client is listed: what its principal could never do is left out.
pub(super) fn of_principal(client: &Client) -> impl Iterator<Item = &'static Listed> {
    let has_files = client.require_all("read files").is_ok();
    TOOLS.iter().filter(move |tool| has_files || !tool.needs.files)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_tools_share_a_name_whichever_names_are_shown() {
        let names: Vec<&str> = [Names::Neutral, Names::Sagefs]
            .into_iter()
            .flat_map(|names| TOOLS.iter().map(move |tool| tool.name(names)).collect::<BTreeSet<_>>())
            .collect();
        let seed_names = TOOLS.iter().filter(|tool| tool.name(Names::Sagefs) != tool.name(Names::Neutral));
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), TOOLS.len() + seed_names.count());
        assert_eq!(names.len(), 2 * TOOLS.len());
    }

    #[test]
    fn neutral_names_name_no_language() {
        for tool in TOOLS.iter() {
            let name = tool.name(Names::Neutral);
            assert!(!["fsharp", "fsi", "python"].iter().any(|language| name.contains(language)), "{name}");
        }
    }
}
