//! What a tool is, and the table of all of them.

use std::fmt::Display;
use std::sync::LazyLock;
use std::time::Duration;

use mainstay_model::{Action, Error};
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, MetaObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ask::AnswerAsk;
use super::call::Call;
use super::cancel::CancelEval;
use super::clients::{ClientProfile, Results};
use super::diagnose::Diagnose;
use super::eval::SendCode;
use super::events::GetRecentEvents;
use super::explore::{ExploreNamespace, ExploreType, FindSymbols, GetValues};
use super::fork::ForkSession;
use super::get_output::GetOutput;
use super::get_result::GetResult;
use super::import_export::{ExportSession, ImportSession};
use super::lifecycle::{CreateSession, ListSessions, ResetSession, StopSession};
use super::load::LoadScript;
use super::merge::{CherryPick, MergeSession};
use super::names::Names;
use super::notebook::RunNotebook;
use super::offer::{Needs, Works};
use super::projects::GetAvailableProjects;
use super::query::{CheckCode, GetCompletions};
use super::rebuild::HardResetSession;
use super::refresh::RefreshSession;
use super::review::ReviewCode;
use super::scaffold::ScaffoldTest;
use super::search::SearchSessions;
use super::staleness::Staleness;
use super::startup::GetStartupProfile;
use super::status::GetStatus;
use super::switch::SwitchSession;
use super::tests::{ListTests, RunTests};
use super::text::bounded;
use super::timeline::GetEvalTimeline;
use super::{arguments, error, schema};

/// One tool. The type itself is its arguments; what documents a member is read by models, and `sessionId` has nothing since
/// the server's instructions explain it once.
pub(super) trait Tool: DeserializeOwned + JsonSchema + Send + 'static {
    /// The name of the tool.
    const NAME: &'static str;
    /// What it does, for the model that chooses among tools.
    const DESCRIPTION: &'static str;
    /// What SageFs calls it (seed 000), where it has it by another name.
    const SEED_NAME: Option<&'static str> = None;
    /// What a call may change.
    const EFFECT: Effect;
    /// What it asks of the session that is meant.
    const ACTION: Option<Action>;
    /// In which states of that session it does what it is for.
    const WORKS: Works;
    /// Whether it is of no use to who may not have files read and written.
    const FILES: bool = false;
    /// Whether clients are told the form of its answer: models pay for that, and of another tool's answer they know it already. What
    /// only reads says itself what it is.
    const SAYS_ANSWER: bool = !matches!(Self::EFFECT, Effect::Reads);
    /// Who sees to it that a call is answered before its client's patience ends.
    const WAITS: Waits = Waits::Briefly;
    /// Whether nothing can be done here without it: models that look for tools are told of it at once.
    const IS_BASIC: bool = false;
    /// The type of the tool's answer.
    type Answer: Answer;

    /// Carries out one call.
    fn carry_out(self, call: &Call) -> impl Future<Output = Result<Self::Answer, Error>> + Send;
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

    /// Cuts what is long of it, so that its words have about so many bytes.
    fn fit(&mut self, _bytes: usize) {}

    /// The result that it stands for, where that is another call's.
    fn whole(&mut self) -> Option<CallToolResult> {
        None
    }
}

/// The longest wait that a client may ask for, in seconds.
pub(super) const LONGEST_WAIT: u32 = 3600;

/// The argument that says how many seconds a call waits for its end.
pub(super) const WAIT: &str = "wait";

/// The member of a tool's `_meta` by which Claude Code tells its model of it at once.
const ALWAYS_LOAD: &str = "anthropic/alwaysLoad";

/// Who sees to it that a call is answered before its client's patience ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    /// Its server, as fits the client; what it began goes on.
    Briefly,
    /// The same, after the seconds that the argument [`WAIT`] says, where it is there.
    AsAsked,
    /// The tool waits by itself.
    Itself,
}

/// A picture for a model.
#[derive(Debug, PartialEq)]
pub(super) struct PictureBlock {
    /// The MIME type of the picture.
    pub(super) kind: String,
    /// Its bytes, in base64.
    pub(super) data: String,
}

/// What a call may change. Clients go by it: `codex exec` refuses what may lose something or reaches beyond this machine.
pub(super) enum Effect {
    /// The tool changes nothing.
    Reads,
    /// Whatever code can, which runs as the user: it may lose anything, and reach any machine.
    RunsCode {
        /// Whether a second call changes nothing more.
        idempotent: bool,
    },
    /// Something of Mainstay's own, on this machine.
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
            call: &Call,
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
    SendCode,
    GetResult,
    GetOutput,
    LoadScript,
    RunNotebook,
    CheckCode,
    GetCompletions,
    ReviewCode,
    ExploreNamespace,
    ExploreType,
    FindSymbols,
    GetValues,
    RunTests,
    ListTests,
    ScaffoldTest,
    CancelEval,
    AnswerAsk,
    GetStatus,
    Diagnose,
    GetRecentEvents,
    GetEvalTimeline,
    GetStartupProfile,
    ResetSession,
    HardResetSession,
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
    /// Who sees to it that it is answered in time.
    pub(super) waits: Waits,
    /// By its neutral name.
    neutral: rmcp::model::Tool,
    /// What SageFs calls it.
    seed_name: Option<&'static str>,
    /// Whether it is among those without which nothing can be done here.
    is_basic: bool,
}

impl Listed {
    fn of<T: Tool>() -> Self {
        Self {
            needs: Needs { action: T::ACTION, works: T::WORKS, files: T::FILES },
            waits: T::WAITS,
            neutral: description::<T>(),
            seed_name: T::SEED_NAME,
            is_basic: T::IS_BASIC,
        }
    }

    /// What it is called.
    pub(super) fn name(&self, names: Names) -> &str {
        match (names, self.seed_name) {
            (Names::Sagefs, Some(name)) => name,
            (Names::Neutral | Names::Sagefs, _) => &self.neutral.name,
        }
    }

    /// As it is listed for who is shown these names, and is given results in this form.
    pub(super) fn described(
        &self,
        names: Names,
        results: Results,
        habits: &ClientProfile,
    ) -> rmcp::model::Tool {
        let mut tool = self.neutral.clone();
        if habits.loads_what_is_marked && self.is_basic {
            tool.meta =
                Some(MetaObject(JsonObject::from_iter([(ALWAYS_LOAD.to_owned(), Value::Bool(true))])));
        }
        tool.name = self.name(names).to_owned().into();
        if results == Results::Text {
            // What has a schema must be structured.
            tool.output_schema = None;
        }
        tool
    }

    /// Whether the tool of this neutral name comes after what runs in its session.
    pub(super) fn is_in_turn(name: &str) -> bool {
        TOOLS.iter().any(|tool| tool.called(name).is_some() && tool.needs.works.is_in_turn())
    }

    /// By this name, where it has it.
    pub(super) fn called(&self, name: &str) -> Option<&rmcp::model::Tool> {
        (self.neutral.name == name || self.seed_name == Some(name)).then_some(&self.neutral)
    }
}

/// Whether this is a name of the tool.
fn is_called<T: Tool>(name: &str) -> bool {
    name == T::NAME || T::SEED_NAME == Some(name)
}

fn description<T: Tool>() -> rmcp::model::Tool {
    let tool = rmcp::model::Tool::new(T::NAME, T::DESCRIPTION, schema::of_tool::<T>());
    let tool = match T::SAYS_ANSWER {
        true => tool.with_raw_output_schema(schema::of_answer::<T::Answer>()),
        false => tool,
    };
    tool.with_annotations(match T::EFFECT {
        Effect::Reads => ToolAnnotations::new().read_only(true).open_world(false),
        Effect::RunsCode { idempotent } => {
            ToolAnnotations::new().read_only(false).destructive(true).idempotent(idempotent).open_world(true)
        }
        Effect::Changes { destructive, idempotent } => ToolAnnotations::new()
            .read_only(false)
            .destructive(destructive)
            .idempotent(idempotent)
            .open_world(false),
    })
}

/// How long a call that waits as asked waits, with these arguments. What is no number of seconds is refused when it is carried out.
pub(super) fn wait(call: &Call, arguments: Option<&JsonObject>) -> Duration {
    let asked = arguments.and_then(|arguments| arguments.get(WAIT));
    waited(call, asked.cloned().unwrap_or_default()).unwrap_or(call.habits().wait)
}

fn waited(call: &Call, asked: Value) -> Result<Duration, Error> {
    let asked = serde_json::from_value(asked).map_err(|_| Error::InvalidArgument {
        argument: WAIT.to_owned(),
        reason: "it must be a whole number of seconds".to_owned(),
    })?;
    call.patience(asked)
}

async fn answer<T: Tool>(
    name: &str,
    mut arguments: JsonObject,
    call: &Call,
) -> Result<CallToolResult, ErrorData> {
    if T::WAITS == Waits::AsAsked
        && let Some(asked) = arguments.remove(WAIT)
        && let Err(error) = waited(call, asked)
    {
        return answered::<T::Answer>(call, Err(error)).await;
    }
    let answer = match arguments::read::<T>(name, arguments) {
        Ok(tool) => tool.carry_out(call).await,
        Err(error) => Err(error),
    };
    answered(call, answer).await
}

/// The result of a call that was answered so.
pub(super) async fn answered<A: Answer>(
    call: &Call,
    answer: Result<A, Error>,
) -> Result<CallToolResult, ErrorData> {
    match answer {
        Ok(mut answer) => {
            if let Some(whole) = answer.whole() {
                return Ok(whole);
            }
            let pictures = answer.pictures();
            answer.fit(call.habits().text_bytes);
            let mut result = result(call, &answer, answer.is_failure())?;
            result
                .content
                .extend(pictures.into_iter().map(|picture| ContentBlock::image(picture.data, picture.kind)));
            if A::IS_MARKED
                && let Some(session) = call.session()
                // What was done stays done, whether this can be told or not.
                && let Ok(Some(stale)) = Staleness::of(call, session).await
            {
                mark(&mut result, &stale)?;
            }
            Ok(result)
        }
        Err(error) => result(call, &error::explain(call, &error).await, true),
    }
}

/// Says in an answer what it rests on and has changed.
fn mark(result: &mut CallToolResult, stale: &Staleness) -> Result<(), ErrorData> {
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

fn result(
    call: &Call,
    answer: &(impl Serialize + Display),
    is_failure: bool,
) -> Result<CallToolResult, ErrorData> {
    let text = bounded(answer.to_string(), call.habits().text_bytes);
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    if call.results() == Results::Structured {
        let structured = serde_json::to_value(answer);
        result.structured_content =
            Some(structured.map_err(|error| ErrorData::internal_error(error.to_string(), None))?);
    }
    result.is_error = is_failure.then_some(true);
    Ok(result)
}
