//! The session's worker: started and dropped, told what to do, heard and asked.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mainstay_model::affordance::{Availability, availability};
use mainstay_model::{Action, Error, JobId, Notice, RunnerNotice, WorkerExit};
use tokio::sync::{mpsc, oneshot};

use super::{NOTICES, OUTPUT_INTERVAL, SessionTask};
use crate::output::Piece;
use crate::runner::{Runner, RunnerSpec, Submission};
use crate::sync::task::spawn;
use crate::sync::time::{Instant, timeout};
use crate::validity::differs;
use crate::warm_up::{FromWorker, WarmUp, exited};
use crate::worker::{Order, Worker, reset};

impl SessionTask {
    pub(super) fn start_worker(&mut self, after: Duration) {
        self.drop_worker();
        let kind = self.session.kind.clone();
        let Some(factory) = self.shared.factories.iter().find(|factory| factory.serves(&kind)) else {
            let unknown = Notice::WarmUpFailed { error: Error::KernelUnknown { kind } };
            return self.tell_later(FromWorker::Notice(unknown));
        };
        let warm_up = WarmUp {
            factory: Arc::clone(factory),
            spec: RunnerSpec {
                session: self.session.id,
                kind,
                working_directory: PathBuf::from(&self.session.working_directory),
            },
            log: Arc::clone(&self.shared.log),
            limits: self.shared.limits.clone(),
            starts: Arc::clone(&self.shared.starts),
            breakers: Arc::clone(&self.shared.breakers),
            after,
            inherited: self.session.inherited(),
            definitions_since: self.session.definitions_since,
            up_to: self.session.last_seq,
            committed: self.visible.clone(),
            tell: self.worker_in.clone(),
        };
        self.worker = Some(Worker::start(warm_up));
    }

    /// Kills the worker. The channel is replaced with it, so that nothing it still says is taken for its successor's.
    pub(super) fn drop_worker(&mut self) {
        self.worker = None;
        self.grace = None;
        (self.worker_in, self.from_worker) = mpsc::channel(NOTICES);
    }

    pub(super) fn reset_worker(&mut self) {
        let Some(runner) = self.runner() else { return self.start_worker(Duration::ZERO) };
        let limit = Duration::from_millis(self.shared.limits.worker_start_ms);
        spawn(reset(runner, limit, self.worker_in.clone()));
    }

    pub(super) fn run_job(&mut self, job: JobId, code: String, file: Option<String>) {
        if !self.order(Order::Run(Submission { job, code, file })) {
            self.tell_later(FromWorker::Notice(exited(WorkerExit::Unknown)));
        }
    }

    pub(super) fn order(&self, order: Order) -> bool {
        self.worker.as_ref().is_some_and(|worker| worker.order(order))
    }

    /// Says something to this task as if the worker had, once the present decision is through.
    fn tell_later(&self, word: FromWorker) {
        let tell = self.worker_in.clone();
        spawn(async move { tell.send(word).await });
    }

    pub(super) fn hear(&mut self, word: FromWorker) {
        match word {
            FromWorker::Started(runner) => {
                if let Some(worker) = &mut self.worker {
                    worker.is_up(runner, Duration::from_millis(self.shared.limits.cancel_grace_ms));
                }
            }
            FromWorker::Replays(progress) => {
                let (session, warm_ups) = (self.session.id, &self.shared.warm_ups);
                if let Some(worker) = &mut self.worker {
                    worker.replaying.get_or_insert_with(|| warm_ups.begin(session)).has_come_to(progress);
                }
            }
            FromWorker::Notice(Notice::Runner(RunnerNotice::Output { job, stream, text })) => {
                let pieces = self.output.push(job, stream, &text);
                self.record_output(pieces);
            }
            FromWorker::Notice(
                notice @ (Notice::WarmedUp { .. } | Notice::Runner(RunnerNotice::Finished { .. })),
            ) => {
                self.is_done_replaying();
                self.notice(notice);
                self.look();
            }
            FromWorker::Notice(notice) => {
                self.is_done_replaying();
                self.notice(notice);
            }
        }
    }

    /// Before what follows from it is published: nobody hears of a replay whose end they have heard of.
    fn is_done_replaying(&mut self) {
        if let Some(worker) = &mut self.worker {
            worker.replaying = None;
        }
    }

    /// Looks how the files are now that the session's code rests on, without waiting for it.
    fn look(&self) {
        let Some(known) = self.session.surroundings.as_ref().map(|known| &known.present) else { return };
        if known.is_empty() {
            return;
        }
        let (watch, known, tell) = (self.shared.watch.clone(), known.clone(), self.worker_in.clone());
        spawn(async move {
            let found = watch.look_at(known.clone()).await;
            if differs(&known, &found) {
                // The session's task may be gone; the next look finds the same.
                tell.send(FromWorker::Notice(Notice::LookedAt { found })).await.ok();
            }
        });
    }

    /// Hears what the worker has said already, before it is killed for what it has not.
    pub(super) fn hear_out(&mut self) {
        for _ in 0..NOTICES {
            let Ok(word) = self.from_worker.try_recv() else { return };
            self.hear(word);
        }
    }

    pub(super) fn flush_output(&mut self) {
        let held = self.output.flush();
        self.record_output(held);
    }

    fn record_output(&mut self, pieces: impl IntoIterator<Item = Piece>) {
        let withheld = self.session.running().filter(|running| running.withheld).map(|running| running.job);
        for piece in pieces {
            let notice = match piece {
                Piece::Chunk(RunnerNotice::Output { job: Some(job), stream, text })
                    if Some(job) == withheld =>
                {
                    self.unstored.push((stream, text));
                    continue;
                }
                Piece::Chunk(output) => Notice::Runner(output),
                Piece::Cut(job) => {
                    Notice::OutputCut { job, limit: self.shared.limits.output_bytes_per_job as u64 }
                }
            };
            self.notice(notice);
        }
        self.flush_at = match (self.output.is_pending(), self.flush_at) {
            (false, _) => None,
            (true, Some(at)) => Some(at),
            (true, None) => Some(Instant::now() + OUTPUT_INTERVAL),
        };
    }

    /// Passes a query to the worker without waiting for it.
    pub(super) fn query<T, F, A>(&self, action: Action, reply: oneshot::Sender<Result<T, Error>>, ask: A)
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send,
        A: FnOnce(Arc<dyn Runner>) -> F + Send + 'static,
    {
        if let Err(error) = self.must_be_there().and_then(|()| self.shared.must_serve(&self.session.kind)) {
            reply.send(Err(error)).ok();
            return;
        }
        let state = self.session.state();
        let runner = match self.runner() {
            Some(runner) if availability(state, action) != Availability::Refused => runner,
            Some(_) | None => {
                reply.send(Err(Error::NotOffered { action, state })).ok();
                return;
            }
        };
        let limit_ms = self.shared.limits.query_ms;
        spawn(async move {
            let answer = timeout(Duration::from_millis(limit_ms), ask(runner)).await;
            reply.send(answer.unwrap_or(Err(Error::Timeout { limit_ms }))).ok();
        });
    }

    pub(super) fn runner(&self) -> Option<Arc<dyn Runner>> {
        self.worker.as_ref()?.runner().cloned()
    }
}
