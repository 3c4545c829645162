//! `answer_ask`: answering what running code, or a client, asks.

use std::fmt::{Display, Formatter};
use std::sync::Arc;

use mainstay_engine::WaitingAsk;
use mainstay_model::affordance::Reach;
use mainstay_model::command;
use mainstay_model::{Action, CommandId, Error, PendingAsk, Response, Session, SessionCommand};
use mainstay_protocol::{OperationId, operations};
use rmcp::model::CallToolResult;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::bounds::{LONGEST_WAIT, Within};
use super::call::Call;
use super::get_result::{Awaited, awaited};
use super::merge::{CherryPick, MergeSession};
use super::needs::{Waits, Works};
use super::notebook::RunNotebook;
use super::running_calls::RunningCall;
use super::tool::{Answer, Effect, Tool};

/// Answers an ask that waits.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AnswerAsk {
    ask: String,
    /// The answer: text, or JSON.
    answer: String,
    /// Seconds, then get_result waits on.
    wait: Option<Within<0, LONGEST_WAIT>>,
}

/// What was answered, and what the code that asked did then.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AskAnswer {
    session_id: String,
    answer: Value,
    /// How many more principals must give the same answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<u32>,
    /// What its call would have been answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Awaited>,
}

impl Tool for AnswerAsk {
    const NAME: &'static str = "answer_ask";
    const OPERATIONS: &'static [OperationId] = &[OperationId::of::<operations::AnswerAsk>()];
    const DESCRIPTION: &'static str =
        "Answer what running code asks (input), and wait for what it does then.";
    const EFFECT: Effect = Effect::Changes { destructive: false, idempotent: false };
    const ACTION: Option<Action> = Some(Action::Answer);
    const WORKS: Works = Works::In(Action::Answer, Reach::AtOnce);
    const SAYS_ANSWER: bool = false;
    const WAITS: Waits = Waits::Itself;
    const IS_BASIC: bool = true;
    type Answer = AskAnswer;

    async fn carry_out(self, call: &Call) -> Result<AskAnswer, Error> {
        let wait = call.patience(self.wait)?;
        let WaitingAsk { session, pending } = call.client().ask(&self.ask).await?;
        call.is_about(session.id);
        if pending.ask.question.is_secret() {
            let reason = "it is a secret, which only a person may answer, on the page or at a terminal";
            return Err(Error::AnswerInvalid { reason: reason.to_owned() });
        }
        let asking = asking(call, &session, &pending);
        let answer = pending.ask.question.value_of(&self.answer);
        let body = SessionCommand::Answer(command::Answer::new(pending.ask.ask, answer.clone()));
        let missing = match call.submit(session.id, body).await? {
            Response::Voted { missing, .. } => Some(missing),
            _ => None,
        };
        let result = match asking {
            Some(asking) => Some(awaited(call, &asking, wait).await?),
            None => None,
        };
        Ok(AskAnswer { session_id: session.id.short(), answer, missing, result })
    }
}

/// The call, or else the command, of this client's principal whose code asks.
fn asking(call: &Call, session: &Session, pending: &PendingAsk) -> Option<CommandId> {
    let principal = call.client().principal();
    let running = session.running().filter(|running| pending.is_of_job(running.job))?;
    // A part that asks is of the call that runs the whole.
    let is_whole = |left: &Arc<RunningCall>| {
        let has_parts =
            [RunNotebook::NAME, MergeSession::NAME, CherryPick::NAME].contains(&left.tool.as_str());
        left.end().is_none() && has_parts && *left.source() == running.source
    };
    let left = call.calls().left(principal, session.id).into_iter().find(is_whole);
    let is_own = running.source.principal() == *principal;
    is_own.then(|| left.map_or_else(|| running.command.clone(), |left| left.command().clone()))
}

impl Answer for AskAnswer {
    fn whole(&mut self) -> Option<CallToolResult> {
        self.result.as_mut()?.whole()
    }
}

impl Display for AskAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { session_id, answer, missing, result } = self;
        if let Some(missing) = missing {
            writeln!(f, "counted; {missing} more must answer the same")?;
        }
        match result {
            Some(result) => result.fmt(f),
            None => write!(f, "answered {answer} [session {session_id}]"),
        }
    }
}
