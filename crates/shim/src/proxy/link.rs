//! The connection to a shim: what is sent, in order, and the questions that wait for their answers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use mainstay_model::{Error, JobId, RunnerInfo, RunnerNotice};
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use super::reader::Told;
use crate::activity::{Activity, Work};
use crate::ending::FAREWELL;
use crate::messages::{ShimAnswer, ShimQuestion, ToShim, WINDOW, encode};
use crate::stream::{Incoming, Outgoing};

/// The process of a shim, which is killed where it does not obey.
#[derive(Clone, Debug)]
pub(crate) struct ShimProcess {
    pub(crate) pid: u32,
    /// When it was started, so that no other process of its number is meant.
    pub(crate) started: Option<u64>,
}

impl ShimProcess {
    pub(crate) fn of(pid: u32) -> Self {
        Self { pid, started: pid_of(pid).and_then(mainstay_os::system::started_at) }
    }

    /// Sends it a signal, where it is still the same; returns whether it was. When it is killed its worker ends with it.
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        self.lives() && pid_of(self.pid).is_some_and(|pid| kill_process(pid, signal).is_ok())
    }

    /// Continues it where it is suspended: nobody else would, and what it runs would be lost.
    pub(crate) fn wake(&self) {
        if self.lives() && pid_of(self.pid).is_some_and(mainstay_os::system::is_suspended) {
            tracing::warn!(pid = self.pid, "a shim is suspended, and is continued");
            self.signal(Signal::CONT);
        }
    }

    /// Whether it is there. It is never this process, although a record may say so where processes were given new numbers.
    pub(crate) fn lives(&self) -> bool {
        if self.pid == std::process::id() {
            return false;
        }
        let now = pid_of(self.pid).and_then(mainstay_os::system::started_at);
        self.started.is_some() && now == self.started
    }
}

fn pid_of(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// The connection to a shim, as those who speak with its runner have it.
pub(crate) struct Link {
    frames: mpsc::UnboundedSender<Bytes>,
    questions: Arc<Questions>,
    info: Mutex<RunnerInfo>,
    /// The job that was given last: an interrupt is meant for it.
    last_job: Mutex<Option<JobId>>,
    process: ShimProcess,
    work: Arc<Work>,
}

/// The questions that wait for their answers.
#[derive(Default)]
pub(super) struct Questions {
    last: AtomicU64,
    waiting: Mutex<Waiting>,
    /// Whether the shim was told to end.
    is_killed: AtomicBool,
    /// Whether the connection has ended.
    is_closed: watch::Sender<bool>,
}

#[derive(Default)]
struct Waiting {
    answers: HashMap<u64, oneshot::Sender<Result<ShimAnswer, Error>>>,
    /// Whether the shim is gone, so that none is answered any more.
    is_over: bool,
}

impl Questions {
    pub(super) fn answer(&self, id: u64, answer: Result<ShimAnswer, Error>) {
        let waiting = lock(&self.waiting).answers.remove(&id);
        // Who asked may have given up.
        waiting.map(|waiting| waiting.send(answer).ok());
    }

    /// Whether the shim was told to end.
    pub(super) fn is_killed(&self) -> bool {
        self.is_killed.load(Ordering::Acquire)
    }

    /// The connection has ended: the shim is gone, or obeys another.
    pub(super) fn is_closed(&self) {
        self.end();
        self.is_closed.send_replace(true);
    }

    /// Nobody is answered any more.
    pub(super) fn end(&self) {
        let mut waiting = lock(&self.waiting);
        waiting.is_over = true;
        waiting.answers.clear();
    }

    fn expect(&self) -> (u64, oneshot::Receiver<Result<ShimAnswer, Error>>) {
        let id = self.last.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        let mut waiting = lock(&self.waiting);
        if !waiting.is_over {
            waiting.answers.insert(id, answer);
        }
        (id, answered)
    }
}

impl Link {
    /// Speaks over a connection from now on; gives the notices that come over it.
    pub(crate) fn new(
        info: RunnerInfo,
        process: ShimProcess,
        incoming: Incoming,
        outgoing: Outgoing,
        activity: &Activity,
    ) -> (Self, mpsc::Receiver<RunnerNotice>) {
        let (frames, outbox) = mpsc::unbounded_channel();
        let questions = Arc::<Questions>::default();
        // So many are told before they are taken: reading never waits for the session.
        let (tell, notices) = mpsc::channel(WINDOW as usize);
        let work = Arc::new(Work::of(activity));
        let told = Told {
            tell,
            frames: frames.downgrade(),
            questions: Arc::clone(&questions),
            work: Arc::clone(&work),
        };
        tokio::spawn(super::read(incoming, told));
        tokio::spawn(write(outgoing, outbox));
        let link =
            Self { frames, questions, info: Mutex::new(info), last_job: Mutex::default(), process, work };
        (link, notices)
    }

    pub(super) fn info(&self) -> RunnerInfo {
        lock(&self.info).clone()
    }

    pub(super) fn keep_info(&self, info: RunnerInfo) {
        *lock(&self.info) = info;
    }

    pub(super) fn last_job(&self) -> Option<JobId> {
        *lock(&self.last_job)
    }

    /// Gives the runner a job.
    pub(super) fn begin(&self, job: JobId, message: &ToShim) {
        *lock(&self.last_job) = Some(job);
        self.work.begins(job);
        self.tell(message);
    }

    /// Has the runner's project built for a job.
    pub(super) fn build(&self, job: JobId) {
        *lock(&self.last_job) = Some(job);
        self.work.builds(job);
        self.tell(&ToShim::Build { job });
    }

    /// Tells the shim something, without waiting for it.
    pub(super) fn tell(&self, message: &ToShim) {
        match encode(message) {
            // Where the shim is gone, its notices say so.
            Ok(frame) => drop(self.frames.send(frame)),
            Err(error) => tracing::error!(%error, "a runner cannot be told something"),
        }
    }

    pub(super) async fn ask(&self, question: ShimQuestion) -> Result<ShimAnswer, Error> {
        let (id, answered) = self.questions.expect();
        self.tell(&ToShim::Question { id, question });
        let ended = |_| Error::WorkerFailed { reason: "it ended before it answered".to_owned() };
        answered.await.map_err(ended)?
    }

    /// Has the runner ended. A shim that does not see to it is killed.
    pub(super) fn kill(&self) {
        if self.questions.is_killed.swap(true, Ordering::AcqRel) {
            return;
        }
        self.tell(&ToShim::Kill);
        let process = self.process.clone();
        let mut closed = self.questions.is_closed.subscribe();
        tokio::spawn(async move {
            // A shim that obeys another by now has closed the connection too.
            if timeout(FAREWELL, closed.wait_for(|is_closed| *is_closed)).await.is_err() {
                tracing::warn!(pid = process.pid, "a shim does not end, and is killed");
                process.signal(Signal::KILL);
            }
        });
    }
}

async fn write(mut outgoing: Outgoing, mut outbox: mpsc::UnboundedReceiver<Bytes>) {
    while let Some(frame) = outbox.recv().await {
        if let Err(error) = outgoing.send_frame(frame).await {
            tracing::debug!(%error, "a shim hears no more");
            return;
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
