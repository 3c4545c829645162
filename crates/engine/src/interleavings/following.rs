//! Those who publish and those who follow: the hub, its reader of the log, and the committers of sessions.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;

use futures::future::{Either, join_all, select};
use mainstay_log::{EventLog, Log};
use mainstay_model::{Error, Event, EventFilter, Position, Seq, SessionId};
use shuttle::future::{JoinHandle, spawn, yield_now};
use shuttle::rand::{Rng, thread_rng};
use tokio::sync::mpsc;

use super::memory_log::MemoryLog;
use super::samples::{append, projection, session};
use super::{explore, explore_a_part};
use crate::claims::Claims;
use crate::commit::{Commit, CommitReceivers, Step, commit_in_order};
use crate::hub::{Cursor, Hub, Subscription};
use crate::retry::Retry;
use crate::sync::time::Instant;

#[test]
fn a_follower_of_a_session_gets_every_event_after_its_cursor_once_and_in_order() {
    explore(|| async {
        let stage = Stage::new();
        let idle = maybe(|| stage.follow(Cursor::Session { session: session(1), after: Seq::ZERO }));
        let publisher = stage.publish(session(1), 4, 1);
        let followers =
            (0..4).map(|after| stage.expect(Cursor::Session { session: session(1), after: Seq(after) }, 4));
        join_all(followers.collect::<Vec<_>>()).await;
        publisher.await.unwrap();
        drop(idle);
        assert_eq!(stage.hub.subscribers(), 0);
    });
}

#[test]
fn a_follower_of_all_sessions_gets_every_event_after_its_cursor_once_and_in_order() {
    explore(|| async {
        let stage = Stage::new();
        let idle = maybe(|| stage.follow(Cursor::Log { after: Position::ZERO }));
        let publishers = [1, 2].map(|number| stage.publish(session(number), 3, 1));
        let followers = [0, 1, 5].map(|after| stage.expect(Cursor::Log { after: Position(after) }, 6));
        join_all(followers).await;
        join_all(publishers).await;
        drop(idle);
        assert_eq!(stage.hub.subscribers(), 0);
    });
}

#[test]
fn a_follower_that_falls_behind_reads_on_from_the_log() {
    explore_a_part(10, || async {
        let stage = Stage::new();
        let publisher = stage.publish(session(1), 3, HALF_OF_WHAT_IS_KEPT);
        let last = 3 * HALF_OF_WHAT_IS_KEPT;
        let of_session = Cursor::Session { session: session(1), after: Seq::ZERO };
        let of_log = Cursor::Log { after: Position::ZERO };
        join_all([stage.expect(of_session, last), stage.expect(of_log, last)]).await;
        publisher.await.unwrap();
    });
}

#[test]
fn a_log_that_cannot_be_read_for_a_moment_costs_no_follower_an_event() {
    explore(|| async {
        let stage = Stage::new();
        stage.log.refuse_reads_of_all(2);
        let publishers = [1, 2].map(|number| stage.publish(session(number), 2, 1));
        join_all([0, 2].map(|after| stage.expect(Cursor::Log { after: Position(after) }, 4))).await;
        join_all(publishers).await;
    });
}

#[test]
fn followers_get_what_was_published_before_the_end() {
    explore(|| async {
        let stage = Stage::new();
        let of_session = Cursor::Session { session: session(1), after: Seq::ZERO };
        let followers = [of_session, Cursor::Log { after: Position::ZERO }].map(|cursor| {
            let mut subscription = stage.follow(cursor);
            spawn(async move {
                let mut got = 0;
                while let Ok(event) = subscription.next().await {
                    got += 1;
                    assert_eq!(event.position.0, got);
                }
                got
            })
        });
        stage.publish(session(1), 3, 1).await.unwrap();
        stage.hub.close();
        for follower in followers {
            assert_eq!(follower.await.unwrap(), 3);
        }
    });
}

/// Of the events that were published last.
const HALF_OF_WHAT_IS_KEPT: u64 = 128;

struct Stage {
    hub: Arc<Hub>,
    log: Arc<MemoryLog>,
}

impl Stage {
    fn new() -> Self {
        Self { hub: Arc::new(Hub::new(Position::ZERO)), log: MemoryLog::new() }
    }

    /// Appends and publishes as a session's task and its committer do.
    fn publish(&self, session: SessionId, appends: u64, events: u64) -> JoinHandle<()> {
        let (hub, log) = (Arc::clone(&self.hub), Arc::clone(&self.log));
        spawn(async move {
            let (commits, queued) = mpsc::unbounded_channel();
            let (claims, heard) =
                (Arc::<Claims>::default(), CommitReceivers::by_nobody(Arc::new(projection(session))));
            let committer = spawn(commit_in_order(session, hub, claims, heard, Retry::never(), queued));
            for number in 0..appends {
                let appended = log.append(append(session, Seq(number * events + 1), events));
                let after = Arc::new(projection(session));
                let (ended, replies, version) = (Vec::new(), Vec::new(), after.version);
                commits
                    .send(Step::Commit(Box::new(Commit {
                        decided: Instant::now(),
                        appended,
                        after,
                        ended,
                        replies,
                        version,
                        trace: Default::default(),
                        forgets: None,
                        delegates: None,
                    })))
                    .ok();
                yield_now().await;
            }
            drop(commits);
            committer.await.unwrap();
        })
    }

    fn follow(&self, cursor: Cursor) -> Subscription {
        self.hub.subscribe(Arc::clone(&self.log) as Arc<dyn Log>, cursor, EventFilter::default())
    }

    /// A follower that begins some time, and gets all up to the last place.
    fn expect(&self, cursor: Cursor, last: u64) -> JoinHandle<()> {
        let (hub, log) = (Arc::clone(&self.hub), Arc::clone(&self.log));
        spawn(async move {
            let stage = Self { hub, log };
            let mut subscription = stage.follow(cursor);
            let (Cursor::Session { after: Seq(after), .. } | Cursor::Log { after: Position(after) }) = cursor;
            for place in after + 1..=last {
                let event = next(&mut subscription).await;
                let got = match cursor {
                    Cursor::Session { session, .. } => {
                        assert_eq!(event.session, session);
                        event.seq.0
                    }
                    Cursor::Log { .. } => event.position.0,
                };
                assert_eq!(got, place);
            }
            assert!(before(yield_now(), &mut subscription).await.is_none(), "nothing comes after the last");
        })
    }
}

/// The next event, by one who asks anew when it takes long, or the log cannot be read.
async fn next(subscription: &mut Subscription) -> Arc<Event> {
    loop {
        let gives_up = thread_rng().r#gen::<bool>();
        let patience = async {
            yield_now().await;
            if !gives_up {
                pending().await
            }
        };
        match before(patience, subscription).await {
            Some(Ok(event)) => return event,
            Some(Err(Error::StoreFailed { .. })) | None => {}
            Some(Err(error)) => panic!("{error}"),
        }
    }
}

/// What comes before the end of a future.
async fn before(end: impl Future, subscription: &mut Subscription) -> Option<Result<Arc<Event>, Error>> {
    match select(pin!(subscription.next()), pin!(end)).await {
        Either::Left((next, _)) => Some(next),
        Either::Right(_) => None,
    }
}

fn maybe<T>(make: impl FnOnce() -> T) -> Option<T> {
    thread_rng().r#gen::<bool>().then(make)
}
