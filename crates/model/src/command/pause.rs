//! Having an agent pause in its turn, and ask people how to go on. Source: ARCP draft 01, section 10.5.

use serde::{Deserialize, Serialize};

use super::request::{Accepted, Decided, Request, Rules};
use crate::affordance::Action;
use crate::ask::Question;
use crate::decide::Draft;
use crate::error::Error;
use crate::id::{AskId, CommandId};
use crate::limits::Limits;

/// Have the agent do nothing more in its turn until somebody has said how it is to go on. What its tools do already goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pause {
    /// Whose turn is meant: a command of the same principal. Without it, the turn that runs, whoever asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<CommandId>,
    /// What people are asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

impl Pause {
    fn question(&self) -> Question {
        Question::guidance(self.prompt.as_deref())
    }
}

impl Request for Pause {
    fn rules(&self) -> Rules {
        Rules::immediate(Action::Pause)
    }

    fn validate(&self, limits: &Limits) -> Result<(), Error> {
        self.question().validate(limits)
    }

    fn decide(&self, draft: &mut Draft<'_>, accepted: Accepted) -> Result<Decided, Error> {
        let ask = AskId::from_uuid(accepted.fresh);
        draft.pause(accepted.metadata, ask, self.target.as_ref(), self.question()).map(Decided::Done)
    }
}
