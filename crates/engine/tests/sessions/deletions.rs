//! Deleted sessions: everything in them is answered, nobody finds them, and those that were forked off them stay whole.

use mainstay_log::{EventLog, SessionFilter};
use mainstay_model::store::{Collected, Collection};
use mainstay_model::{
    Access, Admission, Command, Error, EvalEnding, ForkSession, Outcome, Principal, Question, Response,
    Rights, Seq, SessionCommand,
};

use crate::support::{Client, Daemon, command, create, ending, eval, id, next_id, patient};

const DELETE: SessionCommand = SessionCommand::Delete;

async fn fork(daemon: &Daemon, of: &Client, entries: Option<u64>) -> Client {
    let forked = daemon
        .local
        .fork(next_id(), ForkSession { from: of.id, entries, name: None, before_reset: false })
        .await
        .unwrap();
    let Outcome::Done { response: Response::Forked { session, .. } } = forked else { panic!("{forked:?}") };
    let child = daemon.client(session);
    child.until("warmUpCompleted").await;
    child
}

/// Runs a whole collection and returns what it removed.
async fn collect(daemon: &Daemon) -> Collected {
    let (mut all, mut next) = (Collected::default(), Some(Collection::default()));
    while let Some(from) = next {
        let (collected, further) = daemon.local.collect(from).await.unwrap();
        all += collected;
        next = further;
    }
    all
}

fn not_found<T>(session: &Client) -> Result<T, Error> {
    Err(Error::SessionNotFound { reference: session.id.to_string() })
}

#[tokio::test]
async fn all_that_runs_waits_or_asks_in_it_is_answered() {
    let daemon = Daemon::with(patient()).await;
    let session = daemon.session().await;
    let asks =
        session.send(command(next_id(), Admission::Now, SessionCommand::Ask(Question::text("Which?"))));
    session.until("askRaised").await;
    let runs = session.begin("wait").await;
    let waits = session.queue("define a");
    session.until("commandQueued").await;
    let delete = Command::new(id("delete"), session.attached.source(), DELETE);
    let Ok(Outcome::Done { response: Response::Recorded { seq } }) = session.give(delete.clone()).await
    else {
        panic!("it was not deleted")
    };
    assert_eq!(ending(runs).await, EvalEnding::Cancelled);
    assert_eq!(waits.await.unwrap(), Ok(Outcome::Failed { error: Error::SessionStopped }));
    assert_eq!(asks.await.unwrap(), Ok(Outcome::Failed { error: Error::Cancelled }));
    let events = daemon.store.events(session.id, Seq::ZERO, usize::MAX).await.unwrap();
    let last = events.last().unwrap();
    assert_eq!((last.seq, last.body.kind()), (seq, "sessionDeleted"));
    assert_eq!(daemon.workers.alive(), 0);

    collect(&daemon).await;
    let again = session.attached.submit(session.id, delete).await.unwrap();
    assert!(again.is_replay && again.outcome == Outcome::Done { response: Response::Recorded { seq } });
}

#[tokio::test]
async fn it_is_there_for_nobody() {
    let daemon = Daemon::start().await;
    let (session, other) = (daemon.session().await, daemon.session().await);
    session.eval("define a").await;
    session.submit(DELETE).await.unwrap();
    let local = &daemon.local;
    for _ in 0..2 {
        assert_eq!(session.submit(DELETE).await, not_found(&session));
        assert_eq!(session.submit(eval("define b")).await, not_found(&session));
        assert_eq!(session.queue("define b").await.unwrap(), not_found(&session));
        assert_eq!(local.status(session.id).await.map(drop), not_found(&session));
        assert_eq!(local.events(session.id, Seq::ZERO, 1).await, not_found(&session));
        assert_eq!(local.entries(session.id, 0, 1).await, not_found(&session));
        assert_eq!(local.subscribe(session.id, Seq::ZERO).await.map(drop), not_found(&session));
        assert_eq!(local.check(session.id, "1".to_owned(), None).await, not_found(&session));
        assert_eq!(local.lineage(session.id).await, not_found(&session));
        assert_eq!(local.statistics(session.id).await, not_found(&session));
        let fork = ForkSession { from: session.id, entries: None, name: None, before_reset: false };
        assert_eq!(local.fork(next_id(), fork).await, not_found(&session));
        let listed = local.sessions(SessionFilter::default()).await.unwrap();
        assert_eq!(listed.iter().map(|session| session.id).collect::<Vec<_>>(), [other.id]);
        assert_eq!(local.resolve("demo").await, Ok(other.id), "its name is free");
        collect(&daemon).await;
    }
}

#[tokio::test]
async fn a_fork_goes_on_without_those_it_comes_from() {
    let mut daemon = Daemon::start().await;
    let parent = daemon.session().await;
    parent.eval("define a").await;
    let middle = fork(&daemon, &parent, None).await;
    middle.eval("define b").await;
    let child = fork(&daemon, &middle, None).await;
    let said = daemon.local.entries(child.id, 0, 9).await.unwrap();
    parent.eval("define c").await;
    for session in [&parent, &middle] {
        session.submit(DELETE).await.unwrap();
    }
    let collected = collect(&daemon).await;
    assert!(collected.entries > 0, "what only the parent had said");
    let (parent, middle, child) = (parent.leave(), middle.leave(), child.leave());
    daemon = daemon.crash().await;
    let child = daemon.client(child);
    assert_eq!(child.eval("names").await.value.unwrap(), "a b", "its worker is rebuilt");
    assert_eq!(daemon.local.entries(child.id, 0, 4).await.unwrap(), said);
    let lineage = daemon.local.lineage(child.id).await.unwrap();
    let shown: Vec<_> =
        lineage.iter().map(|of| (of.session.id, of.session.deleted_at.is_some(), of.entries)).collect();
    assert_eq!(shown, [(parent, true, 2), (middle, true, 4), (child.id, false, 6)]);
    let grandchild = fork(&daemon, &child, Some(2)).await;
    assert_eq!(grandchild.eval("names").await.value.unwrap(), "a");
    child.submit(DELETE).await.unwrap();
    let lineage = daemon.local.lineage(grandchild.id).await.unwrap();
    assert_eq!(lineage.len(), 4, "a way leads from the first to each that is there");
    let side = fork(&daemon, &grandchild, None).await;
    side.submit(DELETE).await.unwrap();
    assert_eq!(daemon.local.lineage(grandchild.id).await.unwrap().len(), 4, "and to no other");
}

#[tokio::test]
async fn what_ran_in_it_runs_nowhere_else_once_it_is_collected() {
    let daemon = Daemon::start().await;
    let (session, other) = (daemon.session().await, daemon.session().await);
    let command = || command(id("once"), Admission::Queue, eval("define a"));
    session.give(command()).await.unwrap();
    session.submit(DELETE).await.unwrap();
    for _ in 0..2 {
        let elsewhere = other.give(command()).await;
        assert_eq!(elsewhere, Err(Error::CommandConflict { command: id("once") }));
        assert_eq!(other.eval("names").await.value.unwrap_or_default(), "");
        collect(&daemon).await;
    }
    let error = Error::SessionNotFound { reference: session.id.to_string() };
    assert_eq!(session.give(command()).await, Ok(Outcome::Failed { error }));
}

#[tokio::test]
async fn who_follows_it_hears_that_and_nothing_more() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let mut events = daemon.local.subscribe(session.id, Seq::ZERO).await.unwrap();
    session.submit(DELETE).await.unwrap();
    let mut last = events.next().await.unwrap();
    while last.body.kind() != "sessionDeleted" {
        last = events.next().await.unwrap();
    }
    assert_eq!(events.next().await.map(drop), not_found(&session));
}

#[tokio::test]
async fn only_its_owner_and_who_may_do_everything_deletes_it() {
    let daemon = Daemon::start().await;
    let of = |principal: &str| {
        let drive = vec!["demo".parse().unwrap()];
        let rights = Rights::Some { see: Vec::new(), drive };
        daemon.engine.attach(Access { principal: Principal::new(principal).unwrap(), rights }, "test")
    };
    let (ada, eve) = (of("ada"), of("eve"));
    let Outcome::Done { response: Response::Created { session } } =
        ada.create(next_id(), create("demo")).await.unwrap()
    else {
        panic!("it was not created")
    };
    let delete = |client: &mainstay_engine::Client| Command::new(next_id(), client.source(), DELETE);
    let refused = eve.submit(session, delete(&eve)).await;
    assert!(matches!(refused, Err(Error::NotPermitted { .. })), "{refused:?}");
    let refused = eve.collect(Collection::default()).await;
    assert!(matches!(refused, Err(Error::NotPermitted { .. })), "{refused:?}");
    assert!(ada.submit(session, delete(&ada)).await.is_ok());
}
