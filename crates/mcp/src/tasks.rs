//! Tasks: a call that takes long is answered with its command's id, and asked after by it. Nothing is kept for that: commands and their
//! outcomes are in the log, so a task outlives its connection, and the daemon.

use mainstay_engine::CommandStatus;
use mainstay_log::StoredOutcome;
use mainstay_model::command;
use mainstay_model::{
    CommandId, Error, EvalEnding, Outcome, Response, SessionCommand, SessionId, Timestamp, WorkEnding,
};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, DetailedTask, GetTaskResult, InputResponses, JsonObject,
    TaskPayload,
};
use serde_json::Value;

use super::call::Call;
use super::command_wait::ended;
use super::eval::EvalAnswer;
use super::running_command::{Continued, asks_of};
use super::state::OpenedState;
use super::stored_result::{event, result_of};
use super::task_start::task;
use super::tool_result::answered;
use super::{elicitation, error, tools};

/// How far a task has come.
///
/// # Errors
/// Invalid params where the client's principal has no such command.
pub(super) async fn get(call: &Call, id: &str) -> Result<GetTaskResult, ErrorData> {
    let command = command_of(id)?;
    let status = call.client().command(&command).await.map_err(|error| unknown(id, &error))?;
    let (payload, times) = match status {
        CommandStatus::Waits { session } | CommandStatus::Runs { session } => {
            let session = call.client().status(session).await.map_err(|error| unknown(id, &error))?.session;
            let began = session.running().filter(|job| job.command == command);
            let began = began.map_or(session.last_activity, |job| job.requested_at);
            let input_requests = elicitation::requests(call, &asks_of(&session, |other| *other == command));
            let payload = match input_requests.is_empty() {
                true => TaskPayload::Working,
                false => TaskPayload::InputRequired { input_requests },
            };
            (payload, (began, session.last_activity))
        }
        CommandStatus::Ended(stored) => over(call, &command, *stored).await?,
    };
    let task = task(&command, payload.status(), times);
    Ok(GetTaskResult::new(DetailedTask::new(task, payload)))
}

/// Takes the answers to what a task asks.
///
/// # Errors
/// As [`get`], and invalid params where an answer is none.
pub(super) async fn update(call: &Call, id: &str, responses: InputResponses) -> Result<(), ErrorData> {
    let command = command_of(id)?;
    let Some(session) = where_it_runs(call, id, &command).await? else { return Ok(()) };
    let found = call.client().status(session).await.map_err(|error| unknown(id, &error))?.session;
    let taken =
        elicitation::take(call, session, (&asks_of(&found, |other| *other == command), None), responses)
            .await;
    let invalid = taken.map_err(|error| error::of_protocol(&error))?;
    match invalid.into_values().next() {
        Some(reason) => Err(error::of_protocol(&Error::AnswerInvalid { reason })),
        None => Ok(()),
    }
}

/// Stops a task; one that has ended stays as it ended.
///
/// # Errors
/// As [`get`].
pub(super) async fn cancel(call: &Call, id: &str) -> Result<(), ErrorData> {
    let command = command_of(id)?;
    let Some(session) = where_it_runs(call, id, &command).await? else { return Ok(()) };
    match call
        .submit(session, SessionCommand::Cancel(command::Cancel { target: Some(command), grace_ms: None }))
        .await
    {
        Ok(_) | Err(Error::NotRunning { .. }) => Ok(()),
        Err(error) => Err(error::of_protocol(&error)),
    }
}

/// Goes on with a call whose command asked something, with the answers. A call that runs a notebook goes on with its further cells.
///
/// # Errors
/// As [`update`].
pub(super) async fn resume(
    call: &Call,
    OpenedState { running, at }: OpenedState,
    request: CallToolRequestParams,
) -> Result<CallToolResult, ErrorData> {
    call.is_about(running.session);
    let responses = request.input_responses.unwrap_or_default();
    let taken = async {
        let session = call.client().status(running.session).await?.session;
        elicitation::take(
            call,
            running.session,
            (&asks_of(&session, |other| *other == running.command), Some(at)),
            responses,
        )
        .await
    };
    let invalid = match taken.await {
        Ok(invalid) => invalid,
        Err(error) => return answered::<EvalAnswer>(call, Err(error)).await,
    };
    let Continued { running, .. } = call.continues(Continued { running, invalid });
    if running.cells.is_some() {
        return tools::carry_out(&request.name, request.arguments.unwrap_or_default(), call).await;
    }
    match ended(call, running).await {
        Ok(stored) => result_of(call, &running.command, stored).await,
        Err(error) => answered::<EvalAnswer>(call, Err(error)).await,
    }
}

async fn where_it_runs(call: &Call, id: &str, command: &CommandId) -> Result<Option<SessionId>, ErrorData> {
    match call.client().command(command).await.map_err(|error| unknown(id, &error))? {
        CommandStatus::Waits { session } | CommandStatus::Runs { session } => Ok(Some(session)),
        CommandStatus::Ended(_) => Ok(None),
    }
}

fn command_of(id: &str) -> Result<CommandId, ErrorData> {
    CommandId::new(id).map_err(|error| unknown(id, &error))
}

fn unknown(id: &str, error: &Error) -> ErrorData {
    match error {
        Error::CommandNotFound { .. } | Error::SessionNotFound { .. } | Error::InvalidArgument { .. } => {
            ErrorData::invalid_params(format!("there is no task `{id}`"), None)
        }
        error => error::of_protocol(error),
    }
}

/// What became of a task that is over, and when it began and ended.
async fn over(
    call: &Call,
    command: &CommandId,
    stored: StoredOutcome,
) -> Result<(TaskPayload, (Timestamp, Timestamp)), ErrorData> {
    let is_cancelled = match &stored.outcome {
        Outcome::Failed { error } => *error == Error::Cancelled,
        Outcome::Done { response: Response::Evaluated(outcome) } => outcome.ending == EvalEnding::Cancelled,
        Outcome::Done { response: Response::Worked(outcome) } => {
            matches!(outcome.ending, WorkEnding::Cancelled { .. })
        }
        Outcome::Done { .. } => false,
    };
    let times = times(call, &stored).await.map_err(|error| error::of_protocol(&error))?;
    if is_cancelled {
        return Ok((TaskPayload::Cancelled, times));
    }
    let result = result_of(call, command, stored).await;
    let payload = match result {
        Ok(result) => TaskPayload::Completed { result: object(&result)? },
        Err(error) => TaskPayload::Failed { error: object(&error)? },
    };
    Ok((payload, times))
}

fn object(value: &impl serde::Serialize) -> Result<JsonObject, ErrorData> {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Ok(JsonObject::new()),
        Err(error) => Err(ErrorData::internal_error(error.to_string(), None)),
    }
}

/// When a command began and ended; the session's creation and last event where the outcome does not say it.
async fn times(call: &Call, stored: &StoredOutcome) -> Result<(Timestamp, Timestamp), Error> {
    let Some(session) = stored.session else { return Ok((Timestamp::now(), Timestamp::now())) };
    let places = match &stored.outcome {
        Outcome::Done { response: Response::Evaluated(outcome) } => {
            Some((outcome.requested, outcome.completed))
        }
        Outcome::Done { response: Response::Worked(outcome) } => Some((outcome.requested, outcome.completed)),
        Outcome::Done { .. } | Outcome::Failed { .. } => None,
    };
    match places {
        Some((requested, completed)) => {
            Ok((event(call, session, requested).await?.0, event(call, session, completed).await?.0))
        }
        None => {
            let session = call.client().status(session).await?.session;
            Ok((session.created_at, session.last_activity))
        }
    }
}
