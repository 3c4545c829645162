//! Two daemons over one store: one owns a session, the other hears of it, and has it once it is given up.

use std::path::Path;
use std::sync::Arc;

use mainstay_engine::{Cursor, Engine};
use mainstay_log::sqlite::{SqliteLog, SqliteOptions};
use mainstay_log::{Log, OwnerId, Sharing};
use mainstay_model::{
    Access, Admission, Error, EvalEnding, EventFilter, Outcome, Position, Response, Seq, SessionId,
    SessionState,
};

use crate::scripted::Scripted;
use crate::support::{Client, command, create, eval, next_id, quick};

/// A daemon that shares the store in a folder.
struct Sharer {
    engine: Engine,
    local: mainstay_engine::Client,
}

impl Sharer {
    async fn open(folder: &Path, owner: &str) -> Self {
        let options = SqliteOptions { sharing: Sharing::by(OwnerId::new(owner)), ..SqliteOptions::default() };
        let log: Arc<dyn Log> = Arc::new(SqliteLog::open(folder, &options).unwrap());
        let workers = Arc::<Scripted>::default();
        let engine = Engine::open(log, vec![workers], quick()).await.unwrap();
        let local = engine.attach(Access::local(), "cli");
        Self { engine, local }
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
