//! Building a session's project, while its worker goes on as it is.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use mainstay_model::{BuildReport, JobId, OutputStream, RunnerNotice};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// Something that can build a project.
#[async_trait]
pub trait Builder: Send + Sync {
    /// Builds it; `say` is told each line that is printed meanwhile. Dropping the future ends the build, and all that it started.
    async fn build(&self, say: &(dyn Fn(String) + Send + Sync)) -> BuildReport;
}

/// The builds of one worker's session: one at a time.
pub(crate) struct Building {
    builder: Option<Arc<dyn Builder>>,
    /// They end with the worker, whoever still holds this.
    notices: mpsc::WeakSender<RunnerNotice>,
    running: Mutex<Option<(JobId, AbortHandle)>>,
}

impl Building {
    pub(crate) fn new(builder: Option<Arc<dyn Builder>>, notices: &mpsc::Sender<RunnerNotice>) -> Self {
        Self { builder, notices: notices.downgrade(), running: Mutex::default() }
    }

    /// Begins a build for a job.
    pub(crate) async fn begin(&self, job: JobId) {
        // Where the worker is gone, its end ends the job.
        let Some(notices) = self.notices.upgrade() else { return };
        let Some(builder) = self.builder.clone() else {
            return tell_end(&notices, job, "there is nothing to build here".to_owned()).await;
        };
        let task = tokio::spawn(build(builder, job, notices));
        *self.lock() = Some((job, task.abort_handle()));
    }

    /// Ends the build that goes on, if one does. Says whether one did.
    pub(crate) async fn interrupt(&self) -> bool {
        let running = self.lock().take_if(|(_, task)| !task.is_finished());
        let Some((job, task)) = running else { return false };
        task.abort();
        // Where the build has ended meanwhile, that was said before, and this is not heard.
        if let Some(notices) = self.notices.upgrade() {
            tell_end(&notices, job, "it was interrupted".to_owned()).await;
        }
        true
    }

    /// Ends the build without a word.
    pub(crate) fn kill(&self) {
        if let Some((_, task)) = self.lock().take() {
            task.abort();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<(JobId, AbortHandle)>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn build(builder: Arc<dyn Builder>, job: JobId, notices: mpsc::Sender<RunnerNotice>) {
    let (lines_in, mut lines) = mpsc::unbounded_channel();
    let say = move |line: String| {
        // Who listens is there as long as the build is.
        lines_in.send(line).ok();
    };
    let printed = |mut line: String| {
        line.push('\n');
        RunnerNotice::Output { job: Some(job), stream: OutputStream::Stdout, text: line }
    };
    let report = {
        let building = builder.build(&say);
        tokio::pin!(building);
        loop {
            tokio::select! {
                biased;
                Some(line) = lines.recv() => { notices.send(printed(line)).await.ok(); }
                report = &mut building => break report,
            }
        }
    };
    while let Ok(line) = lines.try_recv() {
        notices.send(printed(line)).await.ok();
    }
    // Nobody listens any more once the session has dropped its worker.
    notices.send(RunnerNotice::Built { job, report }).await.ok();
}

async fn tell_end(notices: &mpsc::Sender<RunnerNotice>, job: JobId, reason: String) {
    let report = BuildReport { built: Err(reason), diagnostics: Vec::new(), by_warm_compiler: false };
    notices.send(RunnerNotice::Built { job, report }).await.ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> JobId {
        JobId::from_uuid(uuid::Uuid::now_v7())
    }

    /// Says a line; then ends, or never does.
    struct Scripted {
        ends: bool,
    }

    #[async_trait]
    impl Builder for Scripted {
        async fn build(&self, say: &(dyn Fn(String) + Send + Sync)) -> BuildReport {
            say("compiling".to_owned());
            if !self.ends {
                std::future::pending::<()>().await;
            }
            BuildReport { built: Ok(()), diagnostics: Vec::new(), by_warm_compiler: false }
        }
    }

    type Channel = (Building, mpsc::Sender<RunnerNotice>, mpsc::Receiver<RunnerNotice>);

    fn building(ends: bool) -> Channel {
        let (notices_in, notices) = mpsc::channel(8);
        (Building::new(Some(Arc::new(Scripted { ends })), &notices_in), notices_in, notices)
    }

    #[tokio::test]
    async fn what_a_build_prints_comes_before_its_end() {
        let (building, _worker, mut notices) = building(true);
        let job = job();
        building.begin(job).await;
        let said = notices.recv().await.unwrap();
        assert!(
            matches!(said, RunnerNotice::Output { job: Some(of), text, .. } if of == job && text == "compiling\n")
        );
        let ended = notices.recv().await.unwrap();
        assert!(
            matches!(ended, RunnerNotice::Built { job: of, report } if of == job && report.built.is_ok())
        );
        assert!(!building.interrupt().await, "nothing is left to end");
    }

    #[tokio::test]
    async fn a_build_that_is_interrupted_ends_once() {
        let (building, worker, mut notices) = building(false);
        building.begin(job()).await;
        assert!(matches!(notices.recv().await.unwrap(), RunnerNotice::Output { .. }));
        assert!(building.interrupt().await);
        let ended = notices.recv().await.unwrap();
        assert!(matches!(ended, RunnerNotice::Built { report, .. } if report.built.is_err()));
        drop(worker);
        assert_eq!(notices.recv().await, None);
    }
}
