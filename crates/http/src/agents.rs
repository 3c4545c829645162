//! What an agent is given to do, and how it is to go on.

use axum::response::Response;
use mainstay_model::agent::Setting;
use mainstay_model::{Action, Delivery, JobSpec, Prompt, QueuedPrompt, SessionCommand, command};
use schemars::JsonSchema;
use serde::Deserialize;

use super::bare::record;
use super::body::Body;
use super::caller::Caller;
use super::prefer::{Key, Prefer};
use super::submission::{Terms, submit};
use mainstay_gateway::problem::Problem;

type Answer = Result<Response, Problem>;

/// Says something to an agent: a turn.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Say {
    /// The text of the prompt.
    text: String,
    /// Of a steer: whether it is heard only when the agent would be done.
    #[serde(default)]
    at_end: bool,
    #[serde(flatten)]
    terms: Terms,
}

record!(Say { text, at_end | terms });

pub(super) async fn prompt(caller: Caller, prefer: Prefer, key: Key, Body(say): Body<Say>) -> Answer {
    let Say { text, terms, .. } = say;
    work(caller, prefer, key, terms, JobSpec::Turn { prompt: Prompt::text(text) }).await
}

/// A job, which takes its turn; an idle agent is started for it.
async fn work(caller: Caller, prefer: Prefer, key: Key, terms: Terms, work: JobSpec) -> Answer {
    let session = caller.place(&terms, &key, Some(Action::Prompt)).await?;
    submit(&caller, session, SessionCommand::Work(work), terms.sent(key), prefer).await
}

pub(super) async fn steer(caller: Caller, prefer: Prefer, key: Key, Body(say): Body<Say>) -> Answer {
    let Say { text, at_end, terms } = say;
    let session = caller.place(&terms, &key, Some(Action::Steer)).await?;
    let hears = if at_end { Delivery::FollowUp } else { Delivery::Steer };
    let body = SessionCommand::Steer(QueuedPrompt { prompt: Prompt::text(text), hears });
    submit(&caller, session, body, terms.sent(key), prefer).await
}

/// Has an agent pause in its turn, and ask how to go on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Pause {
    /// What people are asked.
    #[serde(default)]
    prompt: Option<String>,
    #[serde(flatten)]
    terms: Terms,
}

record!(Pause { prompt | terms });

pub(super) async fn pause(caller: Caller, prefer: Prefer, key: Key, Body(pause): Body<Pause>) -> Answer {
    let Pause { prompt, terms } = pause;
    let session = caller.place(&terms, &key, Some(Action::Pause)).await?;
    let body = SessionCommand::Pause(command::Pause { target: None, prompt });
    submit(&caller, session, body, terms.sent(key), prefer).await
}

/// Shortens what an agent is shown of the conversation.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Compact {
    /// What to heed in doing so.
    #[serde(default)]
    instructions: Option<String>,
    #[serde(flatten)]
    terms: Terms,
}

record!(Compact { instructions | terms });

pub(super) async fn compact(
    caller: Caller,
    prefer: Prefer,
    key: Key,
    Body(compact): Body<Compact>,
) -> Answer {
    let Compact { instructions, terms } = compact;
    work(caller, prefer, key, terms, JobSpec::Compaction { instructions }).await
}

/// Runs a line of a shell where an agent's tools act.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Shell {
    /// The line for the agent's shell.
    line: String,
    /// Whether the model is not to be told of it.
    #[serde(default)]
    is_private: bool,
    #[serde(flatten)]
    terms: Terms,
}

record!(Shell { line, is_private | terms });

pub(super) async fn shell(caller: Caller, prefer: Prefer, key: Key, Body(shell): Body<Shell>) -> Answer {
    let Shell { line, is_private, terms } = shell;
    work(caller, prefer, key, terms, JobSpec::Shell { line, is_private }).await
}

/// Has an agent go on otherwise.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Settings {
    /// The setting to be changed.
    #[serde(flatten)]
    setting: Setting,
    #[serde(flatten)]
    terms: Terms,
}

record!(Settings { setting | terms });

pub(super) async fn settings(
    caller: Caller,
    prefer: Prefer,
    key: Key,
    Body(settings): Body<Settings>,
) -> Answer {
    let Settings { setting, terms } = settings;
    work(caller, prefer, key, terms, JobSpec::Setting(setting)).await
}
