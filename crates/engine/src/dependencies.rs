//! What a command depends on: its turn has come, and it begins when all of them have succeeded.

use std::sync::Arc;
use std::time::Duration;

use mainstay_log::Log;
use mainstay_model::{CommandId, Error, EvalEnding, Outcome, Principal, Response, SessionId, WorkEnding};
use tokio::sync::mpsc;

use crate::claims::{Claims, CommandKey};
use crate::sync::task::{AbortHandle, spawn};
use crate::sync::time::{Instant, timeout_at};

/// A command that waits for those it depends on. Dropping it ends the waiting.
pub(crate) struct Waiter {
    key: CommandKey,
    task: AbortHandle,
}

/// The end of a wait.
pub(crate) struct WaitResult {
    /// The command that waits, and whose it is.
    pub(crate) key: CommandKey,
    /// Whether all of them have succeeded.
    pub(crate) result: Result<(), Error>,
}

/// A command whose turn has come.
pub(crate) struct Dependant {
    pub(crate) key: CommandKey,
    pub(crate) session: SessionId,
    pub(crate) depends_on: Vec<CommandId>,
    pub(crate) limit_ms: u64,
}

impl Waiter {
    /// Starts to wait for the dependencies.
    pub(crate) fn start(
        dependant: Dependant,
        claims: Arc<Claims>,
        log: Arc<dyn Log>,
        tell: mpsc::Sender<WaitResult>,
    ) -> Self {
        let key = dependant.key.clone();
        let task = spawn(async move {
            let result = all_succeeded(&dependant, &claims, log.as_ref()).await;
            // The session's task may be gone.
            tell.send(WaitResult { key: dependant.key, result }).await.ok();
        });
        Self { key, task: task.abort_handle() }
    }

    /// Whether it waits for this command.
    pub(crate) fn is_of(&self, key: &CommandKey) -> bool {
        self.key == *key
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Waits until all that a command depends on has succeeded.
///
/// # Errors
/// Why one of them has not.
pub(crate) async fn all_succeeded(
    dependant: &Dependant,
    claims: &Claims,
    log: &dyn Log,
) -> Result<(), Error> {
    let Dependant { key, session, depends_on, limit_ms } = dependant;
    let _wait =
        claims.wait(key, *session, depends_on).map_err(|dependency| Error::DependencyCycle { dependency })?;
    each_succeeded(&key.0, depends_on, *limit_ms, claims, log).await
}

/// Waits until each of these commands of a principal has succeeded, at most `limit_ms`.
///
/// # Errors
/// Why one of them has not.
pub(crate) async fn each_succeeded(
    principal: &Principal,
    commands: &[CommandId],
    limit_ms: u64,
    claims: &Claims,
    log: &dyn Log,
) -> Result<(), Error> {
    let deadline = Instant::now() + Duration::from_millis(limit_ms);
    for dependency in commands {
        let first = (principal.clone(), dependency.clone());
        let outcome = outcome_of(&first, claims, log);
        let pending = |_| Error::DependencyPending { dependency: dependency.clone(), limit_ms };
        match timeout_at(deadline, outcome).await.map_err(pending)?? {
            Some(KnownOutcome::Stored(outcome)) => succeeded(dependency, outcome)?,
            Some(KnownOutcome::Read(ended)) => {
                ended.map_err(|reason| Error::DependencyFailed { dependency: dependency.clone(), reason })?
            }
            None => return Err(Error::DependencyUnknown { dependency: dependency.clone() }),
        }
    }
    Ok(())
}

/// What is known of a command that has ended.
enum KnownOutcome {
    /// The stored outcome of the dependency.
    Stored(Outcome),
    /// How a read ended: its answer is not stored.
    Read(Result<(), String>),
}

/// How a command ended, once it has; none where it is not known.
async fn outcome_of(key: &CommandKey, claims: &Claims, log: &dyn Log) -> Result<Option<KnownOutcome>, Error> {
    loop {
        // In this order: one that is accepted between the two is found by the second look.
        let end = claims.end_of(key);
        if let Some(stored) = log.outcome(&key.0, &key.1).await? {
            return Ok(Some(KnownOutcome::Stored(stored.outcome)));
        }
        if let Some(ended) = claims.read_ended(key) {
            return Ok(Some(KnownOutcome::Read(ended)));
        }
        match end {
            Some(end) => end.reached().await,
            None => return Ok(None),
        }
    }
}

fn succeeded(dependency: &CommandId, outcome: Outcome) -> Result<(), Error> {
    let failed = |reason: String| Error::DependencyFailed { dependency: dependency.clone(), reason };
    match outcome {
        Outcome::Done { response: Response::Evaluated(eval) } => match eval.ending {
            EvalEnding::Completed => Ok(()),
            EvalEnding::Cancelled => Err(Error::Cancelled),
            ending @ (EvalEnding::Rejected
            | EvalEnding::Raised { .. }
            | EvalEnding::Interrupted
            | EvalEnding::WorkerExited { .. }) => Err(failed(ending.name().to_owned())),
        },
        Outcome::Done { response: Response::Worked(work) } => match work.ending {
            WorkEnding::Done { .. } => Ok(()),
            WorkEnding::Cancelled { .. } => Err(Error::Cancelled),
            WorkEnding::Failed { message, .. } => Err(failed(message)),
            ending @ WorkEnding::Interrupted => Err(failed(ending.name().to_owned())),
        },
        Outcome::Done {
            response:
                Response::Created { .. }
                | Response::Forked { .. }
                | Response::Merged { .. }
                | Response::Compacted { .. }
                | Response::Cancelling { .. }
                | Response::Withdrawn { .. }
                | Response::Answered { .. }
                | Response::Voted { .. }
                | Response::Recorded { .. },
        } => Ok(()),
        Outcome::Failed { error: Error::Cancelled } => Err(Error::Cancelled),
        Outcome::Failed { error } => Err(failed(error.to_string())),
    }
}
