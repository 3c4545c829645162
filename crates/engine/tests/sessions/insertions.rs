//! Merges by reference: entries of another session, put into a transcript at a place.

use std::ops::Range;

use mainstay_engine::{ImportSession, Inserted, Merge};
use mainstay_formats::exchange::{ExportCursor, Format, read};
use mainstay_log::SessionFilter;
use mainstay_model::store::Collection;
use mainstay_model::{
    Action, CreateSession, Error, ForkSession, Outcome, Response, SessionCommand, SessionKind, SessionState,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::support::{Client, Daemon, id, next_id, patient};

async fn said(session: &Client) -> Vec<String> {
    let entries = session.attached.entries(session.id, 0, usize::MAX).await.unwrap();
    let inputs = entries.iter().filter(|placed| placed.entry.role == mainstay_model::Role::Input);
    inputs.map(|placed| placed.entry.content.beginning().to_owned()).collect()
}

async fn names(session: &Client) -> String {
    session.eval("names").await.value.unwrap_or_default()
}

async fn defines(daemon: &Daemon, names: &[&str]) -> Client {
    let session = daemon.session().await;
    for name in names {
        session.eval(&format!("define {name}")).await;
    }
    session
}

fn of(from: &Client, entries: Range<u64>) -> Merge {
    Merge { from: from.id, entries: std::iter::once(entries).collect() }
}

async fn insert(
    into: &Client,
    from: &Client,
    entries: Range<u64>,
    at: Option<u64>,
) -> Result<Inserted, Error> {
    let inserted = into.attached.insert(into.id, next_id(), of(from, entries), at).await?;
    settle(into).await;
    Ok(inserted)
}

/// Waits until it takes code; an idle one stays so.
async fn settle(session: &Client) {
    if session.state().await == SessionState::Uninitialized {
        return;
    }
    session.attached.settled(session.id, std::time::Duration::from_secs(60)).await.unwrap();
}

async fn fork(daemon: &Daemon, of: &Client, entries: Option<u64>) -> Client {
    let forked = daemon
        .local
        .fork(next_id(), ForkSession { from: of.id, entries, name: None, before_reset: false })
        .await
        .unwrap();
    let Outcome::Done { response: Response::Forked { session, .. } } = forked else { panic!("{forked:?}") };
    let child = daemon.client(session);
    settle(&child).await;
    child
}

#[tokio::test]
async fn failure_8_a_merge_has_a_place_and_a_live_session_is_built_anew_with_it() {
    let mut daemon = Daemon::start().await;
    let (lab, idea) = (defines(&daemon, &["a", "b"]).await, defines(&daemon, &["x", "y"]).await);
    let inserted = insert(&lab, &idea, 0..2, Some(2)).await;
    assert_eq!(inserted, Ok(Inserted { entries: 2, at: 2, asked: None }));
    assert_eq!(said(&lab).await, ["define a", "define x", "define b"]);
    assert_eq!(names(&lab).await, "a x b");
    lab.eval("define c").await;
    let entries = daemon.local.entries(lab.id, 0, 9).await.unwrap();
    assert_eq!(entries[2].session, idea.id, "it is the other's, and nothing is copied");

    let (lab, idea) = (lab.leave(), idea.leave());
    daemon = daemon.crash().await;
    let (lab, idea) = (daemon.client(lab), daemon.client(idea));
    assert_eq!(names(&lab).await, "a x b c");
    assert_eq!(names(&fork(&daemon, &lab, None).await).await, "a x b c");
    for (entries, known) in [(2, "a"), (3, "a x"), (4, "a x"), (6, "a x b")] {
        assert_eq!(names(&fork(&daemon, &lab, Some(entries)).await).await, known, "{entries}");
    }
    insert(&lab, &idea, 2..4, Some(0)).await.unwrap();
    assert_eq!(names(&lab).await, "y a x b c");
    let events = lab.story().await;
    assert_eq!(events.iter().filter(|event| event.starts_with("merged")).count(), 2, "one event each");
}

#[tokio::test]
async fn what_is_put_somewhere_stays_when_its_session_is_deleted() {
    let daemon = Daemon::start().await;
    let (lab, idea) = (defines(&daemon, &["a"]).await, defines(&daemon, &["x", "y"]).await);
    insert(&lab, &idea, 2..4, Some(0)).await.unwrap();
    idea.submit(SessionCommand::Delete).await.unwrap();
    let mut next = Some(Collection::default());
    while let Some(from) = next {
        next = daemon.local.collect(from).await.unwrap().1;
    }
    lab.submit(SessionCommand::Stop).await.unwrap();
    assert_eq!((names(&lab).await, said(&lab).await.len()), ("y a".to_owned(), 3));
}

#[tokio::test]
async fn the_same_command_is_answered_again_and_another_of_its_id_is_refused() {
    let daemon = Daemon::start().await;
    let (lab, idea) = (defines(&daemon, &["a", "b"]).await, defines(&daemon, &["x"]).await);
    let insert = async |at| daemon.local.insert(lab.id, id("once"), of(&idea, 1..2), at).await;
    let first = insert(Some(1)).await;
    assert_eq!(first, Ok(Inserted { entries: 2, at: 2, asked: Some(1) }), "nothing is parted");
    settle(&lab).await;
    lab.eval("define c").await;
    assert_eq!(insert(Some(1)).await, first);
    assert_eq!(insert(Some(2)).await, Err(Error::CommandConflict { command: id("once") }));
    assert_eq!(names(&lab).await, "a x b c");
}

#[tokio::test]
async fn what_a_reset_dropped_gets_nothing_put_into_it_and_brings_none_of_its_own() {
    let daemon = Daemon::start().await;
    let (lab, idea) = (defines(&daemon, &["a"]).await, defines(&daemon, &["x"]).await);
    for session in [&lab, &idea] {
        session.submit(SessionCommand::Reset).await.unwrap();
        session.until_count("warmUpCompleted", 2).await;
    }
    lab.eval("define b").await;
    lab.eval("define c").await;
    idea.eval("define y").await;
    let refused = insert(&lab, &idea, 0..4, Some(0)).await;
    assert!(matches!(refused, Err(Error::InvalidArgument { .. })), "{refused:?}");
    insert(&lab, &idea, 0..4, Some(2)).await.unwrap();
    assert_eq!(names(&lab).await, "x y b c");
    insert(&lab, &idea, 0..2, Some(8)).await.unwrap();
    assert_eq!(names(&lab).await, "x y b x c");
    lab.submit(SessionCommand::Reset).await.unwrap();
    lab.until_count("warmUpCompleted", 5).await;
    assert_eq!(names(&lab).await, "");
    assert_eq!(names(&fork(&daemon, &lab, None).await).await, "");
}

#[tokio::test]
async fn a_merge_right_behind_a_merge_waits_until_the_session_is_built() {
    let daemon = Daemon::start().await;
    let (lab, idea) = (defines(&daemon, &["a"]).await, defines(&daemon, &["x", "y"]).await);
    for entries in [0..2, 2..4] {
        daemon.local.insert(lab.id, next_id(), of(&idea, entries), None).await.unwrap();
    }
    settle(&lab).await;
    assert_eq!(names(&lab).await, "a x y");
}

#[tokio::test]
async fn a_lineage_says_what_was_merged() {
    let daemon = Daemon::start().await;
    let (lab, idea) = (defines(&daemon, &["a"]).await, defines(&daemon, &["x", "y"]).await);
    insert(&lab, &idea, 0..2, None).await.unwrap();
    insert(&lab, &idea, 2..4, Some(0)).await.unwrap();
    let child = fork(&daemon, &lab, Some(2)).await;
    let lineage = daemon.local.lineage(lab.id).await.unwrap();
    let merged: Vec<_> =
        lineage.iter().map(|relative| (relative.session.id, relative.merged.clone())).collect();
    let of_idea = |entries| std::iter::once((idea.id, entries)).collect();
    assert_eq!(merged, [(lab.id, of_idea(4)), (child.id, of_idea(2))]);
    assert!(daemon.local.lineage(idea.id).await.unwrap()[0].merged.is_empty());
}

#[tokio::test]
async fn while_something_runs_nothing_is_put_anywhere() {
    let daemon = Daemon::with(patient()).await;
    let (lab, idea) = (defines(&daemon, &["a"]).await, defines(&daemon, &["x"]).await);
    let running = lab.begin("wait").await;
    let refused = daemon.local.insert(lab.id, next_id(), of(&idea, 0..2), Some(0)).await;
    let (action, state) = (Action::Merge, SessionState::Evaluating);
    assert_eq!(refused, Err(Error::NotOffered { action, state, kind: SessionKind::fsharp(), fault: None }));
    daemon.workers.let_go();
    running.await.unwrap().unwrap();
    lab.submit(SessionCommand::Stop).await.unwrap();
    daemon.local.insert(lab.id, next_id(), of(&idea, 0..2), Some(0)).await.unwrap();
    assert_eq!(lab.state().await, SessionState::Uninitialized, "an idle one stays so");
    assert_eq!(names(&lab).await, "x a");
}

#[tokio::test]
async fn what_was_put_somewhere_is_exported_in_its_place() {
    let daemon = Daemon::start().await;
    let (lab, idea) = (defines(&daemon, &["a", "b"]).await, defines(&daemon, &["x"]).await);
    insert(&lab, &idea, 0..2, Some(2)).await.unwrap();
    lab.eval("define c").await;
    let page = daemon.local.export(lab.id, ExportCursor::default(), usize::MAX).await.unwrap();
    let file = Format::Jsonl.write(&page.header, &page.items).unwrap();
    let imported = read(&file).unwrap();
    let create = CreateSession {
        kind: SessionKind::fsharp(),
        working_directory: "/".to_owned(),
        project: Default::default(),
        arguments: Vec::new(),
        name: None,
        alias: None,
    };
    let created = daemon.local.import(next_id(), ImportSession { create, imported }).await.unwrap();
    let Outcome::Done { response: Response::Created { session } } = created else { panic!("{created:?}") };
    let copy = daemon.client(session);
    let again = daemon.local.export(copy.id, ExportCursor::default(), usize::MAX).await.unwrap();
    assert_eq!(again.items, page.items);
    assert_eq!(names(&copy).await, "a x b c");
}

#[derive(Clone, Debug)]
enum Step {
    Cell { session: usize },
    Insert { session: usize, from: usize, entry: usize, at: Option<usize> },
    Fork { session: usize, cells: Option<usize> },
    Reset { session: usize },
    Stop { session: usize },
}

fn any_step() -> impl Strategy<Value = Step> {
    let session = || 0..3_usize;
    prop_oneof![
        6 => session().prop_map(|session| Step::Cell { session }),
        4 => (session(), session(), 0..9_usize, option::weighted(0.8, 0..9_usize))
            .prop_map(|(session, from, entry, at)| Step::Insert { session, from, entry, at }),
        2 => (session(), option::of(0..9_usize)).prop_map(|(session, cells)| Step::Fork { session, cells }),
        1 => session().prop_map(|session| Step::Reset { session }),
        1 => session().prop_map(|session| Step::Stop { session }),
    ]
}

/// A session beside its lists: what its cells say, each with whether a reset has dropped it.
struct Known {
    client: Client,
    cells: Vec<(String, bool)>,
}

impl Known {
    fn defined(&self) -> String {
        let counts = |(name, is_dropped): &&(String, bool)| !is_dropped && name != "pure";
        let names: Vec<_> = self.cells.iter().filter(counts).map(|(name, _)| name.as_str()).collect();
        names.join(" ")
    }
}

async fn take(daemon: &Daemon, all: &mut Vec<Known>, number: usize, step: Step) {
    let count = all.len();
    match step {
        Step::Cell { session } => {
            let known = &mut all[session % count];
            known.client.eval(&format!("define n{number}")).await;
            known.cells.push((format!("n{number}"), false));
        }
        Step::Insert { session, from, entry, at } => {
            let (session, from) = (session % count, from % count);
            if all[from].cells.is_empty() {
                return;
            }
            let entry = entry % all[from].cells.len();
            let name = all[from].cells[entry].0.clone();
            let at = at.map(|at| at % (all[session].cells.len() + 1));
            let place = at.unwrap_or(all[session].cells.len());
            let (first, behind) = (2 * entry as u64, at.map(|at| 2 * at as u64));
            let inserted = insert(&all[session].client, &all[from].client, first..first + 2, behind).await;
            let is_dropped = all[session].cells.get(place).is_some_and(|(_, is_dropped)| *is_dropped);
            match inserted {
                Ok(_) => {
                    assert!(!is_dropped);
                    all[session].cells.insert(place, (name, false));
                }
                Err(error) => assert!(is_dropped, "{error}"),
            }
        }
        Step::Fork { session, cells } => {
            let known = &all[session % count];
            // A cut before a reset has what was defined then, unless a merge came between: `forks` is about the first.
            let is_cut = known.cells.iter().all(|(_, is_dropped)| !is_dropped);
            let cells =
                cells.filter(|_| is_cut).map_or(known.cells.len(), |cells| cells % (known.cells.len() + 1));
            let client = fork(daemon, &known.client, Some(2 * cells as u64)).await;
            let cells = known.cells[..cells].to_vec();
            all.push(Known { client, cells });
        }
        Step::Reset { session } => {
            let known = &mut all[session % count];
            settle(&known.client).await;
            known.client.eval("pure 0").await;
            known.cells.push(("pure".to_owned(), true));
            known.client.submit(SessionCommand::HardReset).await.unwrap();
            settle(&known.client).await;
            known.cells.iter_mut().for_each(|(_, is_dropped)| *is_dropped = true);
        }
        Step::Stop { session } => {
            all[session % count].client.submit(SessionCommand::Stop).await.unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn transcripts_and_definitions_are_those_of_lists_that_are_copied(steps in vec(any_step(), 1..14)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let daemon = Daemon::start().await;
            let client = daemon.session().await;
            let mut all = vec![Known { client, cells: Vec::new() }];
            for (number, step) in steps.into_iter().enumerate() {
                take(&daemon, &mut all, number, step).await;
            }
            for known in &all {
                let said = said(&known.client).await;
                let cells = known.cells.iter().map(|(name, _)| match name.as_str() {
                    "pure" => "pure 0".to_owned(),
                    name => format!("define {name}"),
                });
                assert_eq!(said, cells.collect::<Vec<_>>());
                assert_eq!(names(&known.client).await, known.defined());
            }
            assert_eq!(daemon.local.count_sessions(SessionFilter::default()).await, Ok(all.len()));
        });
    }
}
