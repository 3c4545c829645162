//! A worker that prints at a steady pace: `EVENTS MICROSECONDS`.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mainstay_model::{
    Capabilities, Diagnostic, Error, EvalResult, JobEnding, JobReport, OutputStream, RunnerInfo,
    RunnerNotice, SessionKind, TextPosition,
};
use mainstay_runner::query::{KernelAnswer, KernelQuery};
use mainstay_runner::{
    AskAnswer, Completions, Kernel, Process, ResourceUsage, Runner, RunnerFactory, RunnerSpec, StartObserver,
    StartedRunner, Submission,
};
use tokio::sync::mpsc;

pub(crate) struct Printers;

struct Printer(mpsc::Sender<RunnerNotice>);

#[async_trait]
impl RunnerFactory for Printers {
    fn serves(&self, kind: &SessionKind) -> bool {
        *kind == SessionKind::fsharp()
    }

    fn capabilities(&self, kind: &SessionKind) -> Capabilities {
        Capabilities::of_kind(kind)
    }

    async fn start(&self, _: RunnerSpec, _observer: StartObserver) -> Result<StartedRunner, Error> {
        let (say, notices) = mpsc::channel(64);
        Ok(StartedRunner::new(Runner::Kernel(Arc::new(Printer(say))), notices))
    }
}

#[async_trait]
impl Process for Printer {
    fn info(&self) -> RunnerInfo {
        RunnerInfo {
            kernel: "printer".to_owned(),
            runtime: "bench".to_owned(),
            language: None,
            pid: Some(1),
            references: None,
            startup: None,
        }
    }

    async fn answer(&self, _: AskAnswer) {}

    async fn interrupt(&self) {}

    fn kill(&self) {}

    fn usage(&self) -> Option<ResourceUsage> {
        None
    }
}

#[async_trait]
impl Kernel for Printer {
    async fn run(&self, submission: Submission) {
        let say = self.0.clone();
        tokio::spawn(async move {
            let numbers: Vec<u64> = submission.code.split(' ').map(|n| n.parse().unwrap()).collect();
            let [events, micros] = numbers.as_slice() else { panic!("{}", submission.code) };
            let job = submission.job;
            let mut pace = tokio::time::interval(Duration::from_micros((*micros).max(1)));
            for number in 0..*events {
                pace.tick().await;
                // The engine joins what is printed to one stream; so each of these is an event of its own.
                let stream = if number % 2 == 0 { OutputStream::Stdout } else { OutputStream::Stderr };
                let text = format!("line {number} of what a session prints while its code runs\n");
                say.send(RunnerNotice::Output { job: Some(job), stream, text }).await.ok();
            }
            let report = JobReport {
                ending: JobEnding::Completed,
                result: EvalResult::default(),
                changes_state: false,
                took: Duration::from_millis(1),
                references: None,
            };
            say.send(RunnerNotice::Finished { job, report }).await.ok();
        });
    }

    async fn build(&self, _job: mainstay_model::JobId) {}

    async fn reset(&self) -> Result<RunnerInfo, Error> {
        Ok(self.info())
    }

    async fn check(&self, _: String, _: Option<String>) -> Result<Vec<Diagnostic>, Error> {
        Ok(Vec::new())
    }

    async fn complete(&self, _: String, _: TextPosition) -> Result<Completions, Error> {
        Ok(Completions { items: Vec::new(), start: None })
    }

    async fn query(&self, _: KernelQuery) -> Result<KernelAnswer, Error> {
        Ok(KernelAnswer::Values(Vec::new()))
    }
}
