//! What changes a session that is there, and the daemon.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use mainstay_engine::{Merge, WaitingAsk};
use mainstay_model::command;
use mainstay_model::{Action, CommandId, Error, JobSpec, SessionCommand, SessionId};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::bare::record;
use super::body::Body;
use super::caller::Caller;
use super::params::PathParams;
use super::prefer::{Key, Prefer};
use super::submission::{AT_ONCE, Accepted, Terms, submit, waited};
use mainstay_gateway::command::{answered_before, id_of};
use mainstay_gateway::problem::Problem;
use mainstay_gateway::view::merge_view;

type Answer = Result<Response, Problem>;

impl Caller {
    /// The session that a command is for.
    pub(super) async fn place(
        &self,
        terms: &Terms,
        Key(key): &Key,
        action: Option<Action>,
    ) -> Result<SessionId, Error> {
        self.must_name_session(key.as_ref())?;
        self.session_of(terms.command_id(), action).await
    }
}

/// Runs code in the session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Exec {
    /// The code to be run.
    code: String,
    /// The file whose text it is, absolute: diagnostics and stack traces name it.
    #[serde(default)]
    file: Option<String>,
    #[serde(flatten)]
    terms: Terms,
}

record!(Exec { code, file | terms });

pub(super) async fn exec(caller: Caller, prefer: Prefer, key: Key, Body(exec): Body<Exec>) -> Answer {
    let Exec { code, file, terms } = exec;
    let session = caller.place(&terms, &key, Some(Action::Eval)).await?;
    let body =
        SessionCommand::Eval(command::Eval { code, file, command_line: None, origin: None, withheld: false });
    submit(&caller, session, body, terms.sent(key), prefer).await
}

/// Runs a script file in the session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Load {
    /// The script, absolute: its text is read now, and is in the log from then on.
    file: String,
    #[serde(flatten)]
    terms: Terms,
}

record!(Load { file | terms });

pub(super) async fn load(caller: Caller, prefer: Prefer, key: Key, Body(load): Body<Load>) -> Answer {
    let Load { file, terms } = load;
    // It is read as the daemon's user.
    caller.client.require_all("read files of the daemon's user")?;
    let session = caller.place(&terms, &key, Some(Action::Eval)).await?;
    let limit = caller.daemon.engine.limits().code_bytes;
    let code = read_script(&file, limit).await?;
    let body = SessionCommand::Eval(command::Eval {
        code,
        file: Some(file),
        command_line: None,
        origin: None,
        withheld: false,
    });
    submit(&caller, session, body, terms.sent(key), prefer).await
}

async fn read_script(file: &str, limit: usize) -> Result<String, Error> {
    let invalid = |reason: String| Error::InvalidArgument { argument: "file".to_owned(), reason };
    if !std::path::Path::new(file).is_absolute() {
        return Err(invalid(format!("`{file}` must be the absolute path of a script")));
    }
    let about = tokio::fs::metadata(file)
        .await
        .map_err(|error| invalid(format!("`{file}` cannot be read: {error}")))?;
    if !about.is_file() {
        return Err(invalid(format!("`{file}` is no file")));
    }
    if about.len() > limit as u64 {
        let bytes = usize::try_from(about.len()).unwrap_or(usize::MAX);
        return Err(Error::CodeTooLarge { bytes, limit });
    }
    tokio::fs::read_to_string(file)
        .await
        .map_err(|error| invalid(format!("`{file}` cannot be read: {error}")))
}

/// Ends a job, or takes back a command that waits.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Cancel {
    /// The command whose end is wanted; without it, that of the job that runs.
    #[serde(default)]
    target: Option<CommandId>,
    #[serde(flatten)]
    terms: Terms,
}

record!(Cancel { target | terms });

pub(super) async fn cancel(caller: Caller, prefer: Prefer, key: Key, Body(cancel): Body<Cancel>) -> Answer {
    let Cancel { target, terms } = cancel;
    let session = caller.place(&terms, &key, None).await?;
    submit(
        &caller,
        session,
        SessionCommand::Cancel(command::Cancel { target, grace_ms: None }),
        terms.sent(key),
        prefer,
    )
    .await
}

/// Nothing but under which conditions.
async fn plain(caller: Caller, prefer: Prefer, key: Key, terms: Terms, body: SessionCommand) -> Answer {
    let session = caller.place(&terms, &key, None).await?;
    submit(&caller, session, body, terms.sent(key), prefer).await
}

pub(super) async fn reset(caller: Caller, prefer: Prefer, key: Key, Body(terms): Body<Terms>) -> Answer {
    plain(caller, prefer, key, terms, SessionCommand::Reset).await
}

/// Drops the definitions and the worker.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct HardReset {
    /// Whether the session's project is built first; where that fails nothing is dropped.
    #[serde(default)]
    rebuild: bool,
    #[serde(flatten)]
    terms: Terms,
}

record!(HardReset { rebuild | terms });

pub(super) async fn hard_reset(
    caller: Caller,
    prefer: Prefer,
    key: Key,
    Body(reset): Body<HardReset>,
) -> Answer {
    let HardReset { rebuild, terms } = reset;
    let command = match rebuild {
        true => SessionCommand::Work(JobSpec::Rebuild),
        false => SessionCommand::HardReset,
    };
    plain(caller, prefer, key, terms, command).await
}

pub(super) async fn start(caller: Caller, prefer: Prefer, key: Key, Body(terms): Body<Terms>) -> Answer {
    plain(caller, prefer, key, terms, SessionCommand::Start).await
}

pub(super) async fn stop(caller: Caller, prefer: Prefer, key: Key, Body(terms): Body<Terms>) -> Answer {
    plain(caller, prefer, key, terms, SessionCommand::Stop).await
}

pub(super) async fn delete(caller: Caller, prefer: Prefer, key: Key, Body(terms): Body<Terms>) -> Answer {
    let session = caller.session_or_deleted().await?;
    submit(&caller, session, SessionCommand::Delete, terms.sent(key), prefer).await
}

/// Gives a session another name.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Rename {
    /// The new name of the session.
    name: String,
    #[serde(flatten)]
    terms: Terms,
}

record!(Rename { name | terms });

pub(super) async fn rename(caller: Caller, prefer: Prefer, key: Key, Body(rename): Body<Rename>) -> Answer {
    let Rename { name, terms } = rename;
    plain(caller, prefer, key, terms, SessionCommand::Rename(command::Rename { name })).await
}

/// Runs inputs of another session here.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct MergeFrom {
    /// The other session: its id, the end of it, or its name.
    from: String,
    /// Which entries of its transcript, each by the first index and the one after the last.
    #[schemars(with = "Vec<[u64; 2]>")]
    entries: Vec<(u64, u64)>,
    /// The client's name for the command: sent again under it, it goes on where it was cut off.
    #[serde(default)]
    command_id: Option<CommandId>,
}

record!(MergeFrom { from, entries, command_id });

/// Each input is a command of its own, whose names begin with that of the whole; a key is such a name.
pub(super) async fn merge(
    caller: Caller,
    Prefer(wait): Prefer,
    Key(key): Key,
    Body(merge): Body<MergeFrom>,
) -> Answer {
    let MergeFrom { from, entries, command_id } = merge;
    caller.must_name_session(key.as_ref())?;
    let session = caller.session(None).await?;
    let keyed = key.map(|key| CommandId::new(format!("merge:{key}"))).transpose()?;
    let id = id_of(command_id.or(keyed))?;
    let from = caller.client.resolve(&from).await?;
    let merge = Merge { from, entries: entries.into_iter().map(|(from, to)| from..to).collect() };
    let seq = caller.client.status(session).await?.session.last_seq;
    let (client, command) = (caller.client.clone(), id.clone());
    let merged = tokio::spawn(async move {
        let merged = client.merge(session, command, merge).await?;
        merge_view(&client, session, merged).await
    });
    let accepted = Accepted { command_id: id, session, seq };
    match (tokio::time::timeout(wait.unwrap_or_default().max(AT_ONCE), merged).await, wait) {
        (Err(_), _) => Ok(accepted.answer(caller.answers())),
        (Ok(Err(error)), _) => Err(Error::DaemonFailed { reason: error.to_string() }.into()),
        (Ok(Ok(Err(error))), _) => Err(error.into()),
        (Ok(Ok(Ok(view))), Some(_)) => Ok(waited(caller.answers().answer(&view))),
        (Ok(Ok(Ok(_))), None) => Ok(accepted.answer(caller.answers())),
    }
}

/// Answers an ask of the session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct AnswerAsk {
    /// The answer, as the ask's schema wants it.
    #[serde(default)]
    value: Value,
    /// Whether it is left unanswered instead: whoever asked is told that nobody answers.
    #[serde(default)]
    decline: bool,
    #[serde(flatten)]
    terms: Terms,
}

record!(AnswerAsk { value, decline | terms });

pub(super) async fn answer(
    caller: Caller,
    prefer: Prefer,
    key: Key,
    PathParams(reference): PathParams,
    Body(answer): Body<AnswerAsk>,
) -> Answer {
    let AnswerAsk { value, decline, terms } = answer;
    let (session, ask) = match answered_before(&caller.client, &reference, terms.command_id()).await? {
        Some(before) => before,
        None => {
            let WaitingAsk { session, pending } = caller.client.ask(&reference).await?;
            (session.id, pending.ask.ask)
        }
    };
    let body = if decline {
        SessionCommand::Decline(command::Decline { ask })
    } else {
        SessionCommand::Answer(command::Answer::new(ask, value))
    };
    submit(&caller, session, body, terms.sent(key), prefer).await
}

/// Ends the daemon, once every session is idle.
pub(super) async fn shut_down(caller: Caller, Body(_): Body<Terms>) -> Answer {
    caller.client.require_all("stop the daemon")?;
    caller.daemon.stop()?;
    Ok(StatusCode::ACCEPTED.into_response())
}
