//! Deleting the session. What other sessions begin with stays there for them. Source: seed 004, "delete".

use super::request::{Accepted, Decided, Ends, Request, Rules};
use crate::affordance::Action;
use crate::decide::Draft;
use crate::error::Error;
use crate::event::EventBody;
use crate::outcome::Response;

pub(super) struct Delete;

impl Request for Delete {
    fn rules(&self) -> Rules {
        Rules { ends: Ends::Session, ..Rules::always(Action::Delete) }
    }

    fn decide(&self, draft: &mut Draft<'_>, accepted: Accepted) -> Result<Decided, Error> {
        draft.end_all(&accepted.metadata);
        let seq = draft.record(accepted.metadata, EventBody::SessionDeleted);
        Ok(Decided::Done(Response::Recorded { seq }))
    }
}
