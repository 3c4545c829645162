//! A live worker as the engine sees it.
//!
//! One task reads what the worker says and passes it on; what it is told is written by another, so that whoever tells it something never waits
//! for the reader. A session that takes its time to hear the worker out holds the worker up, and nothing else.

use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use mainstay_kernel::runner_process::{self, died_early, exit_of};
use mainstay_model::tool_call::NoCall;
use mainstay_model::{
    Action, Blame, BuildReport, Diagnostic, Error, JobId, LastWords, OutputStream, RunnerInfo, RunnerNotice,
    SessionKind, TextPosition, Timestamp, ToolCall, WorkerExit,
};
use mainstay_os::lines::{LastLines, Line, LineWriter, Lines};
use mainstay_os::process::{self, Group, Launch, Unready};
use mainstay_runner::query::{Completeness, KernelAnswer, KernelQuery, Member, Members, Symbol, Symbols};
use mainstay_runner::{
    AskAnswer, CompletionItem, Completions, Kernel, Process, ResourceUsage, Runner, StartLines,
    StartedRunner, Submission,
};
use tokio::process::{Child, ChildStderr, ChildStdout};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::conversation::{Conversation, Output, name_at};
use crate::inventory::Tool;

/// Notices on their way to the session; then the worker's pipe fills up, and the worker waits.
const NOTICES: usize = 64;
/// The longest line that is read, in bytes.
const LINE_BYTES: usize = 16 * 1024 * 1024;
/// The longest line of standard error that is read, in bytes.
const ERROR_LINE_BYTES: usize = 64 * 1024;
/// How long a process may live on after it closed its output.
const EXIT_GRACE: Duration = Duration::from_secs(2);
/// How many lines may wait to be read by a worker; one that reads none of them hangs.
const LINES_TO_READ: usize = 4096;

/// All that is needed to start a worker.
pub(crate) struct Start<'a> {
    pub(crate) launch: &'a Launch,
    pub(crate) working_directory: &'a Path,
    /// Where what it says on its standard error is kept.
    pub(crate) start_lines: StartLines,
    pub(crate) kind: SessionKind,
    /// What the worker is shown to know that it speaks to whoever started it.
    pub(crate) token: String,
    /// How many bytes a result may have.
    pub(crate) value_bytes: usize,
}

/// Starts a worker, and waits until it takes calls; gives also which tools it offers.
pub(crate) async fn start(start: Start<'_>) -> Result<(StartedRunner, Vec<Tool>), Error> {
    let Start { launch, working_directory, start_lines, kind, token, value_bytes } = start;
    let (mut child, group) = process::start(launch, working_directory, &[], Stdio::piped())
        .map_err(|error| cannot_run(&kind, &error))?;
    let unready = Unready::new(&group);
    let pid = child.id();
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(Error::WorkerFailed { reason: "its pipes are not there".to_owned() });
    };
    let (wake, woken) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared {
        conversation: Mutex::new(Conversation::begin(token, rand::random(), value_bytes)),
        writer: LineWriter::new(stdin),
        wake,
        began: Instant::now(),
    });
    let (notices_in, notices) = mpsc::channel(NOTICES);
    let mut reader = Reader {
        shared: Arc::clone(&shared),
        stdout: Lines::new(stdout, LINE_BYTES),
        stderr: Lines::new(stderr, ERROR_LINE_BYTES),
        stderr_is_open: true,
        silent_from: None,
        last_lines: LastLines::default(),
        start_lines,
        child,
        group: group.clone(),
        woken,
        notices: notices_in,
    };
    reader.until_ready(&kind).await?;
    unready.is_ready();
    tokio::spawn(reader.run());
    let (runtime, tools) = {
        let conversation = shared.conversation();
        (conversation.runtime(), conversation.tools().to_vec())
    };
    let info = RunnerInfo {
        kernel: kind.to_string(),
        runtime,
        language: None,
        pid,
        references: None,
        startup: None,
    };
    let worker = ToolWorker { info, kind, shared, group };
    Ok((StartedRunner::new(Runner::Kernel(Arc::new(worker)), notices), tools))
}

/// What the tasks and the handle share.
struct Shared {
    conversation: Mutex<Conversation>,
    writer: LineWriter,
    /// What follows of what the engine wants, but for what the worker is told.
    wake: mpsc::UnboundedSender<Vec<Output>>,
    began: Instant,
}

impl Shared {
    fn conversation(&self) -> MutexGuard<'_, Conversation> {
        self.conversation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the conversation, and tells the worker what it is to be told; gives the rest. All of it while the conversation is held, so that
    /// lines go out in order.
    fn change(&self, change: impl FnOnce(&mut Conversation, Duration)) -> Vec<Output> {
        let mut conversation = self.conversation();
        change(&mut conversation, self.began.elapsed());
        let mut rest = Vec::new();
        for output in conversation.take() {
            match output {
                Output::Send(line) => self.writer.send(line),
                other => rest.push(other),
            }
        }
        if self.writer.waiting() > LINES_TO_READ {
            rest.push(Output::Kill);
        }
        rest
    }

    /// What the engine wants. Done once the worker has been told.
    async fn want(&self, change: impl FnOnce(&mut Conversation, Duration)) {
        let rest = self.change(change);
        self.wake.send(rest).ok();
        self.writer.written().await;
    }
}

struct ToolWorker {
    info: RunnerInfo,
    kind: SessionKind,
    shared: Arc<Shared>,
    group: Group,
}

impl Drop for ToolWorker {
    fn drop(&mut self) {
        self.group.kill();
    }
}

impl ToolWorker {
    /// That tool workers do not do it.
    fn not_of_kind(&self, action: Action) -> Error {
        Error::NotOfKind { action, kind: self.kind.clone() }
    }

    fn tools(&self) -> Vec<Tool> {
        self.shared.conversation().tools().to_vec()
    }
}

#[async_trait]
impl Process for ToolWorker {
    fn info(&self) -> RunnerInfo {
        self.info.clone()
    }

    async fn answer(&self, AskAnswer { ask, .. }: AskAnswer) {
        // Its protocol has no questions.
        tracing::error!(%ask, "a tool worker was given an answer that it did not ask for");
    }

    async fn interrupt(&self) {
        self.shared.want(|conversation, _| conversation.interrupt()).await;
    }

    fn kill(&self) {
        self.group.kill();
    }

    fn usage(&self) -> Option<ResourceUsage> {
        runner_process::usage(&self.group)
    }
}

#[async_trait]
impl Kernel for ToolWorker {
    async fn run(&self, submission: Submission) {
        let Submission { job, code, .. } = submission;
        self.shared.want(|conversation, now| conversation.run(job, &code, now)).await;
    }

    async fn build(&self, job: JobId) {
        let built = Err("there is nothing to build here".to_owned());
        let report = BuildReport { built, diagnostics: Vec::new(), by_warm_compiler: false };
        self.shared.wake.send(vec![Output::Tell(RunnerNotice::Built { job, report })]).ok();
    }

    async fn reset(&self) -> Result<RunnerInfo, Error> {
        // A worker keeps nothing of the session's.
        Ok(self.info.clone())
    }

    async fn check(&self, code: String, _file: Option<String>) -> Result<Vec<Diagnostic>, Error> {
        Ok(self.shared.conversation().diagnose(&code))
    }

    async fn complete(&self, code: String, cursor: TextPosition) -> Result<Completions, Error> {
        let Some((start, begun)) = name_at(&code, cursor) else { return Ok(Completions::default()) };
        let tools = self.tools().into_iter().filter(|tool| tool.name.starts_with(&begun));
        let item = |tool: Tool| CompletionItem {
            detail: versions(&tool),
            label: tool.name,
            kind: "function".to_owned(),
            documentation: None,
        };
        Ok(Completions { items: tools.map(item).collect(), start: Some(start) })
    }

    async fn query(&self, query: KernelQuery) -> Result<KernelAnswer, Error> {
        match query {
            KernelQuery::Members { name } if name == self.kind.as_str() => {
                let member = |tool: Tool| Member {
                    signature: versions(&tool),
                    name: tool.name,
                    kind: "function".to_owned(),
                    documentation: None,
                };
                let members = self.tools().into_iter().map(member).collect();
                let kind = "tool worker".to_owned();
                Ok(KernelAnswer::Members(Members { name, kind, members, ..Members::default() }))
            }
            KernelQuery::Members { name } => {
                let reason = format!("nothing is called `{name}`; `{}` has the tools", self.kind);
                Err(Error::InvalidArgument { argument: "name".to_owned(), reason })
            }
            KernelQuery::Symbols { text, limit } => {
                let text = text.to_lowercase();
                let named = |tool: &Tool| tool.name.to_lowercase().contains(&text);
                let mut items: Vec<_> = self.tools().into_iter().filter(named).map(symbol).collect();
                let found = items.len() as u64;
                items.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
                Ok(KernelAnswer::Symbols(Symbols { items, found }))
            }
            KernelQuery::Completeness { code } => {
                Ok(KernelAnswer::Completeness(match ToolCall::read(&code) {
                    Ok(_) => Completeness::Complete,
                    Err(NoCall::Unfinished) => Completeness::Incomplete { indent: String::new() },
                    Err(NoCall::Invalid { .. }) => Completeness::Invalid,
                }))
            }
            KernelQuery::Values => Ok(KernelAnswer::Values(Vec::new())),
            KernelQuery::Inspection { .. } => Ok(KernelAnswer::Inspection(None)),
            other => Err(self.not_of_kind(other.action())),
        }
    }
}

fn symbol(tool: Tool) -> Symbol {
    Symbol {
        signature: versions(&tool),
        full_name: tool.name.clone(),
        name: tool.name,
        kind: "function".to_owned(),
        documentation: None,
        assembly: None,
    }
}

/// In which versions a tool is there, where it has versions.
fn versions(tool: &Tool) -> Option<String> {
    (!tool.versions.is_empty()).then(|| format!("versions {}", tool.versions.join(", ")))
}

/// That a worker cannot run as the settings have it.
fn cannot_run(kind: &SessionKind, reason: &impl std::fmt::Display) -> Error {
    let settings = format!("`[tool-workers.{kind}]` in Mainstay's `config.toml` says how it is started");
    Error::ToolWorkerUnavailable { reason: format!("{reason}; {settings}") }
}

/// Why a worker ended before it took calls. Where it ended by itself and said why, the next start would end in the same way.
fn not_started(kind: &SessionKind, exit: WorkerExit, said: Option<String>) -> Error {
    let said = said.unwrap_or_default();
    let is_its_own = matches!(exit, WorkerExit::Code(_)) && !exit.is_from_outside();
    match said.trim() {
        said if is_its_own && !said.is_empty() => {
            cannot_run(kind, &format!("it ended with {exit}: {}", said.trim_end_matches('.')))
        }
        said => died_early(exit, said),
    }
}

/// Reads all that comes from a worker, until it is gone.
struct Reader {
    shared: Arc<Shared>,
    stdout: Lines<ChildStdout>,
    stderr: Lines<ChildStderr>,
    stderr_is_open: bool,
    /// From when on nothing is waited for that it may still say: it has gone.
    silent_from: Option<Instant>,
    last_lines: LastLines,
    /// Where they are kept for whoever waits for the start.
    start_lines: StartLines,
    child: Child,
    group: Group,
    woken: mpsc::UnboundedReceiver<Vec<Output>>,
    notices: mpsc::Sender<RunnerNotice>,
}

impl Reader {
    /// Reads until the worker takes calls.
    async fn until_ready(&mut self, kind: &SessionKind) -> Result<(), Error> {
        // It is greeted.
        self.shared.change(|_, _| {});
        loop {
            let Some(outputs) = self.next().await else {
                let exit = self.exited().await;
                return Err(not_started(kind, exit, self.last_lines.text()));
            };
            for output in outputs {
                match output {
                    Output::Ready => return Ok(()),
                    Output::Refused(reason) => {
                        let reason = format!("it does not take calls: {reason}");
                        return Err(Error::ToolWorkerUnavailable { reason });
                    }
                    // What it prints before it is there, nobody hears.
                    Output::Tell(_) | Output::Send(_) | Output::Kill => {}
                }
            }
        }
    }

    async fn run(mut self) {
        let mut beats = interval(self.shared.conversation().beat_interval());
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let outputs = tokio::select! {
                outputs = self.next() => match outputs {
                    Some(outputs) => outputs,
                    None => break,
                },
                _ = beats.tick() => {
                    self.shared.change(|conversation, _| conversation.beat(Timestamp::now()))
                }
            };
            self.pass_on(outputs).await;
        }
        self.end().await;
    }

    async fn pass_on(&self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Tell(notice) => self.tell(notice).await,
                Output::Kill => {
                    tracing::warn!("a tool worker is killed: it is not understood, or does not answer");
                    self.group.kill();
                }
                Output::Send(_) | Output::Ready | Output::Refused(_) => {}
            }
        }
    }

    /// What follows of the next that happens; none when the worker has closed its output.
    async fn next(&mut self) -> Option<Vec<Output>> {
        let silent_from = self.silent_from;
        let silence = async move {
            match silent_from {
                Some(from) => tokio::time::sleep_until(from).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // What a worker that is gone has written is read before its silence counts.
            biased;
            line = self.stdout.next() => Some(self.hear(line?)),
            line = self.stderr.next(), if self.stderr_is_open => Some(self.hear_error(line)),
            Some(outputs) = self.woken.recv() => Some(outputs),
            // What it has started may hold its output open for as long as it likes.
            _ = self.child.wait(), if self.silent_from.is_none() => {
                self.silent_from = Some(Instant::now() + EXIT_GRACE);
                Some(Vec::new())
            }
            () = silence => None,
        }
    }

    fn hear(&self, line: Line) -> Vec<Output> {
        match line {
            Line::Whole(line) => {
                let line = String::from_utf8_lossy(&line);
                self.shared.change(|conversation, now| conversation.hear(&line, now, Timestamp::now()))
            }
            Line::TooLong(bytes) => {
                self.shared.change(|conversation, now| conversation.cannot_hear(bytes, LINE_BYTES, now))
            }
        }
    }

    /// What a worker says on standard error is shown as the output of the call under way.
    fn hear_error(&mut self, line: Option<Line>) -> Vec<Output> {
        match line {
            Some(Line::Whole(line)) => {
                let line = String::from_utf8_lossy(&line);
                self.last_lines.push(&line);
                self.start_lines.keep(self.last_lines.text());
                let text = format!("{line}\n");
                return self.shared.change(|conversation, _| conversation.print(OutputStream::Stderr, text));
            }
            Some(Line::TooLong(bytes)) => tracing::warn!(bytes, "a tool worker says much on standard error"),
            None => self.stderr_is_open = false,
        }
        Vec::new()
    }

    async fn end(mut self) {
        let exit = self.exited().await;
        let mut last = self.shared.change(Conversation::gone);
        while let Ok(outputs) = self.woken.try_recv() {
            last.extend(outputs);
        }
        self.pass_on(last).await;
        let job = self.shared.conversation().job();
        // Which job it was at is known, and not whether that brought it about.
        let last_words = job.map(|job| LastWords {
            blame: Blame { job, is_sure: false },
            reason: self.last_lines.text(),
            diagnostics: Vec::new(),
        });
        self.tell(RunnerNotice::Exited { exit, last_words }).await;
    }

    /// Waits until the process is gone, and with it all that it started.
    async fn exited(&mut self) -> WorkerExit {
        let exit = exit_of(self.group.ended(&mut self.child, EXIT_GRACE).await);
        while self.stderr_is_open {
            let line = tokio::time::timeout(EXIT_GRACE, self.stderr.next()).await;
            // It is told as the reason where a call was under way.
            self.hear_error(line.unwrap_or_default());
        }
        exit
    }

    async fn tell(&self, notice: RunnerNotice) {
        // Nobody listens any more once the session has dropped its runner.
        self.notices.send(notice).await.ok();
    }
}
