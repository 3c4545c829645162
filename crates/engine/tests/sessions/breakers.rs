//! The breaker: where starts of a kind of runner fail again and again, none is made for a while.

use mainstay_model::breaker::BreakerState;
use mainstay_model::{
    CreateSession, Error, Limits, Outcome, Response, SessionCommand, SessionKind, SessionState,
};

use crate::scripted::Start;
use crate::support::{Daemon, create, eventually, next_id, quick, until_it};

fn fails() -> Start {
    Start::Fails(Error::KernelUnavailable { reason: "there is no SDK".to_owned() })
}

fn limits(breaker_open_ms: u64) -> Limits {
    Limits { breaker_failures: 2, breaker_open_ms, ..quick() }
}

fn state(daemon: &Daemon) -> Option<BreakerState> {
    daemon.engine.breakers().get(&SessionKind::fsharp()).map(|breaker| breaker.state)
}

#[tokio::test]
async fn after_too_many_failed_starts_no_session_is_created_and_none_is_started() {
    let daemon = Daemon::with(limits(600_000)).await;
    let session = daemon.session().await;
    assert_eq!(state(&daemon), Some(BreakerState::Closed));
    daemon.workers.next_starts([fails(), fails()]);
    let other = daemon.starting_session().await;
    until_it(async || other.state().await == SessionState::Faulted).await;
    other.submit(SessionCommand::HardReset).await.unwrap();
    until_it(async || other.state().await == SessionState::Faulted).await;
    assert_eq!(state(&daemon), Some(BreakerState::Open));
    let refused = daemon.local.create(next_id(), create("third")).await;
    assert!(matches!(refused, Err(Error::RunnerUnavailable { .. })), "{refused:?}");
    let asked = daemon.workers.asked();
    other.submit(SessionCommand::HardReset).await.unwrap();
    crate::support::breathe().await;
    assert_eq!((other.state().await, daemon.workers.asked()), (SessionState::WarmingUp, asked), "it waits");
    assert_eq!(session.eval("pure 1").await.value.as_deref(), Some("1"), "what runs is not harmed");
    other.submit(SessionCommand::Stop).await.unwrap();
}

#[tokio::test]
async fn a_folder_that_is_gone_is_the_trouble_of_its_session_alone() {
    let daemon = Daemon::with(limits(600_000)).await;
    let folder = tempfile::tempdir().unwrap();
    let working_directory = folder.path().display().to_string();
    let created = daemon.local.create(next_id(), CreateSession { working_directory, ..create("gone") }).await;
    let Ok(Outcome::Done { response: Response::Created { session } }) = created else {
        panic!("{created:?}")
    };
    let session = daemon.client(session);
    session.until("warmUpCompleted").await;
    drop(folder);
    for faults in 1..4 {
        session.submit(SessionCommand::HardReset).await.unwrap();
        session.until_count("sessionFaulted", faults).await;
    }
    assert_eq!(state(&daemon), Some(BreakerState::Closed));
    assert!(session.story().await.last().unwrap().contains("is not there"));
}

#[tokio::test]
async fn one_start_decides_and_the_others_follow_it() {
    let daemon = Daemon::with(limits(50)).await;
    daemon.workers.next_starts([fails(), fails()]);
    let sessions = [daemon.starting_session().await, daemon.starting_session().await];
    eventually(|| state(&daemon) == Some(BreakerState::Open)).await;
    for session in &sessions {
        until_it(async || session.state().await == SessionState::Faulted).await;
        session.submit(SessionCommand::HardReset).await.unwrap();
    }
    for session in &sessions {
        session.until("warmUpCompleted").await;
    }
    assert_eq!(state(&daemon), Some(BreakerState::Closed));
}

#[tokio::test]
async fn a_start_that_is_slow_opens_nothing() {
    let daemon = Daemon::with(Limits { worker_start_ms: 10, ..limits(600_000) }).await;
    daemon.workers.next_starts([Start::Hangs, Start::Hangs, Start::Hangs]);
    let session = daemon.session().await;
    assert_eq!(session.story().await.iter().filter(|event| event.starts_with("lost")).count(), 3);
    assert_eq!(state(&daemon), Some(BreakerState::Closed));
}
