//! A kernel whose code is a list of steps, as JSON. What people answer to its asks is its value.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use mainstay_model::{
    AskId, Capabilities, Diagnostic, Display, Error, EvalResult, JobEnding, JobId, JobReport, OutputStream,
    Question, RaisedError, RunnerInfo, RunnerNotice, SessionKind, TextPosition,
};
use mainstay_runner::query::{KernelAnswer, KernelQuery};
use mainstay_runner::{
    AskAnswer, Completions, Kernel, Process, ResourceUsage, Runner, RunnerFactory, RunnerSpec, StartObserver,
    StartedRunner, Submission,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{Notify, mpsc, oneshot};
use uuid::Uuid;

/// One step of the scripted kernel.
#[derive(Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Step {
    /// Print a text to standard output.
    Print(String),
    /// Shows something, by MIME type.
    Show(Value),
    /// Asks all of this at once, and waits for every answer.
    Ask(Vec<Question>),
    /// Takes so many milliseconds.
    Take(u64),
    /// Raise an exception with this message.
    Raise(String),
}

/// Code that takes these steps.
pub(crate) fn code(steps: &[Step]) -> String {
    serde_json::to_string(steps).unwrap()
}

pub(crate) struct Steps;

#[async_trait]
impl RunnerFactory for Steps {
    fn serves(&self, kind: &SessionKind) -> bool {
        kind.is_fsharp()
    }

    fn capabilities(&self, kind: &SessionKind) -> Capabilities {
        Capabilities::of_kind(kind)
    }

    async fn start(&self, _: RunnerSpec, _observer: StartObserver) -> Result<StartedRunner, Error> {
        let (notices_in, notices) = mpsc::channel(16);
        let worker = Worker { notices: notices_in, interrupted: Notify::new(), asked: Mutex::default() };
        Ok(StartedRunner::new(Runner::Kernel(Arc::new(Handle(Arc::new(worker)))), notices))
    }
}

struct Handle(Arc<Worker>);

struct Worker {
    notices: mpsc::Sender<RunnerNotice>,
    interrupted: Notify,
    asked: Mutex<HashMap<AskId, oneshot::Sender<Value>>>,
}

#[async_trait]
impl Process for Handle {
    fn info(&self) -> RunnerInfo {
        RunnerInfo {
            kernel: "steps".to_owned(),
            runtime: "none".to_owned(),
            language: None,
            pid: Some(4711),
            references: None,
            startup: None,
        }
    }

    async fn answer(&self, AskAnswer { ask, answer, .. }: AskAnswer) {
        let asked = self.0.asked.lock().unwrap_or_else(PoisonError::into_inner).remove(&ask);
        if let Some(asked) = asked {
            asked.send(answer.unwrap_or_default()).ok();
        }
    }

    async fn interrupt(&self) {
        self.0.interrupted.notify_one();
    }

    fn kill(&self) {}

    fn usage(&self) -> Option<ResourceUsage> {
        None
    }
}

#[async_trait]
impl Kernel for Handle {
    async fn run(&self, submission: Submission) {
        let worker = Arc::clone(&self.0);
        tokio::spawn(async move { worker.run(submission).await });
    }

    async fn build(&self, _: JobId) {}

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
        Err(Error::KernelUnavailable { reason: "steps have no values".to_owned() })
    }
}

impl Worker {
    async fn run(&self, Submission { job, code, .. }: Submission) {
        let (ending, result) = tokio::select! {
            taken = self.take(job, &code) => taken,
            () = self.interrupted.notified() => (JobEnding::Interrupted { kept: 0 }, EvalResult::default()),
        };
        let took = Duration::from_millis(1);
        let report = JobReport { ending, result, changes_state: false, took, references: None };
        self.tell(RunnerNotice::Finished { job, report }).await;
    }

    async fn take(&self, job: JobId, code: &str) -> (JobEnding, EvalResult) {
        let steps: Vec<Step> = serde_json::from_str(code).unwrap();
        let mut answers = Vec::new();
        for step in steps {
            match step {
                Step::Print(text) => {
                    let text = format!("{text}\n");
                    self.tell(RunnerNotice::Output { job: Some(job), stream: OutputStream::Stdout, text })
                        .await;
                }
                Step::Show(data) => {
                    let data = serde_json::from_value(data).unwrap();
                    let display = Box::new(Display {
                        id: None,
                        is_value: false,
                        is_update: false,
                        is_in_place: false,
                        data,
                    });
                    self.tell(RunnerNotice::Display { job: Some(job), display }).await;
                }
                Step::Ask(questions) => {
                    answers.extend(
                        join_all(questions.into_iter().map(|question| self.ask(job, question))).await,
                    );
                }
                Step::Take(milliseconds) => tokio::time::sleep(Duration::from_millis(milliseconds)).await,
                Step::Raise(message) => {
                    let error = RaisedError {
                        kind: "System.Exception".to_owned(),
                        message,
                        stack: None,
                        coloured_stack: None,
                    };
                    return (JobEnding::Raised(error), EvalResult::default());
                }
            }
        }
        let value = (!answers.is_empty()).then(|| Value::from(answers).to_string());
        let value_type = value.as_ref().map(|_| "answers".to_owned());
        (JobEnding::Completed, EvalResult { value, value_type, ..EvalResult::default() })
    }

    async fn ask(&self, job: JobId, question: Question) -> Value {
        let ask = AskId::from_uuid(Uuid::now_v7());
        let (asked, answer) = oneshot::channel();
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(ask, asked);
        self.tell(RunnerNotice::Asks { job, ask, question, timeout_ms: None }).await;
        answer.await.unwrap_or_default()
    }

    async fn tell(&self, notice: RunnerNotice) {
        self.notices.send(notice).await.ok();
    }
}
