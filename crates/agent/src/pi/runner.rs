//! A live pi as the engine sees it.
//!
//! One task reads what pi says and passes it on, another writes what it is told; between them is the [`Translation`]. Whoever tells pi
//! something never waits for the reader, and the reader never for the writer: so a session that takes its time to hear pi out holds
//! pi up, and nothing else.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use mainstay_kernel::runner_process::{died_early, exit_of, unavailable};
use mainstay_model::{
    AgentNotice, AgentState, AskId, Blame, Error, JobId, JobSpec, LastWords, Note, QueuedPrompt, RunnerInfo,
    RunnerNotice, Seq, WorkerExit,
};
use mainstay_os::lines::{LastLines, Line, LineWriter, Lines};
use mainstay_os::process::{self, Group, Launch, Unready};
use mainstay_runner::{
    Agent, AgentQuestion, AskAnswer, Process, ResourceUsage, Runner, StartLines, StartedRunner,
};
use serde_json::Value;
use tokio::process::{Child, ChildStderr, ChildStdout};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::orphans::ProcessMark;
use super::rpc;
use super::session_file::{EntryCounts, kept};
use super::translation::{Output, Timeouts, Translation};

/// Notices on their way to the session; then pi's pipe fills up, and pi waits.
const NOTICES: usize = 64;
/// The longest line that is read, in bytes.
const LINE_BYTES: usize = 64 * 1024 * 1024;
/// The longest line of standard error that is read, in bytes.
const ERROR_LINE_BYTES: usize = 64 * 1024;
/// What is kept of what it says before it is there.
const EARLY_NOTICES: usize = 256;
/// How long a process may live on after it closed its output.
const EXIT_GRACE: Duration = Duration::from_secs(2);

/// All that is needed to start pi.
pub(super) struct Start<'a> {
    pub(super) launch: &'a Launch,
    pub(super) working_directory: &'a Path,
    /// Where what it says on its standard error is kept.
    pub(super) start_lines: StartLines,
    /// How it is to go on.
    pub(super) state: Option<AgentState>,
    pub(super) timeouts: Timeouts,
    /// What was written of the file it resumes from.
    pub(super) entry_counts: EntryCounts,
    /// What it is, but for its process.
    pub(super) kernel: String,
    pub(super) runtime: String,
    /// What all that it starts bears.
    pub(super) mark: ProcessMark,
}

/// Starts pi, and waits until it takes commands.
pub(super) async fn start(start: Start<'_>) -> Result<StartedRunner, Error> {
    let Start {
        launch,
        working_directory,
        start_lines,
        state,
        timeouts,
        entry_counts,
        kernel,
        runtime,
        mark,
    } = start;
    let (mut child, group) =
        process::start(launch, working_directory, &[], Stdio::piped()).map_err(unavailable)?;
    let unready = Unready::new(&group);
    let pid = child.id().unwrap_or_default();
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(Error::WorkerFailed { reason: "its pipes are not there".to_owned() });
    };
    let (wake, woken) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared {
        translation: Mutex::new(Translation::new(timeouts, state)),
        questions: Mutex::default(),
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
        mark: mark.clone(),
        woken,
        notices: notices_in,
        entry_counts,
        working_directory: working_directory.to_owned(),
    };
    let early = reader.until_ready().await?;
    unready.is_ready();
    tokio::spawn(reader.run(early));
    let info =
        RunnerInfo { kernel, runtime, language: None, pid: Some(pid), references: None, startup: None };
    let pi = Pi { info, shared, group, mark, last_question: AtomicU64::new(0) };
    Ok(StartedRunner::new(Runner::Agent(Arc::new(pi)), notices))
}

/// What the tasks and the handle share.
struct Shared {
    translation: Mutex<Translation>,
    questions: Mutex<HashMap<u64, oneshot::Sender<Result<Value, Error>>>>,
    writer: LineWriter,
    /// What follows of what the engine wants, but for what pi is told.
    wake: mpsc::UnboundedSender<Vec<Output>>,
    began: Instant,
}

impl Shared {
    fn translation(&self) -> MutexGuard<'_, Translation> {
        self.translation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Changes the translation, and tells pi what it is to be told.
    fn change(&self, change: impl FnOnce(&mut Translation, Duration)) -> Vec<Output> {
        let mut translation = self.translation();
        change(&mut translation, self.now());
        self.send(translation.take())
    }

    /// Tells pi what it is to be told; gives the rest. Called while the translation is held, so that lines go out in order.
    fn send(&self, outs: Vec<Output>) -> Vec<Output> {
        let mut rest = Vec::new();
        for out in outs {
            match out {
                Output::Send(line) => self.writer.send(line),
                other => rest.push(other),
            }
        }
        rest
    }

    /// What the engine wants. Done once pi has been told.
    async fn want(&self, change: impl FnOnce(&mut Translation, Duration)) {
        let rest = self.change(change);
        // Also where nothing follows: there may be another moment to look at the time.
        self.wake.send(rest).ok();
        self.writer.written().await;
    }
}

struct Pi {
    info: RunnerInfo,
    shared: Arc<Shared>,
    group: Group,
    mark: ProcessMark,
    last_question: AtomicU64,
}

impl Drop for Pi {
    fn drop(&mut self) {
        self.kill();
    }
}

#[async_trait]
impl Process for Pi {
    fn info(&self) -> RunnerInfo {
        self.info.clone()
    }

    async fn answer(&self, AskAnswer { ask, answer, .. }: AskAnswer) {
        self.shared.want(|translation, now| translation.answer(ask, &answer, now)).await;
    }

    async fn interrupt(&self) {
        self.shared.want(|translation, _| translation.interrupt()).await;
    }

    fn kill(&self) {
        self.group.kill();
        self.mark.kill_all();
    }

    fn usage(&self) -> Option<ResourceUsage> {
        mainstay_kernel::runner_process::usage(&self.group)
    }
}

#[async_trait]
impl Agent for Pi {
    async fn work(&self, job: JobId, work: JobSpec, is_bounded: bool) {
        self.shared.want(|translation, now| translation.work(job, work, is_bounded, now)).await;
    }

    async fn steer(&self, queued: QueuedPrompt, _requested: Seq) {
        self.shared.want(|translation, _| translation.steer(queued)).await;
    }

    async fn pause(&self, job: JobId, ask: AskId) {
        self.shared.want(|translation, _| translation.pause(job, ask)).await;
    }

    async fn tell(&self, question: AgentQuestion) -> Result<Value, Error> {
        let number = self.last_question.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        self.shared.questions.lock().unwrap_or_else(PoisonError::into_inner).insert(number, answer);
        self.shared.want(|translation, _| translation.ask(number, question)).await;
        let gone = || Error::WorkerFailed { reason: "pi ended before it answered".to_owned() };
        answered.await.unwrap_or_else(|_| Err(gone()))
    }
}

/// Why pi ended before it took commands. Where it ended by itself and said why, as it does of wrong arguments, an unknown model or a broken
/// extension, the next start would end in the same way.
fn not_started(exit: WorkerExit, said: Option<String>) -> Error {
    let said = said.unwrap_or_default();
    let is_its_own = matches!(exit, WorkerExit::Code(_)) && !exit.is_from_outside();
    match said.trim() {
        said if is_its_own && !said.is_empty() => {
            let said = said.trim_end_matches('.');
            let settings = "`[pi]` in Mainstay's `config.toml` says how it is started";
            Error::KernelUnavailable { reason: format!("pi ended with {exit}: {said}; {settings}") }
        }
        said => died_early(exit, said),
    }
}

/// Reads all that comes from pi, until it is gone.
struct Reader {
    shared: Arc<Shared>,
    stdout: Lines<ChildStdout>,
    stderr: Lines<ChildStderr>,
    stderr_is_open: bool,
    /// From when on nothing is waited for that it may still say: it has gone.
    silent_from: Option<tokio::time::Instant>,
    last_lines: LastLines,
    /// Where they are kept for whoever waits for the start.
    start_lines: StartLines,
    child: Child,
    group: Group,
    mark: ProcessMark,
    woken: mpsc::UnboundedReceiver<Vec<Output>>,
    notices: mpsc::Sender<RunnerNotice>,
    entry_counts: EntryCounts,
    working_directory: PathBuf,
}

impl Reader {
    /// Reads until pi takes commands; gives what it said meanwhile, which nobody hears yet.
    async fn until_ready(&mut self) -> Result<Vec<Output>, Error> {
        let mut early = Vec::new();
        self.shared.change(|_, _| {});
        loop {
            let Some(outs) = self.next().await else {
                let exit = self.exited().await;
                return Err(not_started(exit, self.last_lines.text()));
            };
            let is_ready = outs.contains(&Output::Ready);
            early.extend(outs);
            early.drain(..early.len().saturating_sub(EARLY_NOTICES));
            if is_ready {
                return Ok(early);
            }
        }
    }

    async fn run(mut self, early: Vec<Output>) {
        self.pass_on(early).await;
        while let Some(outs) = self.next().await {
            self.pass_on(outs).await;
        }
        self.end().await;
    }

    /// What follows of the next that happens; none when pi has closed its output.
    async fn next(&mut self) -> Option<Vec<Output>> {
        let deadline = self.shared.translation().deadline();
        let look = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(self.shared.began + deadline).await,
                None => std::future::pending().await,
            }
        };
        let silent_from = self.silent_from;
        let silence = async move {
            match silent_from {
                Some(from) => tokio::time::sleep_until(from).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            line = self.stdout.next() => Some(self.hear(line?)),
            line = self.stderr.next(), if self.stderr_is_open => {
                self.hear_error(line);
                Some(Vec::new())
            }
            Some(outs) = self.woken.recv() => Some(outs),
            () = look => Some(self.shared.change(Translation::on_time)),
            // What it has started may hold its output open for as long as it likes.
            _ = self.child.wait(), if self.silent_from.is_none() => {
                self.silent_from = Some(tokio::time::Instant::now() + EXIT_GRACE);
                Some(Vec::new())
            }
            () = silence => None,
        }
    }

    fn hear(&self, line: Line) -> Vec<Output> {
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong(bytes) => {
                tracing::error!(bytes, limit = LINE_BYTES, "a line of pi's is too long, and passed over");
                return Vec::new();
            }
        };
        match rpc::read(&line) {
            Ok(said) => self.shared.change(|translation, now| translation.hear(said, now)),
            Err(error) => {
                let begins = String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
                tracing::error!(%error, begins, "a line of pi's cannot be read, and is passed over");
                Vec::new()
            }
        }
    }

    fn hear_error(&mut self, line: Option<Line>) {
        match line {
            Some(Line::Whole(line)) => {
                let line = String::from_utf8_lossy(&line);
                tracing::warn!(line = line.trim(), "pi says on standard error");
                self.last_lines.push(&line);
                self.start_lines.keep(self.last_lines.text());
            }
            Some(Line::TooLong(bytes)) => tracing::warn!(bytes, "pi says much on standard error"),
            None => self.stderr_is_open = false,
        }
    }

    async fn pass_on(&mut self, outs: Vec<Output>) {
        for out in outs {
            match out {
                Output::Tell(notice) => self.tell(notice).await,
                Output::Compacted { summary, first_kept, metadata } => {
                    self.compacted(summary, &first_kept, metadata.into_iter().collect()).await;
                }
                Output::Answered { question, answer } => {
                    let mut questions = self.shared.questions.lock().unwrap_or_else(PoisonError::into_inner);
                    // Who asked may have given up.
                    questions.remove(&question).map(|asked| asked.send(answer).ok());
                }
                Output::Kill => self.group.kill(),
                // What is to be sent was sent already.
                Output::Send(_) | Output::Ready => {}
            }
        }
    }

    async fn compacted(&self, summary: String, first_kept: &str, metadata: BTreeMap<String, Value>) {
        let file = self.shared.translation().session_file().map(|file| self.working_directory.join(file));
        let read = match &file {
            Some(file) => tokio::fs::read_to_string(file).await.ok(),
            None => None,
        };
        let notice = match read.and_then(|text| kept(&self.entry_counts, &text, first_kept)) {
            Some(kept) => AgentNotice::Compacted { summary, kept, metadata },
            None => {
                tracing::warn!(?file, first_kept, "what pi kept in a compaction is not in its session file");
                let message = "what was kept cannot be told; the summary is not in the transcript".to_owned();
                let reason = metadata.get("reason").and_then(Value::as_str).unwrap_or_default().to_owned();
                AgentNotice::Noted(Note::CompactionFailed { reason, message, was_cancelled: false })
            }
        };
        self.tell(RunnerNotice::Agent(notice)).await;
    }

    async fn end(mut self) {
        let exit = self.exited().await;
        self.shared.questions.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let job = self.shared.translation().job();
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
        let mark = self.mark.clone();
        // It fails only where the daemon itself ends.
        tokio::task::spawn_blocking(move || mark.end_all()).await.ok();
        while self.stderr_is_open {
            let line = tokio::time::timeout(EXIT_GRACE, self.stderr.next()).await;
            self.hear_error(line.unwrap_or_default());
        }
        exit
    }

    async fn tell(&self, notice: RunnerNotice) {
        // Nobody listens any more once the session has dropped its runner.
        self.notices.send(notice).await.ok();
    }
}
