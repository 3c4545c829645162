//! A worker in memory: `loop` runs until it is interrupted, all other code ends at once.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use mainstay_model::{
    Capabilities, Diagnostic, Error, EvalResult, JobEnding, JobId, JobReport, RunnerInfo, RunnerNotice,
    SessionKind, TextPosition,
};
use shuttle::future::yield_now;
use tokio::sync::mpsc;

use mainstay_runner::query::{KernelAnswer, KernelQuery};
use mainstay_runner::{
    AskAnswer, Completions, Kernel, Process, ResourceUsage, Runner, RunnerFactory, RunnerSpec, StartObserver,
    StartedRunner, Submission,
};

/// Starts workers, and remembers what they ran.
#[derive(Default)]
pub(super) struct Workers {
    ran: Arc<Mutex<Vec<String>>>,
}

impl Workers {
    /// All code that any worker was given.
    pub(super) fn ran(&self) -> Vec<String> {
        self.ran.lock().unwrap().clone()
    }
}

#[async_trait]
impl RunnerFactory for Workers {
    fn serves(&self, _: &SessionKind) -> bool {
        true
    }

    fn capabilities(&self, kind: &SessionKind) -> Capabilities {
        Capabilities::of_kind(kind)
    }

    async fn start(&self, _: RunnerSpec, _observer: StartObserver) -> Result<StartedRunner, Error> {
        yield_now().await;
        let (say, notices) = mpsc::channel(4);
        let worker =
            Worker { ran: Arc::clone(&self.ran), say: Mutex::new(Some(say)), looping: Mutex::default() };
        Ok(StartedRunner::new(Runner::Kernel(Arc::new(worker)), notices))
    }
}

struct Worker {
    ran: Arc<Mutex<Vec<String>>>,
    /// None once it was killed.
    say: Mutex<Option<mpsc::Sender<RunnerNotice>>>,
    looping: Mutex<Option<JobId>>,
}

impl Worker {
    async fn finish(&self, job: JobId, ending: JobEnding) {
        let report = JobReport {
            ending,
            result: EvalResult::default(),
            changes_state: false,
            took: Duration::ZERO,
            references: None,
        };
        let say = self.say.lock().unwrap().clone();
        if let Some(say) = say {
            say.send(RunnerNotice::Finished { job, report }).await.ok();
        }
    }
}

#[async_trait]
impl Process for Worker {
    fn info(&self) -> RunnerInfo {
        RunnerInfo {
            kernel: "memory".to_owned(),
            runtime: "shuttle".to_owned(),
            language: None,
            pid: Some(1),
            references: None,
            startup: None,
        }
    }

    async fn answer(&self, _: AskAnswer) {
        unreachable!("nothing is asked here")
    }

    async fn interrupt(&self) {
        yield_now().await;
        let looping = self.looping.lock().unwrap().take();
        if let Some(job) = looping {
            self.finish(job, JobEnding::Interrupted { kept: 0 }).await;
        }
    }

    fn kill(&self) {
        self.say.lock().unwrap().take();
    }

    fn usage(&self) -> Option<ResourceUsage> {
        None
    }
}

#[async_trait]
impl Kernel for Worker {
    async fn run(&self, submission: Submission) {
        yield_now().await;
        let Submission { job, code, .. } = submission;
        self.ran.lock().unwrap().push(code.clone());
        if code == "loop" {
            *self.looping.lock().unwrap() = Some(job);
        } else {
            self.finish(job, JobEnding::Completed).await;
        }
    }

    async fn build(&self, _job: JobId) {}

    async fn reset(&self) -> Result<RunnerInfo, Error> {
        Ok(self.info())
    }

    async fn check(&self, _: String, _: Option<String>) -> Result<Vec<Diagnostic>, Error> {
        Ok(Vec::new())
    }

    async fn complete(&self, _: String, _: TextPosition) -> Result<Completions, Error> {
        Ok(Completions::default())
    }

    async fn query(&self, _: KernelQuery) -> Result<KernelAnswer, Error> {
        Ok(KernelAnswer::Values(Vec::new()))
    }
}
