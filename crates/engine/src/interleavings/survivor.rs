//! A worker in memory that outlives its daemons, as one in a shim does. It obeys the newest owner alone, and keeps what it says until that
//! is acknowledged. `count N` prints the numbers up to N, `loop` runs until it is interrupted.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use mainstay_model::{
    Capabilities, Diagnostic, Epoch, Error, EvalResult, JobEnding, JobId, JobReport, NoticeNumber,
    OutputStream, RunnerId, RunnerInfo, RunnerNotice, Seq, SessionId, SessionKind, TextPosition, WorkerExit,
};
use mainstay_runner::query::{KernelAnswer, KernelQuery};
use mainstay_runner::{
    AskAnswer, Completions, FoundRunner, GivenToRunner, Kernel, Process, ResourceUsage, Runner,
    RunnerFactory, RunnerSpec, StartObserver, StartedRunner, StoredProgress, Submission,
};
use shuttle::future::{spawn, yield_now};
use tokio::sync::{mpsc, watch};
use uuid::Uuid;

use super::memory_log::MemoryLog;

/// Starts workers, and finds them again.
pub(super) struct Survivors {
    log: Arc<MemoryLog>,
    last: Mutex<Option<Arc<Survivor>>>,
    started: Mutex<usize>,
}

struct Survivor {
    id: RunnerId,
    session: SessionId,
    log: Arc<MemoryLog>,
    life: Mutex<Life>,
    /// Changes with everything that happens to it.
    news: watch::Sender<()>,
}

#[derive(Default)]
struct Life {
    /// The newest owner that it has obeyed.
    epoch: Option<Epoch>,
    /// Who has it: one after another.
    connection: u64,
    said: Vec<RunnerNotice>,
    acknowledged: u64,
    /// What it ran, in order, and what of that has ended.
    ran: Vec<(JobId, String)>,
    ended: usize,
    is_interrupted: bool,
    is_killed: bool,
}

/// What one owner has it by.
struct Handle {
    survivor: Arc<Survivor>,
    connection: u64,
}

impl Survivors {
    /// Of the sessions of this store.
    pub(super) fn new(log: &Arc<MemoryLog>) -> Arc<Self> {
        Arc::new(Self { log: Arc::clone(log), last: Mutex::default(), started: Mutex::default() })
    }

    /// All code that the last worker was given.
    pub(super) fn ran(&self) -> Vec<String> {
        let last = self.last.lock().unwrap();
        last.iter()
            .flat_map(|last| last.life().ran.iter().map(|(_, code)| code.clone()).collect::<Vec<_>>())
            .collect()
    }

    /// How many workers were started.
    pub(super) fn started(&self) -> usize {
        *self.started.lock().unwrap()
    }

    /// The worker that lives.
    fn alive(&self) -> Option<Arc<Survivor>> {
        self.last.lock().unwrap().clone().filter(|last| !last.life().is_killed)
    }
}

impl Survivor {
    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap()
    }

    fn change<T>(&self, change: impl FnOnce(&mut Life) -> T) -> T {
        let changed = change(&mut self.life());
        self.news.send_replace(());
        changed
    }

    /// Waits until it is so.
    async fn until<T>(&self, mut is_so: impl FnMut(&mut Life) -> Option<T>) -> T {
        let mut news = self.news.subscribe();
        loop {
            if let Some(so) = is_so(&mut self.life()) {
                return so;
            }
            news.changed().await.unwrap();
        }
    }

    /// Whether it obeys an owner that comes, and from now on none of an older epoch.
    fn obeys(&self, epoch: Epoch) -> bool {
        self.change(|life| {
            let is_newer = Some(epoch) > life.epoch;
            life.epoch = life.epoch.max(Some(epoch));
            is_newer
        })
    }

    /// What whoever has it from now on is given: the notices from the first that is not acknowledged.
    fn hand_out(self: &Arc<Self>) -> StartedRunner {
        let (connection, kept_from) = self.change(|life| {
            life.connection += 1;
            (life.connection, life.acknowledged)
        });
        let (tell, notices) = mpsc::channel(2);
        spawn(Arc::clone(self).tell(connection, kept_from, tell));
        let handle = Handle { survivor: Arc::clone(self), connection };
        StartedRunner {
            id: self.id,
            runner: Runner::Kernel(Arc::new(handle)),
            next: NoticeNumber(kept_from + 1),
            notices,
        }
    }

    /// Tells an owner what it says, until another has it: then it is gone for the one before.
    async fn tell(self: Arc<Self>, connection: u64, from: u64, tell: mpsc::Sender<RunnerNotice>) {
        for index in usize::try_from(from).unwrap().. {
            let next = self.until(|life| {
                let is_over = life.is_killed || life.connection != connection;
                if is_over { Some(None) } else { life.said.get(index).cloned().map(Some) }
            });
            let Some(notice) = next.await else {
                // As the connection to a shim ends for whoever is not its owner any more.
                tell.send(RunnerNotice::Exited { exit: WorkerExit::Unknown, last_words: None }).await.ok();
                return;
            };
            if tell.send(notice).await.is_err() {
                return;
            }
        }
    }

    async fn run(self: Arc<Self>, job: JobId, code: String) {
        let mut ending = JobEnding::Completed;
        match code.strip_prefix("count ") {
            Some(count) => {
                for number in 1..=count.parse::<u32>().unwrap() {
                    yield_now().await;
                    let text = format!("{number}\n");
                    self.say(RunnerNotice::Output { job: Some(job), stream: OutputStream::Stdout, text });
                }
            }
            None => {
                self.until(|life| (life.is_interrupted || life.is_killed).then_some(())).await;
                ending = JobEnding::Interrupted { kept: 0 };
            }
        }
        let report = JobReport {
            ending,
            result: EvalResult::default(),
            changes_state: false,
            took: Duration::ZERO,
            references: None,
        };
        self.change(|life| {
            life.said.push(RunnerNotice::Finished { job, report });
            life.ended += 1;
            life.is_interrupted = false;
        });
    }

    fn say(&self, notice: RunnerNotice) {
        self.change(|life| life.said.push(notice));
    }
}

#[async_trait]
impl RunnerFactory for Survivors {
    fn serves(&self, _: &SessionKind) -> bool {
        true
    }

    fn capabilities(&self, kind: &SessionKind) -> Capabilities {
        Capabilities::of_kind(kind)
    }

    async fn start(&self, spec: RunnerSpec, _observer: StartObserver) -> Result<StartedRunner, Error> {
        yield_now().await;
        if let Some(alive) = self.alive() {
            assert!(alive.life().epoch > Some(spec.epoch), "a start meets a worker that its owner has left");
            return Err(obeys_another());
        }
        let survivor = Arc::new(Survivor {
            id: RunnerId::from_uuid(Uuid::now_v7()),
            session: spec.session,
            log: Arc::clone(&self.log),
            life: Mutex::new(Life { epoch: Some(spec.epoch), ..Life::default() }),
            news: watch::Sender::new(()),
        });
        *self.last.lock().unwrap() = Some(Arc::clone(&survivor));
        *self.started.lock().unwrap() += 1;
        Ok(survivor.hand_out())
    }

    async fn adopt(&self, spec: &RunnerSpec, stored: StoredProgress) -> Result<Option<FoundRunner>, Error> {
        yield_now().await;
        let Some(survivor) = self.alive() else { return Ok(None) };
        if !survivor.obeys(spec.epoch) {
            return Err(obeys_another());
        }
        if stored.taken.runner == survivor.id {
            survivor.change(|life| life.acknowledged = life.acknowledged.max(stored.taken.up_to.0));
        }
        let jobs = survivor.life().ran.iter().map(|(job, _)| *job).collect();
        let given = GivenToRunner { jobs, ..GivenToRunner::default() };
        let found = FoundRunner { given, started: survivor.hand_out(), is_gone: false };
        yield_now().await;
        Ok(Some(found))
    }

    async fn end_left(&self, spec: &RunnerSpec) {
        yield_now().await;
        if let Some(survivor) = self.alive().filter(|survivor| survivor.obeys(spec.epoch)) {
            survivor.change(|life| life.is_killed = true);
        }
    }
}

fn obeys_another() -> Error {
    Error::WorkerFailed { reason: "it has obeyed the owner of a newer epoch".to_owned() }
}

impl Handle {
    /// Nothing that an owner does counts once another has it.
    fn give<T: Default>(&self, change: impl FnOnce(&mut Life) -> T) -> T {
        self.survivor
            .change(|life| if life.connection == self.connection { change(life) } else { T::default() })
    }
}

#[async_trait]
impl Process for Handle {
    fn info(&self) -> RunnerInfo {
        RunnerInfo {
            kernel: "survivor".to_owned(),
            runtime: "shuttle".to_owned(),
            language: None,
            pid: Some(1),
            references: None,
            startup: None,
        }
    }

    async fn answer(&self, _: AskAnswer) {
        unreachable!("nothing is asked here")
    }

    async fn interrupt(&self) {
        yield_now().await;
        self.give(|life| life.is_interrupted = life.ended < life.ran.len());
    }

    fn acknowledge(&self, up_to: NoticeNumber, _: Seq) {
        let taken = self.survivor.log.has_taken(self.survivor.session);
        assert!(taken >= up_to, "{up_to:?} is acknowledged, and {taken:?} is stored");
        self.give(|life| life.acknowledged = life.acknowledged.max(up_to.0));
    }

    fn outlives_daemon(&self) -> bool {
        true
    }

    fn kill(&self) {
        self.give(|life| life.is_killed = true);
    }

    fn usage(&self) -> Option<ResourceUsage> {
        None
    }
}

#[async_trait]
impl Kernel for Handle {
    async fn run(&self, submission: Submission) {
        yield_now().await;
        let Submission { job, code, .. } = submission;
        // What comes twice is heeded once.
        let is_new = self.give(|life| {
            let is_new = life.ran.iter().all(|(known, _)| *known != job);
            if is_new {
                life.ran.push((job, code.clone()));
            }
            is_new
        });
        if is_new {
            spawn(Arc::clone(&self.survivor).run(job, code));
        }
    }

    async fn build(&self, _: JobId) {}

    async fn reset(&self) -> Result<RunnerInfo, Error> {
        Ok(self.info())
    }

    async fn check(&self, _: String, _: Option<String>) -> Result<Vec<Diagnostic>, Error> {
        Ok(Vec::new())
    }

    async fn complete(&self, _: String, _: TextPosition) -> Result<Completions, Error> {
        Ok(Completions::default())
    }

    async fn query(&self, _: KernelQuery) -> Result<KernelAnswer, Error> {
        Ok(KernelAnswer::Values(Vec::new()))
    }
}
