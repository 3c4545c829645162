//! A runner in a shim, as the engine has it: what it is told is sent to the shim, in order; what it says comes as notices.

mod link;
mod reader;

use std::sync::Arc;

use async_trait::async_trait;
use mainstay_model::reload::Description;
use mainstay_model::replay::Snapshot;
use mainstay_model::{
    AskId, CommMessage, Diagnostic, Error, JobId, JobSpec, NoticeNumber, QueuedPrompt, RunnerInfo, Seq, Swap,
    TextPosition,
};
use mainstay_runner::query::{KernelAnswer, KernelQuery};
use mainstay_runner::{
    Agent, AgentQuestion, AskAnswer, CodeText, Completions, Kernel, Process, ResourceUsage, Runner,
    StartedRunner, Submission, Upcoming,
};
use rustix::process::Pid;
use serde_json::Value;

pub(crate) use self::link::{Link, ShimProcess};
pub(crate) use self::reader::read;
use crate::activity::Activity;
use crate::messages::{RunnerDescription, ShimAnswer, ShimQuestion, ToShim};
use crate::stream::{Incoming, Outgoing};

/// A runner whose shim has just said what it is, and tells its notices from the one of this number on.
pub(crate) fn started(
    runner: RunnerDescription,
    next: NoticeNumber,
    process: ShimProcess,
    incoming: Incoming,
    outgoing: Outgoing,
    activity: &Activity,
) -> StartedRunner {
    let RunnerDescription { id, is_agent, pauses, info } = runner;
    let (link, notices) = Link::new(info, process, incoming, outgoing, activity);
    let proxy = Arc::new(Proxy { link, pauses });
    let runner = if is_agent { Runner::Agent(proxy) } else { Runner::Kernel(proxy) };
    StartedRunner { id, runner, next, notices }
}

/// A runner in a shim. When the last handle of it is dropped the connection closes, and the runner goes on.
struct Proxy {
    link: Link,
    /// Whether its shim takes the order to pause: one of an earlier version does not.
    pauses: bool,
}

fn beside_the_point<T>(_: ShimAnswer) -> Result<T, Error> {
    Err(Error::WorkerFailed { reason: "its shim answered something else than it was asked".to_owned() })
}

#[async_trait]
impl Process for Proxy {
    fn info(&self) -> RunnerInfo {
        self.link.info()
    }

    async fn answer(&self, answer: AskAnswer) {
        self.link.tell(&ToShim::Answer { answer });
    }

    async fn interrupt(&self) {
        self.link.tell(&ToShim::Interrupt { job: self.link.last_job() });
    }

    fn acknowledge(&self, up_to: NoticeNumber, stored: Seq) {
        self.link.tell(&ToShim::Acknowledge { up_to, stored });
    }

    fn outlives_daemon(&self) -> bool {
        true
    }

    fn kill(&self) {
        self.link.kill();
    }

    fn usage(&self) -> Option<ResourceUsage> {
        let pid = self.link.info().pid.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw)?;
        let used = mainstay_os::system::usage_of(pid)?;
        Some(ResourceUsage { resident_bytes: used.resident_bytes, cpu_ms: used.cpu_ms })
    }
}

#[async_trait]
impl Kernel for Proxy {
    async fn run(&self, submission: Submission) {
        self.link.begin(submission.job, &ToShim::Run { submission });
    }

    async fn expect(&self, upcoming: Vec<Upcoming>) {
        self.link.tell(&ToShim::Expect { upcoming });
    }

    async fn describe(&self, codes: Vec<CodeText>) -> Result<Option<Vec<Description>>, Error> {
        match self.link.ask(ShimQuestion::Describe { codes }).await? {
            ShimAnswer::Described(descriptions) => Ok(descriptions),
            other => beside_the_point(other),
        }
    }

    async fn swap(&self, files: Vec<String>) -> Result<Option<Swap>, Error> {
        match self.link.ask(ShimQuestion::Swap { files }).await? {
            ShimAnswer::Swapped(swap) => Ok(swap),
            other => beside_the_point(other),
        }
    }

    async fn build(&self, job: JobId) {
        self.link.build(job);
    }

    async fn take_comm(&self, job: JobId, message: CommMessage) {
        self.link.begin(job, &ToShim::TakeComm { job, message: Box::new(message) });
    }

    async fn reset(&self) -> Result<RunnerInfo, Error> {
        match self.link.ask(ShimQuestion::Reset).await? {
            ShimAnswer::Reset(info) => {
                self.link.keep_info(info.clone());
                Ok(info)
            }
            other => beside_the_point(other),
        }
    }

    async fn snapshot(&self) -> Result<Option<Snapshot>, Error> {
        match self.link.ask(ShimQuestion::Snapshot).await? {
            ShimAnswer::Snapshot(snapshot) => Ok(snapshot),
            other => beside_the_point(other),
        }
    }

    async fn forget_snapshot(&self) -> Result<(), Error> {
        match self.link.ask(ShimQuestion::ForgetSnapshot).await? {
            ShimAnswer::SnapshotForgotten => Ok(()),
            other => beside_the_point(other),
        }
    }

    async fn restore(&self) -> Result<(), Error> {
        match self.link.ask(ShimQuestion::Restore).await? {
            ShimAnswer::Restored => Ok(()),
            other => beside_the_point(other),
        }
    }

    async fn check(&self, code: String, file: Option<String>) -> Result<Vec<Diagnostic>, Error> {
        match self.link.ask(ShimQuestion::Check { code, file }).await? {
            ShimAnswer::Checked(diagnostics) => Ok(diagnostics),
            other => beside_the_point(other),
        }
    }

    async fn complete(&self, code: String, cursor: TextPosition) -> Result<Completions, Error> {
        match self.link.ask(ShimQuestion::Complete { code, cursor }).await? {
            ShimAnswer::Completed(completions) => Ok(completions),
            other => beside_the_point(other),
        }
    }

    async fn query(&self, query: KernelQuery) -> Result<KernelAnswer, Error> {
        match self.link.ask(ShimQuestion::Query { query }).await? {
            ShimAnswer::Queried(answer) => Ok(answer),
            other => beside_the_point(other),
        }
    }
}

#[async_trait]
impl Agent for Proxy {
    async fn work(&self, job: JobId, work: JobSpec, is_bounded: bool) {
        self.link.begin(job, &ToShim::Work { job, work, is_bounded });
    }

    async fn steer(&self, queued: QueuedPrompt, requested: Seq) {
        self.link.tell(&ToShim::Steer { queued, requested });
    }

    async fn pause(&self, job: JobId, ask: AskId) {
        self.link.tell(&ToShim::Pause { job, ask });
    }

    fn pauses(&self) -> bool {
        self.pauses
    }

    async fn tell(&self, question: AgentQuestion) -> Result<Value, Error> {
        match self.link.ask(ShimQuestion::Tell { question }).await? {
            ShimAnswer::Told(answer) => Ok(answer),
            other => beside_the_point(other),
        }
    }
}
