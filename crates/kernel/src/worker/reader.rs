//! Reading all that comes from a worker, its channel and both pipes, in one task.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use mainstay_model::{Blame, Display, DisplayId, JobId, LastWords, OutputStream, RunnerNotice};
use mainstay_os::output_pipe::OutputPipe;
use mainstay_os::process::Group;
use tokio::process::{Child, ChildStderr, ChildStdout};
use tokio::sync::mpsc;

use super::calls::{Calls, SharedOutgoing, send};
use super::report::{report, unserved};
use crate::channel::Incoming;
use crate::fsharp::DebuggerPipes;
use crate::overflow::OverflowFilter;
use crate::protocol::{FailureCode, FromWorker, ToWorker, WorkerResult, decode};
use crate::runner_process::exit_of;
use crate::startup_context::StartupContext;

/// How long a process may live on after it closed its channel.
const EXIT_GRACE: Duration = Duration::from_secs(2);

/// Reads all that comes from a worker, until it is gone.
pub(super) struct Reader {
    pub(super) incoming: Incoming,
    pub(super) outgoing: SharedOutgoing,
    pub(super) stdout: OutputPipe<ChildStdout>,
    pub(super) stderr: OutputPipe<ChildStderr>,
    pub(super) child: Child,
    pub(super) group: Group,
    pub(super) calls: Arc<Calls>,
    pub(super) beginning: Arc<StartupContext>,
    pub(super) notices: mpsc::Sender<RunnerNotice>,
    pub(super) last_words: Option<LastWords>,
    pub(super) overflows: OverflowFilter,
    /// None once they are removed.
    pub(super) pipes: Option<DebuggerPipes>,
}

impl Reader {
    /// Reads until the worker is gone.
    pub(super) async fn run(mut self) {
        loop {
            tokio::select! {
                frame = self.incoming.next() => match frame {
                    Some(Ok(frame)) => self.on_frame(&frame).await,
                    Some(Err(_)) | None => break,
                },
                text = self.stdout.next(), if self.stdout.is_open => self.output(OutputStream::Stdout, text).await,
                text = self.stderr.next(), if self.stderr.is_open => {
                    let text = self.overflows.shorten(text);
                    self.output(OutputStream::Stderr, text).await;
                }
            }
        }
        self.end().await;
    }

    async fn on_frame(&mut self, frame: &[u8]) {
        match decode(frame) {
            Ok(FromWorker::Result(result)) => self.on_result(result).await,
            Ok(FromWorker::Failed { id: Some(id), code, message }) => match self.calls.end_job(id) {
                Some(job) => self.on_unserved(job, code, message).await,
                None => self.calls.answer(id, FromWorker::Failed { id: Some(id), code, message }),
            },
            Ok(FromWorker::Ending { job, reason, diagnostics }) => {
                let blame = Blame { job, is_sure: true };
                self.last_words = Some(LastWords { blame, reason, diagnostics });
            }
            Ok(FromWorker::Asks { ask, job, question, timeout_ms }) => {
                // What was printed before it explains what is asked.
                self.drain_pipes().await;
                self.tell(RunnerNotice::Asks { job, ask, question, timeout_ms }).await;
            }
            Ok(FromWorker::Output { job, stream, text }) => {
                self.tell(RunnerNotice::Output { job: Some(job), stream, text }).await;
            }
            Ok(FromWorker::Display { job, mark, name, is_value, data }) => {
                self.drain_pipes().await;
                // What cannot be a name names nothing.
                let id = name.and_then(|name| DisplayId::new(name).ok());
                let job = job.or_else(|| self.calls.running().map(|(_, job)| job));
                let display = Box::new(Display { id, is_value, is_update: false, is_in_place: false, data });
                self.tell(RunnerNotice::Display { job, display }).await;
                self.acknowledge(mark).await;
            }
            Ok(FromWorker::Application { notice }) => {
                self.drain_pipes().await;
                self.tell(RunnerNotice::Application(notice)).await;
            }
            Ok(message) => match message.answers() {
                Some(id) => self.calls.answer(id, message),
                None => tracing::debug!(?message, "a worker says"),
            },
            Err(error) => {
                tracing::error!(%error, "a worker is killed");
                self.group.kill();
            }
        }
    }

    /// What is printed from now on comes behind what was shown.
    async fn acknowledge(&self, mark: Option<u64>) {
        let Some(mark) = mark else { return };
        let id = self.calls.next_id();
        if let Err(error) = send(&self.outgoing, &ToWorker::Displayed { id, mark }).await {
            tracing::warn!(%error, "a worker cannot be told that what it showed has arrived");
        }
    }

    async fn on_result(&mut self, result: WorkerResult) {
        self.drain_pipes().await;
        if let Some(job) = self.calls.end_job(result.id) {
            let report = report(result, &self.beginning);
            self.tell(RunnerNotice::Finished { job, report }).await;
        }
    }

    /// A job the worker could not serve to its end.
    async fn on_unserved(&mut self, job: JobId, code: FailureCode, message: String) {
        self.drain_pipes().await;
        self.tell(RunnerNotice::Finished { job, report: unserved(code, message) }).await;
    }

    /// Passes on what stands in the pipes now; what is printed from now on is left there.
    async fn drain_pipes(&mut self) {
        let (stdout, stderr) = (self.stdout.drain(), self.stderr.drain());
        for text in stdout {
            self.output(OutputStream::Stdout, text).await;
        }
        for text in stderr {
            let text = self.overflows.shorten(text);
            self.output(OutputStream::Stderr, text).await;
        }
    }

    async fn output(&self, stream: OutputStream, text: String) {
        if !text.is_empty() {
            let job = self.calls.running().map(|(_, job)| job);
            self.tell(RunnerNotice::Output { job, stream, text }).await;
        }
    }

    async fn end(mut self) {
        self.calls.abandon();
        let exit = exit_of(self.group.ended(&mut self.child, EXIT_GRACE).await);
        self.pipes = None;
        self.drain_pipes().await;
        let last = self.overflows.finish();
        self.output(OutputStream::Stderr, last).await;
        self.tell(RunnerNotice::Exited { exit, last_words: self.last_words.clone() }).await;
    }

    async fn tell(&self, notice: RunnerNotice) {
        // Nobody listens any more once the session has dropped its worker.
        self.notices.send(notice).await.ok();
    }
}
