//! Dropping the definitions and keeping the worker.

use super::request::{Accepted, Decided, Request, Rules};
use crate::affordance::Action;
use crate::decide::{Draft, Effect};
use crate::error::Error;
use crate::event::{EventBody, WarmUpReason};
use crate::outcome::Response;

pub(super) struct Reset;

impl Request for Reset {
    fn rules(&self) -> Rules {
        Rules::serial(Action::Reset)
    }

    fn decide(&self, draft: &mut Draft<'_>, accepted: Accepted) -> Result<Decided, Error> {
        draft.record(accepted.metadata.clone(), EventBody::SessionReset);
        let reason = WarmUpReason::Reset;
        let seq = draft.record(accepted.metadata, EventBody::WarmUpStarted { reason });
        draft.effect(Effect::ResetWorker);
        Ok(Decided::Done(Response::Recorded { seq }))
    }
}
