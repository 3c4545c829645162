//! Dropping the definitions and the worker: the escape hatch, possible in every state.

use super::request::{Accepted, Decided, Ends, Request, Rules};
use crate::affordance::Action;
use crate::decide::Draft;
use crate::error::Error;
use crate::event::{EventBody, WarmUpReason};
use crate::outcome::Response;

pub(super) struct HardReset;

impl Request for HardReset {
    fn rules(&self) -> Rules {
        Rules {
            starts_worker: true,
            is_limited: false,
            ends: Ends::Worker,
            ..Rules::immediate(Action::HardReset)
        }
    }

    fn decide(&self, draft: &mut Draft<'_>, accepted: Accepted) -> Result<Decided, Error> {
        draft.end_running_by_kill();
        draft.record(accepted.metadata.clone(), EventBody::SessionHardReset);
        let reason = WarmUpReason::HardReset;
        let seq = draft.record(accepted.metadata, EventBody::WarmUpStarted { reason });
        draft.replace_worker();
        Ok(Decided::Done(Response::Recorded { seq }))
    }
}
