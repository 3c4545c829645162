//! The one thread that writes. It drains what has queued into one transaction, and answers once that is durable.
//!
//! One flush of the disk then serves everybody who waited for the one before; no time is ever spent waiting for company.
//! Each write has a savepoint of its own, so that a refused one leaves the others alone.
//!
//! The queue is bounded by refusing: a caller waits for its write to be durable anyway, so that a wait for room would
//! only move the same bytes into the futures of the callers. What was queued is never dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use mainstay_model::Error;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::failed;
use super::open::CHECKPOINT_PAGES;

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
    /// Starts the thread.
    pub(super) fn start(connection: Connection, limits: Limits) -> Result<Self, Error> {
        let (queue, queued) = channel();
        let waiting = Arc::new(Waiting::default());
        let worker = Worker { connection, queued, waiting: Arc::clone(&waiting), limits };
        let thread = thread::Builder::new()
            .name("log-writer".to_owned())
            .spawn(move || worker.run())
            .map_err(failed)?;
        Ok(Self { queue: Some(queue), thread: Some(thread), waiting, limits })
    }

    /// Queues a write at once, in the order of the calls; the future gives what it gave once it is durable. `write` is
    /// tried again where the transaction around it was lost.
    pub(super) fn submit<T, W>(
        &self,
        bytes: usize,
        write: W,
    ) -> impl Future<Output = Result<T, Error>> + Send + 'static + use<T, W>
    where
        T: Send + 'static,
        W: FnMut(&Connection) -> Result<T, Error> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let queued = self.waiting.add(bytes, &self.limits).and_then(|()| {
            let write = Box::new(Pending { write, result: None, reply });
            self.queue.as_ref().and_then(|queue| queue.send(Queued { bytes, write }).ok()).ok_or_else(stopped)
        });
        async move {
            queued?;
            answer.await.unwrap_or_else(|_| Err(stopped()))
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

/// What waits.
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
    write: Box<dyn Write>,
}

/// A write of any kind, as the thread sees it.
trait Write: Send {
    /// Does it; says whether it stays.
    fn apply(&mut self, connection: &Connection) -> bool;

    /// Answers its caller, once the transaction's fate is known.
    fn answer(self: Box<Self>, fate: Result<(), Error>);
}

struct Pending<T, W> {
    write: W,
    result: Option<Result<T, Error>>,
    reply: oneshot::Sender<Result<T, Error>>,
}

impl<T, W> Write for Pending<T, W>
where
    T: Send,
    W: FnMut(&Connection) -> Result<T, Error> + Send,
{
    fn apply(&mut self, connection: &Connection) -> bool {
        self.result.insert((self.write)(connection)).is_ok()
    }

    fn answer(self: Box<Self>, fate: Result<(), Error>) {
        let answer = match (self.result, fate) {
            (Some(Ok(_)) | None, Err(error)) => Err(error),
            (Some(result), _) => result,
            (None, Ok(())) => Err(stopped()),
        };
        // The caller may have gone; what it asked for is done all the same.
        let _ = self.reply.send(answer);
    }
}

/// The thread.
struct Worker {
    connection: Connection,
    queued: Receiver<Queued>,
    waiting: Arc<Waiting>,
    limits: Limits,
}

impl Worker {
    fn run(self) {
        while let Ok(first) = self.queued.recv() {
            let batch = self.drain(first);
            self.commit(batch);
            if let Err(error) = self.checkpoint() {
                tracing::warn!(%error, "the write-ahead log could not be copied into the database");
            }
        }
    }

    fn drain(&self, first: Queued) -> Vec<Queued> {
        let mut bytes = first.bytes;
        let mut batch = vec![first];
        while batch.len() < self.limits.batch_writes && bytes < self.limits.batch_bytes {
            let Ok(next) = self.queued.try_recv() else { break };
            bytes = bytes.saturating_add(next.bytes);
            batch.push(next);
        }
        batch
    }

    /// Writes a batch and answers all of it. Where the transaction was lost under way, each write is tried on its own.
    fn commit(&self, mut batch: Vec<Queued>) {
        match self.transact(&mut batch) {
            Ok(()) => self.answer(batch, Ok(())),
            Err(Lost::UnderWay) if batch.len() > 1 => {
                batch.into_iter().for_each(|write| self.commit(vec![write]))
            }
            Err(lost) => {
                let error = lost.into_error();
                tracing::error!(%error, writes = batch.len(), "a transaction failed");
                self.answer(batch, Err(error));
            }
        }
    }

    fn transact(&self, batch: &mut [Queued]) -> Result<(), Lost> {
        self.execute("BEGIN IMMEDIATE")?;
        let committed = self.apply(batch).and_then(|()| self.execute("COMMIT"));
        if committed.is_err() && !self.connection.is_autocommit() {
            self.execute("ROLLBACK")?;
        }
        committed
    }

    fn apply(&self, batch: &mut [Queued]) -> Result<(), Lost> {
        for queued in batch {
            self.execute("SAVEPOINT one")?;
            if !queued.write.apply(&self.connection) {
                // A full disk can end the whole transaction, not only the statement.
                if self.connection.is_autocommit() {
                    return Err(Lost::UnderWay);
                }
                self.execute("ROLLBACK TO one")?;
            }
            self.execute("RELEASE one")?;
        }
        Ok(())
    }

    fn answer(&self, batch: Vec<Queued>, fate: Result<(), Error>) {
        for queued in batch {
            self.waiting.remove(queued.bytes);
            queued.write.answer(fate.clone());
        }
    }

    /// Copies the write-ahead log into the database once it is long, so that the next write begins it anew. Where a
    /// reader still needs the log, the next write cannot, and it is tried again after that one.
    fn checkpoint(&self) -> rusqlite::Result<()> {
        let (pages, copied): (i64, i64) = self
            .connection
            .prepare_cached("PRAGMA wal_checkpoint(NOOP)")?
            .query_row((), |row| Ok((row.get(1)?, row.get(2)?)))?;
        if pages >= CHECKPOINT_PAGES && copied < pages {
            self.connection.prepare_cached("PRAGMA wal_checkpoint(PASSIVE)")?.query_row((), |_| Ok(()))?;
        }
        Ok(())
    }

    fn execute(&self, sql: &str) -> Result<(), Lost> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(()))
            .map(drop)
            .map_err(Lost::All)
    }
}

/// How a transaction was lost.
enum Lost {
    /// By one of its writes: the others may still succeed alone.
    UnderWay,
    /// As a whole: it did not begin, or did not become durable.
    All(rusqlite::Error),
}

impl Lost {
    fn into_error(self) -> Error {
        match self {
            Self::UnderWay => Error::StoreFailed { reason: "the transaction was lost".to_owned() },
            Self::All(error) => failed(error),
        }
    }
}

fn stopped() -> Error {
    Error::StoreFailed { reason: "its writer has stopped".to_owned() }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn writer(limits: Limits) -> Writer {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE kept (value UNIQUE)").unwrap();
        Writer::start(connection, limits).unwrap()
    }

    fn keep(value: i64) -> impl FnMut(&Connection) -> Result<(), Error> + Send {
        move |connection| {
            connection.execute("INSERT INTO kept VALUES (?1)", [value]).map(drop).map_err(failed)
        }
    }

    fn kept(writer: &Writer) -> impl Future<Output = Result<i64, Error>> + use<> {
        writer.submit(0, |connection| {
            connection
                .query_row("SELECT total(value) FROM kept", (), |row| row.get::<_, f64>(0))
                .map_err(failed)
                .map(|sum| sum as i64)
        })
    }

    /// Holds the writer until the sender is dropped; answers once it is held.
    async fn hold(writer: &Writer) -> mpsc::Sender<()> {
        let (release, released) = mpsc::channel::<()>();
        let (holds, held) = oneshot::channel();
        let mut holds = Some(holds);
        drop(writer.submit(0, move |_| {
            holds.take().map(|holds| holds.send(()));
            let _ = released.recv();
            Ok(())
        }));
        held.await.unwrap();
        release
    }

    #[tokio::test]
    async fn a_refused_write_leaves_those_of_its_transaction_alone() {
        let writer = writer(Limits::default());
        let held = hold(&writer).await;
        let (first, again, other) =
            (writer.submit(0, keep(1)), writer.submit(0, keep(1)), writer.submit(0, keep(2)));
        drop(held);
        assert_eq!(first.await, Ok(()));
        assert!(matches!(again.await, Err(Error::StoreFailed { .. })));
        assert_eq!(other.await, Ok(()));
        assert_eq!(kept(&writer).await, Ok(3));
    }

    #[tokio::test]
    async fn a_write_that_ends_the_transaction_leaves_the_others_alone() {
        let writer = writer(Limits::default());
        let held = hold(&writer).await;
        let before = writer.submit(0, keep(1));
        let ends = writer.submit(0, |connection| -> Result<(), Error> {
            connection.execute_batch("ROLLBACK").map_err(failed)?;
            Err(Error::StoreFailed { reason: "full".to_owned() })
        });
        let after = writer.submit(0, keep(2));
        drop(held);
        assert_eq!(before.await, Ok(()));
        assert_eq!(ends.await, Err(Error::StoreFailed { reason: "full".to_owned() }));
        assert_eq!(after.await, Ok(()));
        assert_eq!(kept(&writer).await, Ok(3));
    }

    #[tokio::test]
    async fn what_does_not_fit_the_queue_is_refused_and_what_was_queued_is_done() {
        let writer = writer(Limits { queued_writes: 3, queued_bytes: 100, ..Limits::default() });
        let held = hold(&writer).await;
        let fits = writer.submit(60, keep(1));
        let too_large = writer.submit(60, keep(2));
        let fits_too = writer.submit(40, keep(4));
        let too_many = writer.submit(0, keep(8));
        drop(held);
        assert_eq!(fits.await, Ok(()));
        assert!(matches!(too_large.await, Err(Error::StoreFailed { .. })));
        assert_eq!(fits_too.await, Ok(()));
        assert!(matches!(too_many.await, Err(Error::StoreFailed { .. })));
        assert_eq!(kept(&writer).await, Ok(5));
    }

    #[tokio::test]
    async fn one_write_larger_than_the_queue_is_taken_when_nothing_else_waits() {
        let writer = writer(Limits { queued_bytes: 100, ..Limits::default() });
        assert_eq!(writer.submit(1000, keep(1)).await, Ok(()));
    }

    #[tokio::test]
    async fn a_small_batch_still_takes_everything_in_turn() {
        let writer = writer(Limits { batch_writes: 2, batch_bytes: 10, ..Limits::default() });
        let held = hold(&writer).await;
        let writes: Vec<_> = (0..20).map(|value| writer.submit(4, keep(value))).collect();
        drop(held);
        for write in writes {
            assert_eq!(write.await, Ok(()));
        }
        assert_eq!(kept(&writer).await, Ok(190));
    }
}
