//! Giving an entry of the transcript a label, or taking it off.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::SessionCommand;
use super::request::{Accepted, Decided, Request, Rules};
use crate::affordance::Action;
use crate::decide::Draft;
use crate::entry::Origin;
use crate::error::Error;
use crate::event::EventBody;
use crate::id::SessionId;
use crate::label::{check_room, validate_label};
use crate::limits::Limits;
use crate::outcome::Response;

/// Give an entry of the transcript a label, or take it off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Label {
    /// Its index in the transcript, as it was asked for.
    pub index: u64,
    /// The entry that stood there.
    pub entry: Origin,
    /// What to call it; none to take that off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

impl Request for Label {
    fn rules(&self) -> Rules {
        Rules::immediate(Action::Label)
    }

    fn validate(&self, limits: &Limits) -> Result<(), Error> {
        self.label.as_ref().map_or(Ok(()), |label| validate_label(label, limits))
    }

    /// Where the entry came to be follows from its index.
    fn fingerprinted(&self) -> Option<SessionCommand> {
        let entry = Origin { session: SessionId::from_uuid(Uuid::nil()), number: 0 };
        Some(SessionCommand::Label(Self { entry, ..self.clone() }))
    }

    fn decide(&self, draft: &mut Draft<'_>, accepted: Accepted) -> Result<Decided, Error> {
        let Self { entry, label, .. } = self.clone();
        if label.is_some() {
            check_room(&draft.session.labels, entry, draft.limits)?;
        }
        let seq = draft.record(accepted.metadata, EventBody::EntryLabeled { entry, label });
        Ok(Decided::Done(Response::Recorded { seq }))
    }
}
