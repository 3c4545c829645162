//! The writer's thread and those who wait for it, under many schedules. The database is a real one, in memory, and
//! says itself what it has committed.

use std::env;
use std::sync::{Mutex, MutexGuard};

use shuttle::future::block_on;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};

use super::*;

/// Schedules of each test, of each scheduler; `MAINSTAY_SCHEDULES` says another number.
const SCHEDULES: usize = 1000;
/// How many times one schedule of the second scheduler takes the turn from a thread that could go on.
const PREEMPTIONS: usize = 3;
/// The size of the stack that SQLite needs.
const STACK: usize = 512 * 1024;

fn explore(test: impl Fn() + Send + Sync + Copy + 'static) {
    let schedules = env::var("MAINSTAY_SCHEDULES").ok().map_or(SCHEDULES, |number| number.parse().unwrap());
    let mut config = Config::new();
    config.stack_size = STACK;
    config.silence_warnings = true;
    Runner::new(RandomScheduler::new(schedules), config.clone()).run(test);
    Runner::new(PctScheduler::new(PREEMPTIONS, schedules), config).run(test);
}

#[test]
fn a_write_is_answered_when_it_is_durable_and_those_of_one_caller_keep_their_order() {
    explore(|| {
        let store = Arc::new(Store::open(Limits { batch_writes: 3, ..Limits::default() }));
        let callers = [[1, 2], [11, 12], [21, 22]].map(|values| {
            let store = Arc::clone(&store);
            thread::spawn(move || {
                let answers = values.map(|value| store.writer.submit(0, keep(value)));
                for (value, answer) in values.into_iter().zip(answers) {
                    assert_eq!(block_on(answer), Ok(value));
                    assert!(store.durable.has(value), "{value} was answered before it was durable");
                }
            })
        });
        callers.into_iter().for_each(|caller| caller.join().unwrap());
        assert_eq!(store.durable.by_caller(), [1, 2, 11, 12, 21, 22]);
    });
}

#[test]
fn a_write_that_fails_leaves_nothing_and_those_beside_it_alone() {
    explore(|| {
        let store = Arc::new(Store::open(Limits::default()));
        let succeeds = {
            let store = Arc::clone(&store);
            thread::spawn(move || {
                let answers = [1, 2].map(|value| store.writer.submit(0, keep(value)));
                assert_eq!(answers.map(block_on), [Ok(1), Ok(2)]);
            })
        };
        let fails = {
            let store = Arc::clone(&store);
            thread::spawn(move || {
                let failed = store.writer.submit(0, fail(11));
                let answers = [12, 13].map(|value| store.writer.submit(0, keep(value)));
                assert!(matches!(block_on(failed), Err(Error::StoreFailed { .. })));
                assert_eq!(answers.map(block_on), [Ok(12), Ok(13)]);
            })
        };
        succeeds.join().unwrap();
        fails.join().unwrap();
        assert_eq!(store.durable.by_caller(), [1, 2, 12, 13]);
    });
}

#[test]
fn a_writer_that_is_dropped_finishes_what_was_queued() {
    explore(|| {
        let Store { writer, durable } = Store::open(Limits { batch_writes: 2, ..Limits::default() });
        let [first, second, third] = [1, 2, 3].map(|value| writer.submit(0, keep(value)));
        let waits = thread::spawn(move || assert_eq!(block_on(second), Ok(2)));
        drop((writer, third));
        assert_eq!(durable.by_caller(), [1, 2, 3]);
        assert_eq!(block_on(first), Ok(1));
        waits.join().unwrap();
    });
}

#[test]
fn a_full_queue_refuses_what_comes_and_does_what_it_took() {
    explore(|| {
        let store =
            Arc::new(Store::open(Limits { queued_writes: 2, queued_bytes: 100, ..Limits::default() }));
        let callers = [(1, 10), (2, 20), (3, 70), (4, 90)].map(|(value, bytes)| {
            let store = Arc::clone(&store);
            thread::spawn(move || {
                let is_taken = block_on(store.writer.submit(bytes, keep(value))).is_ok();
                assert_eq!(store.durable.has(value), is_taken, "{value}");
            })
        });
        callers.into_iter().for_each(|caller| caller.join().unwrap());
        let Waiting { writes, bytes } = &*store.writer.waiting;
        assert_eq!((writes.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed)), (0, 0), "all have ended");
        assert_eq!(block_on(store.writer.submit(1000, keep(5))), Ok(5), "nothing else waits");
    });
}

/// A writer, and what it has made durable.
struct Store {
    writer: Writer,
    durable: Durable,
}

/// What SQLite says that it has done.
#[derive(Clone, Default)]
struct Durable(Arc<Mutex<Observed>>);

#[derive(Default)]
struct Observed {
    written: Vec<i64>,
    committed: Vec<i64>,
}

impl Store {
    fn open(limits: Limits) -> Self {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE kept (value INTEGER PRIMARY KEY)").unwrap();
        let durable = Durable::of(&mut connection);
        Self { writer: Writer::start(connection, limits).unwrap(), durable }
    }
}

impl Durable {
    fn of(connection: &mut Connection) -> Self {
        let durable = Self::default();
        let [written, committed, lost] = [(); 3].map(|()| durable.clone());
        connection
            .update_hook(Some(move |_, _: &str, _: &str, value| written.told().written.push(value)))
            .unwrap();
        let commit = move || {
            let Observed { written, committed } = &mut *committed.told();
            committed.append(written);
            false
        };
        connection.commit_hook(Some(commit)).unwrap();
        connection.rollback_hook(Some(move || lost.told().written.clear())).unwrap();
        durable
    }

    /// The values of each caller in the order in which they were written; a caller's values share their tens.
    fn by_caller(&self) -> Vec<i64> {
        let mut values = self.told().committed.clone();
        values.sort_by_key(|value| value / 10);
        values
    }

    fn has(&self, value: i64) -> bool {
        self.told().committed.contains(&value)
    }

    fn told(&self) -> MutexGuard<'_, Observed> {
        self.0.lock().unwrap()
    }
}

fn keep(value: i64) -> impl FnMut(&mut Statements<'_>) -> Result<i64, WriteFailure> + Send {
    move |statements| {
        statements.get("INSERT INTO kept VALUES (?1)")?.execute([value])?;
        Ok(value)
    }
}

/// Keeps nothing, and loses the transaction with a part of it written.
fn fail(value: i64) -> impl FnMut(&mut Statements<'_>) -> Result<i64, WriteFailure> + Send {
    move |statements| {
        keep(value)(statements)?;
        Err(WriteFailure::Failed(rusqlite::Error::InvalidQuery))
    }
}
