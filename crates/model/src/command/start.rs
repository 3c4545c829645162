//! Starting a worker for an idle session.

use std::time::Duration;

use super::request::{Accepted, Decided, Request, Rules};
use crate::affordance::Action;
use crate::decide::{Draft, Effect};
use crate::error::Error;
use crate::event::{EventBody, WarmUpReason};
use crate::outcome::Response;

pub(super) struct Start;

impl Request for Start {
    fn rules(&self) -> Rules {
        Rules { starts_worker: true, is_limited: false, ..Rules::immediate(Action::Start) }
    }

    fn decide(&self, draft: &mut Draft<'_>, accepted: Accepted) -> Result<Decided, Error> {
        let reason = WarmUpReason::Started;
        let seq = draft.record(accepted.metadata, EventBody::WarmUpStarted { reason });
        draft.effect(Effect::StartWorker { after: Duration::ZERO });
        Ok(Decided::Done(Response::Recorded { seq }))
    }
}
