//! Having a summary stand for the beginning of the transcript.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::SessionCommand;
use super::request::{Accepted, Decided, Request, Rules};
use crate::affordance::Action;
use crate::decide::Draft;
use crate::error::Error;
use crate::event::EventBody;
use crate::limits::Limits;
use crate::message::Compaction;
use crate::outcome::Response;
use crate::transcript::{Segment, total};

/// Have a summary stand for the beginning of the transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Compact {
    /// The entries it stands for.
    pub covers: Vec<Segment>,
    /// How many were asked for, where that would have parted what belongs together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<u64>,
    /// The summary that replaces the older entries.
    pub summary: String,
}

impl Request for Compact {
    fn rules(&self) -> Rules {
        Rules::immediate(Action::Compact)
    }

    fn validate(&self, limits: &Limits) -> Result<(), Error> {
        let invalid = |reason| Err(Error::InvalidArgument { argument: "summary".to_owned(), reason });
        let (bytes, limit) = (self.summary.len(), limits.code_bytes);
        if self.summary.trim().is_empty() {
            return invalid("it says nothing".to_owned());
        }
        if bytes > limit {
            return invalid(format!("it has {bytes} bytes; `code-bytes` allows {limit}"));
        }
        Ok(())
    }

    /// How many entries were asked for counts, whatever that comes to.
    fn fingerprinted(&self) -> Option<SessionCommand> {
        let asked = Some(self.asked.unwrap_or_else(|| total(&self.covers)));
        Some(SessionCommand::Compact(Self { covers: Vec::new(), asked, summary: self.summary.clone() }))
    }

    fn decide(&self, draft: &mut Draft<'_>, accepted: Accepted) -> Result<Decided, Error> {
        let Self { covers, asked, summary } = self.clone();
        let entries = total(&covers);
        let compaction = Compaction { covers, summary, metadata: BTreeMap::new() };
        let compacted = EventBody::TranscriptCompacted(Box::new(compaction));
        let seq = draft.record(accepted.metadata.clone(), compacted);
        draft.show_summary(accepted.metadata);
        Ok(Decided::Done(Response::Compacted { seq, entries, asked }))
    }
}
