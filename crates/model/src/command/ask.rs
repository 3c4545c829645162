//! Asking whoever is attached. The answer is the command's outcome.

use super::request::{Accepted, Decided, Request, Rules};
use crate::affordance::Action;
use crate::ask::Question;
use crate::decide::Draft;
use crate::error::Error;
use crate::id::AskId;
use crate::limits::Limits;

impl Request for Question {
    fn rules(&self) -> Rules {
        Rules::immediate(Action::Ask)
    }

    fn validate(&self, limits: &Limits) -> Result<(), Error> {
        Question::validate(self, limits)
    }

    fn decide(&self, draft: &mut Draft<'_>, accepted: Accepted) -> Result<Decided, Error> {
        let Accepted { metadata, identity, deadline, grants: _, fresh } = accepted;
        draft.raise(metadata, AskId::from_uuid(fresh), identity, self.clone(), deadline)?;
        Ok(Decided::GoesOn)
    }
}
