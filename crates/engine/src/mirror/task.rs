//! The task of one mirror: it has the unsaved texts of a session, and the process in which they run. One text is worked on at a time; a newer
//! one ends what is under way.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mainstay_model::{BufferEnding, BufferRun, Error, Session, SessionState, SwapObstacle, UnsavedBuffer};
use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::buffers::{Buffers, DueSources};
use super::process_of;
use super::worker::{Beginning, MirrorWorker, PutIn};
use crate::sync::time::{Instant, sleep_until};

/// How often it is looked how much memory there is.
const LOOK: Duration = Duration::from_secs(30);

/// What comes to a mirror.
pub(super) enum Order {
    /// A newer text of a file.
    Put { path: String, version: u64, text: String, reply: oneshot::Sender<Result<BufferRun, Error>> },
    /// The text of a file is thrown away.
    Discard { path: String, reply: oneshot::Sender<()> },
    /// Files were saved, with these texts.
    Saved { files: Vec<(String, Option<String>)> },
    /// Which texts there are.
    List { reply: oneshot::Sender<Vec<UnsavedBuffer>> },
}

/// A text whose results somebody waits for.
struct Waiting {
    path: String,
    version: u64,
    came: Instant,
    reply: oneshot::Sender<Result<BufferRun, Error>>,
}

impl Waiting {
    fn told(&self, ending: BufferEnding) -> BufferRun {
        BufferRun::without_tests(self.path.clone(), self.version, ending)
    }

    fn answer(self, result: Result<BufferRun, Error>) {
        let duration_ms = self.came.elapsed().as_millis() as u64;
        // Who sent the text may have gone.
        self.reply.send(result.map(|run| BufferRun { duration_ms, ..run })).ok();
    }

    fn end(self, ending: BufferEnding) {
        let told = self.told(ending);
        self.answer(Ok(told));
    }
}

/// What is under way.
struct Round {
    work: Pin<Box<dyn Future<Output = RoundEnd> + Send>>,
    /// Tells it that something newer is there.
    newer: Arc<Notify>,
    waiting: Option<Waiting>,
    /// Whether the process was there before.
    is_used: bool,
}

/// What came of a round.
struct RoundEnd {
    worker: Option<MirrorWorker>,
    given: DueSources,
    /// The files that the process has as they were given.
    taken: Vec<String>,
    /// Those that no process would take.
    foreign: bool,
    result: Result<BufferRun, Error>,
}

/// The mirror of one session.
pub(super) struct Mirror {
    beginning: Arc<Beginning>,
    visible: watch::Receiver<Arc<Session>>,
    orders: mpsc::UnboundedReceiver<Order>,
    buffers: Buffers,
    worker: Option<MirrorWorker>,
    round: Option<Round>,
    next: Option<Waiting>,
    /// Whether something was saved or thrown away that the process has not.
    is_to_settle: bool,
    /// The process of the session that this is the mirror of.
    mirrors: Option<u32>,
    /// Whether the session has another process than when the one of this began.
    is_stale: bool,
    idle_at: Instant,
    look_at: Instant,
}

enum Next {
    Ordered(Option<Order>),
    Ended(RoundEnd),
    SessionChanged(bool),
    WorkerGone,
    Idle,
    Look,
}

impl Mirror {
    pub(super) fn new(
        beginning: Beginning,
        visible: watch::Receiver<Arc<Session>>,
        orders: mpsc::UnboundedReceiver<Order>,
    ) -> Self {
        let now = Instant::now();
        let mirrors = process_of(&visible.borrow());
        Self {
            idle_at: now + beginning.terms.idle,
            beginning: Arc::new(beginning),
            mirrors,
            visible,
            orders,
            buffers: Buffers::default(),
            worker: None,
            round: None,
            next: None,
            is_to_settle: false,
            is_stale: false,
            look_at: now + LOOK,
        }
    }

    /// Serves orders until nobody needs it any more. What it has ends with it.
    pub(super) async fn run(mut self) {
        loop {
            if self.round.is_none() {
                self.begin_round();
            }
            let next = tokio::select! {
                biased;
                order = self.orders.recv() => Next::Ordered(order),
                changed = self.visible.changed() => Next::SessionChanged(changed.is_ok()),
                end = round_end(&mut self.round) => Next::Ended(end),
                () = worker_gone(&mut self.worker) => Next::WorkerGone,
                () = sleep_until(self.idle_at), if self.round.is_none() => Next::Idle,
                () = sleep_until(self.look_at) => Next::Look,
            };
            match next {
                Next::Ordered(Some(order)) => self.take(order),
                Next::Ended(end) => self.round_ended(end),
                Next::SessionChanged(true) if self.goes_on() => {}
                Next::WorkerGone => self.worker = None,
                Next::Look if !self.memory_is_short() => self.look_at = Instant::now() + LOOK,
                Next::Ordered(None) | Next::SessionChanged(_) | Next::Idle | Next::Look => break,
            }
        }
        tracing::debug!(session = %self.beginning.spec.session, "a mirror ends");
        let waiting = self.round.take().and_then(|round| round.waiting).into_iter().chain(self.next.take());
        waiting.for_each(|waiting| waiting.end(BufferEnding::Lost));
    }

    fn take(&mut self, order: Order) {
        match order {
            Order::Put { path, version, text, reply } => match self.buffers.put(&path, version, text) {
                Ok(()) => {
                    self.idle_at = Instant::now() + self.beginning.terms.idle;
                    self.overtake(BufferEnding::Overtaken);
                    self.next = Some(Waiting { path, version, came: Instant::now(), reply });
                }
                Err(error) => {
                    reply.send(Err(error)).ok();
                }
            },
            Order::Discard { path, reply } => {
                if self.buffers.discard(&path) {
                    self.is_to_settle = true;
                    if self.next.as_ref().is_some_and(|next| next.path == path) {
                        self.overtake(BufferEnding::Discarded);
                    } else if let Some(round) = &self.round {
                        round.newer.notify_one();
                    }
                }
                reply.send(()).ok();
            }
            Order::Saved { files } => {
                for (path, text) in files {
                    self.buffers.saved(&path, text.as_deref());
                }
                self.is_to_settle = true;
            }
            Order::List { reply } => {
                reply.send(self.buffers.list()).ok();
            }
        }
    }

    /// Something newer is there: what waits for its turn has none any more, and what is under way ends.
    fn overtake(&mut self, ending: BufferEnding) {
        if let Some(waiting) = self.next.take() {
            waiting.end(ending);
        }
        if let Some(round) = &self.round {
            round.newer.notify_one();
        }
    }

    fn begin_round(&mut self) {
        if std::mem::take(&mut self.is_stale) {
            self.worker = None;
        }
        let waiting = self.next.take();
        if waiting.is_none() && !(self.is_to_settle && self.worker.is_some()) {
            return;
        }
        self.is_to_settle = false;
        if self.worker.is_none() {
            self.buffers.begin_again();
            self.mirrors = process_of(&self.visible.borrow());
        }
        let newer = Arc::<Notify>::default();
        let work = Work {
            given: self.buffers.due(),
            told: waiting.as_ref().map(|waiting| waiting.told(BufferEnding::Ran)),
            is_as_saved: self.buffers.is_empty(),
            newer: Arc::clone(&newer),
        };
        let is_used = self.worker.is_some();
        let work = Box::pin(work.carry_out(Arc::clone(&self.beginning), self.worker.take()));
        self.round = Some(Round { work, newer, waiting, is_used });
    }

    fn round_ended(&mut self, end: RoundEnd) {
        let RoundEnd { worker, given, taken, foreign, result } = end;
        self.worker = worker.filter(|worker| !worker.is_full(&self.beginning.terms));
        self.buffers.are_in(&given, &taken);
        let Some(Round { waiting: Some(waiting), is_used, .. }) = self.round.take() else { return };
        // It may have ended before anybody saw that, or the session has another meanwhile.
        let has_ended = is_used && matches!(result, Err(Error::WorkerFailed { .. }));
        if (has_ended || self.is_stale) && self.next.is_none() {
            self.next = Some(waiting);
            return;
        }
        if foreign {
            self.buffers.discard(&waiting.path);
            self.buffers.are_in(&self.buffers.due(), std::slice::from_ref(&waiting.path));
        }
        let is_gone = !self.buffers.has(&waiting.path);
        waiting.answer(result.map(|told| match told.ending {
            BufferEnding::Overtaken if is_gone => BufferRun { ending: BufferEnding::Discarded, ..told },
            _ => told,
        }));
    }

    /// Whether the session still needs it. Where the session has another process, this begins anew with the next text.
    fn goes_on(&mut self) -> bool {
        let session = Arc::clone(&self.visible.borrow_and_update());
        let has_other = process_of(&session).is_some_and(|process| Some(process) != self.mirrors);
        if has_other && (self.worker.is_some() || self.round.is_some()) {
            self.is_stale = true;
            self.is_to_settle = true;
            if let Some(round) = &self.round {
                round.newer.notify_one();
            }
        }
        session.deleted_at.is_none()
            && !matches!(session.state(), SessionState::Uninitialized | SessionState::Faulted)
    }

    fn memory_is_short(&self) -> bool {
        let terms = &self.beginning.terms;
        let is_short = terms.has_less_than(terms.memory_bytes / 2);
        if is_short {
            tracing::info!(session = %self.beginning.spec.session, "a mirror ends: memory is short");
        }
        is_short
    }
}

async fn round_end(round: &mut Option<Round>) -> RoundEnd {
    match round {
        Some(round) => round.work.as_mut().await,
        None => std::future::pending().await,
    }
}

async fn worker_gone(worker: &mut Option<MirrorWorker>) {
    match worker {
        Some(worker) => worker.ended().await,
        None => std::future::pending().await,
    }
}

/// What a round does.
struct Work {
    given: DueSources,
    /// What is told of the text that it is for; none where it only takes in what was saved or thrown away.
    told: Option<BufferRun>,
    /// Whether all is as it is saved then.
    is_as_saved: bool,
    newer: Arc<Notify>,
}

impl Work {
    async fn carry_out(mut self, beginning: Arc<Beginning>, worker: Option<MirrorWorker>) -> RoundEnd {
        let mut taken = Vec::new();
        let ended = |worker, given, taken, result| RoundEnd { worker, given, taken, foreign: false, result };
        let worker = match worker {
            Some(worker) => Ok(worker),
            None => MirrorWorker::start(&beginning).await.inspect(|worker| {
                let (session, pid) = (beginning.spec.session, worker.pid());
                tracing::info!(%session, pid, "a mirror is there");
            }),
        };
        let mut worker = match worker {
            Ok(worker) => worker,
            Err(error) => return ended(None, self.given, taken, Err(error)),
        };
        let Some(mut told) = self.told.take() else {
            let settled = self.settle(&beginning, &mut worker, &mut taken).await;
            let worker = settled.is_ok().then_some(worker);
            let nothing = BufferRun::without_tests(String::new(), 0, BufferEnding::Ran);
            return ended(worker, self.given, taken, settled.map(|()| nothing));
        };
        match self.put_in(&beginning, &mut worker, &told.path, &mut taken).await {
            Ok(obstacles) if obstacles.is_empty() => {
                let is_fit = worker.run_reached(&beginning, &mut told, &self.newer).await;
                ended(is_fit.then_some(worker), self.given, taken, Ok(told))
            }
            Ok(obstacles) => {
                let foreign = obstacles.iter().all(|one| is_foreign(&one.code));
                let told = BufferRun { ending: BufferEnding::Obstacles, obstacles, ..told };
                RoundEnd { foreign, ..ended(Some(worker), self.given, taken, Ok(told)) }
            }
            Err(error) => ended(None, self.given, taken, Err(error)),
        }
    }

    /// Has all run that is due, or what this file has where that cannot be.
    async fn put_in(
        &self,
        beginning: &Beginning,
        worker: &mut MirrorWorker,
        path: &str,
        taken: &mut Vec<String>,
    ) -> Result<Vec<SwapObstacle>, Error> {
        let all = self.given.sources.clone();
        let is_alone = all.len() < 2;
        let paths: Vec<_> = all.iter().map(|source| source.path.clone()).collect();
        match worker.put_in(all, &beginning.limits).await? {
            PutIn::Runs => {
                taken.extend(paths);
                return Ok(Vec::new());
            }
            PutIn::Refused(obstacles) if is_alone => return Ok(obstacles),
            PutIn::Refused(_) => {}
        }
        let own = self.given.sources.iter().filter(|source| source.path == path).cloned().collect();
        match worker.put_in(own, &beginning.limits).await? {
            PutIn::Runs => {
                taken.push(path.to_owned());
                Ok(Vec::new())
            }
            PutIn::Refused(obstacles) => Ok(obstacles),
        }
    }

    /// Has what was saved or thrown away run as it is saved. What cannot waits for its next save.
    async fn settle(
        &self,
        beginning: &Beginning,
        worker: &mut MirrorWorker,
        taken: &mut Vec<String>,
    ) -> Result<(), Error> {
        let saved: Vec<_> =
            self.given.sources.iter().filter(|source| source.text.is_none()).cloned().collect();
        taken.extend(saved.iter().map(|source| source.path.clone()));
        if !saved.is_empty()
            && let PutIn::Refused(_) = worker.put_in(saved.clone(), &beginning.limits).await?
            && saved.len() > 1
        {
            for one in saved {
                worker.put_in(vec![one], &beginning.limits).await?;
            }
        }
        if self.is_as_saved { worker.settle(beginning).await } else { Ok(()) }
    }
}

/// Whether an obstacle says that the file is none of the project's.
fn is_foreign(code: &str) -> bool {
    matches!(code, "unknown_source" | "no_project" | "shared_source" | "gone")
}
