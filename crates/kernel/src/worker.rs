//! A live worker as the engine sees it: requests out, answers and output in, and its end.
//!
//! One task reads the channel and both pipes. A job's end is passed on only after what stood in the pipes when it came, so
//! that all the job printed comes before it.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::{SinkExt, StreamExt};
use mainstay_model::LastWords;
use mainstay_model::reload::Description;
use mainstay_model::{
    AskId, Blame, Bundle, CommandLine, Diagnostic, Display, DisplayId, Error, EvalResult, JobEnding, JobId,
    JobReport, OutputStream, RaisedError, RunnerInfo, RunnerNotice, TextPosition,
};
use mainstay_runner::query::{Completeness, KernelAnswer, KernelQuery};
use mainstay_runner::{
    CodeText, Completions, Kernel, Process, ResourceUsage, Runner, StartedRunner, Submission, Upcoming,
};
use serde_json::Value;
use tokio::process::{Child, ChildStderr, ChildStdout};
use tokio::sync::{mpsc, oneshot};

use crate::building::{Builder, Building};
use crate::channel::{HELLO_ID, Incoming, Outgoing, WorkerListener, greet, kernel_name};
use crate::fsharp::inspection::{CANDIDATES, members_text, name_at, symbol_text};
use crate::fsharp::{indentation, needs_more};
use crate::overflow::OverflowFilter;
use crate::protocol::{
    ADDRESS_VARIABLE, FailureCode, FromWorker, TOKEN_VARIABLE, ToWorker, WorkerOutcome, WorkerResult, decode,
    encode,
};
use crate::runner_process::{self, died_early, exit_of, unavailable};
use crate::startup_context::{ReadyMessage, StartupContext};
use mainstay_os::output_pipe::OutputPipe;
use mainstay_os::process::{Group, Launch, Unready, last_words, start};

/// Notices on their way to the session; then the pipes fill up and the code that prints waits.
const NOTICES: usize = 64;
/// How long a process may live on after it closed its channel.
const LAST_BREATH: Duration = Duration::from_secs(2);

/// Starts a worker and waits until it accepts code. Its socket is made in `socket_folder`, which must be the user's alone. Who builds the
/// session's project is `builder`.
///
/// # Errors
/// [`Error::KernelUnavailable`] where the program does not start, [`Error::WorkerFailed`] where it does not get ready.
pub async fn launch(
    launch: &Launch,
    beginning: StartupContext,
    builder: Option<Arc<dyn Builder>>,
    socket_folder: &Path,
) -> Result<StartedRunner, Error> {
    let door = WorkerListener::open(socket_folder)?;
    let address = door.address();
    let channel = [(ADDRESS_VARIABLE, address.as_str()), (TOKEN_VARIABLE, door.token())];
    let (mut child, group) =
        start(launch, &beginning.working_directory, &channel, Stdio::null()).map_err(unavailable)?;
    let unready = Unready::new(&group);
    let (mut incoming, mut outgoing) = tokio::select! {
        accepted = door.accept() => accepted?,
        status = child.wait() => return Err(died_early(exit_of(status), &last_words(child))),
    };
    drop(door);
    let info = greet(&mut incoming, &mut outgoing, &beginning).await?;
    unready.is_ready();
    let (notices_in, notices) = mpsc::channel(NOTICES);
    let calls = Arc::new(Calls::default());
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(Error::WorkerFailed { reason: "its output is not captured".to_owned() });
    };
    let outgoing = Arc::new(tokio::sync::Mutex::new(outgoing));
    let beginning = Arc::new(beginning);
    let building = Building::new(builder, &notices_in);
    let reader = Reader {
        incoming,
        outgoing: Arc::clone(&outgoing),
        stdout: OutputPipe::new(stdout),
        stderr: OutputPipe::new(stderr),
        child,
        group: group.clone(),
        calls: Arc::clone(&calls),
        beginning: Arc::clone(&beginning),
        notices: notices_in,
        last_words: None,
        overflows: OverflowFilter::default(),
    };
    tokio::spawn(reader.run());
    let worker = Worker { info, outgoing, calls, beginning, building, group };
    Ok(StartedRunner { runner: Runner::Kernel(Arc::new(worker)), notices })
}

/// What was asked and is not answered yet.
#[derive(Default)]
struct Calls {
    last: AtomicU64,
    queries: Mutex<HashMap<u64, oneshot::Sender<FromWorker>>>,
    running: Mutex<Option<(u64, JobId)>>,
}

impl Calls {
    fn next_id(&self) -> u64 {
        HELLO_ID + 1 + self.last.fetch_add(1, Ordering::Relaxed)
    }

    fn expect(&self, id: u64) -> oneshot::Receiver<FromWorker> {
        let (answer, receiver) = oneshot::channel();
        self.queries.lock().unwrap_or_else(PoisonError::into_inner).insert(id, answer);
        receiver
    }

    fn answer(&self, id: u64, message: FromWorker) {
        let waiting = self.queries.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        if let Some(waiting) = waiting {
            // Who asked may have given up.
            waiting.send(message).ok();
        }
    }

    fn abandon(&self) {
        self.queries.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The request and the job of the eval that has no result yet.
    fn running(&self) -> Option<(u64, JobId)> {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end_job(&self, id: u64) -> Option<JobId> {
        self.running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take_if(|(running, _)| *running == id)
            .map(|(_, job)| job)
    }
}

/// Frames to the worker, from whoever has something to say.
type SharedOutgoing = Arc<tokio::sync::Mutex<Outgoing>>;

async fn send(outgoing: &SharedOutgoing, message: &ToWorker) -> Result<(), Error> {
    let frame = encode(message)?;
    let sent = outgoing.lock().await.send(frame).await;
    sent.map_err(|error| Error::WorkerFailed { reason: format!("it takes no more requests: {error}") })
}

struct Worker {
    info: RunnerInfo,
    outgoing: SharedOutgoing,
    calls: Arc<Calls>,
    beginning: Arc<StartupContext>,
    building: Building,
    group: Group,
}

impl Worker {
    async fn send(&self, message: &ToWorker) -> Result<(), Error> {
        send(&self.outgoing, message).await
    }

    async fn ask(&self, request: impl FnOnce(u64) -> ToWorker + Send) -> Result<FromWorker, Error> {
        let id = self.calls.next_id();
        let answer = self.calls.expect(id);
        self.send(&request(id)).await?;
        match answer.await {
            Ok(FromWorker::Failed { code, message, .. }) => Err(refused(code, message)),
            Ok(message) => Ok(message),
            Err(_) => Err(Error::WorkerFailed { reason: "it ended before it answered".to_owned() }),
        }
    }
}

fn refused(code: FailureCode, message: String) -> Error {
    match code {
        FailureCode::NotFound => Error::InvalidArgument { argument: "name".to_owned(), reason: message },
        FailureCode::BadRequest | FailureCode::Busy | FailureCode::Internal => {
            Error::WorkerFailed { reason: message }
        }
    }
}

fn unexpected(message: &FromWorker) -> Error {
    Error::WorkerFailed { reason: format!("it gave another answer than asked for: {message:?}") }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

#[async_trait]
impl Process for Worker {
    fn info(&self) -> RunnerInfo {
        self.info.clone()
    }

    async fn answer(&self, ask: AskId, answer: Result<Value, Error>) {
        let (value, refused) = match answer {
            Ok(value) => (Some(value), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let id = self.calls.next_id();
        if let Err(error) = self.send(&ToWorker::Answer { id, ask, value, refused }).await {
            tracing::warn!(%error, "an answer could not be sent");
        }
    }

    async fn interrupt(&self) {
        if self.building.interrupt().await {
            return;
        }
        if let Some((eval, _)) = self.calls.running() {
            // A worker that cannot be asked is killed when its grace ends.
            self.ask(|id| ToWorker::Interrupt { id, eval }).await.ok();
        }
    }

    fn kill(&self) {
        self.building.kill();
        self.group.kill();
    }

    fn usage(&self) -> Option<ResourceUsage> {
        runner_process::usage(&self.group)
    }
}

#[async_trait]
impl Kernel for Worker {
    async fn run(&self, submission: Submission) {
        let Submission { job, code, file, command_line, is_withheld } = submission;
        let command_line = command_line.map(CommandLine::into_words).unwrap_or_default();
        let id = self.calls.next_id();
        *self.calls.running.lock().unwrap_or_else(PoisonError::into_inner) = Some((id, job));
        if let Err(error) =
            self.send(&ToWorker::Eval { id, job, code, file, command_line, is_withheld }).await
        {
            // The reader notices the end of the channel as well, and says so.
            tracing::warn!(%error, "a job could not be sent");
            self.kill();
        }
    }

    async fn expect(&self, upcoming: Vec<Upcoming>) {
        let id = self.calls.next_id();
        if let Err(error) = self.send(&ToWorker::Upcoming { id, evals: upcoming }).await {
            tracing::warn!(%error, "a worker cannot be told what a replay goes on with");
        }
    }

    async fn describe(&self, codes: Vec<CodeText>) -> Result<Option<Vec<Description>>, Error> {
        match self.ask(|id| ToWorker::Describe { id, codes }).await? {
            FromWorker::Descriptions { descriptions, .. } => Ok(Some(descriptions)),
            other => Err(unexpected(&other)),
        }
    }

    async fn build(&self, job: JobId) {
        self.building.begin(job).await;
    }

    async fn reset(&self) -> Result<RunnerInfo, Error> {
        match self.ask(|id| ToWorker::Reset { id }).await? {
            FromWorker::Ready { kernel, version, runtime, pid, environment, startup, .. } => {
                let kernel = kernel_name(&kernel, &version);
                Ok(self.beginning.info(ReadyMessage { kernel, runtime, pid, environment, startup }))
            }
            other => Err(unexpected(&other)),
        }
    }

    async fn check(&self, code: String, file: Option<String>) -> Result<Vec<Diagnostic>, Error> {
        match self.ask(|id| ToWorker::Check { id, code, file }).await? {
            FromWorker::Diagnostics { diagnostics, .. } => Ok(diagnostics),
            other => Err(unexpected(&other)),
        }
    }

    async fn complete(&self, code: String, cursor: TextPosition) -> Result<Completions, Error> {
        let TextPosition { line, column } = cursor;
        match self.ask(|id| ToWorker::Complete { id, code, line, column }).await? {
            FromWorker::Completions { items, start, .. } => Ok(Completions { items, start: Some(start) }),
            other => Err(unexpected(&other)),
        }
    }

    async fn query(&self, query: KernelQuery) -> Result<KernelAnswer, Error> {
        match query {
            KernelQuery::Members { name } => self.told(|id| ToWorker::Explore { id, name }).await,
            KernelQuery::Symbols { text, limit } => {
                self.told(|id| ToWorker::Search { id, text, limit }).await
            }
            KernelQuery::Values => self.told(|id| ToWorker::Values { id }).await,
            KernelQuery::Tests { pattern, category } => {
                self.told(|id| ToWorker::Tests { id, pattern, category }).await
            }
            KernelQuery::Review { code } => self.told(|id| ToWorker::Review { id, code }).await,
            KernelQuery::Completeness { code } => {
                let indent = || " ".repeat(indentation(&code));
                Ok(KernelAnswer::Completeness(match needs_more(&code) {
                    true => Completeness::Incomplete { indent: indent() },
                    false => Completeness::Complete,
                }))
            }
            KernelQuery::Inspection { code, cursor, in_detail } => {
                let text = match name_at(&code, cursor) {
                    Some(name) => self.inspected(name, in_detail).await?,
                    None => None,
                };
                Ok(KernelAnswer::Inspection(text.map(Bundle::plain)))
            }
            KernelQuery::Comms { .. } => Ok(KernelAnswer::Comms(BTreeMap::new())),
        }
    }
}

impl Worker {
    async fn told(&self, asked: impl FnOnce(u64) -> ToWorker + Send) -> Result<KernelAnswer, Error> {
        match self.ask(asked).await? {
            FromWorker::Members { members, .. } => Ok(KernelAnswer::Members(members)),
            FromWorker::Symbols { symbols, .. } => Ok(KernelAnswer::Symbols(symbols)),
            FromWorker::Values { bindings, .. } => Ok(KernelAnswer::Values(bindings)),
            FromWorker::Tests { tests, .. } => Ok(KernelAnswer::Tests(tests)),
            FromWorker::Review { review, .. } => Ok(KernelAnswer::Review(review)),
            other => Err(unexpected(&other)),
        }
    }

    /// What a name stands for: what the session or a library defines, or what holds such things.
    async fn inspected(&self, name: String, in_detail: bool) -> Result<Option<String>, Error> {
        let query = KernelQuery::Symbols { text: name.clone(), limit: CANDIDATES };
        let found = self.query(query).await?.symbols()?;
        if let Some(text) = symbol_text(&found.items, &name) {
            return Ok(Some(text));
        }
        match self.query(KernelQuery::Members { name }).await {
            Ok(answer) => Ok(Some(members_text(&answer.members()?, in_detail))),
            Err(Error::InvalidArgument { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Reads all that comes from a worker, until it is gone.
struct Reader {
    incoming: Incoming,
    outgoing: SharedOutgoing,
    stdout: OutputPipe<ChildStdout>,
    stderr: OutputPipe<ChildStderr>,
    child: Child,
    group: Group,
    calls: Arc<Calls>,
    beginning: Arc<StartupContext>,
    notices: mpsc::Sender<RunnerNotice>,
    last_words: Option<LastWords>,
    overflows: OverflowFilter,
}

impl Reader {
    async fn run(mut self) {
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
        let exit = match tokio::time::timeout(LAST_BREATH, self.child.wait()).await {
            Ok(status) => exit_of(status),
            Err(_) => {
                self.group.kill();
                exit_of(self.child.wait().await)
            }
        };
        self.group.leader_is_gone();
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

fn report(result: WorkerResult, beginning: &StartupContext) -> JobReport {
    let WorkerResult {
        outcome,
        value,
        value_type,
        bindings,
        display,
        diagnostics,
        error,
        kept,
        changes_state,
        uses_last,
        environment,
        touched,
        duration_ms,
        ..
    } = result;
    let ending = match outcome {
        WorkerOutcome::Completed => JobEnding::Completed,
        WorkerOutcome::Rejected => JobEnding::Rejected,
        WorkerOutcome::Interrupted => JobEnding::Interrupted { kept },
        WorkerOutcome::Raised => JobEnding::Raised(error.unwrap_or_else(|| RaisedError {
            kind: "Exception".to_owned(),
            message: "an exception escaped".to_owned(),
            stack: None,
            coloured_stack: None,
        })),
    };
    JobReport {
        ending,
        result: EvalResult { value, value_type, bindings, display, diagnostics, uses_last, touched },
        changes_state,
        took: Duration::from_millis(duration_ms),
        references: environment.map(|environment| beginning.at_origins(environment.references())),
    }
}

/// What is said of a job that has no result of its own.
fn unserved(code: FailureCode, message: String) -> JobReport {
    let changes_state = match code {
        FailureCode::BadRequest | FailureCode::NotFound => false,
        // Part of it may have run before the worker gave up.
        FailureCode::Busy | FailureCode::Internal => true,
    };
    let ending = JobEnding::Raised(RaisedError {
        kind: "WorkerError".to_owned(),
        message,
        stack: None,
        coloured_stack: None,
    });
    JobReport { ending, result: EvalResult::default(), changes_state, took: Duration::ZERO, references: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_without_a_result_is_replayed_unless_it_was_refused() {
        let replayed = |code| unserved(code, String::new()).changes_state;
        assert!(replayed(FailureCode::Internal) && replayed(FailureCode::Busy));
        assert!(!replayed(FailureCode::BadRequest) && !replayed(FailureCode::NotFound));
    }
}
