//! Having a job be trusted with more for a time. Source: ARCP draft 01, section 15.6.

use serde::{Deserialize, Serialize};

use super::request::{Accepted, Decided, Request, Rules};
use crate::affordance::Action;
use crate::decide::Draft;
use crate::elevation::Elevation;
use crate::error::Error;
use crate::id::{AskId, CommandId};
use crate::limits::Limits;

/// Ask whether a job that a grant bounds may do more for a time. Who may do everything answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Elevate {
    /// The command whose job is meant, of the same principal.
    pub target: CommandId,
    /// What the job is to be trusted with.
    #[serde(flatten)]
    pub elevation: Elevation,
}

impl Request for Elevate {
    fn rules(&self) -> Rules {
        Rules::immediate(Action::Answer)
    }

    fn validate(&self, _: &Limits) -> Result<(), Error> {
        self.elevation.validate()
    }

    fn decide(&self, draft: &mut Draft<'_>, accepted: Accepted) -> Result<Decided, Error> {
        let ask = AskId::from_uuid(accepted.fresh);
        draft.elevate(accepted.metadata, ask, &self.target, &self.elevation).map(Decided::Done)
    }
}
