//! Asks: questions to whoever is attached, and their answers.

use crate::Sent;
use crate::view::AskView;
use mainstay_model::{AskId, CommandId, Question, Seq, SessionId, Source};
use serde::{Deserialize, Serialize};
use serde_json::Value;

operations! {
    /// Asks whoever is attached; answered when someone has answered, or its time is over.
    "session/ask" RaiseAsk {
        /// Its id, the end of it, or its name.
        session: String,
        /// The question for the clients.
        #[serde(flatten)]
        question: Question,
        /// Under what name and conditions; a time that is over takes the default, where there is one.
        #[serde(flatten)]
        sent: Sent,
    } -> AskAnswer;

    /// The asks that wait for an answer.
    "ask/list" ListAsks {
        /// Only those of this session: its id, the end of it, or its name.
        #[serde(default)]
        session: Option<String>,
    } -> Vec<AskView>;

    /// Answers an ask. The first valid answer wins, or the first that as many principals have given as the question says.
    "ask/answer" AnswerAsk {
        /// Its id, or the end of it; the whole id where it may be sent again.
        ask: String,
        /// The client's name for the command.
        #[serde(default)]
        command: Option<CommandId>,
        /// The answer, as its schema wants it.
        value: Value,
    } -> Answered;

    /// Ends an ask without an answer: whoever asked is told that nobody answers. A paused agent is answered instead, or its turn is cancelled.
    "ask/decline" DeclineAsk {
        /// Its id, or the end of it; the whole id where it may be sent again.
        ask: String,
        /// The client's name for the command.
        #[serde(default)]
        command: Option<CommandId>,
    } -> Answered;
}

/// What an ask was answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AskAnswer {
    /// The ask that was answered.
    pub ask: AskId,
    /// The answer that was accepted.
    pub value: Value,
    /// By whom; the daemon took the default.
    pub by: Source,
    /// Whether an earlier submission of the same command had brought this about.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
}

/// An answer that was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Answered {
    /// The ask that was answered.
    pub ask: AskId,
    /// The session that raised the ask.
    pub session: SessionId,
    /// The event that says so.
    pub seq: Seq,
    /// How many more principals must give the same answer, where the ask waits for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<u32>,
}
