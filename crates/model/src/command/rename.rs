//! Giving the session another name.

use serde::{Deserialize, Serialize};

use super::request::{Accepted, Decided, Request, Rules};
use super::validate_session_name;
use crate::affordance::Action;
use crate::decide::Draft;
use crate::error::Error;
use crate::event::EventBody;
use crate::limits::Limits;
use crate::outcome::Response;

/// Give the session another name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rename {
    /// The new name of the session.
    pub name: String,
}

impl Request for Rename {
    fn rules(&self) -> Rules {
        Rules::immediate(Action::Rename)
    }

    fn validate(&self, _: &Limits) -> Result<(), Error> {
        validate_session_name(&self.name)
    }

    fn decide(&self, draft: &mut Draft<'_>, accepted: Accepted) -> Result<Decided, Error> {
        let seq = draft.record(accepted.metadata, EventBody::SessionRenamed { name: self.name.clone() });
        Ok(Decided::Done(Response::Recorded { seq }))
    }
}
