//! What the daemon's users wait for just now: starts of runners, and jobs in shims. What is done ahead waits until there is nothing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mainstay_model::{AgentNotice, JobId, RunnerNotice};
use tokio::sync::watch;
use tokio::time::sleep;

/// What runs for longer is not waited for any more: a server, for instance, or a question that nobody answers.
const LONG: Duration = Duration::from_secs(60);

/// How much users wait for. Its clones are the same one.
#[derive(Clone, Debug, Default)]
pub struct Activity {
    waits: Arc<watch::Sender<usize>>,
    /// How much of that is builds.
    builds: Arc<watch::Sender<usize>>,
}

impl Activity {
    /// Somebody waits until the guard is dropped.
    pub fn begins(&self) -> Busy {
        Busy::of(&[&self.waits])
    }

    /// The same for a build, after which a runner is started.
    fn begins_build(&self) -> Busy {
        Busy::of(&[&self.waits, &self.builds])
    }

    /// Waits until builds have gone on for so long: msbuild is at it then, and not the warm compiler.
    pub(crate) async fn builds_for(&self, time: Duration) {
        let mut count = self.builds.subscribe();
        // The sender lives as long as this.
        while count.wait_for(|count| *count > 0).await.is_ok() {
            tokio::select! {
                biased;
                _ = count.wait_for(|count| *count == 0) => {}
                () = sleep(time) => return,
            }
        }
    }

    /// Waits until nobody has waited for anything for so long, or nothing has begun or ended for [`LONG`].
    pub async fn rests_for(&self, time: Duration) {
        let mut count = self.waits.subscribe();
        loop {
            let is_at_rest = *count.borrow_and_update() == 0;
            tokio::select! {
                biased;
                // The sender lives as long as this.
                _ = count.changed() => {}
                () = sleep(if is_at_rest { time } else { time.max(LONG) }) => return,
            }
        }
    }
}

/// Somebody waits, until this is dropped.
#[derive(Debug)]
pub struct Busy(Vec<Arc<watch::Sender<usize>>>);

impl Busy {
    fn of(counts: &[&Arc<watch::Sender<usize>>]) -> Self {
        counts.iter().for_each(|count| count.send_modify(|count| *count += 1));
        Self(counts.iter().map(|&count| Arc::clone(count)).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.iter().for_each(|count| count.send_modify(|count| *count = count.saturating_sub(1)));
    }
}

/// The job that one runner is at, as part of all activity.
#[derive(Debug, Default)]
pub(crate) struct Work {
    activity: Activity,
    running: Mutex<Option<(JobId, Busy)>>,
}

impl Work {
    pub(crate) fn of(activity: &Activity) -> Self {
        Self { activity: activity.clone(), running: Mutex::default() }
    }

    /// The runner was given a job.
    pub(crate) fn begins(&self, job: JobId) {
        *self.running() = Some((job, self.activity.begins()));
    }

    /// The runner's project is built for a job.
    pub(crate) fn builds(&self, job: JobId) {
        *self.running() = Some((job, self.activity.begins_build()));
    }

    /// The runner has said something, which may be the end of the job.
    pub(crate) fn hears(&self, notice: &RunnerNotice) {
        match notice {
            RunnerNotice::Finished { job, .. }
            | RunnerNotice::Built { job, .. }
            | RunnerNotice::CommTaken { job }
            | RunnerNotice::Agent(AgentNotice::Ended { job, .. }) => self.ends(*job),
            RunnerNotice::Exited { .. } => self.is_over(),
            _ => {}
        }
    }

    fn ends(&self, job: JobId) {
        self.running().take_if(|(running, _)| *running == job);
    }

    /// The runner is gone, or is another daemon's.
    pub(crate) fn is_over(&self) {
        *self.running() = None;
    }

    fn running(&self) -> MutexGuard<'_, Option<(JobId, Busy)>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use uuid::Uuid;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_rests_once_the_last_job_has_ended_for_a_while() {
        let activity = Activity::default();
        let (one, other) = (Work::of(&activity), Work::of(&activity));
        let [first, second] = [1, 2].map(|number| JobId::from_uuid(Uuid::from_u128(number)));
        one.begins(first);
        other.begins(second);
        let mut rest = Box::pin(activity.rests_for(Duration::from_secs(2)));
        one.ends(second);
        one.hears(&RunnerNotice::CommTaken { job: first });
        sleep(Duration::from_secs(9)).await;
        assert_eq!(rest.as_mut().now_or_never(), None);
        other.is_over();
        sleep(Duration::from_secs(1)).await;
        assert_eq!(rest.as_mut().now_or_never(), None);
        // What is over at once still begins the time anew.
        drop(activity.begins());
        sleep(Duration::from_secs(1)).await;
        assert_eq!(rest.as_mut().now_or_never(), None);
        rest.await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_build_that_goes_on_is_told_from_a_short_one_and_from_other_jobs() {
        let activity = Activity::default();
        let (one, other) = (Work::of(&activity), Work::of(&activity));
        let [first, second] = [1, 2].map(|number| JobId::from_uuid(Uuid::from_u128(number)));
        let mut long = Box::pin(activity.builds_for(Duration::from_secs(2)));
        other.begins(second);
        assert_eq!(long.as_mut().now_or_never(), None);
        sleep(Duration::from_secs(9)).await;
        one.builds(first);
        assert_eq!(long.as_mut().now_or_never(), None);
        sleep(Duration::from_secs(1)).await;
        one.ends(first);
        assert_eq!(long.as_mut().now_or_never(), None);
        one.builds(second);
        let began = tokio::time::Instant::now();
        long.await;
        assert_eq!(began.elapsed(), Duration::from_secs(2));
    }

    #[tokio::test(start_paused = true)]
    async fn what_runs_for_a_minute_while_nothing_else_happens_is_no_longer_waited_for() {
        let activity = Activity::default();
        let _server = activity.begins();
        let mut rest = Box::pin(activity.rests_for(Duration::from_secs(2)));
        assert_eq!(rest.as_mut().now_or_never(), None);
        sleep(Duration::from_secs(50)).await;
        drop(activity.begins());
        sleep(Duration::from_secs(50)).await;
        assert_eq!(rest.as_mut().now_or_never(), None);
        rest.await;
    }
}
