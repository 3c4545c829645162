//! `answer_ask`: answering what running code, or a client, asks.

use std::fmt::{Display, Formatter};

use mainstay_engine::WaitingAsk;
use mainstay_model::affordance::Reach;
use mainstay_model::{Action, Error, SessionCommand};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::Call;
use super::offer::Works;
use super::tool::{Answer, Effect, Tool};

/// Answers an ask.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AnswerAsk {
    ask: String,
    /// Text, or JSON.
    answer: String,
}

/// What was answered.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AskAnswer {
    session_id: String,
    answer: Value,
}

impl Tool for AnswerAsk {
    const NAME: &'static str = "answer_ask";
    const DESCRIPTION: &'static str = "Answer what code asks, as its status says.";
    const EFFECT: Effect = Effect::Changes { destructive: false, idempotent: false };
    const ACTION: Option<Action> = Some(Action::Answer);
    const WORKS: Works = Works::In(Action::Answer, Reach::AtOnce);
    const SAYS_ANSWER: bool = false;
    type Answer = AskAnswer;

    async fn carry_out(self, call: &Call<'_>) -> Result<AskAnswer, Error> {
        let WaitingAsk { session, pending } = call.client().ask(&self.ask).await?;
        call.is_about(session.id);
        let answer = pending.ask.question.value_of(&self.answer);
        let body = SessionCommand::Answer { ask: pending.ask.ask, value: answer.clone() };
        call.submit(session.id, body).await?;
        Ok(AskAnswer { session_id: session.id.short(), answer })
    }
}

impl Answer for AskAnswer {}

impl Display for AskAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "answered {} [session {}]", self.answer, self.session_id)
    }
}
