//! `scaffold_test`: property-based tests to begin with, from the type of a function.

use std::fmt::{Display, Formatter};

use mainstay_model::{Action, Error};
use mainstay_protocol::{OperationId, operations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::Call;
use super::needs::Works;
use super::tool::{Answer, Effect, Tool};
use mainstay_protocol::operations::Scaffolded;
use mainstay_scaffold::{ScaffoldRequest, scaffolded};

/// Asks for property tests of a function.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ScaffoldTest {
    session_id: Option<String>,
    /// A function, such as `List.rev`.
    name: String,
    /// Its type, if the session has none.
    signature: Option<String>,
    /// One of `plain`, `fscheck-xunit`, `expecto`.
    framework: Option<String>,
    /// The function that undoes it.
    inverse: Option<String>,
}

/// The tests that were written.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ScaffoldAnswer {
    session_id: String,
    signature: String,
    code: String,
}

impl Tool for ScaffoldTest {
    const NAME: &'static str = "scaffold_test";
    const OPERATIONS: &'static [OperationId] = &[OperationId::of::<operations::ScaffoldTest>()];
    const DESCRIPTION: &'static str = "Write property-based tests from a function's type.";
    const EFFECT: Effect = Effect::Reads;
    const ACTION: Option<Action> = Some(Action::Test);
    const WORKS: Works = Works::Always;
    type Answer = ScaffoldAnswer;

    async fn carry_out(self, call: &Call) -> Result<ScaffoldAnswer, Error> {
        let Self { session_id, name, signature, framework, inverse } = self;
        let session = call.workplace(session_id.as_deref(), Action::Test).await?;
        call.bring_up(session).await?;
        let asked = ScaffoldRequest { name, signature, framework, inverse };
        let Scaffolded { signature, code } = scaffolded(call.client(), session, asked).await?;
        Ok(ScaffoldAnswer { session_id: session.short(), signature, code })
    }
}

impl Answer for ScaffoldAnswer {}

impl Display for ScaffoldAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\n[from {}, session {}]", self.code.trim_end(), self.signature, self.session_id)
    }
}
