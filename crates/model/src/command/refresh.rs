//! Running the definitions again against the files that are there now.

use serde::{Deserialize, Serialize};

use super::request::{Accepted, Decided, Request, Rules};
use crate::affordance::Action;
use crate::decide::{Draft, Effect};
use crate::error::Error;
use crate::event::{EventBody, WarmUpReason};
use crate::outcome::Response;

/// Keep the definitions, and run them again against the files that are there now: where only scripts changed, those that depend on
/// them, in the worker that is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Refresh {
    /// Drop the worker: a new one runs all of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

impl Request for Refresh {
    fn rules(&self) -> Rules {
        Rules::serial(Action::Refresh)
    }

    fn decide(&self, draft: &mut Draft<'_>, accepted: Accepted) -> Result<Decided, Error> {
        let reason = WarmUpReason::Refreshed;
        let seq = draft.record(accepted.metadata, EventBody::WarmUpStarted { reason });
        match self.all {
            true => draft.replace_worker(),
            false => draft.effect(Effect::Reload),
        }
        Ok(Decided::Done(Response::Recorded { seq }))
    }
}
