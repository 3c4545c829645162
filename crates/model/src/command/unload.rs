//! Ending the worker and releasing the session's alias.

use serde::{Deserialize, Serialize};

use super::request::{Accepted, Decided, Ends, Request, Rules};
use crate::access::Right;
use crate::affordance::Action;
use crate::decide::Draft;
use crate::error::Error;
use crate::event::EventBody;
use crate::outcome::Response;

/// End the worker and release the session's alias, so that another session can have it. Nothing is lost: it can be loaded again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unload {
    /// The alias that it must have; none where its client calls it by its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
}

impl Request for Unload {
    fn rules(&self) -> Rules {
        Rules {
            right: Right::Own("unload a session of another"),
            ends: Ends::Session,
            ..Rules::always(Action::Stop)
        }
    }

    fn decide(&self, draft: &mut Draft<'_>, accepted: Accepted) -> Result<Decided, Error> {
        if !draft.session.is_loaded_as(self.alias.as_deref()) {
            let reference = self.alias.clone().unwrap_or_else(|| draft.session.id.to_string());
            return Err(Error::SessionNotFound { reference });
        }
        let alias = draft.session.alias.clone();
        draft.end_all(&accepted.metadata);
        let seq = draft.record(accepted.metadata, EventBody::SessionUnloaded { alias });
        Ok(Decided::Done(Response::Recorded { seq }))
    }
}
