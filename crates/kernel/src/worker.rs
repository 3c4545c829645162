//! A live worker as the engine sees it: requests out, answers and output in, and its end.
//!
//! One task reads the channel and both pipes. A job's end is passed on only after what stood in the pipes when it came, so
//! that all the job printed comes before it.

mod calls;
mod compiler;
mod reader;
mod report;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use async_trait::async_trait;
use mainstay_model::reload::Description;
use mainstay_model::{Bundle, CommandLine, Diagnostic, Error, JobId, RunnerInfo, Swap, TextPosition};
use mainstay_os::output_pipe::OutputPipe;
use mainstay_os::process::{Group, Launch, Unready, drain, last_words, start};
use mainstay_runner::query::{Completeness, KernelAnswer, KernelQuery};
use mainstay_runner::{
    AskAnswer, CodeText, Completions, Kernel, Process, ResourceUsage, Runner, SourceText, StartedRunner,
    Submission, Upcoming,
};
use tokio::process::Child;
use tokio::sync::mpsc;

pub use self::compiler::{CompilerProcess, launch_compiler};

use self::calls::{Calls, SharedOutgoing, send};
use self::reader::Reader;
use crate::building::{Builder, Building};
use crate::channel::{self, Incoming, Outgoing, WorkerListener, greet, kernel_name};
use crate::fsharp::inspection::{CANDIDATES, members_text, name_at, symbol_text};
use crate::fsharp::{DebuggerPipes, indentation, needs_more};
use crate::overflow::OverflowFilter;
use crate::protocol::{ADDRESS_VARIABLE, FailureCode, FromWorker, TOKEN_VARIABLE, ToWorker};
use crate::runner_process::{self, died_early, exit_of, unavailable};
use crate::startup_context::{ReadyMessage, StartupContext};

/// Notices on their way to the session; then the pipes fill up and the code that prints waits.
const NOTICES: usize = 64;

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
    let attached = attach(launch, &beginning.working_directory, socket_folder).await?;
    attached.begin(beginning, builder, &BTreeMap::new()).await
}

/// Starts a worker for a session that is not known yet, and waits until it has done all that can be done beforehand. `arguments` is what
/// the compiler of that session is likely to be told.
///
/// # Errors
/// As [`launch`].
pub async fn stand_by(
    launch: &Launch,
    arguments: Vec<String>,
    socket_folder: &Path,
) -> Result<Standby, Error> {
    let mut attached = attach(launch, Path::new("/"), socket_folder).await?;
    let Attached { incoming, outgoing, .. } = &mut attached;
    let pid = channel::stand_by(incoming, outgoing, arguments).await?;
    Ok(Standby { attached, pid })
}

/// A worker that has no session yet, and is ready for one. It ends when this is dropped.
pub struct Standby {
    attached: Attached,
    pid: u32,
}

impl Standby {
    /// The process of the worker.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits until the worker has ended by itself. Dropping the future changes nothing.
    pub async fn ended(&mut self) {
        self.attached.child.wait().await.ok();
    }

    /// Hands the worker to a session, with what its environment lacks of the session's, and waits until it accepts code. The process is
    /// then as if it had been started for the session.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`] where the worker has ended or does not get ready.
    pub async fn begin(
        self,
        beginning: StartupContext,
        builder: Option<Arc<dyn Builder>>,
        variables: &BTreeMap<String, String>,
    ) -> Result<StartedRunner, Error> {
        let Attached { child, .. } = &self.attached;
        // What was printed without a session is nobody's.
        for pipe in [child.stdout.as_ref().map(drain), child.stderr.as_ref().map(drain)] {
            let said = pipe.unwrap_or_default();
            if !said.is_empty() {
                tracing::warn!(bytes = said.len(), "a worker that stood by has printed something");
            }
        }
        self.attached.begin(beginning, builder, variables).await
    }
}

/// A worker that was started and has shown that it is the one. It is killed where it gets no session.
struct Attached {
    child: Child,
    group: Group,
    unready: Unready,
    incoming: Incoming,
    outgoing: Outgoing,
    pipes: DebuggerPipes,
}

/// Starts the process of a worker in a folder, and waits until it has come to its channel.
async fn attach(launch: &Launch, folder: &Path, socket_folder: &Path) -> Result<Attached, Error> {
    let door = WorkerListener::open(socket_folder)?;
    let address = door.address();
    let channel = [(ADDRESS_VARIABLE, address.as_str()), (TOKEN_VARIABLE, door.token())];
    let (mut child, group) = start(launch, folder, &channel, Stdio::null()).map_err(unavailable)?;
    let pipes = DebuggerPipes::of(child.id(), &launch.environment);
    let unready = Unready::new(&group);
    let (incoming, outgoing) = tokio::select! {
        accepted = door.accept() => accepted?,
        status = child.wait() => return Err(died_early(exit_of(status), &last_words(child))),
    };
    Ok(Attached { child, group, unready, incoming, outgoing, pipes })
}

impl Attached {
    /// Gives the worker its session, and waits until it accepts code.
    async fn begin(
        self,
        beginning: StartupContext,
        builder: Option<Arc<dyn Builder>>,
        variables: &BTreeMap<String, String>,
    ) -> Result<StartedRunner, Error> {
        let Self { mut child, group, unready, mut incoming, mut outgoing, pipes } = self;
        let info = greet(&mut incoming, &mut outgoing, &beginning, variables).await?;
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
            pipes: Some(pipes),
        };
        tokio::spawn(reader.run());
        let worker = Worker { info, outgoing, calls, beginning, building, group };
        Ok(StartedRunner::new(Runner::Kernel(Arc::new(worker)), notices))
    }
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

    async fn answer(&self, AskAnswer { ask, answer, .. }: AskAnswer) {
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
        self.calls.begin_job(id, job);
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

    async fn swap(&self, files: Vec<String>) -> Result<Option<Swap>, Error> {
        self.swapped(|id| ToWorker::Swap { id, files, texts: BTreeMap::new(), is_all: false }).await
    }

    async fn swap_texts(&self, sources: Vec<SourceText>) -> Result<Option<Swap>, Error> {
        let files = sources.iter().map(|source| source.path.clone()).collect();
        let texts = sources.into_iter().filter_map(|SourceText { path, text }| Some((path, text?))).collect();
        self.swapped(|id| ToWorker::Swap { id, files, texts, is_all: false }).await
    }

    async fn swap_all(&self) -> Result<Option<Swap>, Error> {
        self.swapped(|id| ToWorker::Swap { id, files: Vec::new(), texts: BTreeMap::new(), is_all: true })
            .await
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
            KernelQuery::Coverage { file, name, since } => {
                self.told(|id| ToWorker::Coverage { id, file, name, since }).await
            }
            KernelQuery::Measure { policies, limit_ms, timeout_ms } => {
                self.told(|id| ToWorker::Measure { id, policies, limit_ms, timeout_ms }).await
            }
            KernelQuery::TakeMeasurement { code, measurement } => {
                self.told(|id| ToWorker::TakeMeasured { id, code, measurement }).await
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
    async fn swapped(&self, asked: impl FnOnce(u64) -> ToWorker + Send) -> Result<Option<Swap>, Error> {
        match self.ask(asked).await? {
            FromWorker::Swapped { swap, .. } => Ok(Some(swap)),
            other => Err(unexpected(&other)),
        }
    }

    async fn told(&self, asked: impl FnOnce(u64) -> ToWorker + Send) -> Result<KernelAnswer, Error> {
        match self.ask(asked).await? {
            FromWorker::Members { members, .. } => Ok(KernelAnswer::Members(members)),
            FromWorker::Symbols { symbols, .. } => Ok(KernelAnswer::Symbols(symbols)),
            FromWorker::Values { bindings, .. } => Ok(KernelAnswer::Values(bindings)),
            FromWorker::Tests { tests, .. } => Ok(KernelAnswer::Tests(tests)),
            FromWorker::Coverage { lines, .. } => Ok(KernelAnswer::Coverage(lines)),
            FromWorker::Measured { measurement, .. } => Ok(KernelAnswer::Measured(measurement)),
            FromWorker::MeasuredTaken { is_taken, .. } => Ok(KernelAnswer::MeasurementTaken(is_taken)),
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
