//! Reading events: of one session, and of all in the order of the log.

use std::sync::Arc;

use mainstay_model::{Event, Position, Seq};

use super::{Store, begun, events};
use crate::support::{output, session_id};

pub async fn events_come_after_a_cursor_and_up_to_a_limit(store: &dyn Store) {
    let log = store.open().await;
    let line = begun(&*log, 1, 9).await;
    begun(&*log, 2, 9).await;
    let seqs = async |after: u64, limit: usize| -> Vec<u64> {
        let events = log.events(line.id, Seq(after), limit).await.unwrap();
        events.iter().inspect(|event| assert_eq!(event.session, line.id)).map(|event| event.seq.0).collect()
    };
    assert_eq!(seqs(0, usize::MAX).await, (1..=10).collect::<Vec<_>>());
    assert_eq!(seqs(0, 3).await, [1, 2, 3]);
    assert_eq!(seqs(7, 2).await, [8, 9]);
    assert_eq!(seqs(9, 2).await, [10]);
    assert_eq!(seqs(10, 2).await, [0; 0]);
    assert_eq!(seqs(u64::MAX, 2).await, [0; 0]);
    assert_eq!(seqs(0, 0).await, [0; 0]);
    assert_eq!(log.events(session_id(3), Seq::ZERO, 10).await, Ok(Vec::new()));
    assert_eq!(log.session(session_id(3)).await, Ok(None));
}

pub async fn the_events_of_all_sessions_come_in_the_order_of_the_log(store: &dyn Store) {
    let log = store.open().await;
    assert_eq!(log.last_position().await, Ok(Position::ZERO));
    assert_eq!(log.all_events(Position::ZERO, 10).await, Ok(Vec::new()));
    let mut lines = [begun(&*log, 1, 2).await, begun(&*log, 2, 2).await];
    for turn in 0..4 {
        log.append(lines[turn % 2].append(vec![output("in turn"), output("twice")])).await.unwrap();
    }
    let mut wanted = [events(&*log, &lines[0]).await, events(&*log, &lines[1]).await].concat();
    wanted.sort_by_key(|event| event.position);
    assert_eq!(log.all_events(Position::ZERO, usize::MAX).await.unwrap(), wanted);
    let last = wanted.last().unwrap().position;
    assert_eq!(log.last_position().await, Ok(last));
    for (index, event) in wanted.iter().enumerate() {
        let rest = &wanted[index + 1..];
        assert_eq!(log.all_events(event.position, 3).await.unwrap(), rest[..rest.len().min(3)]);
    }
    for nothing in [log.all_events(Position(u64::MAX), 9).await, log.all_events(Position::ZERO, 0).await] {
        assert_eq!(nothing, Ok(Vec::new()));
    }
}

pub async fn whoever_reads_all_sessions_on_and_on_misses_nothing(store: &dyn Store) {
    const EACH: usize = 100;
    let log = store.open().await;
    let appenders: Vec<_> = (1..=4)
        .map(|number| {
            let log = Arc::clone(&log);
            tokio::spawn(async move {
                let mut line = begun(&*log, number, 0).await;
                for _ in 0..EACH {
                    log.append(line.append(vec![output("one"), output("two")])).await.unwrap();
                }
            })
        })
        .collect();
    let mut seen = Vec::new();
    while seen.len() < 4 * (1 + 2 * EACH) {
        let after = seen.last().map_or(Position::ZERO, |event: &Event| event.position);
        seen.extend(log.all_events(after, 7).await.unwrap());
    }
    for appender in appenders {
        appender.await.unwrap();
    }
    assert_eq!(log.all_events(Position::ZERO, usize::MAX).await.unwrap(), seen);
}
