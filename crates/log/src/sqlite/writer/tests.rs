//! Which writes share a transaction, and what becomes of them when it is lost.

use std::sync::mpsc;

use super::*;

fn writer(limits: Limits) -> Writer {
    let connection = Connection::open_in_memory().unwrap();
    connection
        .execute_batch(
            "CREATE TABLE kept (value UNIQUE);
             CREATE TABLE promised (value REFERENCES kept (value) DEFERRABLE INITIALLY DEFERRED)",
        )
        .unwrap();
    Writer::start(connection, limits).unwrap()
}

fn keep(value: i64) -> impl FnMut(&mut Statements<'_>) -> Result<(), WriteFailure> + Send {
    move |statements| Ok(statements.get("INSERT INTO kept VALUES (?1)")?.execute([value]).map(drop)?)
}

fn kept(writer: &Writer) -> impl Future<Output = Result<i64, Error>> + use<> {
    writer.submit(0, |statements| {
        let sum: f64 = statements.get("SELECT total(value) FROM kept")?.query_row((), |row| row.get(0))?;
        Ok(sum as i64)
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

/// Keeps a value, and counts how often it was asked to.
fn keep_counted(
    value: i64,
    asked: &Arc<AtomicUsize>,
) -> impl FnMut(&mut Statements<'_>) -> Result<(), WriteFailure> + Send + use<> {
    let asked = Arc::clone(asked);
    move |statements| {
        asked.fetch_add(1, Ordering::Relaxed);
        keep(value)(statements)
    }
}

#[tokio::test]
async fn a_refused_write_leaves_those_of_its_transaction_alone() {
    let writer = writer(Limits::default());
    let asked = Arc::default();
    let held = hold(&writer).await;
    let first = writer.submit(0, keep_counted(1, &asked));
    let refused = writer.submit(0, |_| Err::<(), _>(WriteFailure::Refused(Error::SessionOwned)));
    let other = writer.submit(0, keep_counted(2, &asked));
    drop(held);
    assert_eq!(first.await, Ok(()));
    assert_eq!(refused.await, Err(Error::SessionOwned));
    assert_eq!(other.await, Ok(()));
    assert_eq!(kept(&writer).await, Ok(3));
    assert_eq!(asked.load(Ordering::Relaxed), 2, "nothing is tried again");
}

#[tokio::test]
async fn a_write_that_fails_half_done_leaves_nothing_and_those_of_its_transaction_alone() {
    let writer = writer(Limits::default());
    let asked = Arc::default();
    let held = hold(&writer).await;
    let before = writer.submit(0, keep_counted(1, &asked));
    let half = writer.submit(0, |statements| {
        keep(4)(statements)?;
        keep(4)(statements)
    });
    let after = writer.submit(0, keep_counted(2, &asked));
    drop(held);
    assert_eq!(before.await, Ok(()));
    assert!(matches!(half.await, Err(Error::StoreFailed { .. })));
    assert_eq!(after.await, Ok(()));
    assert_eq!(kept(&writer).await, Ok(3));
    assert_eq!(asked.load(Ordering::Relaxed), 3, "what queued while the first was written was with it");
}

#[tokio::test]
async fn a_commit_that_fails_is_answered_even_to_the_refused_and_the_next_one_succeeds() {
    let writer = writer(Limits::default());
    let held = hold(&writer).await;
    let innocent = writer.submit(0, keep(1));
    let refused = writer.submit(0, |_| Err::<(), _>(WriteFailure::Refused(Error::SessionOwned)));
    let fails = writer.submit(0, |statements| {
        Ok(statements.get("INSERT INTO promised VALUES (8)")?.execute(()).map(drop)?)
    });
    drop(held);
    assert!(matches!(innocent.await, Err(Error::StoreFailed { .. })));
    assert!(matches!(refused.await, Err(Error::StoreFailed { .. })), "it may rest on what was lost");
    assert!(matches!(fails.await, Err(Error::StoreFailed { .. })));
    assert_eq!(kept(&writer).await, Ok(0));
    assert_eq!(writer.submit(0, keep(1)).await, Ok(()));
    assert_eq!(kept(&writer).await, Ok(1));
}

#[tokio::test]
async fn a_write_that_ends_the_transaction_leaves_the_others_alone() {
    let writer = writer(Limits::default());
    let held = hold(&writer).await;
    let before = writer.submit(0, keep(1));
    let ends = writer.submit(0, |statements| {
        statements.get("ROLLBACK")?.execute(())?;
        Err::<(), _>(WriteFailure::Failed(rusqlite::Error::InvalidQuery))
    });
    let after = writer.submit(0, keep(2));
    drop(held);
    assert_eq!(before.await, Ok(()));
    assert_eq!(ends.await, Err(failed(rusqlite::Error::InvalidQuery)));
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
