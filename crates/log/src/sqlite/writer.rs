//! The one thread that writes. It takes what has queued, and what queues meanwhile, into one transaction, and answers
//! once that is durable.
//!
//! One flush of the disk then serves everybody who waited for the one before; no time is ever spent waiting for company.
//! A write that is refused has changed nothing, and so leaves the others alone without a savepoint, which would cost each
//! of them a copy of every page it touches. One that fails loses the transaction, and each of its writes is tried alone.
//!
//! The queue is bounded by refusing: a caller waits for its write to be durable anyway, so that a wait for room would
//! only move the same bytes into the futures of the callers. What was queued is never dropped.

use std::sync::Arc;

use mainstay_model::Error;
use rusqlite::Connection;
use tokio::sync::oneshot;
use tracing::Span;

use super::failure::failed;
use super::open::CHECKPOINT_PAGES;
use super::statements::Statements;
#[cfg(feature = "failpoints")]
use crate::failpoint::Failpoint;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::mpsc::{Receiver, Sender, channel};
use crate::sync::thread::{self, JoinHandle};
use crate::trace::Steps;

/// How much waits, and how much is written together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Writes that wait at once.
    pub(super) queued_writes: usize,
    /// Bytes of all that wait. A single larger write is taken when nothing else waits.
    pub(super) queued_bytes: usize,
    /// Writes in one transaction.
    pub(super) batch_writes: usize,
    /// Bytes after which a transaction takes no further write.
    pub(super) batch_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            queued_writes: 16 * 1024,
            queued_bytes: 256 * 1024 * 1024,
            batch_writes: 512,
            batch_bytes: 8 * 1024 * 1024,
        }
    }
}

/// The way to the thread. Dropped, it lets what is queued finish.
pub(super) struct Writer {
    queue: Option<Sender<Queued>>,
    thread: Option<JoinHandle<()>>,
    waiting: Arc<Waiting>,
    limits: Limits,
}

impl Writer {
    /// Starts the writer's thread.
    pub(super) fn start(connection: Connection, limits: Limits) -> Result<Self, Error> {
        let (queue, queued) = channel();
        let waiting = Arc::new(Waiting::default());
        let known = Arc::clone(&waiting);
        let thread = thread::Builder::new()
            .name("log-writer".to_owned())
            .spawn(move || {
                Worker { statements: Statements::of(&connection), queued, waiting: known, limits }.run();
            })
            .map_err(failed)?;
        Ok(Self { queue: Some(queue), thread: Some(thread), waiting, limits })
    }

    /// Queues a write at once, in the order of the calls; the future gives what it gave once it is durable. `write` is
    /// tried again where the transaction around it was lost, and so keeps nothing in memory of what it wrote.
    pub(super) fn submit<T, W>(
        &self,
        bytes: usize,
        write: W,
    ) -> impl Future<Output = Result<T, Error>> + Send + 'static + use<T, W>
    where
        T: Send + 'static,
        W: FnMut(&mut Statements<'_>) -> Result<T, WriteFailure> + Send + 'static,
    {
        self.submit_traced(bytes, Steps::queued(&Span::none()), write)
    }

    /// The same, as part of a trace.
    pub(super) fn submit_traced<T, W>(
        &self,
        bytes: usize,
        steps: Steps,
        write: W,
    ) -> impl Future<Output = Result<T, Error>> + Send + 'static + use<T, W>
    where
        T: Send + 'static,
        W: FnMut(&mut Statements<'_>) -> Result<T, WriteFailure> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let queued = self.waiting.add(bytes, &self.limits).and_then(|()| {
            let write = Box::new(Pending { write, result: None, reply });
            self.queue
                .as_ref()
                .and_then(|queue| queue.send(Queued { bytes, steps, write }).ok())
                .ok_or_else(stopped)
        });
        async move {
            queued?;
            answer.await.map_or_else(|_| Err(stopped()), |(answer, _)| answer)
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the log's writer died");
        }
    }
}

/// Why a write is not there.
#[derive(Debug)]
pub(super) enum WriteFailure {
    /// What it asks for may not be. It has changed nothing.
    Refused(Error),
    /// The database could not do it, and may have done a part.
    Failed(rusqlite::Error),
}

impl From<rusqlite::Error> for WriteFailure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<WriteFailure> for Error {
    fn from(unwritten: WriteFailure) -> Self {
        match unwritten {
            WriteFailure::Refused(error) => error,
            WriteFailure::Failed(error) => failed(error),
        }
    }
}

/// The appends that wait for the next batch.
#[derive(Default)]
struct Waiting {
    writes: AtomicUsize,
    bytes: AtomicUsize,
}

impl Waiting {
    fn add(&self, bytes: usize, limits: &Limits) -> Result<(), Error> {
        let others = self.writes.fetch_add(1, Ordering::Relaxed);
        let all_bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if others >= limits.queued_writes || (others > 0 && all_bytes > limits.queued_bytes) {
            self.remove(bytes);
            let reason = format!("{others} writes wait for the disk already");
            return Err(Error::StoreFailed { reason });
        }
        Ok(())
    }

    fn remove(&self, bytes: usize) {
        self.writes.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

struct Queued {
    bytes: usize,
    steps: Steps,
    write: Box<dyn Write>,
}

/// A write of any kind, as the thread sees it.
trait Write: Send {
    /// Does it; says whether the transaction can go on.
    fn apply(&mut self, statements: &mut Statements<'_>) -> bool;

    /// Answers its caller, once the transaction's fate is known.
    fn answer(self: Box<Self>, fate: Result<(), Error>);
}

/// The write goes back with its answer, to be freed by the thread that made it. Memory is freed where it came from, and two
/// threads that free there wait for each other.
struct Pending<T, W> {
    write: W,
    result: Option<Result<T, Error>>,
    reply: oneshot::Sender<(Result<T, Error>, W)>,
}

impl<T, W> Write for Pending<T, W>
where
    T: Send,
    W: FnMut(&mut Statements<'_>) -> Result<T, WriteFailure> + Send,
{
    fn apply(&mut self, statements: &mut Statements<'_>) -> bool {
        let written = (self.write)(statements);
        let failed = matches!(written, Err(WriteFailure::Failed(_)));
        let result = self.result.insert(written.map_err(Error::from));
        if let (true, Err(error)) = (failed, result) {
            tracing::error!(%error, "a write failed");
        }
        !failed
    }

    fn answer(self: Box<Self>, fate: Result<(), Error>) {
        let Self { write, result, reply } = *self;
        // A refusal, too, may rest on what was lost.
        let answer = fate.and_then(|()| result.unwrap_or_else(|| Err(stopped())));
        // The caller may have gone; what it asked for is done all the same.
        let _ = reply.send((answer, write));
    }
}

/// The state of the writer's thread.
struct Worker<'c> {
    statements: Statements<'c>,
    queued: Receiver<Queued>,
    waiting: Arc<Waiting>,
    limits: Limits,
}

impl Worker<'_> {
    fn run(mut self) {
        while let Ok(first) = self.queued.recv() {
            self.serve(first);
            if let Err(error) = self.checkpoint() {
                tracing::warn!(%error, "the write-ahead log could not be copied into the database");
            }
        }
    }

    /// Writes all that has queued in one transaction, and answers it. Where one of the writes lost the transaction, each
    /// is tried on its own.
    fn serve(&mut self, first: Queued) {
        let mut batch = vec![first];
        let fate = self.transact(|worker| worker.apply_queued(&mut batch));
        if matches!(fate, Err(LostTransaction::UnderWay)) && batch.len() > 1 {
            for mut queued in batch {
                let fate = self.transact(|worker| {
                    worker.apply(&mut queued)?;
                    queued.steps.flushed(1);
                    Ok(())
                });
                self.answer(vec![queued], fate);
            }
        } else {
            self.answer(batch, fate);
        }
    }

    fn transact(
        &mut self,
        apply: impl FnOnce(&mut Self) -> Result<(), LostTransaction>,
    ) -> Result<(), LostTransaction> {
        self.execute("BEGIN IMMEDIATE")?;
        let committed = apply(self).and_then(|()| self.commit());
        // A full disk can end the transaction by itself.
        if committed.is_err() && !self.statements.connection().is_autocommit() {
            self.execute("ROLLBACK")?;
        }
        committed
    }

    fn commit(&mut self) -> Result<(), LostTransaction> {
        #[cfg(feature = "failpoints")]
        Failpoint::BeforeCommit.pass();
        self.execute("COMMIT")?;
        #[cfg(feature = "failpoints")]
        Failpoint::AfterCommit.pass();
        Ok(())
    }

    /// Applies the batch, and lets it grow by what queues meanwhile: those who were just answered ask again, one by one,
    /// and the first of them alone would cost the others a flush.
    fn apply_queued(&mut self, batch: &mut Vec<Queued>) -> Result<(), LostTransaction> {
        let (mut applied, mut bytes) = (0, 0_usize);
        while let Some(queued) = batch.get_mut(applied) {
            #[cfg(feature = "failpoints")]
            if applied > 0 {
                Failpoint::DuringBatch.pass();
            }
            self.apply(queued)?;
            applied += 1;
            bytes = bytes.saturating_add(queued.bytes);
            if applied < self.limits.batch_writes && bytes < self.limits.batch_bytes {
                batch.extend(self.queued.try_recv());
            }
        }
        batch.iter_mut().for_each(|queued| queued.steps.flushed(applied));
        Ok(())
    }

    fn apply(&mut self, queued: &mut Queued) -> Result<(), LostTransaction> {
        queued.steps.written();
        if queued.write.apply(&mut self.statements) { Ok(()) } else { Err(LostTransaction::UnderWay) }
    }

    fn answer(&self, batch: Vec<Queued>, fate: Result<(), LostTransaction>) {
        let fate = match fate {
            // One that failed alone has its own answer.
            Ok(()) | Err(LostTransaction::UnderWay) => Ok(()),
            Err(LostTransaction::All(error)) => {
                tracing::error!(%error, writes = batch.len(), "a transaction failed");
                Err(failed(error))
            }
        };
        for Queued { bytes, steps, write } in batch {
            self.waiting.remove(bytes);
            // Before the answer, upon which the append's own span ends.
            drop(steps);
            write.answer(fate.clone());
        }
    }

    /// Copies the write-ahead log into the database once it is long, so that the next write begins it anew. Where a
    /// reader still needs the log, the next write cannot, and it is tried again after that one.
    fn checkpoint(&mut self) -> rusqlite::Result<()> {
        let (pages, copied): (i64, i64) = self
            .statements
            .get("PRAGMA wal_checkpoint(NOOP)")?
            .query_row((), |row| Ok((row.get(1)?, row.get(2)?)))?;
        if pages >= CHECKPOINT_PAGES && copied < pages {
            self.statements.get("PRAGMA wal_checkpoint(PASSIVE)")?.query_row((), |_| Ok(()))?;
        }
        Ok(())
    }

    fn execute(&mut self, sql: &'static str) -> Result<(), LostTransaction> {
        self.statements
            .get(sql)
            .and_then(|statement| statement.execute(()))
            .map(drop)
            .map_err(LostTransaction::All)
    }
}

/// How a transaction was lost.
enum LostTransaction {
    /// By one of its writes: the others may still succeed alone.
    UnderWay,
    /// As a whole: it did not begin, or did not become durable.
    All(rusqlite::Error),
}

fn stopped() -> Error {
    Error::StoreFailed { reason: "its writer has stopped".to_owned() }
}

#[cfg(test)]
#[cfg(feature = "shuttle")]
mod interleavings;

#[cfg(test)]
mod tests;
