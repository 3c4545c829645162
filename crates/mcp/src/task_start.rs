//! The start of a task: a call that takes long is answered with its command's id, where its client knows tasks.

use mainstay_model::{CommandId, Error, Timestamp};
use rmcp::model::{CallToolResponse, CreateTaskResult, Task, TaskStatus};

use super::call::Call;
use super::running_command::RunningCommand;

/// How often a client should ask after a task, in milliseconds.
const POLL_MS: u64 = 1_000;

/// Whether the client of a call knows tasks. In older versions answers do not say of what type they are, so that a client takes a task
/// for the answer itself, even where it says that it knows tasks.
pub(super) fn are_known(call: &Call) -> bool {
    call.is_of_newest() && call.capabilities().is_some_and(|declared| declared.supports_tasks())
}

/// The answer to a call whose command goes on as a task.
pub(super) async fn begun(call: &Call, running: &RunningCommand) -> Result<CallToolResponse, Error> {
    let session = call.client().status(running.session).await?.session;
    let began = session.running().filter(|job| job.command == running.command);
    let began = began.map_or(session.last_activity, |job| job.requested_at);
    let task = task(&running.command, TaskStatus::Working, (began, session.last_activity));
    Ok(CallToolResponse::Task(CreateTaskResult::new(task)))
}

/// A task in this state, with when it began and when it last changed.
pub(super) fn task(
    command: &CommandId,
    status: TaskStatus,
    (began, changed): (Timestamp, Timestamp),
) -> Task {
    Task::new(command.to_string(), status, began.to_string(), changed.to_string())
        .with_poll_interval_ms(POLL_MS)
}
