//! Which notices of a session's runner are taken: stored with the events that they led to, or not at all.

use mainstay_log::{Append, EventLog, Log};
use mainstay_model::{NoticeNumber, RunnerId, SessionId, TakenNotices};
use uuid::Uuid;

use super::{Store, begun};
use crate::support::{Line, answer, output, session_id, warm_up};

/// The notices of the runner of this number, up to one.
fn up_to(runner: u128, number: u64) -> TakenNotices {
    TakenNotices { runner: RunnerId::from_uuid(Uuid::from_u128(runner)), up_to: NoticeNumber(number) }
}

fn taking(append: Append, taken: TakenNotices) -> Append {
    Append { taken: Some(taken), ..append }
}

async fn taken(log: &dyn Log, session: SessionId) -> Option<TakenNotices> {
    EventLog::taken(log, session).await.unwrap()
}

pub async fn what_is_taken_is_stored_with_the_events(store: &dyn Store) {
    let log = store.open().await;
    let (mut line, other) = (begun(&*log, 1, 0).await, begun(&*log, 2, 0).await);
    assert_eq!(taken(&*log, line.id).await, None, "nobody said so yet");
    for number in [0, 3, 4, u64::from(u32::MAX)] {
        log.append(taking(line.append(vec![output("more")]), up_to(1, number))).await.unwrap();
        assert_eq!(taken(&*log, line.id).await, Some(up_to(1, number)));
    }
    log.append(line.append(vec![output("not of the runner")])).await.unwrap();
    drop(log);

    let log = store.open().await;
    assert_eq!(taken(&*log, line.id).await, Some(up_to(1, u64::from(u32::MAX))), "the last that said so");
    assert_eq!(taken(&*log, other.id).await, None, "each session has its own");
    assert_eq!(taken(&*log, session_id(9)).await, None, "it is not there");
}

pub async fn a_runner_that_takes_anothers_place_begins_anew(store: &dyn Store) {
    let log = store.open().await;
    let mut line = begun(&*log, 1, 0).await;
    log.append(taking(line.append(vec![output("last words")]), up_to(1, 7))).await.unwrap();
    log.append(taking(line.append(vec![warm_up()]), up_to(2, 0))).await.unwrap();
    assert_eq!(taken(&*log, line.id).await, Some(up_to(2, 0)));
}

pub async fn what_is_taken_needs_no_event_and_may_come_with_a_creation(store: &dyn Store) {
    let log = store.open().await;
    let mut line = Line::new(1);
    log.append(taking(line.create(), up_to(1, 1))).await.unwrap();
    assert_eq!(taken(&*log, line.id).await, Some(up_to(1, 1)));
    log.append(taking(line.append(Vec::new()), up_to(1, 2))).await.unwrap();
    assert_eq!(taken(&*log, line.id).await, Some(up_to(1, 2)));
}

pub async fn an_append_that_is_refused_takes_nothing(store: &dyn Store) {
    let log = store.open().await;
    let mut line = begun(&*log, 1, 0).await;
    let mut first = taking(line.append(vec![output("first")]), up_to(1, 1));
    first.outcomes.push(answer("first", line.last_seq()));
    log.append(first.clone()).await.unwrap();
    let old = line.peek(vec![output("of the owner before")]);
    line.epoch = log.claim(line.id).await.unwrap();
    let mut twice = line.peek(vec![output("its command has an outcome")]);
    twice.outcomes.push(answer("first", line.last_seq()));
    let late = Append { first: first.first, ..line.peek(vec![output("out of sequence")]) };
    for refused in [old, twice, late] {
        log.append(taking(refused, up_to(1, 2))).await.unwrap_err();
        assert_eq!(taken(&*log, line.id).await, Some(up_to(1, 1)), "and a claim leaves it as it was");
    }
}

pub async fn an_append_that_is_sent_again_takes_nothing_back(store: &dyn Store) {
    let log = store.open().await;
    let mut line = begun(&*log, 1, 0).await;
    let first = taking(line.append(vec![output("first")]), up_to(1, 1));
    log.append(first.clone()).await.unwrap();
    log.append(taking(line.append(vec![output("second")]), up_to(1, 2))).await.unwrap();
    log.append(first).await.unwrap();
    assert_eq!(taken(&*log, line.id).await, Some(up_to(1, 2)));
}
