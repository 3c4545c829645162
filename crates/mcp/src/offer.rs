//! Which tools there are. The list is one for a principal, whatever sessions it has and what they do: of the clients that people use one asks
//! for it once in its life, and each change costs a model what it has read already. Which tools work just now is what is [`Offered`] by a
//! session's status and by refusals. Every call is checked by the engine all the same.

use std::fmt::{Display, Formatter};

use mainstay_engine::Client;
use mainstay_model::{Action, Capabilities, Right, Session, SessionKind};
use schemars::JsonSchema;
use serde::Serialize;

use super::call::Call;
use super::listed::Listed;
use super::needs::Needs;

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
    pub(super) fn now(call: &Call, session: Option<&Session>, kind: &SessionKind) -> Self {
        let (client, names) = (call.client(), call.names());
        let capabilities = session.map_or_else(|| Capabilities::of_kind(kind), Session::capabilities);
        let is_driven = session.is_none_or(|session| client.drives(session));
        let is_offered = |tool: &&'static Listed| {
            let Needs { action, works, files: _ } = tool.needs;
            let may =
                |action: Action| action.is_of(capabilities) && (is_driven || action.right() == Right::See);
            action.is_none_or(may) && works.now(session)
        };
        let (offered, others): (Vec<_>, Vec<_>) = of_principal(client, call.tools()).partition(is_offered);
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
pub(super) fn of_principal(
    client: &Client,
    tools: &'static [Listed],
) -> impl Iterator<Item = &'static Listed> {
    let has_files = client.require_all("read files").is_ok();
    tools.iter().filter(move |tool| has_files || !tool.needs.files)
}
