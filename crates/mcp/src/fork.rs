//! `fork_session`: another session that begins where one is.

use std::fmt::{Display, Formatter};

use mainstay_model::affordance::Reach;
use mainstay_model::{Action, Error, ForkSession as Fork, Outcome, Response};
use mainstay_protocol::{OperationId, operations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::{Call, unexpected};
use super::lifecycle::SessionAnswer;
use super::needs::Works;
use super::tool::{Answer, Effect, Tool};

/// Forks a session into a new one.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ForkSession {
    session_id: Option<String>,
    /// So many entries from the first; all by default.
    entries: Option<u64>,
    name: Option<String>,
    /// With what was before its last reset: undoes it.
    before_reset: Option<bool>,
}

/// The session that the fork created.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ForkAnswer {
    #[serde(flatten)]
    session: SessionAnswer,
    /// How many it begins with: an output stays with its input, a call with its result.
    entries: u64,
}

impl Tool for ForkSession {
    const NAME: &'static str = "fork_session";
    const OPERATIONS: &'static [OperationId] = &[OperationId::of::<operations::ForkSession>()];
    const DESCRIPTION: &'static str = "Create a session with this one's transcript and values, wait until it is Ready, and use it from now on.";
    const EFFECT: Effect = Effect::Changes { destructive: false, idempotent: false };
    const ACTION: Option<Action> = Some(Action::Events);
    const WORKS: Works = Works::In(Action::Events, Reach::AtOnce);
    const SAYS_ANSWER: bool = false;
    type Answer = ForkAnswer;

    async fn carry_out(self, call: &Call) -> Result<ForkAnswer, Error> {
        let from = call.existing(self.session_id.as_deref(), Action::Events).await?;
        let before_reset = self.before_reset.unwrap_or_default();
        let fork = Fork { from, entries: self.entries, name: self.name, before_reset };
        match call.client().fork(call.command_id(), fork).await? {
            Outcome::Done { response: Response::Forked { session, entries, .. } } => {
                let session = call.take_up(session).await?;
                Ok(ForkAnswer { session: SessionAnswer::from(&session), entries })
            }
            Outcome::Done { response } => Err(unexpected(&response)),
            Outcome::Failed { error } => Err(error),
        }
    }
}

impl Answer for ForkAnswer {
    fn is_failure(&self) -> bool {
        self.session.is_failure()
    }
}

impl Display for ForkAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, {} entries", self.session, self.entries)
    }
}
