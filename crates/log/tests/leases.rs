//! Two owners of one store: who may claim a session when, and that nobody appends after a newer owner has.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use mainstay_log::{
    AppendError, ClaimError, Clock, Epoch, EventLog, LeaseTerms, OwnerId, Sharing, SqliteLog, SqliteOptions,
};
use mainstay_model::{Error, Position, Timestamp};
use proptest::prelude::*;
use support::{Line, output};

mod support;

/// How long leases last here.
const LASTS: Duration = Duration::from_secs(10);

/// A clock that a test moves.
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

fn open(folder: &Path, owner: &str, clock: &Arc<ManualClock>) -> SqliteLog {
    let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(clock);
    let lease = LeaseTerms { lasts: LASTS };
    let sharing = Sharing::Shared { owner: OwnerId::new(owner), lease, clock };
    SqliteLog::open(folder, &SqliteOptions { sharing, ..SqliteOptions::default() }).unwrap()
}

#[tokio::test]
async fn a_session_is_claimed_once_its_owners_lease_has_lapsed() {
    let (home, clock) = (tempfile::tempdir().unwrap(), ManualClock::start());
    let (one, other) = (open(home.path(), "one", &clock), open(home.path(), "other", &clock));
    let mut line = Line::new(1);
    one.append(line.create()).await.unwrap();
    let expires_at = clock.now().checked_add(LASTS).unwrap();
    let held = ClaimError::Held { owner: OwnerId::new("one"), expires_at };
    assert_eq!(other.claim(line.id).await, Err(held.clone()));
    assert_eq!(Error::from(held), Error::SessionOwned);
    clock.advance(9);
    assert!(other.claim(line.id).await.is_err());
    clock.advance(1);
    assert_eq!(one.newest_epoch(line.id).await, Ok(Some(Epoch(1))));
    assert_eq!(other.claim(line.id).await, Ok(Epoch(2)));
    assert_eq!(one.newest_epoch(line.id).await, Ok(Some(Epoch(2))));
    assert_eq!(one.newest_epoch(Line::new(2).id).await, Ok(None));
    let late = one.append(line.peek(vec![output("too late")])).await.unwrap_err();
    assert_eq!(late.error, AppendError::Fenced { newest: Epoch(2) });
    line.epoch = Epoch(2);
    other.append(line.append(vec![output("in time")])).await.unwrap();
}

#[tokio::test]
async fn a_lease_is_renewed_for_all_sessions_of_its_owner_at_once() {
    let (home, clock) = (tempfile::tempdir().unwrap(), ManualClock::start());
    let (one, other) = (open(home.path(), "one", &clock), open(home.path(), "other", &clock));
    let lines = [1, 2, 3].map(Line::new);
    for line in &lines {
        one.append(line.clone().create()).await.unwrap();
    }
    for _ in 0..5 {
        clock.advance(9);
        assert_eq!(one.renew().await, Ok(Some(LASTS / 3)));
    }
    for line in &lines {
        assert!(matches!(other.claim(line.id).await, Err(ClaimError::Held { .. })));
    }
    one.release().await.unwrap();
    for line in &lines {
        assert_eq!(other.claim(line.id).await, Ok(Epoch(2)));
    }
}

#[tokio::test]
async fn an_owner_keeps_what_nobody_claimed_while_its_lease_had_lapsed() {
    let (home, clock) = (tempfile::tempdir().unwrap(), ManualClock::start());
    let (one, other) = (open(home.path(), "one", &clock), open(home.path(), "other", &clock));
    let mut line = Line::new(1);
    one.append(line.create()).await.unwrap();
    clock.advance(60);
    one.append(line.append(vec![output("late, and nobody else")])).await.unwrap();
    one.renew().await.unwrap();
    assert!(matches!(other.claim(line.id).await, Err(ClaimError::Held { .. })));
}

#[tokio::test]
async fn an_owner_that_is_started_again_takes_its_sessions_over_at_once() {
    let (home, clock) = (tempfile::tempdir().unwrap(), ManualClock::start());
    let line = Line::new(1);
    let log = open(home.path(), "one", &clock);
    log.append(line.clone().create()).await.unwrap();
    drop(log);
    assert_eq!(open(home.path(), "one", &clock).claim(line.id).await, Ok(Epoch(2)));
}

#[tokio::test]
async fn whoever_has_a_store_alone_takes_every_session_over_at_once_and_renews_nothing() {
    let (home, clock) = (tempfile::tempdir().unwrap(), ManualClock::start());
    let line = Line::new(1);
    let log = open(home.path(), "one", &clock);
    log.append(line.clone().create()).await.unwrap();
    let alone = || SqliteLog::open(home.path(), &SqliteOptions::default());
    assert_eq!(alone().err(), Some(Error::StoreLocked), "it is shared");
    drop(log);
    for epoch in [2, 3] {
        let log = alone().unwrap();
        assert_eq!(log.claim(line.id).await, Ok(Epoch(epoch)));
        assert_eq!(log.renew().await, Ok(None));
    }
    assert_eq!(open(home.path(), "one", &clock).claim(line.id).await, Ok(Epoch(4)));
}

#[tokio::test]
async fn whoever_shares_a_store_hears_of_the_commits_of_others_and_of_no_others() {
    let (home, clock) = (tempfile::tempdir().unwrap(), ManualClock::start());
    let (one, other) = (open(home.path(), "one", &clock), open(home.path(), "other", &clock));
    let mut changes = one.changes_by_others();
    assert_eq!(changes.next().await, Some(Position(0)), "where it begins");
    let (mut own, mut foreign) = (Line::new(1), Line::new(2));
    one.append(own.create()).await.unwrap();
    assert_eq!(changes.next().now_or_never(), None, "its own are known");
    other.append(foreign.create()).await.unwrap();
    assert_eq!(changes.next().await, Some(Position(2)));
    drop(one);
    assert_eq!(changes.next().await, None);
    drop(other);
    let alone = SqliteLog::open(home.path(), &SqliteOptions::default()).unwrap();
    assert_eq!(alone.changes_by_others().next().await, None, "nobody else can append");
}

/// What one of two owners does, or the clock.
#[derive(Clone, Debug)]
enum Step {
    Claim { owner: usize, session: u128 },
    Append { owner: usize, session: u128 },
    Renew { owner: usize },
    Release { owner: usize },
    Advance { seconds: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..2_usize, 1..3_u128).prop_map(|(owner, session)| Step::Claim { owner, session }),
        4 => (0..2_usize, 1..3_u128).prop_map(|(owner, session)| Step::Append { owner, session }),
        1 => (0..2_usize).prop_map(|owner| Step::Renew { owner }),
        1 => (0..2_usize).prop_map(|owner| Step::Release { owner }),
        3 => (1..8_u64).prop_map(|seconds| Step::Advance { seconds }),
    ]
}

/// What is true of leases and sessions, kept beside the store.
struct Model {
    logs: [SqliteLog; 2],
    clock: Arc<ManualClock>,
    /// When each owner's lease lapses.
    leases: [Timestamp; 2],
    /// Of each session: as the newest owner sees it.
    lines: BTreeMap<u128, Line>,
    /// Of each session: who owns it.
    owners: BTreeMap<u128, usize>,
    /// The epoch that each owner believes to have of a session.
    believed: BTreeMap<(usize, u128), Epoch>,
    /// Who has appended in which epoch, in order.
    appended: BTreeMap<u128, Vec<(Epoch, usize)>>,
}

impl Model {
    async fn start(folder: &Path) -> Self {
        let clock = ManualClock::start();
        let logs = ["zero", "one"].map(|owner| open(folder, owner, &clock));
        let end = clock.now().checked_add(LASTS).unwrap();
        let mut model = Self {
            logs,
            leases: [end, Timestamp::UNIX_EPOCH],
            clock,
            lines: BTreeMap::new(),
            owners: BTreeMap::new(),
            believed: BTreeMap::new(),
            appended: BTreeMap::new(),
        };
        for session in 1..3 {
            let mut line = Line::new(session);
            model.logs[0].append(line.create()).await.unwrap();
            model.lines.insert(session, line);
            model.owners.insert(session, 0);
            model.believed.insert((0, session), Epoch::FIRST);
        }
        model
    }

    async fn take(&mut self, step: Step) {
        let now = self.clock.now();
        let end = now.checked_add(LASTS).unwrap();
        match step {
            Step::Advance { seconds } => self.clock.advance(seconds),
            Step::Renew { owner } => {
                self.logs[owner].renew().await.unwrap();
                self.leases[owner] = end;
            }
            Step::Release { owner } => {
                self.logs[owner].release().await.unwrap();
                self.leases[owner] = Timestamp::UNIX_EPOCH;
            }
            Step::Claim { owner, session } => {
                let holder = self.owners[&session];
                let line = self.lines.get_mut(&session).unwrap();
                let claimed = self.logs[owner].claim(line.id).await;
                if holder != owner && self.leases[holder] > now {
                    let owner = OwnerId::new(["zero", "one"][holder]);
                    assert_eq!(claimed, Err(ClaimError::Held { owner, expires_at: self.leases[holder] }));
                    return;
                }
                line.epoch = Epoch(line.epoch.0 + 1);
                assert_eq!(claimed, Ok(line.epoch));
                self.owners.insert(session, owner);
                self.believed.insert((owner, session), line.epoch);
                self.leases[owner] = self.leases[owner].max(if self.leases[owner] > now { now } else { end });
            }
            Step::Append { owner, session } => self.append(owner, session).await,
        }
    }

    /// Appends as an owner that believes what it was told last; one that never had the session believes nothing.
    async fn append(&mut self, owner: usize, session: u128) {
        let Some(epoch) = self.believed.get(&(owner, session)).copied() else { return };
        let line = self.lines.get_mut(&session).unwrap();
        let mut append = line.peek(vec![output("more")]);
        append.epoch = epoch;
        let appended = self.logs[owner].append(append).await;
        if epoch == line.epoch {
            appended.unwrap();
            line.append(vec![output("more")]);
            self.appended.entry(session).or_default().push((epoch, owner));
        } else {
            assert_eq!(appended.unwrap_err().error, AppendError::Fenced { newest: line.epoch });
        }
    }

    fn check(&self) {
        for appended in self.appended.values() {
            assert!(appended.is_sorted_by_key(|(epoch, _)| *epoch), "no lower epoch after a higher one");
            let mut owners = BTreeMap::new();
            for (epoch, owner) in appended {
                assert_eq!(owners.entry(epoch).or_insert(owner), &owner, "one owner in an epoch");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn two_owners_never_append_in_one_epoch_nor_a_lower_one_after_a_higher(
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let home = tempfile::tempdir().unwrap();
        runtime.block_on(async {
            let mut model = Model::start(home.path()).await;
            for step in steps {
                model.take(step).await;
            }
            model.check();
        });
    }
}
