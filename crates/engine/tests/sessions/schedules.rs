//! Schedules: runs that are submitted at their moments, each once.

use std::time::Duration;

use mainstay_engine::NewSchedule;
use mainstay_log::{Schedules, StoredSchedule};
use mainstay_model::schedule::{MissedRuns, Schedule, When};
use mainstay_model::{
    Access, Error, EvalEnding, Limits, Principal, Rights, SessionCommand, SessionId, Timestamp,
};

use crate::support::{Client, Daemon, eval, quick};

/// One that runs code in a session at once.
fn at_once(id: &str, session: SessionId, code: &str) -> NewSchedule {
    NewSchedule {
        id: id.to_owned(),
        when: When::At(Timestamp::UNIX_EPOCH),
        session,
        command: eval(code),
        key_prefix: None,
        grants: None,
        missed: MissedRuns::RunOnce,
    }
}

async fn ended(client: &Client, id: &str) -> Schedule {
    loop {
        match client.attached.schedule(id).await.unwrap() {
            Some(schedule) if schedule.has_ended() => return schedule,
            _ => tokio::task::yield_now().await,
        }
    }
}

#[tokio::test]
async fn a_schedule_runs_once_at_its_moment_and_says_how_that_ended() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    daemon.engine.start_schedules();
    let soon = When::after(Timestamp::now(), Duration::from_millis(50)).unwrap();
    let new = NewSchedule { when: soon, ..at_once("soon", session.id, "define a") };
    let made = session.attached.add_schedule(new.clone()).await.unwrap();
    assert!(!made.has_ended());
    // A client that is not sure that it was made makes it again.
    assert_eq!(session.attached.add_schedule(new).await, Ok(made));
    let schedule = ended(&session, "soon").await;
    let last = schedule.state.last.clone().unwrap();
    assert_eq!((last.command, last.error), (schedule.command_of(last.at).unwrap(), None));
    assert_eq!(session.eval("names").await.value.as_deref(), Some("a"));
    assert_eq!(session.count("evalRequested").await, 2);
}

#[tokio::test]
async fn a_rule_runs_again_and_again_until_it_is_removed() {
    let daemon = Daemon::with(Limits { schedule_interval_ms: 1_000, ..quick() }).await;
    let session = daemon.session().await;
    daemon.engine.start_schedules();
    let every = When::Every("FREQ=SECONDLY;COUNT=2".parse().unwrap());
    let new = NewSchedule { when: every, ..at_once("often", session.id, "pure 1") };
    session.attached.add_schedule(new).await.unwrap();
    assert_eq!(ended(&session, "often").await.state.passed, 2);
    assert_eq!(session.count("evalRequested").await, 2);
    assert_eq!(session.attached.remove_schedule("often").await, Ok(true));
    assert_eq!(session.attached.remove_schedule("often").await, Ok(false));
}

#[tokio::test]
async fn a_run_that_is_refused_is_told_with_the_schedule_and_others_go_on() {
    let daemon = Daemon::start().await;
    let (gone, session) = (daemon.session().await, daemon.session().await);
    for (id, session) in [("gone", gone.id), ("there", session.id)] {
        daemon.client(session).attached.add_schedule(at_once(id, session, "pure 1")).await.unwrap();
    }
    gone.submit(SessionCommand::Delete).await.unwrap();
    daemon.engine.start_schedules();
    let refused = ended(&session, "gone").await.state.last.unwrap().error;
    assert!(matches!(refused, Some(Error::SessionNotFound { .. })), "{refused:?}");
    assert_eq!(ended(&session, "there").await.state.last.unwrap().error, None);
}

#[tokio::test]
async fn a_run_that_was_taken_by_a_daemon_that_was_lost_is_submitted_by_the_next_and_runs_once() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    for id in ["untaken", "taken", "ended"] {
        session.attached.add_schedule(at_once(id, session.id, "pure 1")).await.unwrap();
    }
    // Two were taken, and of one of them the command came to its end, before the daemon was lost.
    for id in ["taken", "ended"] {
        let StoredSchedule { schedule, revision } = daemon.store.schedule(id).await.unwrap().unwrap();
        let taken = schedule.take_due(Timestamp::now());
        assert_eq!(daemon.store.change_schedule(revision, taken.clone()).await, Ok(true));
        if id == "ended" {
            let id = taken.command_of(taken.state.under_way[0]).unwrap();
            let command = crate::support::command(id, mainstay_model::Admission::Queue, eval("pure 1"));
            let outcome = crate::support::evaluated(session.give(command).await);
            assert_eq!(outcome.ending, EvalEnding::Completed);
        }
    }
    let id = session.leave();
    let daemon = daemon.crash().await;
    daemon.engine.start_schedules();
    let session = daemon.client(id);
    for id in ["untaken", "taken", "ended"] {
        assert_eq!(ended(&session, id).await.state.last.unwrap().error, None);
    }
    assert_eq!(session.count("evalRequested").await, 3);
}

#[tokio::test]
async fn runs_that_were_missed_are_made_up_for_as_the_policy_says() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let minute_ago = Timestamp::now() - Duration::from_secs(60);
    let policies =
        [("skip", MissedRuns::Skip, 0), ("once", MissedRuns::RunOnce, 1), ("all", MissedRuns::RunAll(3), 3)];
    for (id, missed, _) in policies {
        let new = NewSchedule {
            when: When::Every("FREQ=SECONDLY;INTERVAL=10;COUNT=4".parse().unwrap()),
            missed,
            ..at_once(id, session.id, &format!("pure {id}"))
        };
        let made = session.attached.add_schedule(new).await.unwrap();
        // As if it had been made then.
        let old = Schedule { created_at: minute_ago, ..made }.begin(0).unwrap();
        assert_eq!(daemon.store.change_schedule(0, old).await, Ok(true));
    }
    daemon.engine.start_schedules();
    for (id, _, runs) in policies {
        let schedule = ended(&session, id).await;
        assert_eq!((schedule.state.passed, schedule.state.left_out), (4, 4 - runs), "{id}");
        let story = session.story().await;
        let ran = story.iter().filter(|line| **line == format!("eval pure {id}")).count();
        assert_eq!(ran as u64, runs, "{id}");
    }
}

#[tokio::test]
async fn a_principal_schedules_so_much_and_in_sessions_that_it_may_drive() {
    let daemon = Daemon::with(Limits { schedules: 1, ..quick() }).await;
    let session = daemon.session().await;
    let new = |id: &str| NewSchedule {
        when: When::after(Timestamp::now(), Duration::from_secs(3_600)).unwrap(),
        ..at_once(id, session.id, "pure 1")
    };
    let one = new("one");
    session.attached.add_schedule(one.clone()).await.unwrap();
    let full = session.attached.add_schedule(new("two")).await.unwrap_err();
    assert!(full.to_string().contains("raise `schedules`"), "{full}");
    assert_eq!(session.attached.check_schedule(&new("two")).await, Err(full));
    assert_eq!(session.attached.check_schedule(&one).await, Ok(()), "it is the same again");
    let principal = Principal::new("bea").unwrap();
    let watcher =
        Access { principal, rights: Rights::Some { see: vec!["*".parse().unwrap()], drive: Vec::new() } };
    let watcher = daemon.engine.attach(watcher, "cli");
    let denied = watcher.add_schedule(new("hers")).await.unwrap_err();
    assert!(matches!(denied, Error::NotPermitted { .. }), "{denied}");
    assert_eq!(watcher.remove_schedule("one").await, Ok(false));
    assert_eq!(watcher.schedules().await, Ok(Vec::new()));
    let other = daemon.client_of("ada", session.id);
    let taken = other.attached.add_schedule(new("one")).await.unwrap_err();
    assert!(taken.to_string().contains("another is named `one`"), "{taken}");
    assert_eq!(other.attached.check_schedule(&new("one")).await, Err(taken));
}
