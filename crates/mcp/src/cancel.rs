//! `cancel_eval`: stopping the running code, and telling how that ended.

use std::fmt::{Display, Formatter};
use std::time::{Duration, Instant};

use mainstay_engine::{ClientSubscription, CommandStatus};
use mainstay_model::affordance::Reach;
use mainstay_model::command;
use mainstay_model::event::CancelEnding;
use mainstay_model::{Action, CommandId, Error, JobEnd, JobId, Response, SessionCommand, SessionId};
use mainstay_protocol::{OperationId, operations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::call::{Call, unexpected};
use super::needs::Works;
use super::tool::{Answer, Effect, Tool};

/// How long the answer waits for the session to be Ready again.
const LIMIT: Duration = Duration::from_secs(5);

/// Stops the running code.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CancelEval {
    session_id: Option<String>,
    /// Of a call that still runs or waits; by default what runs now.
    id: Option<String>,
}

/// Says how the cancelled call ended.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CancelAnswer {
    session_id: String,
    state: &'static str,
    /// `yielded`, `killed`, `completed`, `failed`, `interrupted`; `withdrawn` before it had begun; absent where it has not ended yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    ending: Option<&'static str>,
}

impl Tool for CancelEval {
    const NAME: &'static str = "cancel_eval";
    const OPERATIONS: &'static [OperationId] = &[OperationId::of::<operations::CancelSession>()];
    const DESCRIPTION: &'static str = "Stop the code that runs. Where it does not yield its worker is killed, and earlier definitions are restored.";
    const EFFECT: Effect = Effect::Changes { destructive: false, idempotent: true };
    const ACTION: Option<Action> = Some(Action::Cancel);
    const WORKS: Works = Works::In(Action::Cancel, Reach::AtOnce);
    const SAYS_ANSWER: bool = false;
    const IS_BASIC: bool = true;
    type Answer = CancelAnswer;

    async fn carry_out(self, call: &Call) -> Result<CancelAnswer, Error> {
        let began = Instant::now();
        let (session, target) = match self.id {
            Some(id) => {
                let (session, command) = of_call(call, CommandId::new(id)?).await?;
                call.is_about(session);
                (session, Some(command))
            }
            None => (call.existing(self.session_id.as_deref(), Action::Cancel).await?, None),
        };
        let status = call.client().status(session).await?.session;
        // What runs is meant, and not what waits for its turn behind it.
        let target = target.or_else(|| status.running().map(|running| running.command.clone()));
        let mut events = call.client().subscribe(session, status.last_seq).await?;
        let job = match call
            .submit(session, SessionCommand::Cancel(command::Cancel { target, grace_ms: None }))
            .await?
        {
            Response::Cancelling { job } => job,
            Response::Withdrawn { .. } => {
                let status = call.client().status(session).await?.session;
                let (state, ending) = (status.state().name(), Some("withdrawn"));
                return Ok(CancelAnswer { session_id: session.short(), state, ending });
            }
            response => return Err(unexpected(&response)),
        };
        let ending = match timeout(LIMIT, ending(&mut events, job)).await {
            Ok(ending) => Some(ending?),
            Err(_) => None,
        };
        let settled = call.client().settled(session, LIMIT.saturating_sub(began.elapsed())).await?;
        Ok(CancelAnswer { session_id: session.short(), state: settled.state().name(), ending })
    }
}

/// Where a call's command is, and which.
async fn of_call(call: &Call, id: CommandId) -> Result<(SessionId, CommandId), Error> {
    let under_way = call.calls().find(call.client().principal(), &id);
    let command = under_way.map_or(id, |under_way| under_way.command().clone());
    match call.client().command(&command).await? {
        CommandStatus::Waits { session } | CommandStatus::Runs { session } => Ok((session, command)),
        CommandStatus::Ended(_) => Err(Error::NotRunning { command }),
    }
}

/// Waits for a job's end.
async fn ending(events: &mut ClientSubscription, job: JobId) -> Result<&'static str, Error> {
    loop {
        let event = events.next().await?;
        let Some((of, end)) = event.body.job_end() else { continue };
        let ending = match end {
            JobEnd::Cancelled(CancelEnding::Yielded) => "yielded",
            JobEnd::Cancelled(CancelEnding::Killed) => "killed",
            JobEnd::Completed => "completed",
            JobEnd::Failed => "failed",
            JobEnd::Interrupted => "interrupted",
        };
        if of == job {
            return Ok(ending);
        }
    }
}

impl Answer for CancelAnswer {}

impl Display for CancelAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { session_id, state, ending } = self;
        let ending = ending.unwrap_or("has not ended yet");
        write!(f, "{ending}; {state} [session {session_id}]")
    }
}
