//! Putting entries of another session into the transcript.

use serde::{Deserialize, Serialize};

use super::SessionCommand;
use super::request::{Accepted, Decided, Request, Rules};
use crate::affordance::Action;
use crate::decide::Draft;
use crate::error::Error;
use crate::event::{EventBody, MergePoint};
use crate::id::Version;
use crate::outcome::Response;
use crate::state::SessionState;
use crate::transcript::total;

/// Put entries of another session into the transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Merge {
    /// Which entries, and where they go.
    pub point: Box<MergePoint>,
    /// The version of the session for which that was found out.
    pub planned: Version,
}

impl Request for Merge {
    fn rules(&self) -> Rules {
        Rules::immediate(Action::Merge)
    }

    /// What was asked for counts, whatever that comes to.
    fn fingerprinted(&self) -> Option<SessionCommand> {
        Some(SessionCommand::Merge(Self { point: Box::new(self.point.asked()), planned: Version::ZERO }))
    }

    fn decide(&self, draft: &mut Draft<'_>, accepted: Accepted) -> Result<Decided, Error> {
        if self.planned != draft.session.version {
            // Nothing is accepted: it is found out anew what the merge comes to.
            return Err(Error::VersionMismatch { expected: self.planned, actual: draft.session.version });
        }
        let (at, entries) = (self.point.at, total(&self.point.brought));
        let asked = self.point.wanted.filter(|wanted| *wanted != at);
        let merged = EventBody::EntriesMerged(self.point.clone());
        let mut seq = draft.record(accepted.metadata.clone(), merged);
        if draft.session.state() != SessionState::Uninitialized {
            seq = draft.begin_with_transcript(accepted.metadata);
        }
        Ok(Decided::Done(Response::Merged { seq, entries, at, asked }))
    }
}
