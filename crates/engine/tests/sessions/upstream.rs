//! What went wrong in the program that transcripts are modelled on (shared/protocols/transcripts.md, "Failures seen in
//! upstream"), as far as sessions can do it wrong. What a store can is in the log's tests of the same name.

use futures::future::join_all;
use mainstay_engine::Merge;
use mainstay_log::{EntryFilter, SessionFilter};
use mainstay_model::command;
use mainstay_model::search::Words;
use mainstay_model::store::Collection;
use mainstay_model::{Error, ForkSession, Outcome, Response, Role, Seq, SessionCommand};

use crate::support::{Client, Daemon, next_id};

async fn fork(daemon: &Daemon, of: &Client, entries: u64) -> Client {
    let fork = ForkSession { from: of.id, entries: Some(entries), name: None, before_reset: false };
    let forked = daemon.local.fork(next_id(), fork).await.unwrap();
    let Outcome::Done { response: Response::Forked { session, .. } } = forked else { panic!("{forked:?}") };
    daemon.client(session)
}

async fn roles(session: &Client) -> Vec<Role> {
    let entries = session.attached.entries(session.id, 0, usize::MAX).await.unwrap();
    entries.iter().map(|placed| placed.entry.role).collect()
}

#[tokio::test]
async fn failure_2_several_who_say_something_at_once_lose_nothing() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    join_all((0..20).map(|number| session.queue(&format!("define n{number}")))).await;
    assert_eq!(roles(&session).await, [Role::Input, Role::Output].repeat(20));
}

#[tokio::test]
async fn failure_8_an_empty_session_is_forked_and_a_lineage_has_every_hop() {
    let daemon = Daemon::start().await;
    let mut line = vec![daemon.session().await];
    for _ in 0..4 {
        line.push(fork(&daemon, line.last().unwrap(), 0).await);
    }
    let lineage = daemon.local.lineage(line[4].id).await.unwrap();
    let found: Vec<_> = lineage.iter().map(|relative| relative.session.id).collect();
    assert_eq!(found, line.iter().map(|session| session.id).collect::<Vec<_>>());
}

#[tokio::test]
async fn failure_8_what_is_brought_keeps_where_it_is_from_however_far_it_goes() {
    let daemon = Daemon::start().await;
    let (first, second) = (daemon.session().await, daemon.session().await);
    first.eval("define a").await;
    let merge = Merge { from: first.id, entries: std::iter::once(0..2).collect() };
    daemon.local.merge(second.id, next_id(), merge).await.unwrap();
    let child = fork(&daemon, &second, 2).await;
    let entries = daemon.local.entries(child.id, 0, 1).await.unwrap();
    let origin = entries[0].origin.unwrap();
    assert_eq!((entries[0].session, origin.session, origin.number), (second.id, first.id, 0));
}

#[tokio::test]
async fn failure_9_deleting_a_parent_leaves_its_children_whole_and_no_stale_copy_brings_it_back() {
    let daemon = Daemon::start().await;
    let parent = daemon.session().await;
    parent.eval("define a").await;
    let child = fork(&daemon, &parent, 2).await;
    // Who has it open keeps a copy of it.
    let stale = daemon.local.subscribe(parent.id, Seq::ZERO).await.unwrap();
    parent.submit(SessionCommand::Delete).await.unwrap();
    let mut next = Some(Collection::default());
    while let Some(from) = next {
        next = daemon.local.collect(from).await.unwrap().1;
    }
    assert_eq!(roles(&child).await, [Role::Input, Role::Output]);
    let fork = ForkSession { from: child.id, entries: None, name: None, before_reset: false };
    assert!(daemon.local.fork(next_id(), fork).await.is_ok());
    let saved = parent.submit(SessionCommand::Rename(command::Rename { name: "back".to_owned() })).await;
    assert!(matches!(saved, Err(Error::SessionNotFound { .. })), "{saved:?}");
    assert!(matches!(daemon.local.resolve("back").await, Err(Error::SessionNotFound { .. })));
    drop(stale);
}

#[tokio::test]
async fn failure_10_no_fork_and_no_merge_parts_an_output_from_its_input() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    for name in ["a", "b", "c"] {
        session.eval(&format!("define {name}")).await;
    }
    for entries in 0..=6 {
        let roles = roles(&fork(&daemon, &session, entries).await).await;
        assert!(roles.chunks(2).all(|cell| cell == [Role::Input, Role::Output]), "{entries}: {roles:?}");
    }
    for index in 0..6 {
        let into = daemon.session().await;
        let merge = Merge { from: session.id, entries: std::iter::once(index..index + 1).collect() };
        daemon.local.merge(into.id, next_id(), merge).await.unwrap();
        assert_eq!(roles(&into).await, [Role::Input, Role::Output]);
    }
}

#[tokio::test]
async fn failure_11_search_sees_all_of_an_output() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    session.eval(&format!("print {} needle", "x".repeat(30_000))).await;
    let filter = EntryFilter {
        words: Words::parse("needle").unwrap(),
        roles: vec![Role::Output],
        sessions: SessionFilter::default(),
        since: None,
        until: None,
        offset: 0,
        limit: 10,
    };
    let found = daemon.local.search(filter).await.unwrap();
    let [hit] = found.as_slice() else { panic!("{found:?}") };
    assert!(hit.snippet.contains("needle"), "{}", hit.snippet);
    assert_eq!((hit.session.id, hit.index), (session.id, Some(1)));
}
