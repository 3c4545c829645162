//! Commands and what came of them. What a job put out is read from the log.

use mainstay_engine::{Client, CommandStatus, MergeStop, Merged, MergedInput};
use mainstay_model::{CommandId, Error, EvalOutcome, SessionId, WorkOutcome};
use mainstay_protocol::view::agent::{WorkView, WorkViewBuilder};
use mainstay_protocol::view::{
    BroughtView, CommandState, CommandView, EvalView, EvalViewBuilder, MergeView, RefusedView,
};

use super::for_each_between;

/// The view of how far a command has come.
pub fn command_view(command: CommandId, status: CommandStatus) -> CommandView {
    let under_way = |state, session| (state, Some(session), None, None);
    let (state, session, version, outcome) = match status {
        CommandStatus::Waits { session } => under_way(CommandState::Waits, session),
        CommandStatus::Runs { session } => under_way(CommandState::Runs, session),
        CommandStatus::Ended(stored) => {
            (CommandState::Ended, stored.session, Some(stored.version), Some(stored.outcome))
        }
    };
    CommandView { command, session, state, version, outcome }
}

/// The view of an eval's outcome.
///
/// # Errors
/// [`Error::StoreFailed`].
pub async fn eval_view(
    client: &Client,
    session: SessionId,
    command: CommandId,
    outcome: EvalOutcome,
) -> Result<EvalView, Error> {
    let EvalOutcome { requested, completed, job, .. } = outcome;
    let mut view = EvalViewBuilder::new(job);
    for_each_between(client, session, requested, completed, |event| view.push(event)).await?;
    Ok(view.view(session, command, outcome))
}

/// The view of the outcome of a job that is no eval.
///
/// # Errors
/// [`Error::StoreFailed`].
pub async fn work_view(
    client: &Client,
    session: SessionId,
    command: CommandId,
    outcome: WorkOutcome,
) -> Result<WorkView, Error> {
    let WorkOutcome { requested, completed, .. } = outcome;
    let mut view = WorkViewBuilder::default();
    for_each_between(client, session, requested, completed, |event| view.push(event)).await?;
    Ok(view.view(session, command, outcome))
}

/// The view of a merge into this session.
///
/// # Errors
/// [`Error::StoreFailed`].
pub async fn merge_view(client: &Client, session: SessionId, merged: Merged) -> Result<MergeView, Error> {
    let Merged { mut applied, stopped, left } = merged;
    let success = stopped.is_none();
    let refused = match stopped {
        None => None,
        Some(MergeStop::Ended(brought)) => {
            applied.push(brought);
            None
        }
        Some(MergeStop::Refused { index, error }) => Some(RefusedView { index, error: error.into() }),
    };
    let mut ran = Vec::with_capacity(applied.len());
    for MergedInput { index, command, outcome } in applied {
        let eval = eval_view(client, session, command, outcome).await?;
        ran.push(BroughtView { index, eval });
    }
    Ok(MergeView { success, ran, refused, not_run: left })
}
