//! `switch_session`: which session the calls mean that come without one.

use std::fmt::{Display, Formatter};

use mainstay_model::{Action, Error, SessionKind};
use mainstay_protocol::OperationId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::Call;
use super::lifecycle::runs;
use super::needs::Works;
use super::tool::{Answer, Effect, Tool};

/// Uses another session from now on.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SwitchSession {
    session_id: String,
}

/// The session that further calls use.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SwitchAnswer {
    session_id: String,
    name: String,
    kind: SessionKind,
    state: &'static str,
    /// Which code it runs, in a sentence; absent of an agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<String>,
    /// What to do where nothing is remembered between calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_step: Option<String>,
}

impl Tool for SwitchSession {
    const NAME: &'static str = "switch_session";
    const OPERATIONS: &'static [OperationId] = &[];
    const DESCRIPTION: &'static str = "Use this session where a call names none.";
    const EFFECT: Effect = Effect::Changes { destructive: false, idempotent: true };
    const ACTION: Option<Action> = None;
    const WORKS: Works = Works::Always;
    const SAYS_ANSWER: bool = false;
    type Answer = SwitchAnswer;

    async fn carry_out(self, call: &Call) -> Result<SwitchAnswer, Error> {
        let session = call.client().resolve(&self.session_id).await?;
        let stored = call.client().status(session).await?.session;
        call.use_session(session);
        let handle = session.short();
        let told = || format!("Send sessionId {handle} with each call: nothing is remembered between them.");
        Ok(SwitchAnswer {
            name: stored.name.clone(),
            kind: stored.kind.clone(),
            state: stored.state().name(),
            runs: runs(call, &stored),
            next_step: (!call.is_of_connection()).then(told),
            session_id: handle,
        })
    }
}

impl Answer for SwitchAnswer {}

impl Display for SwitchAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { session_id, name, kind, state, runs, next_step } = self;
        if let Some(runs) = runs {
            writeln!(f, "{runs}")?;
        }
        write!(f, "{name}: {kind}, {state} [session {session_id}]")?;
        match next_step {
            Some(next_step) => write!(f, "\n{next_step}"),
            None => Ok(()),
        }
    }
}
