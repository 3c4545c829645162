//! Reads all that comes from a kernel, until it is gone, and tells the session.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mainstay_model::{AskId, Blame, JobId, LastWords, OutputStream, RunnerNotice, WorkerExit};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};
use uuid::Uuid;
use zeromq::{DealerRecvHalf, SocketRecv, ZmqMessage, ZmqResult};

use super::content::{ExecuteReply, InputRequest};
use super::execution::{Execution, Exit, published};
use super::interrupt::interrupt;
use super::keeper::Keeper;
use super::kernelspec::Interrupt;
use super::launch::Files;
use super::line::{Line, report_of};
use super::published::Published;
use super::python;
use super::wire::Message;
use crate::runner_process::exit_of;
use mainstay_os::output_pipe::OutputPipe;
use mainstay_os::process::Group;

/// How many bytes wait for the session at most. Then nothing more is taken from the kernel, which will drop what it has no room for.
const ROOM: usize = 32 * 1024 * 1024;
/// So much text is told at once at most, in bytes.
const PIECE: usize = 64 * 1024;
/// How long a kernel may be silent after its reply before code counts as ended, though it did not say that it is idle; and before it takes in
/// what a front end says, or does not know what that is.
const SILENCE: Duration = Duration::from_secs(2);
/// How long a value is waited for of a kernel that is idle early.
const LATE: Duration = Duration::from_millis(30);
/// How long what a kernel that is gone has published is waited for.
const EXIT_GRACE: Duration = Duration::from_millis(200);
/// How long a kernel may live on whose code asked it to end.
const FAREWELL: Duration = Duration::from_secs(5);

/// What waits for the session, in order.
#[derive(Debug, Default)]
struct Backlog {
    notices: VecDeque<RunnerNotice>,
    bytes: usize,
}

impl Backlog {
    fn push(&mut self, notice: RunnerNotice) {
        self.bytes += size(&notice);
        if let (
            Some(RunnerNotice::Output { job: last_job, stream: last_stream, text: last }),
            RunnerNotice::Output { job, stream, text },
        ) = (self.notices.back_mut(), &notice)
            && (&*last_job, &*last_stream) == (job, stream)
            && last.len() + text.len() <= PIECE
        {
            last.push_str(text);
            return;
        }
        self.notices.push_back(notice);
    }

    fn pop(&mut self) -> Option<RunnerNotice> {
        let notice = self.notices.pop_front()?;
        self.bytes = self.bytes.saturating_sub(size(&notice));
        Some(notice)
    }

    const fn has_room(&self) -> bool {
        self.bytes < ROOM
    }
}

/// About how many bytes a notice holds.
fn size(notice: &RunnerNotice) -> usize {
    match notice {
        RunnerNotice::Output { text, .. } => text.len(),
        RunnerNotice::Display { display, .. } => display.data.form_bytes() + display.data.text().len(),
        RunnerNotice::Comm { message, .. } => message.bytes(),
        RunnerNotice::Asks { .. }
        | RunnerNotice::Checks { .. }
        | RunnerNotice::Cleared { .. }
        | RunnerNotice::CommTaken { .. }
        | RunnerNotice::Application(_)
        | RunnerNotice::Agent(_)
        | RunnerNotice::Finished { .. }
        | RunnerNotice::Built { .. }
        | RunnerNotice::Exited { .. } => 0,
    }
}

/// What a reader reads.
pub(super) struct Sources {
    pub(super) published: Published,
    pub(super) shell: DealerRecvHalf,
    pub(super) stdin: DealerRecvHalf,
    pub(super) control: DealerRecvHalf,
    pub(super) stdout: OutputPipe<ChildStdout>,
    pub(super) stderr: OutputPipe<ChildStderr>,
    pub(super) child: Child,
    /// What ends with it: the line whose end ends the kernel's processes, and what lies in a folder for it.
    #[expect(dead_code, reason = "it is held, and dropped")]
    pub(super) held: (Option<ChildStdin>, Files),
}

/// What kernels differ in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traits {
    /// It has a helper, which can be asked what became of code.
    pub(super) has_helper: bool,
    /// It says at times that it is idle before it publishes a value.
    pub(super) is_idle_early: bool,
    /// How it is told to stop its code.
    pub(super) interrupt: Interrupt,
}

/// Reads one kernel process.
pub(super) struct Reader {
    pub(super) sources: Sources,
    pub(super) line: Arc<Line>,
    pub(super) group: Group,
    pub(super) notices: mpsc::Sender<RunnerNotice>,
    /// Whether another process takes its place, so that nobody is told of its end.
    pub(super) is_replaced: Arc<AtomicBool>,
    traits: Traits,
    keeper: Option<Arc<Keeper>>,
    backlog: Backlog,
    report: Option<oneshot::Receiver<Message>>,
    /// Until when a value may be late.
    late_until: Option<Instant>,
    /// Whether it publishes no more.
    is_silent: bool,
    /// When something was published last.
    heard_at: Instant,
    last_words: Option<LastWords>,
}

/// The next thing that the reader received.
enum Next {
    Told,
    NobodyListens,
    Published(Option<ZmqMessage>),
    Replied(ZmqResult<ZmqMessage>),
    Asked(ZmqResult<ZmqMessage>),
    Commanded(ZmqResult<ZmqMessage>),
    Reported(Option<Message>),
    Printed(OutputStream, String),
    Late,
    Silent,
    Gone(std::io::Result<std::process::ExitStatus>),
}

impl Reader {
    pub(super) fn new(
        sources: Sources,
        line: Arc<Line>,
        group: Group,
        notices: mpsc::Sender<RunnerNotice>,
        is_replaced: Arc<AtomicBool>,
        traits: Traits,
        keeper: Option<Arc<Keeper>>,
    ) -> Self {
        Self {
            sources,
            line,
            group,
            notices,
            is_replaced,
            traits,
            keeper,
            backlog: Backlog::default(),
            report: None,
            late_until: None,
            is_silent: false,
            heard_at: Instant::now(),
            last_words: None,
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            match self.next().await {
                Next::Told => {}
                Next::NobodyListens => self.group.kill(),
                Next::Published(Some(frames)) => self.on_published(frames),
                Next::Published(None) => self.is_silent = true,
                Next::Replied(Ok(frames)) => self.on_reply(frames).await,
                Next::Asked(Ok(frames)) => self.on_asked(frames).await,
                Next::Commanded(Ok(frames)) => {
                    self.received(frames).and_then(|message| self.line.answered(message));
                }
                // Its end is told by the process.
                Next::Replied(Err(error)) | Next::Asked(Err(error)) | Next::Commanded(Err(error)) => {
                    tracing::debug!(%error, "a kernel's channel is broken");
                }
                Next::Reported(answer) => self.on_report(answer.as_ref()),
                Next::Printed(stream, text) => self.printed(stream, text),
                Next::Late => self.finish_if_over(),
                Next::Silent => self.on_silence(),
                Next::Gone(status) => return self.end(exit_of(status)).await,
            }
        }
    }

    async fn next(&mut self) -> Next {
        let has_room = self.backlog.has_room();
        let quiet_from = self.line.running().as_ref().and_then(|execution| {
            let patience = match execution.exits() {
                Some(Exit { is_own: true, .. }) => FAREWELL,
                Some(Exit { is_own: false, .. }) | None => SILENCE,
            };
            execution.is_expected().then(|| self.heard_at.max(execution.began.into()) + patience)
        });
        let late_until = self.late_until;
        let Sources { published, shell, stdin, control, stdout, stderr, child, .. } = &mut self.sources;
        let (notices, backlog) = (&self.notices, &mut self.backlog);
        tokio::select! {
            room = notices.reserve(), if !backlog.notices.is_empty() => {
                let Ok(room) = room else { backlog.notices.clear(); return Next::NobodyListens };
                if let Some(notice) = backlog.pop() {
                    room.send(notice);
                }
                Next::Told
            }
            frames = published.next(), if has_room && !self.is_silent => Next::Published(frames),
            message = shell.recv() => Next::Replied(message),
            message = stdin.recv() => Next::Asked(message),
            message = control.recv() => Next::Commanded(message),
            answer = answered(&mut self.report), if self.report.is_some() => Next::Reported(answer),
            text = stdout.next(), if has_room && stdout.is_open => Next::Printed(OutputStream::Stdout, text),
            text = stderr.next(), if has_room && stderr.is_open => Next::Printed(OutputStream::Stderr, text),
            () = sleep_until(late_until.unwrap_or_else(Instant::now)), if late_until.is_some() => Next::Late,
            () = sleep_until(quiet_from.unwrap_or_else(Instant::now)), if quiet_from.is_some() => Next::Silent,
            status = child.wait() => Next::Gone(status),
        }
    }

    /// A message, where it is one.
    fn received(&self, frames: ZmqMessage) -> Option<Message> {
        match Message::decode(frames, self.line.key()) {
            Ok(message) => Some(message),
            Err(error) => {
                tracing::warn!(%error, "a kernel said something that is not understood");
                None
            }
        }
    }

    fn on_published(&mut self, frames: ZmqMessage) {
        self.heard_at = Instant::now();
        let Some(message) = self.received(frames) else { return };
        let parent = message.parent_id();
        let heard = match self.line.running().as_mut() {
            Some(execution) if parent.as_ref() == Some(&execution.id) => execution.hear(&message),
            // Of code that has ended, or of none: what it left running.
            Some(_) | None => published(None, &message).map(Vec::from_iter),
        };
        match heard {
            Ok(notices) => notices.into_iter().for_each(|notice| self.backlog.push(notice)),
            Err(error) => {
                let kind = &message.header.msg_type;
                tracing::warn!(%error, kind, "a kernel published something that is not understood");
            }
        }
        if self.line.running().as_mut().is_some_and(Execution::takes_interrupt) {
            let (line, group, how) = (Arc::clone(&self.line), self.group.clone(), self.traits.interrupt);
            // The answer of the kernel comes through this reader.
            tokio::spawn(async move { interrupt(&line, &group, how).await });
        }
        self.finish_if_over();
    }

    async fn on_reply(&mut self, frames: ZmqMessage) {
        let Some(message) = self.received(frames).and_then(|message| self.line.answered(message)) else {
            return;
        };
        let parent = message.parent_id();
        let mut asks_for_report = false;
        if let Some(execution) = self.line.running().as_mut()
            && parent.as_ref() == Some(&execution.id)
        {
            let shown = execution.replied(message.read::<ExecuteReply>().unwrap_or_default());
            shown.into_iter().for_each(|notice| self.backlog.push(notice));
            self.heard_at = Instant::now();
            asks_for_report = self.traits.has_helper && execution.lacks_report();
        }
        if asks_for_report {
            // A kernel that takes no more messages is ending, and this says nothing then.
            self.report = self.line.ask_for_report(&python::report()).await.ok();
        }
        self.finish_if_over();
    }

    fn on_report(&mut self, answer: Option<&Message>) {
        self.report = None;
        if let Some(execution) = self.line.running().as_mut() {
            execution.reported(answer.and_then(report_of));
        }
        self.finish_if_over();
    }

    async fn on_asked(&mut self, frames: ZmqMessage) {
        let Some(message) = self.received(frames) else { return };
        if message.header.msg_type != "input_request" {
            return;
        }
        let request = message.read().unwrap_or(InputRequest { prompt: String::new(), password: false });
        let ask = AskId::from_uuid(Uuid::new_v4());
        self.line.is_asked(ask, &message);
        let asks = self.line.running().as_mut().map(|execution| (execution.job, execution.takes_input()));
        let Some((job, begun)) = asks else { return self.line.answer(ask, None).await };
        let question = request.question(begun);
        self.drain_pipes();
        self.backlog.push(RunnerNotice::Asks { job, ask, question, timeout_ms: None });
    }

    /// Code whose reply is there has ended, whatever the kernel did not say.
    fn on_silence(&mut self) {
        self.heard_at = Instant::now();
        if self.report.is_some() {
            return;
        }
        let execution = self.line.running().take_if(|execution| execution.exits().is_none());
        match execution {
            Some(execution) => self.finish(execution),
            // It was to end itself.
            None => self.group.kill(),
        }
    }

    fn finish_if_over(&mut self) {
        if self.report.is_some() {
            return;
        }
        let line = Arc::clone(&self.line);
        let mut running = line.running();
        let Some(execution) = running.as_ref().filter(|execution| execution.is_over()) else { return };
        match execution.exits() {
            None => {}
            // The end of the process is that of the code.
            Some(Exit { is_own: true, .. }) => return,
            Some(Exit { is_own: false, .. }) => return self.group.kill(),
        }
        if self.traits.is_idle_early && execution.may_have_value() && !execution.failed() {
            let until = *self.late_until.get_or_insert_with(|| Instant::now() + LATE);
            if Instant::now() < until {
                return;
            }
        }
        self.late_until = None;
        let over = running.take();
        drop(running);
        over.into_iter().for_each(|execution| self.finish(execution));
    }

    fn finish(&mut self, execution: Execution) {
        self.drain_pipes();
        for notice in execution.finish() {
            if let (Some(keeper), RunnerNotice::Finished { job, report }) = (&self.keeper, &notice) {
                keeper.ended(*job, report);
            }
            self.backlog.push(notice);
        }
    }

    fn printed(&mut self, stream: OutputStream, text: String) {
        if !text.is_empty() {
            let job = self.job();
            self.backlog.push(RunnerNotice::Output { job, stream, text });
        }
    }

    fn job(&self) -> Option<JobId> {
        self.line.running().as_ref().map(|execution| execution.job)
    }

    /// Takes in what stands in the pipes now: what processes print that the kernel started.
    fn drain_pipes(&mut self) {
        for text in self.sources.stdout.drain() {
            self.printed(OutputStream::Stdout, text);
        }
        for text in self.sources.stderr.drain() {
            self.printed(OutputStream::Stderr, text);
        }
    }

    async fn end(mut self, exit: WorkerExit) {
        self.group.leader_is_gone();
        while let Ok(Some(frames)) = timeout(EXIT_GRACE, self.sources.published.next()).await {
            self.on_published(frames);
        }
        self.drain_pipes();
        let ended_by =
            self.line.running().take().and_then(|execution| Some((execution.job, execution.exits()?)));
        let exit = match ended_by {
            Some((job, Exit { code, .. })) => {
                let blame = Blame { job, is_sure: true };
                self.last_words = Some(LastWords { blame, reason: None, diagnostics: Vec::new() });
                // However the process ended then: that was its wish.
                WorkerExit::Code(code)
            }
            None => exit,
        };
        self.line.abandon();
        while let Some(notice) = self.backlog.pop() {
            // Nobody listens any more once the session has dropped its worker.
            self.notices.send(notice).await.ok();
        }
        if !self.is_replaced.load(Ordering::Acquire) {
            let last_words = self.last_words.take();
            self.notices.send(RunnerNotice::Exited { exit, last_words }).await.ok();
        }
    }
}

async fn answered(report: &mut Option<oneshot::Receiver<Message>>) -> Option<Message> {
    match report {
        Some(answer) => answer.await.ok(),
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(stream: OutputStream, text: &str) -> RunnerNotice {
        RunnerNotice::Output { job: None, stream, text: text.to_owned() }
    }

    #[test]
    fn text_that_waits_becomes_one_and_nothing_changes_places() {
        let mut backlog = Backlog::default();
        let (out, err) = (OutputStream::Stdout, OutputStream::Stderr);
        for (stream, text) in [(out, "a"), (out, "b"), (err, "c"), (out, "d")] {
            backlog.push(output(stream, text));
        }
        assert_eq!(backlog.bytes, 4);
        let told: Vec<_> = std::iter::from_fn(|| backlog.pop()).collect();
        assert_eq!(told, [output(out, "ab"), output(err, "c"), output(out, "d")]);
        assert_eq!(backlog.bytes, 0);
    }

    #[test]
    fn no_piece_is_too_large_and_there_is_an_end_to_the_room() {
        let mut backlog = Backlog::default();
        let page = "x".repeat(PIECE / 2 + 1);
        while backlog.has_room() {
            backlog.push(output(OutputStream::Stdout, &page));
        }
        assert!(backlog.bytes < ROOM + PIECE);
        while let Some(notice) = backlog.pop() {
            assert!(size(&notice) <= PIECE);
        }
    }
}
