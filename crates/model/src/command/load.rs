//! Having a session back after it was unloaded.

use serde::{Deserialize, Serialize};

use super::request::{Accepted, Decided, Lane, Request, Rules};
use super::validate_alias;
use crate::access::Right;
use crate::affordance::Action;
use crate::decide::Draft;
use crate::error::Error;
use crate::event::EventBody;
use crate::limits::Limits;
use crate::outcome::Response;
use crate::session::Session;

/// Have the session back after it was unloaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Load {
    /// The alias that it gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
}

impl Request for Load {
    fn rules(&self) -> Rules {
        Rules {
            lane: Lane::Server,
            right: Right::Own("load a session of another"),
            ..Rules::immediate(Action::Rename)
        }
    }

    fn validate(&self, _: &Limits) -> Result<(), Error> {
        self.alias.as_deref().map_or(Ok(()), validate_alias)
    }

    fn decide(&self, draft: &mut Draft<'_>, accepted: Accepted) -> Result<Decided, Error> {
        let Session { id, alias: known, unloaded_at, .. } = draft.session;
        if unloaded_at.is_none() {
            let reference = known.clone().unwrap_or_else(|| id.to_string());
            return Err(Error::SessionExists { reference });
        }
        let seq = draft.record(accepted.metadata, EventBody::SessionLoaded { alias: self.alias.clone() });
        Ok(Decided::Done(Response::Recorded { seq }))
    }
}
