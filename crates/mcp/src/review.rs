//! `review_code`: what of some code could be written more plainly.

use std::fmt::{Display, Formatter};

use mainstay_model::affordance::Reach;
use mainstay_model::{Action, Error};
use mainstay_protocol::{OperationId, operations};
use mainstay_runner::query::{KernelQuery, Review};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::Call;
use super::diagnostic::DiagnosticLine;
use super::needs::Works;
use super::tool::{Answer, Effect, Tool};

/// The most suggestions in an answer.
const ITEMS: usize = 50;

/// Reviews code without running it.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ReviewCode {
    session_id: Option<String>,
    code: String,
}

/// The suggestions for the code.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReviewAnswer {
    session_id: String,
    /// Where the code cannot be parsed, what the compiler says of it.
    suggestions: Vec<DiagnosticLine>,
    parsed: bool,
    /// How many more there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<u64>,
}

impl Tool for ReviewCode {
    const NAME: &'static str = "review_code";
    const OPERATIONS: &'static [OperationId] = &[OperationId::of::<operations::ReviewCode>()];
    const SEED_NAME: Option<&'static str> = Some("review_fsharp_code");
    const DESCRIPTION: &'static str = "What in F# code could be written more plainly.";
    const EFFECT: Effect = Effect::Reads;
    const ACTION: Option<Action> = Some(Action::Review);
    const WORKS: Works = Works::InAny(Action::Review, Reach::Started);
    type Answer = ReviewAnswer;

    async fn carry_out(self, call: &Call) -> Result<ReviewAnswer, Error> {
        let session = call.workplace(self.session_id.as_deref(), Action::Review).await?;
        call.bring_up(session).await?;
        let query = KernelQuery::Review { code: self.code };
        let Review { is_parsed, remarks, left_out } = call.client().query(session, query).await?.review()?;
        let more = remarks.len().saturating_sub(ITEMS) as u64 + left_out;
        Ok(ReviewAnswer {
            session_id: session.short(),
            suggestions: remarks.into_iter().take(ITEMS).map(DiagnosticLine::from).collect(),
            parsed: is_parsed,
            left_out: Some(more).filter(|more| *more > 0),
        })
    }
}

impl Answer for ReviewAnswer {}

impl Display for ReviewAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        for suggestion in &self.suggestions {
            writeln!(f, "{suggestion}")?;
        }
        if let Some(more) = self.left_out {
            writeln!(f, "… {more} more")?;
        }
        let what = if self.parsed { "suggestions" } else { "not parsed; diagnostics" };
        write!(f, "{what}: {} [session {}]", self.suggestions.len(), self.session_id)
    }
}
