//! What a tool is, and the table of all of them.

use std::fmt::Display;
use std::sync::LazyLock;

use mainstay_model::Error;
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ask::AnswerAsk;
use super::call::Call;
use super::cancel::CancelEval;
use super::eval::SendFsharpCode;
use super::events::GetRecentFsiEvents;
use super::exchange::{ExportSession, ImportSession};
use super::explore::{ExploreNamespace, ExploreType, FindSymbols, GetValues};
use super::fork::ForkSession;
use super::lifecycle::{CreateSession, HardResetFsiSession, ListSessions, ResetFsiSession, StopSession};
use super::query::{CheckFsharpCode, GetCompletions};
use super::search::SearchSessions;
use super::status::GetFsiStatus;
use super::{error, schema};

/// One tool. The type itself is its arguments; what documents a member is read by models, and `sessionId` has nothing since
/// the server's instructions explain it once.
pub(super) trait Tool: DeserializeOwned + JsonSchema + Send + 'static {
    /// Its name.
    const NAME: &'static str;
    /// What it does, for the model that chooses among tools.
    const DESCRIPTION: &'static str;
    /// What a call may change.
    const EFFECT: Effect;
    /// What answers it.
    type Answer: Answer;

    /// Carries out one call.
    fn carry_out(self, call: &Call<'_>) -> impl Future<Output = Result<Self::Answer, Error>> + Send;
}

/// What answers a call: structured as it serializes, in words as it displays.
///
/// The protocol would like the words to be the same JSON once more. They are not: many clients show the model both, and it
/// would pay for every answer twice. The words hold what matters, for clients that know no structured content.
pub(super) trait Answer: Serialize + JsonSchema + Display {
    /// Whether the call did not achieve what it was for.
    fn is_failure(&self) -> bool {
        false
    }

    /// What it has to look at besides; taken out of it.
    fn pictures(&mut self) -> Vec<PictureBlock> {
        Vec::new()
    }
}

/// A picture for a model.
#[derive(Debug, PartialEq)]
pub(super) struct PictureBlock {
    /// Its MIME type.
    pub(super) kind: String,
    /// Its bytes, in base64.
    pub(super) data: String,
}

/// What a call may change.
pub(super) enum Effect {
    /// Nothing.
    Reads,
    /// Something.
    Changes {
        /// Whether something may be lost by it.
        destructive: bool,
        /// Whether a second call changes nothing more.
        idempotent: bool,
    },
}

macro_rules! tools {
    ($($tool:ident,)*) => {
        /// Every tool, in the order in which clients list them.
        pub(super) static TOOLS: LazyLock<Vec<rmcp::model::Tool>> = LazyLock::new(|| vec![$(description::<$tool>(),)*]);

        /// Carries out a call of the tool with this name.
        ///
        /// # Errors
        /// Invalid params where there is no such tool or the arguments are not of its form. All else is an answer.
        pub(super) async fn carry_out(
            name: &str,
            arguments: JsonObject,
            call: &Call<'_>,
        ) -> Result<CallToolResult, ErrorData> {
            match name {
                $($tool::NAME => answer::<$tool>(arguments, call).await,)*
                unknown => Err(ErrorData::invalid_params(format!("there is no tool `{unknown}`"), None)),
            }
        }
    };
}

tools! {
    SendFsharpCode,
    CheckFsharpCode,
    GetCompletions,
    ExploreNamespace,
    ExploreType,
    FindSymbols,
    GetValues,
    CancelEval,
    AnswerAsk,
    GetFsiStatus,
    GetRecentFsiEvents,
    ResetFsiSession,
    HardResetFsiSession,
    CreateSession,
    ListSessions,
    StopSession,
    ForkSession,
    SearchSessions,
    ExportSession,
    ImportSession,
}

fn description<T: Tool>() -> rmcp::model::Tool {
    let tool = rmcp::model::Tool::new(T::NAME, T::DESCRIPTION, schema::of_arguments::<T>());
    match T::EFFECT {
        // Every model that is told of a tool pays for each word of it, and what is read says itself what it is.
        Effect::Reads => tool.with_annotations(ToolAnnotations::new().read_only(true)),
        Effect::Changes { destructive, idempotent } => {
            tool.with_raw_output_schema(schema::of_answer::<T::Answer>()).with_annotations(
                ToolAnnotations::new().read_only(false).destructive(destructive).idempotent(idempotent),
            )
        }
    }
}

async fn answer<T: Tool>(arguments: JsonObject, call: &Call<'_>) -> Result<CallToolResult, ErrorData> {
    let tool: T = serde_json::from_value(Value::Object(arguments))
        .map_err(|error| ErrorData::invalid_params(format!("{}: {error}", T::NAME), None))?;
    match tool.carry_out(call).await {
        Ok(mut answer) => {
            let pictures = answer.pictures();
            let mut result = result(&answer, answer.is_failure())?;
            result
                .content
                .extend(pictures.into_iter().map(|picture| ContentBlock::image(picture.data, picture.kind)));
            Ok(result)
        }
        Err(error) => result(&error::explain(call, &error).await, true),
    }
}

fn result(answer: &(impl Serialize + Display), is_failure: bool) -> Result<CallToolResult, ErrorData> {
    let structured =
        serde_json::to_value(answer).map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let mut result = CallToolResult::success(vec![ContentBlock::text(answer.to_string())]);
    result.structured_content = Some(structured);
    result.is_error = is_failure.then_some(true);
    Ok(result)
}
