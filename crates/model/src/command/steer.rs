//! Saying something to an agent that works.

use super::request::{Accepted, Decided, Request, Rules};
use super::validate_prompt;
use crate::affordance::Action;
use crate::agent::QueuedPrompt;
use crate::decide::{Draft, Effect};
use crate::error::Error;
use crate::event::EventBody;
use crate::limits::Limits;
use crate::outcome::Response;

impl Request for QueuedPrompt {
    fn rules(&self) -> Rules {
        Rules::immediate(Action::Steer)
    }

    fn validate(&self, limits: &Limits) -> Result<(), Error> {
        validate_prompt(&self.prompt, limits)
    }

    fn decide(&self, draft: &mut Draft<'_>, accepted: Accepted) -> Result<Decided, Error> {
        let seq = draft.record(accepted.metadata, EventBody::PromptQueued(self.clone()));
        draft.effect(Effect::Steer { queued: self.clone() });
        Ok(Decided::Done(Response::Recorded { seq }))
    }
}
