//! Answering an ask, or ending it without an answer.

use serde::{Deserialize, Serialize};

use super::request::{Accepted, Decided, Request, Rules};
use crate::affordance::Action;
use crate::ask::validate_answer;
use crate::decide::Draft;
use crate::error::Error;
use crate::grant::LeaseTerms;
use crate::id::{AskId, Channel};
use crate::limits::Limits;

/// Answer an ask that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The ask that is answered.
    pub ask: AskId,
    /// What its schema wants.
    pub value: serde_json::Value,
    /// The channel through which a person gave the answer, such as `chat:operator`, where the client says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
    /// For how long it may be done without a question, where a permission was asked for and `once` is the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseTerms>,
}

impl Answer {
    /// An answer of which the client says nothing else.
    pub const fn new(ask: AskId, value: serde_json::Value) -> Self {
        Self { ask, value, channel: None, lease: None }
    }
}

/// End an ask without an answer: whoever asked is told that nobody answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decline {
    /// The ask that is ended.
    pub ask: AskId,
}

impl Request for Answer {
    fn rules(&self) -> Rules {
        Rules::always(Action::Answer)
    }

    /// How large it may be depends on what is asked, too.
    fn validate(&self, limits: &Limits) -> Result<(), Error> {
        validate_answer(&self.value, limits)
    }

    fn decide(&self, draft: &mut Draft<'_>, accepted: Accepted) -> Result<Decided, Error> {
        draft.take_answer(accepted.metadata, self.clone()).map(Decided::Done)
    }
}

impl Request for Decline {
    fn rules(&self) -> Rules {
        Rules::always(Action::Answer)
    }

    fn decide(&self, draft: &mut Draft<'_>, accepted: Accepted) -> Result<Decided, Error> {
        draft.decline(accepted.metadata, self.ask).map(Decided::Done)
    }
}
