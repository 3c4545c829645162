//! Two daemons over one store: one owns a session, the other hears of it, and has it once it is given up.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mainstay_engine::{Cursor, Engine};
use mainstay_log::sqlite::{SqliteLog, SqliteOptions};
use mainstay_log::{Clock, EventLog, LeaseTerms, Log, OwnerId, Sharing};
use mainstay_model::{
    Access, Admission, Error, EvalEnding, EventFilter, Outcome, Position, Question, Response, Seq,
    SessionCommand, SessionId, SessionState, Timestamp,
};
use mainstay_runner::RunnerFactory;

use crate::scripted::Scripted;
use crate::store_double::{Lease, StoreDouble};
use crate::support::{CANCEL, Client, breathe, command, create, eval, eventually, next_id, quick};

/// A clock of the store that a test moves.
#[derive(Debug)]
struct ManualClock(Mutex<Timestamp>);

impl ManualClock {
    fn start() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Timestamp::from_second(1_763_000_000).unwrap())))
    }

    fn advance(&self, seconds: u64) {
        let mut now = self.0.lock().unwrap();
        *now = now.checked_add(Duration::from_secs(seconds)).unwrap();
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

/// A daemon that shares the store in a folder.
struct Sharer {
    engine: Engine,
    local: mainstay_engine::Client,
    store: Arc<StoreDouble>,
    workers: Arc<Scripted>,
}

impl Sharer {
    async fn open(folder: &Path, owner: &str) -> Self {
        Self::open_as(folder, Sharing::by(OwnerId::new(owner))).await
    }

    /// With leases that lapse by this clock.
    async fn open_at(folder: &Path, owner: &str, clock: &Arc<ManualClock>) -> Self {
        let (owner, lease) = (OwnerId::new(owner), LeaseTerms::default());
        let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(clock);
        Self::open_as(folder, Sharing::Shared { owner, lease, clock }).await
    }

    async fn open_as(folder: &Path, sharing: Sharing) -> Self {
        let options = SqliteOptions { sharing, ..SqliteOptions::default() };
        let log = SqliteLog::open(folder, &options).unwrap();
        let store = Arc::new(StoreDouble::over(Arc::new(log)));
        let log: Arc<dyn Log> = Arc::<StoreDouble>::clone(&store);
        let workers = Arc::<Scripted>::default();
        let factories: Vec<Arc<dyn RunnerFactory>> = vec![Arc::<Scripted>::clone(&workers)];
        let engine = Engine::open(log, factories, quick()).await.unwrap();
        let local = engine.attach(Access::local(), "cli");
        Self { engine, local, store, workers }
    }

    fn client(&self, session: SessionId) -> Client {
        Client { attached: self.local.clone(), id: session }
    }

    async fn session(&self) -> Client {
        match self.local.create(next_id(), create("shared")).await.unwrap() {
            Outcome::Done { response: Response::Created { session } } => self.client(session),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_follower_hears_what_another_daemon_stores() {
    let folder = tempfile::tempdir().unwrap();
    let one = Sharer::open(folder.path(), "one").await;
    let other = Sharer::open(folder.path(), "other").await;
    let session = one.session().await;
    session.until("warmUpCompleted").await;
    let all = Cursor::Log { after: Position::ZERO };
    let of_session = Cursor::Session { session: session.id, after: session.now().await };
    let mut followers = Vec::new();
    for cursor in [all, of_session] {
        followers.push(other.local.follow(cursor, EventFilter::default()).await.unwrap());
    }
    let waiting: Vec<_> = followers
        .into_iter()
        .map(|mut follower| {
            tokio::spawn(async move {
                let mut seen = Vec::new();
                loop {
                    let event = follower.next().await.unwrap();
                    let is_last = event.body.kind() == "evalCompleted";
                    seen.push(event.seq);
                    if is_last {
                        return seen;
                    }
                }
            })
        })
        .collect();
    let before = session.now().await;
    assert_eq!(session.eval("pure 1").await.ending, EvalEnding::Completed);
    let mut seen = Vec::new();
    for follower in waiting {
        seen.push(follower.await.unwrap());
    }
    assert_eq!(seen[0], (1..=seen[0].len() as u64).map(Seq).collect::<Vec<_>>());
    assert_eq!(seen[1].first(), Some(&before.next()));
    assert!(seen[0].ends_with(&seen[1]));
}

#[tokio::test]
async fn a_session_is_its_owners_until_the_lease_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let one = Sharer::open(folder.path(), "one").await;
    let session = one.session().await;
    session.until("warmUpCompleted").await;
    session.eval("define a").await;
    // It finds a session that is live, and leaves it to its owner.
    let other = Sharer::open(folder.path(), "other").await;
    let there = other.client(session.id);
    let refused = there.give(command(next_id(), Admission::Queue, eval("names"))).await;
    assert_eq!(refused, Err(Error::SessionOwned));
    assert_eq!(session.eval("names").await.value.as_deref(), Some("a"), "its owner goes on");
    one.engine.shut_down().await;
    assert_eq!(there.eval("names").await.value.as_deref(), Some("a"));
    assert_eq!(there.state().await, SessionState::Ready);
}

#[tokio::test]
async fn a_follower_hears_what_a_daemon_stores_that_has_taken_the_session_over() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), ManualClock::start());
    let one = Sharer::open_at(folder.path(), "one", &clock).await;
    let session = one.session().await;
    session.until("warmUpCompleted").await;
    session.eval("define a").await;
    let before = session.now().await;
    let mut followers = Vec::new();
    for cursor in
        [Cursor::Session { session: session.id, after: before }, Cursor::Log { after: Position::ZERO }]
    {
        followers.push(one.local.follow(cursor, EventFilter::default()).await.unwrap());
    }
    let other = Sharer::open_at(folder.path(), "other", &clock).await;
    // As if the first had been asleep: its worker runs on, and it has nothing to append.
    clock.advance(60);
    let there = other.client(session.id);
    assert_eq!(there.eval("names").await.value.as_deref(), Some("a"));
    for (mut follower, mut next) in followers.into_iter().zip([before.next(), Seq(1)]) {
        let mut evals = if next == Seq(1) { 0 } else { 1 };
        while evals < 2 {
            let event = follower.next().await.unwrap();
            assert_eq!(event.seq, next);
            next = next.next();
            evals += usize::from(event.body.kind() == "evalCompleted");
        }
    }
    eventually(|| one.workers.alive() == 0).await;
    let refused = session.give(command(next_id(), Admission::Queue, eval("names"))).await;
    assert_eq!(refused, Err(Error::SessionOwned));
    assert_eq!(there.eval("names").await.value.as_deref(), Some("a"), "its new owner goes on");
}

#[tokio::test]
async fn commands_that_wait_when_another_daemon_takes_the_session_over_are_told_so() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), ManualClock::start());
    let one = Sharer::open_at(folder.path(), "one", &clock).await;
    let session = one.session().await;
    session.until("warmUpCompleted").await;
    let running = session.begin("loop").await;
    let waiting = session.queue("names");
    session.until("commandQueued").await;
    let other = Sharer::open_at(folder.path(), "other", &clock).await;
    clock.advance(60);
    let there = other.client(session.id);
    assert_eq!(there.eval("define a").await.ending, EvalEnding::Completed);
    for sent in [running, waiting] {
        assert_eq!(sent.await.unwrap(), Err(Error::SessionOwned));
    }
}

#[tokio::test]
async fn a_follower_hears_what_another_daemon_stored_last_though_the_session_has_come_here() {
    let folder = tempfile::tempdir().unwrap();
    let one = Sharer::open(folder.path(), "one").await;
    let other = Sharer::open(folder.path(), "other").await;
    let session = one.session().await;
    session.until("warmUpCompleted").await;
    assert!(session.submit(SessionCommand::Stop).await.is_ok());
    let cursor = Cursor::Session { session: session.id, after: session.now().await };
    let mut follower = other.local.follow(cursor, EventFilter::default()).await.unwrap();
    other.store.hold_reads_of_all(true);
    let asked =
        session.send(command(next_id(), Admission::Now, SessionCommand::Ask(Question::text("which?"))));
    session.until("askRaised").await;
    one.store.release().await.unwrap();
    // It has the session from now on, since the ask waits there, and stores nothing.
    assert!(other.client(session.id).submit(CANCEL).await.is_err());
    other.store.hold_reads_of_all(false);
    assert_eq!(follower.next().await.unwrap().body.kind(), "askRaised");
    asked.abort();
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_given_up_is_renewed_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let one = Sharer::open(folder.path(), "one").await;
    one.store.hold_renewals(true);
    while one.store.lease().last() != Some(&Lease::Renewing) {
        tokio::time::sleep(LeaseTerms::default().renewed_after()).await;
    }
    let engine = one.engine.clone();
    let stopping = tokio::spawn(async move { engine.shut_down().await });
    breathe().await;
    assert!(!one.store.lease().contains(&Lease::Released), "the renewal under way comes to its end before");
    one.store.hold_renewals(false);
    stopping.await.unwrap();
    tokio::time::sleep(LeaseTerms::default().lasts).await;
    assert!(one.store.lease().ends_with(&[Lease::Renewing, Lease::Renewed, Lease::Released]));
}
