//! The same command id again: the same answer, whatever happened in between.

use mainstay_log::{Append, Directory, Epoch, EventLog, NewEvent, SessionFilter};
use mainstay_model::command;
use mainstay_model::decide::Answer;
use mainstay_model::{
    Admission, Command, CommandFingerprint, Error, EvalEnding, Event, EventBody, IdempotencyKey, Limits,
    Metadata, Outcome, Position, Principal, Response, Seq, Session, SessionCommand, SessionId, SessionKind,
    Timestamp, Version,
};

use tracing::Span;

use crate::support::{
    CANCEL, Daemon, breathe, cli, command, create, ending, eval, evaluated, id, next_id, patient, quick,
};

#[tokio::test]
async fn a_command_sent_again_while_it_runs_waits_for_the_same_outcome() {
    let daemon = Daemon::with(patient()).await;
    let session = daemon.session().await;
    let same = || command(id("same"), Admission::Now, eval("loop"));
    let first = session.send(same());
    session.until("evalRequested").await;
    let second = session.send(same());
    breathe().await;
    session.submit(CANCEL).await.unwrap();
    let outcome = first.await.unwrap();
    assert_eq!(second.await.unwrap(), outcome);
    assert_eq!(session.give(same()).await, outcome);
    assert_eq!(daemon.workers.ran(), ["loop"]);
}

#[tokio::test]
async fn a_command_sent_again_while_it_waits_for_its_turn_runs_once() {
    let daemon = Daemon::with(patient()).await;
    let session = daemon.session().await;
    let running = session.begin("loop").await;
    let same = || command(id("same"), Admission::Queue, eval("pure 1"));
    let (first, second) = (session.send(same()), session.send(same()));
    breathe().await;
    session.submit(CANCEL).await.unwrap();
    ending(running).await;
    assert_eq!(first.await.unwrap(), second.await.unwrap());
    assert_eq!(daemon.workers.ran(), ["loop", "pure 1"]);
}

#[tokio::test]
async fn a_command_sent_again_while_its_outcome_is_on_its_way_to_the_disk_gets_it_after_the_disk_has_it() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    daemon.store.hold(true);
    let same = || command(id("same"), Admission::Now, eval("pure 1"));
    let first = session.send(same());
    // The store has it, and the engine does not know yet.
    while session.story().await.last().unwrap() != "completed" {
        tokio::task::yield_now().await;
    }
    let second = session.send(same());
    breathe().await;
    assert!(!first.is_finished() && !second.is_finished());
    daemon.store.hold(false);
    assert_eq!(first.await.unwrap(), second.await.unwrap());
    assert_eq!(daemon.workers.ran(), ["pure 1"]);
}

#[tokio::test]
async fn a_command_found_by_its_id_or_its_key_is_answered_with_the_version_of_its_own_end() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let key = Some(IdempotencyKey::new("key").unwrap());
    let named =
        |name: &str| Command { key: key.clone(), ..command(id(name), Admission::Queue, eval("pure 1")) };
    let version_of = |name: &str| {
        let (local, command) = (daemon.local.clone(), named(name));
        let session = session.id;
        async move { local.submit(session, command).await.unwrap().version }
    };
    daemon.store.hold(true);
    let first = tokio::spawn(version_of("first"));
    session.until_stored(1).await;
    let later = session.queue("pure 2");
    session.until_stored(2).await;
    // Both have ended, and nobody has heard of it yet.
    let on_their_way = [tokio::spawn(version_of("first")), tokio::spawn(version_of("under-way"))];
    breathe().await;
    daemon.store.hold(false);
    assert_eq!(first.await.unwrap(), Version(1));
    ending(later).await;
    for version in on_their_way {
        assert_eq!(version.await.unwrap(), Version(1));
    }
    for name in ["first", "stored", "stored"] {
        assert_eq!(version_of(name).await, Version(1), "{name}");
    }
}

#[tokio::test]
async fn an_id_under_which_a_key_came_again_is_that_command_while_the_outcome_is_on_its_way_to_the_disk() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    daemon.store.hold(true);
    let key = IdempotencyKey::new("key").unwrap();
    let keyed =
        |name: &str| Command { key: Some(key.clone()), ..command(id(name), Admission::Now, eval("pure 1")) };
    let mut sent = vec![session.send(keyed("first"))];
    while session.story().await.last().unwrap() != "completed" {
        tokio::task::yield_now().await;
    }
    for _ in 0..2 {
        sent.push(session.send(keyed("other")));
        breathe().await;
    }
    daemon.store.hold(false);
    for answer in sent {
        assert_eq!(evaluated(answer.await.unwrap()).ending, EvalEnding::Completed);
    }
    assert_eq!(daemon.workers.ran(), ["pure 1"]);
}

#[tokio::test]
async fn a_command_sent_again_to_the_next_daemon_gets_the_same_outcome() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let same = || command(id("same"), Admission::Now, eval("define a"));
    let first = session.give(same()).await.unwrap();
    let session = session.leave();
    let daemon = daemon.crash().await;
    assert_eq!(daemon.client(session).give(same()).await.unwrap(), first);
    let session = daemon.client(session);
    assert_eq!(session.eval("names").await.value.as_deref(), Some("a"));
    assert_eq!(session.story().await.iter().filter(|event| *event == "eval define a").count(), 1);
}

#[tokio::test]
async fn every_kind_of_command_has_its_outcome_stored() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let commands = [
        SessionCommand::Rename(command::Rename { name: "other".to_owned() }),
        SessionCommand::HardReset,
        SessionCommand::Stop,
        SessionCommand::Start,
    ];
    for body in commands {
        let same = command(next_id(), Admission::Now, body);
        let first = session.give(same.clone()).await.unwrap();
        let seq = session.now().await;
        assert_eq!(session.give(same).await.unwrap(), first);
        let story = session.story_after(seq).await;
        assert!(story.is_empty() || story == ["ready"], "{story:?}");
    }
}

#[tokio::test]
async fn another_command_under_the_same_id_is_a_conflict_and_nothing_runs() {
    let daemon = Daemon::with(patient()).await;
    let session = daemon.session().await;
    let conflict = Err(Error::CommandConflict { command: id("same") });
    let send = async |code| session.give(command(id("same"), Admission::Queue, eval(code))).await;
    let running = session.send(command(id("same"), Admission::Now, eval("loop")));
    session.until("evalRequested").await;
    assert_eq!(send("pure 1").await, conflict, "while it runs");
    session.submit(CANCEL).await.unwrap();
    assert_eq!(ending(running).await, EvalEnding::Cancelled);
    assert_eq!(send("pure 1").await, conflict, "after it");
    assert_eq!(daemon.workers.ran(), ["loop"]);
}

#[tokio::test]
async fn one_id_belongs_to_one_session() {
    let daemon = Daemon::with(patient()).await;
    let (one, other) = (daemon.session().await, daemon.session().await);
    let conflict = Err(Error::CommandConflict { command: id("same") });
    let same = || command(id("same"), Admission::Now, eval("loop"));
    let running = one.send(same());
    one.until("evalRequested").await;
    assert_eq!(other.give(same()).await, conflict, "while it runs");
    one.submit(CANCEL).await.unwrap();
    ending(running).await;
    assert_eq!(other.give(same()).await, conflict, "after it");
    assert_eq!(daemon.local.create(id("same"), create("third")).await, conflict);
}

#[tokio::test]
async fn an_id_is_free_again_where_its_command_was_not_accepted() {
    let daemon = Daemon::with(patient()).await;
    let (one, other) = (daemon.session().await, daemon.session().await);
    let running = one.begin("loop").await;
    let same = || command(id("same"), Admission::Now, eval("pure 1"));
    assert!(matches!(one.give(same()).await, Err(Error::NotOffered { .. })));
    assert_eq!(evaluated(other.give(same()).await).value.as_deref(), Some("1"));
    one.submit(CANCEL).await.unwrap();
    ending(running).await;
}

#[tokio::test]
async fn two_principals_may_use_one_id() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    for (name, value) in [("ada", "1"), ("grace", "2")] {
        let theirs = command(id("same"), Admission::Now, eval(&format!("pure {value}")));
        let outcome = evaluated(daemon.client_of(name, session.id).give(theirs).await);
        assert_eq!(outcome.value.as_deref(), Some(value));
    }
}

#[tokio::test]
async fn a_replay_is_free_of_limits() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let same = || command(id("same"), Admission::Now, eval("pure 12345"));
    let first = session.give(same()).await.unwrap();
    let session = session.leave();
    let tight = Limits { code_bytes: 1, lane_commands: 0, live_sessions: 0, ..quick() };
    let daemon = daemon.reopen(tight).await;
    assert_eq!(daemon.client(session).give(same()).await.unwrap(), first);
    let longer = command(next_id(), Admission::Queue, eval("pure 12345"));
    assert!(matches!(daemon.client(session).give(longer).await, Err(Error::CodeTooLarge { .. })));
}

#[tokio::test]
async fn a_creation_sent_twice_makes_one_session() {
    let daemon = Daemon::start().await;
    let send = || daemon.local.create(id("same"), create("demo"));
    let (first, second) = tokio::join!(send(), send());
    assert_eq!(first, second);
    assert_eq!(send().await, first);
    let sessions = daemon.local.sessions(mainstay_log::SessionFilter::default()).await.unwrap();
    let Outcome::Done { response: Response::Created { session } } = first.unwrap() else { panic!() };
    assert_eq!(sessions.iter().map(|session| session.id).collect::<Vec<_>>(), [session]);
    let other = daemon.local.create(id("same"), create("other")).await;
    assert_eq!(other, Err(Error::CommandConflict { command: id("same") }));
}

#[tokio::test]
async fn a_creation_under_the_id_of_a_command_that_runs_is_a_conflict_and_harms_nothing() {
    let daemon = Daemon::with(patient()).await;
    let session = daemon.session().await;
    let running = session.send(command(id("taken"), Admission::Now, eval("loop")));
    session.until("evalRequested").await;
    let refused = daemon.local.create(id("taken"), create("other")).await;
    assert_eq!(refused, Err(Error::CommandConflict { command: id("taken") }));
    session.submit(CANCEL).await.unwrap();
    assert_eq!(ending(running).await, EvalEnding::Cancelled);
    assert_eq!(session.eval("pure 1").await.ending, EvalEnding::Completed);
}

#[tokio::test]
async fn a_creation_is_carried_out_whether_or_not_anybody_waits_for_it() {
    let daemon = Daemon::start().await;
    daemon.store.hold(true);
    let (local, store) = (daemon.local.clone(), &daemon.store);
    let creating = tokio::spawn(async move { local.create(id("left"), create("left")).await });
    while store.count_sessions(SessionFilter::default()).await.unwrap() == 0 {
        tokio::task::yield_now().await;
    }
    creating.abort();
    assert!(creating.await.unwrap_err().is_cancelled());
    let again = daemon.local.create(id("left"), create("left"));
    let (again, ()) = tokio::join!(again, async { daemon.store.hold(false) });
    let Ok(Outcome::Done { response: Response::Created { session } }) = again else { panic!("{again:?}") };
    daemon.client(session).until("warmUpCompleted").await;
}

#[tokio::test]
async fn a_creation_sent_twice_at_once_happens_once() {
    let daemon = Daemon::start().await;
    let creation = || daemon.local.create(id("twice"), create("one"));
    let (first, second) = tokio::join!(creation(), creation());
    assert_eq!(first.unwrap(), second.unwrap());
    assert_eq!(daemon.local.sessions(SessionFilter::default()).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_job_cut_off_whose_id_has_an_outcome_already_gets_no_second_and_the_session_comes_back() {
    let daemon = Daemon::with(patient()).await;
    let session = daemon.session().await;
    let running = session.send(command(id("taken"), Admission::Now, eval("loop")));
    session.until("evalRequested").await;
    running.abort();
    running.await.unwrap_err();
    let here = session.leave();
    // As if another session had been given the id while nobody held it.
    let answer = Answer {
        key: None,
        principal: Principal::local(),
        command: id("taken"),
        fingerprint: CommandFingerprint::of("elsewhere", &()),
        outcome: Outcome::Failed { error: Error::SessionStopped },
    };
    daemon.store.append(creation_with(answer)).await.unwrap();
    let daemon = daemon.crash().await;
    let session = daemon.client(here);
    session.until("warmUpCompleted").await;
    assert_eq!(session.eval("pure 1").await.ending, EvalEnding::Completed);
}

/// The creation of some other session, with an outcome.
fn creation_with(answer: Answer) -> Append {
    let session = SessionId::from_uuid(uuid::Uuid::now_v7());
    let (at, metadata) = (
        Timestamp::UNIX_EPOCH,
        Metadata { source: cli(), correlation: None, causation: None, environment: None },
    );
    let body = EventBody::SessionCreated {
        kind: SessionKind::fsharp(),
        name: "other".to_owned(),
        working_directory: "/".to_owned(),
        project: None,
        passed_over: Vec::new(),
        arguments: Vec::new(),
        alias: None,
        capabilities: None,
    };
    let new = NewEvent { at, metadata: metadata.clone(), body: body.clone() };
    let event = Event { session, seq: Seq(1), position: Position(1), at, metadata, body };
    let projection = Session::begin(&event).unwrap();
    Append {
        session,
        epoch: Epoch::FIRST,
        first: Seq(1),
        events: vec![new],
        outcomes: vec![answer],
        version: projection.version,
        projection,
        taken: None,
        trace: Span::none(),
    }
}
