//! The table of all tools: their list, and the call of one by its name.

use std::sync::LazyLock;
use std::time::Duration;

use mainstay_model::Error;
use mainstay_protocol::OperationId;
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, JsonObject, ToolAnnotations};
use serde_json::Value;

use super::ask::AnswerAsk;
use super::call::Call;
use super::cancel::CancelEval;
use super::diagnose::Diagnose;
use super::eval::SendCode;
use super::events::GetRecentEvents;
use super::explore::{ExploreNamespace, ExploreType, FindSymbols, GetValues};
use super::fork::ForkSession;
use super::get_output::GetOutput;
use super::get_result::GetResult;
use super::import_export::{ExportSession, ImportSession};
use super::lifecycle::{CreateSession, ListSessions, ResetSession, StopSession};
use super::listed::Listed;
use super::live_tests::{GetLiveTestStatus, SetRunPolicy};
use super::load::LoadScript;
use super::merge::{CherryPick, MergeSession};
use super::names::Names;
use super::needs::{Needs, WAIT, Waits};
use super::notebook::RunNotebook;
use super::projects::GetAvailableProjects;
use super::query::{CheckCode, GetCompletions};
use super::rebuild::HardResetSession;
use super::refresh::RefreshSession;
use super::review::ReviewCode;
use super::scaffold::ScaffoldTest;
use super::search::SearchSessions;
use super::startup::GetStartupProfile;
use super::status::GetStatus;
use super::switch::SwitchSession;
use super::tests::{ListTests, RunTests};
use super::timeline::GetEvalTimeline;
use super::tool::{Effect, Tool};
use super::tool_result::answered;
use super::{arguments, schema};

macro_rules! tools {
    ($($tool:ident,)*) => {
        /// Every tool, in the order in which clients list them.
        pub(super) static TOOLS: LazyLock<Vec<Listed>> = LazyLock::new(|| vec![$(listed::<$tool>(),)*]);

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
    GetLiveTestStatus,
    SetRunPolicy,
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

/// Every tool by its neutral name, with the operations that it carries out.
pub fn operations_of_tools() -> impl Iterator<Item = (&'static str, &'static [OperationId])> {
    TOOLS.iter().map(|tool| (tool.name(Names::Neutral), tool.operations))
}

/// Returns a tool as clients see it.
fn listed<T: Tool>() -> Listed {
    Listed {
        needs: Needs { action: T::ACTION, works: T::WORKS, files: T::FILES },
        waits: T::WAITS,
        operations: T::OPERATIONS,
        neutral: description::<T>(),
        seed_name: T::SEED_NAME,
        is_basic: T::IS_BASIC,
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_tools_share_a_name_whichever_names_are_shown() {
        let names: Vec<&str> = [Names::Neutral, Names::Sagefs]
            .into_iter()
            .flat_map(|names| TOOLS.iter().map(move |tool| tool.name(names)).collect::<BTreeSet<_>>())
            .collect();
        let seed_names = TOOLS.iter().filter(|tool| tool.name(Names::Sagefs) != tool.name(Names::Neutral));
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), TOOLS.len() + seed_names.count());
        assert_eq!(names.len(), 2 * TOOLS.len());
    }

    #[test]
    fn neutral_names_name_no_language() {
        for tool in TOOLS.iter() {
            let name = tool.name(Names::Neutral);
            assert!(!["fsharp", "fsi", "python"].iter().any(|language| name.contains(language)), "{name}");
        }
    }
}
