//! Ending the worker; the session becomes idle, and nothing of it is lost.

use super::request::{Accepted, Decided, Ends, Request, Rules};
use crate::affordance::Action;
use crate::decide::{Draft, Effect};
use crate::error::Error;
use crate::event::EventBody;
use crate::outcome::Response;
use crate::state::SessionState;

pub(super) struct Stop;

impl Request for Stop {
    fn rules(&self) -> Rules {
        Rules { ends: Ends::Worker, ..Rules::always(Action::Stop) }
    }

    fn decide(&self, draft: &mut Draft<'_>, accepted: Accepted) -> Result<Decided, Error> {
        draft.end_running_by_kill();
        let seq = match draft.session.state() {
            SessionState::Uninitialized => draft.session.last_seq,
            SessionState::WarmingUp
            | SessionState::Ready
            | SessionState::Evaluating
            | SessionState::Waiting(_)
            | SessionState::Faulted => draft.record(accepted.metadata, EventBody::SessionStopped),
        };
        draft.effect(Effect::KillWorker);
        Ok(Decided::Done(Response::Recorded { seq }))
    }
}
