//! Stopping a job, or taking back a command that waits for its turn or asks.

use serde::{Deserialize, Serialize};

use super::request::{Accepted, Decided, Request, Rules};
use crate::affordance::Action;
use crate::ask::AskEnding;
use crate::decide::Draft;
use crate::error::Error;
use crate::event::EventBody;
use crate::id::CommandId;
use crate::outcome::Response;

/// Stop a job, or take back a command that waits for its turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cancel {
    /// Whose end is wanted: a command of the same principal. Without it, the job that runs, whoever asked for it; where none does yet,
    /// the first command that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<CommandId>,
    /// How long the job may take to stop before its worker is killed, in milliseconds; at most `cancel-longest-ms`. Without it, as long as
    /// the sessions of its kind have by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
}

impl Request for Cancel {
    fn rules(&self) -> Rules {
        Rules::always(Action::Cancel)
    }

    fn decide(&self, draft: &mut Draft<'_>, accepted: Accepted) -> Result<Decided, Error> {
        let metadata = accepted.metadata;
        if let Some(target) = &self.target
            && let Some(pending) = draft.session.ask_of(&metadata.source.principal(), target).cloned()
        {
            draft.end_ask(metadata, &pending, AskEnding::Cancelled);
            return Ok(Decided::Done(Response::Withdrawn { command: target.clone() }));
        }
        let Some(running) = draft.session.running() else {
            return Err(draft.session.refusal(Action::Cancel));
        };
        if let Some(command) = &self.target
            && !running.answers(&metadata.source.principal(), command)
        {
            return Err(Error::NotRunning { command: command.clone() });
        }
        let job = running.job;
        if !running.cancel_requested {
            let grace_ms = self.grace_ms.map(|grace| grace.min(draft.limits.cancel_longest_ms));
            draft.record(metadata, EventBody::CancelRequested { job, grace_ms });
            draft.stop(job);
        }
        Ok(Decided::Done(Response::Cancelling { job }))
    }
}
