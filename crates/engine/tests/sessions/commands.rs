//! What a command may say beside what it asks: its key, what it depends on, the version it wants, how long it may take.

use futures::FutureExt;
use mainstay_engine::CommandStatus;
use mainstay_model::command;
use mainstay_model::{
    Admission, Command, CommandId, CreateSession, Error, EvalEnding, IdempotencyKey, Limits, Outcome,
    RateScope, Response, SessionCommand, Version,
};

use crate::scripted::Start;
use crate::support::{
    CANCEL, Client, Daemon, cancel, command, create, ending, eval, evaluated, eventually, id, next_id,
    patient, quick,
};

fn queued(name: &str, code: &str) -> Command {
    command(id(name), Admission::Queue, eval(code))
}

fn after(name: &str, code: &str, dependencies: &[&str]) -> Command {
    let depends_on: Vec<CommandId> = dependencies.iter().map(|dependency| id(dependency)).collect();
    Command { depends_on, ..queued(name, code) }
}

fn keyed(name: &str, key: &str, code: &str) -> Command {
    Command { key: Some(IdempotencyKey::new(key).unwrap()), ..queued(name, code) }
}

async fn failed(session: &Client, command: Command) -> Error {
    match session.give(command).await {
        Ok(Outcome::Failed { error }) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_command_runs_once_its_dependencies_in_other_sessions_have_succeeded() {
    let daemon = Daemon::with(patient()).await;
    let (one, other) = (daemon.session().await, daemon.session().await);
    let first = one.send(queued("first", "wait"));
    one.until("evalRequested").await;
    let second = other.send(after("second", "pure 2", &["first"]));
    other.until("commandQueued").await;
    eventually(|| !daemon.workers.ran().is_empty()).await;
    assert_eq!(daemon.workers.ran(), ["wait"]);
    daemon.workers.let_go();
    assert_eq!(ending(first).await, EvalEnding::Completed);
    assert_eq!(ending(second).await, EvalEnding::Completed);
    let third = other.give(after("third", "pure 3", &["first", "second"])).await;
    assert_eq!(evaluated(third).ending, EvalEnding::Completed);
}

#[tokio::test]
async fn each_way_a_dependency_can_fail_is_told_and_the_answer_stays() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let dependency = || id("raises");
    session.give(queued("raises", "raise")).await.unwrap();
    for _ in 0..2 {
        let error = failed(&session, after("a", "pure 1", &["raises"])).await;
        assert_eq!(error, Error::DependencyFailed { dependency: dependency(), reason: "raised".to_owned() });
    }
    let error = failed(&session, after("b", "pure 1", &["nobody"])).await;
    assert_eq!(error, Error::DependencyUnknown { dependency: id("nobody") });
    let error = session.give(after("c", "pure 1", &["c"])).await.unwrap_err();
    assert_eq!(error, Error::DependsOnItself { command: id("c") });
    assert_eq!(daemon.workers.ran(), ["raise"]);
    assert_eq!(session.eval("pure 1").await.ending, EvalEnding::Completed, "the lane goes on");
}

#[tokio::test]
async fn what_waits_behind_in_the_same_lane_is_no_dependency() {
    let daemon = Daemon::with(patient()).await;
    let session = daemon.session().await;
    let running = session.begin("loop").await;
    let first = session.send(after("first", "pure 1", &["second"]));
    session.until_count("commandQueued", 1).await;
    let second = session.send(queued("second", "pure 2"));
    session.until_count("commandQueued", 2).await;
    session.submit(CANCEL).await.unwrap();
    assert_eq!(ending(running).await, EvalEnding::Cancelled);
    let in_lane = Outcome::Failed { error: Error::DependencyInLane { dependency: id("second") } };
    assert_eq!(first.await.unwrap(), Ok(in_lane));
    assert_eq!(ending(second).await, EvalEnding::Completed);
}

#[tokio::test]
async fn what_has_just_ended_before_in_the_same_lane_may_be_depended_on() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let first = session.send(queued("first", "wait"));
    session.until("evalRequested").await;
    let second = session.send(after("second", "pure 2", &["first"]));
    session.until("commandQueued").await;
    // The second's turn comes while nobody has heard yet that the first has ended.
    daemon.store.hold(true);
    daemon.workers.let_go();
    session.until_stored(1).await;
    daemon.store.hold(false);
    assert_eq!(ending(first).await, EvalEnding::Completed);
    assert_eq!(ending(second).await, EvalEnding::Completed);
}

#[tokio::test]
async fn two_commands_that_wait_for_each_other_do_not_wait_for_ever() {
    let daemon = Daemon::with(patient()).await;
    let (one, other) = (daemon.session().await, daemon.session().await);
    let runs = [one.begin("loop").await, other.begin("loop").await];
    let first = one.send(after("first", "pure 1", &["second"]));
    one.until("commandQueued").await;
    let second = other.send(after("second", "pure 2", &["first"]));
    other.until("commandQueued").await;
    one.submit(CANCEL).await.unwrap();
    other.submit(CANCEL).await.unwrap();
    for run in runs {
        assert_eq!(ending(run).await, EvalEnding::Cancelled);
    }
    let answers = [first.await.unwrap().unwrap(), second.await.unwrap().unwrap()];
    let is_cycle =
        |outcome: &&Outcome| matches!(outcome, Outcome::Failed { error: Error::DependencyCycle { .. } });
    assert_eq!(answers.iter().filter(is_cycle).count(), 1, "{answers:?}");
}

#[tokio::test]
async fn a_wait_for_dependencies_is_bounded_and_a_cancelled_one_takes_its_dependants_along() {
    let daemon = Daemon::with(Limits { dependency_wait_ms: 20, ..patient() }).await;
    let (one, other) = (daemon.session().await, daemon.session().await);
    let first = one.send(queued("first", "loop"));
    one.until("evalRequested").await;
    let error = failed(&other, after("late", "pure 1", &["first"])).await;
    assert_eq!(error, Error::DependencyPending { dependency: id("first"), limit_ms: 20 });

    let behind = one.send(queued("behind", "pure 2"));
    one.until("commandQueued").await;
    one.submit(cancel(&id("behind"))).await.unwrap();
    assert_eq!(behind.await.unwrap(), Ok(Outcome::Failed { error: Error::Cancelled }));
    assert_eq!(failed(&other, after("dependant", "pure 3", &["behind"])).await, Error::Cancelled);
    one.submit(cancel(&id("first"))).await.unwrap();
    assert_eq!(ending(first).await, EvalEnding::Cancelled);
    assert_eq!(failed(&other, after("another", "pure 3", &["first"])).await, Error::Cancelled);
}

#[tokio::test]
async fn a_dependant_that_waits_is_withdrawn_and_survives_the_daemon() {
    let daemon = Daemon::with(patient()).await;
    let (one, other) = (daemon.session().await, daemon.session().await);
    let first = one.send(queued("first", "loop"));
    one.until("evalRequested").await;
    let unwanted = other.send(after("unwanted", "pure 1", &["first"]));
    other.until("commandQueued").await;
    other.submit(cancel(&id("unwanted"))).await.unwrap();
    assert_eq!(unwanted.await.unwrap(), Ok(Outcome::Failed { error: Error::Cancelled }));
    let dependant = || after("dependant", "pure 1", &["first"]);
    let sent = other.send(dependant());
    other.until_count("commandQueued", 2).await;
    first.abort();
    sent.abort();
    let (one, other) = (one.leave(), other.leave());
    let daemon = daemon.crash().await;
    let interrupted = Error::DependencyFailed { dependency: id("first"), reason: "interrupted".to_owned() };
    assert_eq!(failed(&daemon.client(other), dependant()).await, interrupted);
    let first = evaluated(daemon.client(one).give(queued("first", "loop")).await);
    assert_eq!(first.ending, EvalEnding::Interrupted);
}

#[tokio::test]
async fn a_command_runs_only_in_the_version_it_wants() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let wants =
        |name: &str, version| Command { if_version: Some(Version(version)), ..queued(name, "pure 1") };
    let answered = session.attached.submit(session.id, wants("a", 0)).await.unwrap();
    assert_eq!((answered.version, answered.is_replay), (Version(1), false));
    let mismatch = Error::VersionMismatch { expected: Version(0), actual: Version(1) };
    for _ in 0..2 {
        assert_eq!(failed(&session, wants("b", 0)).await, mismatch);
    }
    session.eval("reject").await;
    assert_eq!(evaluated(session.give(wants("c", 1)).await).ending, EvalEnding::Completed);
    session.submit(SessionCommand::Rename(command::Rename { name: "other".to_owned() })).await.unwrap();
    let session = session.leave();
    let daemon = daemon.crash().await;
    assert_eq!(evaluated(daemon.client(session).give(wants("d", 3)).await).ending, EvalEnding::Completed);
}

#[tokio::test]
async fn it_is_known_how_far_a_command_has_come() {
    let daemon = Daemon::with(patient()).await;
    let session = daemon.session().await;
    let how_far = async |name: &str| daemon.local.command(&id(name)).await;
    let runs = session.send(queued("runs", "wait"));
    session.until("evalRequested").await;
    let waits = session.send(queued("waits", "pure 1"));
    session.until("commandQueued").await;
    assert_eq!(how_far("runs").await, Ok(CommandStatus::Runs { session: session.id }));
    assert_eq!(how_far("waits").await, Ok(CommandStatus::Waits { session: session.id }));
    assert_eq!(how_far("nobody").await, Err(Error::CommandNotFound { command: id("nobody") }));
    daemon.workers.let_go();
    for (name, sent) in [("runs", runs), ("waits", waits)] {
        let outcome = sent.await.unwrap().unwrap();
        let Ok(CommandStatus::Ended(stored)) = how_far(name).await else { panic!("{name} has ended") };
        assert_eq!((stored.outcome, stored.session), (outcome, Some(session.id)));
    }
}

#[tokio::test]
async fn a_version_is_looked_at_when_the_turn_has_come() {
    let daemon = Daemon::with(patient()).await;
    let session = daemon.session().await;
    let running = session.begin("wait").await;
    let wanted = Command { if_version: Some(Version(1)), ..queued("wanted", "pure 1") };
    let sent = session.send(wanted);
    session.until("commandQueued").await;
    daemon.workers.let_go();
    assert_eq!(ending(running).await, EvalEnding::Completed);
    assert_eq!(ending(sent).await, EvalEnding::Completed);
}

#[tokio::test]
async fn what_takes_too_long_is_answered_and_cancelled_and_its_late_end_is_no_second_answer() {
    let daemon = Daemon::with(Limits { cancel_grace_ms: 600_000, ..quick() }).await;
    let session = daemon.session().await;
    session.eval("define a").await;
    let before = session.now().await;
    let slow = || Command { timeout_ms: Some(20), ..queued("slow", "loop") };
    let timed_out = Error::TimedOut { limit_ms: 20 };
    assert_eq!(failed(&session, slow()).await, timed_out);
    assert_eq!(session.eval("names").await.value.as_deref(), Some("a"));
    assert_eq!(failed(&session, slow()).await, timed_out, "its answer stays");
    let expected = ["eval loop", "timed out after 20 ms", "cancelled, Yielded"];
    assert_eq!(session.story_after(before).await[..3], expected);
    assert_eq!(daemon.workers.started(), 1);
}

#[tokio::test]
async fn what_does_not_yield_after_its_time_costs_its_worker() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    session.eval("define a").await;
    let slow = Command { timeout_ms: Some(20), ..queued("slow", "stubborn") };
    assert_eq!(failed(&session, slow).await, Error::TimedOut { limit_ms: 20 });
    assert_eq!(session.eval("names").await.value.as_deref(), Some("a"));
    assert_eq!(daemon.workers.started(), 2);
}

#[tokio::test]
async fn waiting_counts_as_time_also_across_a_lost_daemon() {
    let daemon = Daemon::with(patient()).await;
    let session = daemon.session().await;
    let running = session.begin("loop").await;
    let waits = |name: &str, timeout_ms| Command { timeout_ms: Some(timeout_ms), ..queued(name, "pure 1") };
    assert_eq!(failed(&session, waits("short", 20)).await, Error::TimedOut { limit_ms: 20 });
    let sent = [session.send(waits("long", u64::MAX)), session.send(waits("later", 300))];
    session.until_count("commandQueued", 3).await;
    running.abort();
    sent.iter().for_each(tokio::task::JoinHandle::abort);
    let session = session.leave();
    // No turn comes as long as no worker does.
    daemon.workers.next_starts([Start::Hangs]);
    let daemon = daemon.crash().await;
    let session = daemon.client(session);
    assert_eq!(failed(&session, waits("later", 300)).await, Error::TimedOut { limit_ms: 300 });
    // The start that hangs is under way, and not the next one.
    eventually(|| daemon.workers.asked() == 2).await;
    session.submit(SessionCommand::HardReset).await.unwrap();
    assert_eq!(evaluated(session.give(waits("long", u64::MAX)).await).ending, EvalEnding::Completed);
}

#[tokio::test]
async fn a_key_is_answered_once_under_whatever_ids_it_comes() {
    let daemon = Daemon::with(patient()).await;
    let session = daemon.session().await;
    let first = session.send(keyed("first", "once", "wait"));
    session.until("evalRequested").await;
    let joined = session.send(keyed("joined", "once", "wait"));
    let conflict = Error::KeyConflict { key: IdempotencyKey::new("once").unwrap() };
    assert_eq!(session.give(keyed("other", "once", "pure 1")).await, Err(conflict.clone()));
    daemon.workers.let_go();
    let outcome = first.await.unwrap();
    assert_eq!(joined.await.unwrap(), outcome);
    for name in ["first", "joined", "late", "late"] {
        let answered = session.attached.submit(session.id, keyed(name, "once", "wait")).await.unwrap();
        assert_eq!((Ok(answered.outcome), answered.is_replay), (outcome.clone(), true), "{name}");
    }
    assert_eq!(session.give(keyed("other", "once", "pure 1")).await, Err(conflict));
    assert_eq!(session.give(queued("late", "wait")).await, outcome, "it is stored under the new id");
    assert_eq!(daemon.workers.ran(), ["wait"]);
}

#[tokio::test]
async fn a_key_survives_the_daemon_and_is_of_one_session() {
    let daemon = Daemon::start().await;
    let (one, other) = (daemon.session().await, daemon.session().await);
    let running = one.send(keyed("first", "once", "loop"));
    one.until("evalRequested").await;
    running.abort();
    let (one, other) = (one.leave(), other.leave());
    let daemon = daemon.crash().await;
    let again = evaluated(daemon.client(one).give(keyed("again", "once", "loop")).await);
    assert_eq!(again.ending, EvalEnding::Interrupted);
    let elsewhere = evaluated(daemon.client(other).give(keyed("elsewhere", "once", "pure 1")).await);
    assert_eq!(elsewhere.ending, EvalEnding::Completed);
}

#[tokio::test]
async fn commands_over_the_rate_are_refused_with_when_to_come_again_and_replays_are_free() {
    let daemon = Daemon::with(Limits { session_commands_per_minute: 1, ..quick() }).await;
    let session = daemon.session().await;
    let kept = queued("kept", "pure 1");
    session.give(kept.clone()).await.unwrap();
    let refused = session.give(queued("refused", "pure 2")).await.unwrap_err();
    let Error::RateLimited { scope: RateScope::Session, limit: 1, retry_after_ms } = refused else {
        panic!("{refused:?}")
    };
    assert!((1..=60_000).contains(&retry_after_ms), "{retry_after_ms}");
    for _ in 0..10 {
        assert!(session.attached.submit(session.id, kept.clone()).await.unwrap().is_replay);
    }
    assert_eq!(daemon.workers.ran(), ["pure 1"]);
}

#[tokio::test]
async fn as_many_commands_are_under_way_as_may_be() {
    let daemon = Daemon::with(Limits { commands: 2, ..patient() }).await;
    let session = daemon.session().await;
    let running = session.begin("loop").await;
    let waiting = session.send(queued("waits", "pure 1"));
    session.until("commandQueued").await;
    let refused = session.give(queued("refused", "pure 2")).await;
    assert_eq!(refused, Err(Error::TooManyCommands { limit: 2 }));
    let answer = session.submit(cancel(&id("waits"))).await;
    assert_eq!(answer, Ok(Outcome::Done { response: Response::Withdrawn { command: id("waits") } }));
    waiting.await.unwrap().unwrap();
    running.abort();
    assert!(session.give(command(next_id(), Admission::Queue, eval("pure 3"))).now_or_never().is_none());
}

#[tokio::test]
async fn an_alias_is_one_sessions_alone_and_finds_it_whatever_it_is_called() {
    let daemon = Daemon::start().await;
    let aliased = || CreateSession { alias: Some("main".to_owned()), ..create("demo") };
    let Outcome::Done { response: Response::Created { session } } =
        daemon.local.create(next_id(), aliased()).await.unwrap()
    else {
        panic!("it is created");
    };
    let client = daemon.client(session);
    client.submit(SessionCommand::Rename(command::Rename { name: "other".to_owned() })).await.unwrap();
    assert_eq!(daemon.local.resolve("main").await, Ok(session));
    let taken = Error::SessionExists { reference: "main".to_owned() };
    assert_eq!(daemon.local.create(next_id(), aliased()).await, Err(taken));
    let strange = CreateSession { alias: Some("a b".to_owned()), ..create("demo") };
    assert!(matches!(daemon.local.create(next_id(), strange).await, Err(Error::InvalidArgument { .. })));
    client.submit(SessionCommand::Delete).await.unwrap();
    daemon.local.create(next_id(), aliased()).await.unwrap();
    assert_ne!(daemon.local.resolve("main").await, Ok(session));
}

#[tokio::test]
async fn an_alias_that_was_released_goes_to_one_of_those_that_want_it_at_once() {
    let daemon = Daemon::start().await;
    let aliased = || CreateSession { alias: Some("main".to_owned()), ..create("demo") };
    let created = |outcome: Outcome| match outcome {
        Outcome::Done { response: Response::Created { session } } => session,
        other => panic!("{other:?}"),
    };
    let first = created(daemon.local.create(next_id(), aliased()).await.unwrap());
    let client = daemon.client(first);
    client.submit(SessionCommand::Unload(command::Unload { alias: Some("main".to_owned()) })).await.unwrap();
    let gone = Error::SessionNotFound { reference: "main".to_owned() };
    let unload = SessionCommand::Unload(command::Unload { alias: Some("main".to_owned()) });
    assert_eq!(client.submit(unload).await.map(drop), Err(gone));

    let load = || SessionCommand::Load(command::Load { alias: Some("main".to_owned()) });
    let (made, loaded) = tokio::join!(daemon.local.create(next_id(), aliased()), client.submit(load()));
    assert_ne!(made.is_ok(), loaded.is_ok(), "{made:?}, {loaded:?}");
    let taken = Error::SessionExists { reference: "main".to_owned() };
    match made {
        Err(error) => assert_eq!(error, taken),
        Ok(made) => {
            assert_eq!(loaded.map(drop), Err(taken));
            let made = daemon.client(created(made));
            made.submit(SessionCommand::Unload(command::Unload { alias: None })).await.unwrap();
            client.submit(load()).await.unwrap();
        }
    }
    assert_eq!(daemon.local.resolve("main").await, Ok(first));
}

#[tokio::test]
async fn what_waits_stays_where_the_sessions_end_is_refused() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let running = session.begin("loop").await;
    let waits = session.queue("define later");
    session.until("commandQueued").await;
    let other = SessionCommand::Unload(command::Unload { alias: Some("other".to_owned()) });
    assert!(session.submit(other).await.is_err());
    let delete = command(next_id(), Admission::Queue, SessionCommand::Delete);
    let outcome = session.give(Command { if_version: Some(Version(999)), ..delete }).await.unwrap();
    assert!(matches!(outcome, Outcome::Failed { error: Error::VersionMismatch { .. } }), "{outcome:?}");
    session.submit(CANCEL).await.unwrap();
    running.await.unwrap().unwrap();
    assert_eq!(ending(waits).await, EvalEnding::Completed, "it was accepted");
}
