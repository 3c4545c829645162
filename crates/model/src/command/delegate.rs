//! Giving a part of what the running job may do to a job of another agent. Source: ARCP draft 01, section 14; draft 02, section 10.

use serde::{Deserialize, Serialize};

use super::request::{Accepted, Decided, Request, Rules};
use crate::affordance::Action;
use crate::decide::Draft;
use crate::error::Error;
use crate::grant::OperationKind;
use crate::id::CommandId;

/// Have the running job give a task to another agent, with a part of its grant. Whoever sends this submits the other job with what the event
/// says that it may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Delegate {
    /// The command whose job gives the task: one of the same principal.
    pub parent: CommandId,
    /// The command that is to carry it out.
    pub child: CommandId,
    /// The agent that is given the task.
    pub agent: String,
    /// The kinds of operations that the other job may do as far as this one may.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inherits: Vec<OperationKind>,
}

impl Request for Delegate {
    fn rules(&self) -> Rules {
        Rules::immediate(Action::Answer)
    }

    fn decide(&self, draft: &mut Draft<'_>, accepted: Accepted) -> Result<Decided, Error> {
        draft.delegate(accepted.metadata, self).map(Decided::Done)
    }
}
