//! Giving a new worker the values that an earlier one has kept, so that only what cannot be restored runs again.

use mainstay_model::event::WarmUpReason;
use mainstay_model::replay::{ReplayItem, RestorePlan, Snapshot};
use mainstay_model::{Activity, Error, Restored};

use super::WarmUp;
use super::replay::{ReplayFailed, ReplayRun, Replayed};
use crate::sync::time::timeout_at;

/// What came of restoring.
pub(super) struct Attempt {
    /// What came of those that ran again before, and what is told of it.
    pub(super) replayed: Replayed,
    /// Those that run again now.
    pub(super) rest: Vec<ReplayItem>,
}

impl WarmUp {
    /// Runs again what has to run before the values are restored, and restores them; none where there is nothing to restore.
    pub(super) async fn restored(
        &self,
        run: &mut ReplayRun<'_>,
        items: &[ReplayItem],
    ) -> Result<Option<Attempt>, ReplayFailed> {
        let snapshot = match in_time(run, run.runner.snapshot()).await {
            Ok(Some(snapshot)) if self.may_restore() => snapshot,
            Ok(Some(_)) => return self.forget(run).await,
            Ok(None) => return Ok(None),
            Err(error) => {
                tracing::warn!(session = %self.spec.session, %error, "what is kept of a session cannot be read");
                return self.forget(run).await;
            }
        };
        let jobs: Vec<_> = items.iter().map(|item| item.job).collect();
        let Some(plan) = snapshot.plan(&jobs) else { return self.forget(run).await };
        self.carry_out(run, items, &snapshot, &plan).await.map(Some)
    }

    /// Drops what is kept: the session is built without it, and must not have it another time.
    async fn forget(&self, run: &ReplayRun<'_>) -> Result<Option<Attempt>, ReplayFailed> {
        in_time(run, run.runner.forget_snapshot()).await?;
        Ok(None)
    }

    /// What a file gave that has changed since must not come back.
    fn may_restore(&self) -> bool {
        let life = &self.committed.borrow().life;
        self.because.is_none() && !matches!(life, Activity::WarmingUp { reason: WarmUpReason::Refreshed })
    }

    async fn carry_out(
        &self,
        run: &mut ReplayRun<'_>,
        items: &[ReplayItem],
        snapshot: &Snapshot,
        plan: &RestorePlan,
    ) -> Result<Attempt, ReplayFailed> {
        let (first, rest) = items.split_at(plan.before.len());
        let again = first.iter().zip(&plan.before).filter(|(_, reason)| reason.is_some());
        let mut replayed = Replayed::default();
        self.run_all(run, again.map(|(item, _)| item.clone()).collect(), &mut replayed).await?;
        let failed = match replayed.has_failed {
            true => Some("what had to run again before failed".to_owned()),
            false => in_time(run, run.runner.restore()).await.err().map(|error| error.to_string()),
        };
        let Some(reason) = failed else {
            replayed.restored = Some(Box::new(plan.restored(snapshot, items, self.spec.session)));
            return Ok(Attempt { replayed, rest: rest.to_vec() });
        };
        tracing::warn!(session = %self.spec.session, reason, "a session is not restored, and replayed");
        run.runner.reset().await?;
        run.done = 0;
        let restored = Restored { failed: Some(reason), ..Restored::default() };
        let replayed = Replayed { restored: Some(Box::new(restored)), ..Replayed::default() };
        Ok(Attempt { replayed, rest: items.to_vec() })
    }
}

/// What a runner does within the time of the replay.
async fn in_time<T>(run: &ReplayRun<'_>, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let too_late = || Error::WorkerFailed { reason: "it took longer than a replay may".to_owned() };
    timeout_at(run.deadline.into(), work).await.unwrap_or_else(|_| Err(too_late()))
}
