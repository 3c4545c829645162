//! Handing a job over to another session of ARCP. Source: ARCP draft 01, section 14.

use serde::{Deserialize, Serialize};

use super::request::{Accepted, Decided, Request, Rules};
use crate::affordance::Action;
use crate::decide::Draft;
use crate::error::Error;
use crate::event::EventBody;
use crate::id::CommandId;
use crate::outcome::Response;

/// Have another session of ARCP hold a job that waits or runs. Whoever sends this has checked that the first session holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HandOver {
    /// The command of the job: one of the same principal.
    pub target: CommandId,
    /// The session of ARCP that held it.
    pub from: String,
    /// The session of ARCP that holds it from then on.
    pub to: String,
}

impl Request for HandOver {
    fn rules(&self) -> Rules {
        Rules::immediate(Action::Answer)
    }

    fn decide(&self, draft: &mut Draft<'_>, accepted: Accepted) -> Result<Decided, Error> {
        let Self { target, from, to } = self.clone();
        let principal = accepted.metadata.source.principal();
        let running = draft.session.running().filter(|running| !running.is_answered);
        let runs = running.is_some_and(|running| running.answers(&principal, &target));
        if !runs && !draft.session.waits(&principal, &target) {
            return Err(Error::NotRunning { command: target });
        }
        // It belongs to this command: a command that waits leaves the lane with the first event of its own.
        let seq = draft.record(accepted.metadata, EventBody::JobHandedOver { command: target, from, to });
        Ok(Decided::Done(Response::Recorded { seq }))
    }
}
