//! What a tool is, and the table of all of them.

use std::fmt::Display;
use std::sync::LazyLock;

use mainstay_model::{Action, Error};
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ask::AnswerAsk;
use super::call::Call;
use super::cancel::CancelEval;
use super::diagnose::Diagnose;
use super::eval::SendFsharpCode;
use super::events::GetRecentFsiEvents;
use super::exchange::{ExportSession, ImportSession};
use super::explore::{ExploreNamespace, ExploreType, FindSymbols, GetValues};
use super::fork::ForkSession;
use super::lifecycle::{CreateSession, ListSessions, ResetFsiSession, StopSession};
use super::load::LoadFsharpScript;
use super::merge::{CherryPick, MergeSession};
use super::names::{Names, Plain};
use super::notebook::RunNotebook;
use super::offer::{Needs, Works};
use super::projects::GetAvailableProjects;
use super::query::{CheckFsharpCode, GetCompletions};
use super::rebuild::HardResetFsiSession;
use super::refresh::RefreshSession;
use super::review::ReviewFsharpCode;
use super::scaffold::ScaffoldTest;
use super::search::SearchSessions;
use super::stale::Stale;
use super::startup::GetStartupProfile;
use super::status::GetFsiStatus;
use super::switch::SwitchSession;
use super::tests::{ListTests, RunTests};
use super::timeline::GetEvalTimeline;
use super::{arguments, error, schema};

/// One tool. The type itself is its arguments; what documents a member is read by models, and `sessionId` has nothing since
/// the server's instructions explain it once.
pub(super) trait Tool: DeserializeOwned + JsonSchema + Send + 'static {
    /// Its name.
    const NAME: &'static str;
    /// What it does, for the model that chooses among tools.
    const DESCRIPTION: &'static str;
    /// What it is for sessions of other kinds than F#, where the name or the words say the language.
    const PLAIN: Option<Plain> = None;
    /// What a call may change.
    const EFFECT: Effect;
    /// What it asks of the session that is meant: it is listed where the session knows that.
    const ACTION: Option<Action>;
    /// In which states of that session it does what it is for.
    const WORKS: Works;
    /// Whether it is of no use to who may not have files read and written.
    const FILES: bool = false;
    /// Whether clients are told the form of its answer: models pay for that, and of another tool's answer they know it already. What
    /// only reads says itself what it is.
    const SAYS_ANSWER: bool = matches!(Self::EFFECT, Effect::Changes { .. });
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
    /// Whether it shows what rests on files that a session has taken in: what of them has changed since is said with it.
    const IS_MARKED: bool = false;

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
        pub(super) static TOOLS: LazyLock<Vec<Listed>> = LazyLock::new(|| vec![$(Listed::of::<$tool>(),)*]);

        /// Carries out a call of the tool with this name.
        ///
        /// # Errors
        /// Invalid params where there is no such tool. All else is an answer, arguments that are not of its form too.
        pub(super) async fn carry_out(
            name: &str,
            arguments: JsonObject,
            call: &Call<'_>,
        ) -> Result<CallToolResult, ErrorData> {
            match name {
                // Boxed, since one that held those of all tools would take more of a thread's stack than there is.
                $(name if is_called::<$tool>(name) => Box::pin(answer::<$tool>(name, arguments, call)).await,)*
                unknown => Err(ErrorData::invalid_params(format!("there is no tool `{unknown}`"), None)),
            }
        }
    };
}

tools! {
    SendFsharpCode,
    LoadFsharpScript,
    RunNotebook,
    CheckFsharpCode,
    GetCompletions,
    ReviewFsharpCode,
    ExploreNamespace,
    ExploreType,
    FindSymbols,
    GetValues,
    RunTests,
    ListTests,
    ScaffoldTest,
    CancelEval,
    AnswerAsk,
    GetFsiStatus,
    Diagnose,
    GetRecentFsiEvents,
    GetEvalTimeline,
    GetStartupProfile,
    ResetFsiSession,
    HardResetFsiSession,
    RefreshSession,
    CreateSession,
    ListSessions,
    SwitchSession,
    StopSession,
    ForkSession,
    MergeSession,
    CherryPick,
    SearchSessions,
    ExportSession,
    ImportSession,
    GetAvailableProjects,
}

/// A tool as clients see it.
pub(super) struct Listed {
    /// What it asks for.
    pub(super) needs: Needs,
    /// For F# sessions.
    pub(super) fsharp: rmcp::model::Tool,
    /// For sessions of other kinds, where that is another.
    pub(super) plain: Option<rmcp::model::Tool>,
}

impl Listed {
    fn of<T: Tool>() -> Self {
        Self {
            needs: Needs { action: T::ACTION, works: T::WORKS, files: T::FILES },
            fsharp: description::<T>(Names::Fsharp),
            plain: T::PLAIN.map(|_| description::<T>(Names::Plain)),
        }
    }

    /// By the names that fit a session.
    pub(super) fn described(&self, names: Names) -> &rmcp::model::Tool {
        match (names, &self.plain) {
            (Names::Plain, Some(plain)) => plain,
            (Names::Fsharp | Names::Plain, _) => &self.fsharp,
        }
    }

    /// By this name, where it has it.
    pub(super) fn called(&self, name: &str) -> Option<&rmcp::model::Tool> {
        [Some(&self.fsharp), self.plain.as_ref()].into_iter().flatten().find(|tool| tool.name == name)
    }
}

/// Whether this is a name of the tool.
pub(super) fn is_called<T: Tool>(name: &str) -> bool {
    name == T::NAME || T::PLAIN.is_some_and(|plain| plain.name == name)
}

fn description<T: Tool>(names: Names) -> rmcp::model::Tool {
    let tool = rmcp::model::Tool::new(names.of::<T>(), names.description::<T>(), schema::of_arguments::<T>());
    let tool = match T::SAYS_ANSWER {
        true => tool.with_raw_output_schema(schema::of_answer::<T::Answer>()),
        false => tool,
    };
    tool.with_annotations(match T::EFFECT {
        Effect::Reads => ToolAnnotations::new().read_only(true),
        Effect::Changes { destructive, idempotent } => {
            ToolAnnotations::new().read_only(false).destructive(destructive).idempotent(idempotent)
        }
    })
}

async fn answer<T: Tool>(
    name: &str,
    arguments: JsonObject,
    call: &Call<'_>,
) -> Result<CallToolResult, ErrorData> {
    let answer = match arguments::read::<T>(name, arguments) {
        Ok(tool) => tool.carry_out(call).await,
        Err(error) => Err(error),
    };
    answered(call, answer).await
}

/// The result of a call that was answered so.
pub(super) async fn answered<A: Answer>(
    call: &Call<'_>,
    answer: Result<A, Error>,
) -> Result<CallToolResult, ErrorData> {
    match answer {
        Ok(mut answer) => {
            let pictures = answer.pictures();
            let mut result = result(&answer, answer.is_failure())?;
            result
                .content
                .extend(pictures.into_iter().map(|picture| ContentBlock::image(picture.data, picture.kind)));
            if A::IS_MARKED
                && let Some(session) = call.session()
                // What was done stays done, whether this can be told or not.
                && let Ok(Some(stale)) = Stale::of(call, session).await
            {
                mark(&mut result, &stale)?;
            }
            Ok(result)
        }
        Err(error) => result(&error::explain(call, &error).await, true),
    }
}

/// Says in an answer what it rests on and has changed.
fn mark(result: &mut CallToolResult, stale: &Stale) -> Result<(), ErrorData> {
    let told =
        serde_json::to_value(stale).map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    if let Some(Value::Object(members)) = &mut result.structured_content {
        members.insert("stale".to_owned(), told);
    }
    if let Some(ContentBlock::Text(text)) = result.content.first_mut() {
        text.text = format!("{stale}\n{}", text.text);
    }
    Ok(())
}

fn result(answer: &(impl Serialize + Display), is_failure: bool) -> Result<CallToolResult, ErrorData> {
    let structured =
        serde_json::to_value(answer).map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let mut result = CallToolResult::success(vec![ContentBlock::text(answer.to_string())]);
    result.structured_content = Some(structured);
    result.is_error = is_failure.then_some(true);
    Ok(result)
}
