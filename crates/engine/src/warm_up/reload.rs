//! Running again, in a worker that stays, what depends on what has changed.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mainstay_model::{Notice, Reload, Seq};
use mainstay_runner::Kernel;

use super::notices::Notices;
use super::replay::{ReplayFailed, Replayed};
use super::{FromWorker, WarmUp, warmed_up};
use crate::reload::{Part, Planned, plan_reload};

/// A wish to run again what depends on what has changed.
pub(crate) struct ReloadRequest {
    /// The worker that is to reload the code.
    pub(crate) kernel: Arc<dyn Kernel>,
    /// Begin when all up to this event is in the log.
    pub(crate) up_to: Seq,
}

impl WarmUp {
    /// Runs again what depends on what has changed, or tells why a new worker has to run all. Says whether the worker stays.
    pub(super) async fn reload(&self, wanted: ReloadRequest, notices: &mut Notices) -> bool {
        let began = Instant::now();
        let ReloadRequest { kernel, up_to } = wanted;
        let session = match self.committed_when(|session| session.last_seq >= up_to).await {
            Ok(session) => session,
            Err(_) => return false,
        };
        let planned = match plan_reload(
            self.log.as_ref(),
            &self.watch,
            &self.limits,
            &session,
            kernel.as_ref(),
        )
        .await
        {
            Ok(Ok(planned)) => planned,
            Ok(Err(why)) => {
                self.tell.send(FromWorker::CannotReload(why)).await.ok();
                return false;
            }
            Err(error) => {
                self.tell(Notice::WarmUpFailed { error }).await;
                return false;
            }
        };
        match self.run_part(planned, kernel.as_ref(), notices).await {
            Ok((Replayed { count, diverged, changes, references, .. }, reload)) => {
                let mut info = kernel.info();
                let loaded = || session.surroundings.as_ref().map(|known| known.loaded.clone());
                info.references = references.or_else(loaded);
                let warmed_up = warmed_up(info, count, diverged, Reload { changes, ..reload }, None, began);
                self.tell_of(notices.last(), warmed_up).await;
                true
            }
            Err(failed) => {
                self.tell_failure(failed).await;
                false
            }
        }
    }

    /// Runs these again. What used something that one used which failed has to wait until that runs again: it would mix what was with what
    /// is.
    async fn run_part(
        &self,
        planned: Planned,
        runner: &dyn Kernel,
        notices: &mut Notices,
    ) -> Result<(Replayed, Reload), ReplayFailed> {
        let Planned { items, of } = planned;
        let total = u32::try_from(items.len()).unwrap_or(u32::MAX);
        let deadline = Instant::now() + Duration::from_millis(self.limits.replay_ms);
        let (mut replayed, mut ran, mut left) = (Replayed::default(), Vec::new(), Vec::new());
        let mut failed: HashSet<String> = HashSet::new();
        self.tell_progress(0, total).await;
        for (done, Part { item, touched }) in (1..).zip(items) {
            let requested = item.requested;
            if touched.iter().any(|name| failed.contains(name)) {
                left.push(requested);
                continue;
            }
            let again = self.run_again(runner, notices, item, deadline, Some(self)).await?;
            if again.fails_now {
                failed.extend(touched);
            }
            ran.push(requested);
            replayed.take(again);
            self.tell_progress(done, total).await;
        }
        Ok((replayed, Reload { in_place: Some(ran), left, of, ..Reload::default() }))
    }
}
