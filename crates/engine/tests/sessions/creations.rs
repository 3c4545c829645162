//! What creates sessions, under conditions: once under a key, and once others have succeeded.

use futures::future::join_all;
use mainstay_engine::{Creation, CreationSource};
use mainstay_log::SessionFilter;
use mainstay_model::command;
use mainstay_model::{
    Admission, Answered, CommandId, CreateSession, Error, ForkSession, IdempotencyKey, Outcome, Response,
    SessionCommand,
};

use crate::support::{Daemon, command, create, eval, id, next_id, patient};

fn keyed(command: &str, name: &str) -> Creation {
    let key = Some(IdempotencyKey::new("once").unwrap());
    Creation { key, ..plain(command, name) }
}

fn behind(command: &str, name: &str, depends_on: &[&str]) -> Creation {
    Creation { depends_on: depends_on.iter().map(|name| id(name)).collect(), ..plain(command, name) }
}

fn plain(command: &str, name: &str) -> Creation {
    Creation::new(id(command), CreationSource::Empty(create(name)))
}

async fn carry_out(daemon: &Daemon, creation: Creation) -> Result<Answered, Error> {
    let begun = daemon.local.begin_creation(creation).await?;
    daemon.local.created(begun).await
}

async fn sessions(daemon: &Daemon) -> usize {
    daemon.local.count_sessions(SessionFilter::default()).await.unwrap()
}

#[tokio::test]
async fn a_session_is_created_once_under_a_key_whatever_its_ids() {
    let daemon = Daemon::start().await;
    let (first, second) =
        tokio::join!(carry_out(&daemon, keyed("one", "demo")), carry_out(&daemon, keyed("two", "demo")));
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!(first.outcome, second.outcome);
    assert_eq!([first.is_replay, second.is_replay].iter().filter(|is_replay| **is_replay).count(), 1);
    let daemon = daemon.crash().await;
    assert_eq!(carry_out(&daemon, keyed("three", "demo")).await.unwrap().outcome, first.outcome);
    assert_eq!(sessions(&daemon).await, 1);
    let conflict = Error::KeyConflict { key: IdempotencyKey::new("once").unwrap() };
    assert_eq!(carry_out(&daemon, keyed("four", "other")).await, Err(conflict));
}

#[tokio::test]
async fn a_session_that_is_asked_for_twice_at_once_is_created_once() {
    let daemon = Daemon::start().await;
    let same = || carry_out(&daemon, plain("same", "demo"));
    let (first, second, third) = tokio::join!(same(), same(), same());
    let answered = [first.unwrap(), second.unwrap(), third.unwrap()];
    assert!(answered.iter().all(|one| one.outcome == answered[0].outcome), "{answered:?}");
    assert_eq!(answered.iter().filter(|answered| answered.is_replay).count(), 2);
    assert_eq!(sessions(&daemon).await, 1);
    let conflict = Error::CommandConflict { command: id("same") };
    assert_eq!(carry_out(&daemon, plain("same", "other")).await, Err(conflict));
}

#[tokio::test]
async fn a_session_comes_once_what_it_depends_on_has_succeeded_and_others_wait_for_it() {
    let daemon = Daemon::with(patient()).await;
    let session = daemon.session().await;
    let requested = session.count("evalRequested").await;
    let running = session.send(command(id("eval"), Admission::Queue, eval("loop")));
    session.until_count("evalRequested", requested + 1).await;
    let first = daemon.local.begin_creation(behind("first", "first", &["eval"])).await.unwrap();
    let second = daemon.local.begin_creation(behind("second", "second", &["first"])).await.unwrap();
    let early = carry_out(&daemon, plain("meanwhile", "meanwhile")).await;
    assert!(early.is_ok(), "who waits keeps nobody waiting");
    assert_eq!(sessions(&daemon).await, 2);
    session.submit(SessionCommand::Cancel(command::Cancel { target: None, grace_ms: None })).await.unwrap();
    running.await.unwrap().unwrap();
    let cancelled = daemon.local.created(first).await;
    assert_eq!(cancelled, Err(Error::Cancelled), "it did not succeed");
    // What was not accepted is not known.
    assert_eq!(daemon.local.created(second).await, Err(unknown("first")));
    assert_eq!(sessions(&daemon).await, 2);
    assert_eq!(carry_out(&daemon, behind("self", "self", &["self"])).await, Err(itself("self")));
}

fn unknown(name: &str) -> Error {
    Error::DependencyUnknown { dependency: id(name) }
}

fn itself(name: &str) -> Error {
    let command: CommandId = id(name);
    Error::DependsOnItself { command }
}

#[tokio::test]
async fn of_many_that_take_a_name_at_the_same_moment_one_gets_it() {
    let daemon = Daemon::start().await;
    let made = |outcome: Outcome| match outcome {
        Outcome::Done { response: Response::Created { session } } => session,
        other => panic!("{other:?}"),
    };
    let mut sessions = Vec::new();
    for number in 0..6 {
        sessions.push(made(daemon.local.create(next_id(), create(&format!("s{number}"))).await.unwrap()));
    }
    let renames = sessions.iter().map(|session| {
        let client = daemon.client(*session);
        async move {
            client.submit(SessionCommand::Rename(command::Rename { name: "one".to_owned() })).await.map(drop)
        }
    });
    let creations = (0..3).map(|_| async { daemon.local.create(next_id(), create("one")).await.map(drop) });
    let (renamed, created) = tokio::join!(join_all(renames), join_all(creations));
    let all: Vec<_> = renamed.into_iter().chain(created).collect();
    assert_eq!(all.iter().filter(|one| one.is_ok()).count(), 1, "{all:?}");
    let taken = Error::SessionExists { reference: "one".to_owned() };
    assert_eq!(all.iter().filter(|one| **one == Err(taken.clone())).count(), all.len() - 1, "{all:?}");
}

#[tokio::test]
async fn names_are_numbered_within_their_owners_folder_and_stay_names() {
    let daemon = Daemon::start().await;
    let folder = tempfile::tempdir().unwrap();
    let long = "x".repeat(120);
    let mut names = Vec::new();
    for folder in [folder.path().join("issue-25"), folder.path().join(&long)] {
        std::fs::create_dir(&folder).unwrap();
        for _ in 0..2 {
            let working_directory = folder.display().to_string();
            let unnamed = CreateSession { name: None, working_directory, ..create("") };
            let Ok(Outcome::Done { response: Response::Created { session } }) =
                daemon.local.create(next_id(), unnamed).await
            else {
                panic!("it is not created");
            };
            names.push(daemon.local.status(session).await.unwrap().session.name);
        }
    }
    assert_eq!(
        names,
        ["issue-25".to_owned(), "issue-25-2".to_owned(), long, format!("{}-2", "x".repeat(108))]
    );
}

#[tokio::test]
async fn a_name_is_taken_once_in_a_folder_but_for_sessions_with_an_alias() {
    let daemon = Daemon::start().await;
    let created = |outcome: Result<Outcome, Error>| match outcome {
        Ok(Outcome::Done { response: Response::Created { session } }) => session,
        other => panic!("{other:?}"),
    };
    let make = |create: CreateSession| daemon.local.create(next_id(), create);
    let taken = |name: &str| Error::SessionExists { reference: name.to_owned() };
    let first = created(make(create("one")).await);
    assert_eq!(make(create("one")).await, Err(taken("one")));
    let elsewhere = CreateSession { working_directory: "/tmp".to_owned(), ..create("one") };
    created(make(elsewhere).await);
    created(make(CreateSession { alias: Some("alias".to_owned()), ..create("one") }).await);

    // Those that were given none are numbered.
    let unnamed = || CreateSession { name: None, working_directory: "/tmp".to_owned(), ..create("") };
    let mut names = Vec::new();
    for _ in 0..3 {
        let session = created(make(unnamed()).await);
        names.push(daemon.local.status(session).await.unwrap().session.name);
    }
    assert_eq!(names, ["tmp", "tmp-2", "tmp-3"]);

    let second = daemon.client(created(make(create("two")).await));
    let rename =
        |name: &str| second.submit(SessionCommand::Rename(command::Rename { name: name.to_owned() }));
    assert_eq!(rename("one").await.map(drop), Err(taken("one")));
    rename("two").await.unwrap();
    rename("three").await.unwrap();
    let fork =
        ForkSession { from: first, entries: None, name: Some("three".to_owned()), before_reset: false };
    assert_eq!(daemon.local.fork(next_id(), fork).await.map(drop), Err(taken("three")));
    daemon.client(first).submit(SessionCommand::Delete).await.unwrap();
    rename("one").await.unwrap();
}
