//! The suite, by subject. It knows a store only through [`Log`], and opens it anew to see what is durable.

#![allow(unreachable_pub, missing_docs, reason = "a module of one test binary")]

use std::sync::Arc;

use async_trait::async_trait;
use mainstay_log::Log;
use mainstay_model::{Event, Seq, Session};

use crate::support::Line;

pub mod appends;
pub mod artifacts;
pub mod deletions;
pub mod directory;
pub mod entries;
pub mod events;
pub mod history;
pub mod notices;
pub mod objects;
pub mod resumable_connections;
pub mod schedules;
pub mod search;

/// One store of one test.
#[async_trait]
pub trait Store: Send + Sync {
    /// Opens it. What was opened before must have been dropped.
    async fn open(&self) -> Arc<dyn Log>;
}

/// A session that has been created and has these many further events.
async fn begun(log: &dyn Log, number: u128, further: usize) -> Line {
    let mut line = Line::new(number);
    log.append(line.create()).await.unwrap();
    if further > 0 {
        let outputs = (0..further).map(|index| crate::support::output(format!("output {index}"))).collect();
        log.append(line.append(outputs)).await.unwrap();
    }
    line
}

/// All events of a session.
async fn events(log: &dyn Log, line: &Line) -> Vec<Event> {
    log.events(line.id, Seq::ZERO, usize::MAX).await.unwrap()
}

/// Checks that the store has exactly what the line knows: gapless events that fold to the projection.
async fn assert_same(log: &dyn Log, line: &Line) {
    let events = events(log, line).await;
    let seqs: Vec<_> = events.iter().map(|event| event.seq.0).collect();
    assert_eq!(seqs, (1..=line.last_seq().0).collect::<Vec<_>>());
    assert_eq!(Session::fold(&events), line.session);
    assert_eq!(log.session(line.id).await.unwrap(), line.session);
}
