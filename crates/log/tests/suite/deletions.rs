//! Deleted sessions: they are there for nobody, others keep what they have of them, and the rest is collected.

use mainstay_log::{EntryFilter, HistoryFilter, Log, SessionFilter};
use mainstay_model::decide::Answer;
use mainstay_model::search::Words;
use mainstay_model::store::{Collected, Collection};
use mainstay_model::{
    Error, EventBody, ForkPoint, IdempotencyKey, Outcome, Principal, Response, Segment, Seq, SessionId,
    Version,
};

use super::{Store, begun, events};
use crate::support::{Line, answer};

pub async fn a_deleted_session_is_not_found_and_takes_nothing(store: &dyn Store) {
    let log = store.open().await;
    let mut line = begun(&*log, 1, 0).await;
    let other = begun(&*log, 2, 0).await;
    cell(&*log, &mut line, "let secret = 1").await;
    let stale = line.peek(vec![EventBody::SessionRenamed { name: "again".to_owned() }]);
    delete(&*log, &mut line).await;
    let name = line.session.clone().unwrap().name;
    for reference in [line.id.to_string(), line.id.short(), name] {
        assert_eq!(log.resolve(&reference).await, Ok(Vec::new()));
    }
    let ids = |filter| async {
        log.sessions(filter).await.unwrap().into_iter().map(|found| found.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(SessionFilter::default()).await, [other.id]);
    assert_eq!(log.count_sessions(SessionFilter::default()).await, Ok(1));
    assert_eq!(ids(SessionFilter { with_deleted: true, ..SessionFilter::default() }).await.len(), 2);
    assert_eq!(found(&*log, "secret").await, []);
    assert!(log.session(line.id).await.unwrap().unwrap().deleted_at.is_some());

    let not_found = Error::SessionNotFound { reference: line.id.to_string() };
    assert_eq!(log.append(stale).await.map_err(Error::from), Err(not_found.clone()));
    let next = line.peek(vec![EventBody::SessionRenamed { name: "again".to_owned() }]);
    assert_eq!(log.append(next).await.map_err(Error::from), Err(not_found.clone()));
    assert_eq!(log.claim(line.id).await.map_err(Error::from), Err(not_found.clone()));
    assert_eq!(log.append(Line::new(1).create()).await.map_err(Error::from), Err(not_found));
}

pub async fn what_a_fork_has_of_a_deleted_session_stays_and_is_found_in_it(store: &dyn Store) {
    let log = store.open().await;
    let mut parent = begun(&*log, 1, 0).await;
    for code in ["let kept = 1", "let dropped = 2"] {
        cell(&*log, &mut parent, code).await;
    }
    let mut child = fork(&*log, 2, &parent, 2).await;
    delete(&*log, &mut parent).await;
    for _ in 0..2 {
        let of_parent = log.own_entries(parent.id, 0, 2).await.unwrap();
        assert_eq!(of_parent[0].entry.content.beginning(), "let kept = 1");
        assert_eq!(found(&*log, "kept").await, [(child.id, parent.id, 0)]);
        assert_eq!(found(&*log, "dropped").await, []);
        collect(&*log).await;
    }
    assert_eq!(log.count_own_entries(parent.id).await, Ok(2));
    let kept: Vec<u64> = events(&*log, &parent).await.iter().map(|event| event.seq.0).collect();
    assert_eq!(kept, [1, 2, 3, parent.last_seq().0], "its beginning, and its deletion");

    let late = forked(3, &parent, 4);
    assert!(
        matches!(log.append(late).await.map_err(Error::from), Err(Error::SessionNotFound { .. })),
        "nobody has so much of it"
    );
    let grandchild = fork(&*log, 4, &parent, 2).await;
    delete(&*log, &mut child).await;
    collect(&*log).await;
    assert_eq!(found(&*log, "kept").await, [(grandchild.id, parent.id, 0)]);
}

pub async fn a_collection_leaves_the_last_event_and_takes_what_nobody_else_says(store: &dyn Store) {
    let log = store.open().await;
    let mut doomed = begun(&*log, 1, 3).await;
    let mut other = begun(&*log, 2, 0).await;
    let large = "x".repeat(100_000);
    for code in ["let x = 1", &large, "let y = 2"] {
        cell(&*log, &mut doomed, code).await;
    }
    cell(&*log, &mut other, "let x = 1").await;
    let before = log.statistics().await.unwrap();
    assert_eq!((before.sessions, before.deleted, before.entries, before.places), (2, 0, 4, 8));
    assert_eq!((before.objects, before.file_bytes), (1, 100_000));
    let kept = log.own_entries(other.id, 0, 9).await.unwrap();
    assert_eq!(collect(&*log).await, Collected::default(), "nothing was deleted");

    delete(&*log, &mut doomed).await;
    let collected = collect(&*log).await;
    let Collected { events: removed, entries, objects, outcomes: 0, bytes } = collected else {
        panic!("{collected:?}")
    };
    assert_eq!((removed, entries, objects), (doomed.last_seq().0 - 1, 2, 1));
    assert!(bytes > 200_000, "the event and the file");
    assert_eq!(collect(&*log).await, Collected::default(), "and that is all");
    let after = log.statistics().await.unwrap();
    assert_eq!((after.sessions, after.deleted, after.entries, after.places), (1, 1, 2, 2));
    assert_eq!((after.objects, after.file_bytes), (0, 0));
    assert_eq!(log.own_entries(other.id, 0, 9).await.unwrap(), kept);
    let last = events(&*log, &doomed).await.pop().unwrap();
    assert_eq!(last.body, EventBody::SessionDeleted);
    assert_eq!(log.last_position().await, Ok(last.position), "positions go on from it");
    cell(&*log, &mut other, &large).await;
    let again = log.own_entries(other.id, 2, 1).await.unwrap().pop().unwrap();
    assert_eq!(again.entry.content.beginning().len(), 1024, "the same object comes to be again");
}

pub async fn outcomes_are_emptied_but_for_the_creations_and_the_deletions(store: &dyn Store) {
    let log = store.open().await;
    let mut lines = Vec::new();
    for number in 1..=2 {
        let mut line = Line::new(number);
        let mut create = line.create();
        let response = Response::Created { session: line.id };
        let outcome = Outcome::Done { response };
        create.outcomes.push(Answer { outcome, ..answer(&format!("create-{number}"), Seq(1)) });
        log.append(create).await.unwrap();
        let mut rename = line.append(vec![EventBody::SessionRenamed { name: "new".to_owned() }]);
        let mut renamed = answer(&format!("rename-{number}"), Seq(2));
        renamed.key = Some(IdempotencyKey::new("key").unwrap());
        rename.outcomes.push(renamed);
        log.append(rename).await.unwrap();
        lines.push(line);
    }
    let mut deletion = lines[0].append(vec![EventBody::SessionDeleted]);
    deletion.outcomes.push(answer("delete-1", Seq(3)));
    deletion.version = Version(1);
    log.append(deletion).await.unwrap();
    assert_eq!(collect(&*log).await.outcomes, 1);
    let local = Principal::local();
    for (command, is_kept) in
        [("create-1", true), ("rename-1", false), ("delete-1", true), ("create-2", true), ("rename-2", true)]
    {
        let stored = log.outcome(&local, &crate::support::command_id(command)).await.unwrap().unwrap();
        assert_eq!(stored.fingerprint, crate::support::fingerprint(command), "it is known for ever");
        let error = Error::SessionNotFound { reference: lines[0].id.to_string() };
        assert_eq!(stored.outcome != Outcome::Failed { error }, is_kept, "{command}");
    }
    assert_eq!(collect(&*log).await, Collected::default());
}

pub async fn an_object_goes_with_the_last_that_says_it(store: &dyn Store) {
    let log = store.open().await;
    let local = Principal::local();
    let mut line = begun(&*log, 1, 0).await;
    let large = "x".repeat(100_000);
    cell(&*log, &mut line, &large).await;
    let typed = super::history::line(1, &large);
    log.add_history(&local, typed, None).await.unwrap();
    delete(&*log, &mut line).await;
    collect(&*log).await;
    let left = log.statistics().await.unwrap();
    assert_eq!((left.entries, left.objects, left.file_bytes), (0, 1, 100_000), "the history has it");
    let all = HistoryFilter::of(local);
    assert_eq!(log.remove_history(all).await, Ok(1));
    collect(&*log).await;
    let left = log.statistics().await.unwrap();
    assert_eq!((left.objects, left.file_bytes), (0, 0));
}

/// The ids of the sessions that are shown and in which they began, and the numbers of the entries with this word.
async fn found(log: &dyn Log, word: &str) -> Vec<(SessionId, SessionId, u64)> {
    let filter = EntryFilter {
        words: Words::parse(word).unwrap(),
        roles: Vec::new(),
        sessions: SessionFilter::default(),
        since: None,
        until: None,
        offset: 0,
        limit: 10,
    };
    let found = log.search(filter).await.unwrap();
    found.into_iter().map(|(session, placed)| (session.id, placed.session, placed.number)).collect()
}

async fn delete(log: &dyn Log, line: &mut Line) {
    log.append(line.append(vec![EventBody::SessionDeleted])).await.unwrap();
}

/// A fork with the first so many entries of a line.
fn forked(number: u128, parent: &Line, entries: u64) -> mainstay_log::Append {
    let segments = vec![Segment::new(parent.id, 0, entries)];
    let point = ForkPoint {
        from: parent.id,
        entries,
        asked: None,
        replay: segments.clone(),
        segments,
        labels: Default::default(),
    };
    let mut line = Line::new(number);
    let create = line.create();
    let mut append = line.append(vec![EventBody::SessionForked(point)]);
    append.first = create.first;
    append.events.splice(0..0, create.events);
    append
}

async fn fork(log: &dyn Log, number: u128, parent: &Line, entries: u64) -> Line {
    let append = forked(number, parent, entries);
    let mut line = Line::new(number);
    line.session = Some(append.projection.clone());
    log.append(append).await.unwrap();
    line
}

/// Runs a whole collection and returns what it removed.
async fn collect(log: &dyn Log) -> Collected {
    let (mut all, mut next) = (Collected::default(), Some(Collection::default()));
    while let Some(from) = next {
        let (collected, further) = log.collect(from).await.unwrap();
        all += collected;
        next = further;
    }
    all
}

async fn cell(log: &dyn Log, line: &mut Line, code: &str) {
    log.append(line.request(code)).await.unwrap();
    log.append(line.finish("")).await.unwrap();
}
