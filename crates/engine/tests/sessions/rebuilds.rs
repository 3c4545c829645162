//! Building a session's project: the session is as it was until the build has succeeded.

use mainstay_model::{
    Admission, CreateSession, Diagnostic, Error, JobSpec, Outcome, ProjectChoice, Response, SessionCommand,
    SessionState, Severity, TextPosition, WorkEnding, YieldReason,
};
use serde_json::json;

use crate::scripted::Build;
use crate::support::{CANCEL, Client, Daemon, command, create, next_id, quick};

const REBUILD: SessionCommand = SessionCommand::Work(JobSpec::Rebuild);

pub(crate) async fn session_of_project(daemon: &Daemon) -> Client {
    let create =
        CreateSession { project: ProjectChoice::At("/code/Shop.fsproj".to_owned()), ..create("shop") };
    match daemon.local.create(next_id(), create).await.unwrap() {
        Outcome::Done { response: Response::Created { session } } => {
            let client = daemon.client(session);
            client.until("warmUpCompleted").await;
            client
        }
        other => panic!("{other:?}"),
    }
}

fn undefined() -> Diagnostic {
    let place = TextPosition { line: 3, column: 5 };
    Diagnostic {
        severity: Severity::Error,
        code: "FS0039".to_owned(),
        message: "The value 'pric' is not defined.".to_owned(),
        file: Some("/code/Shop.fs".to_owned()),
        start: place,
        end: place,
    }
}

fn ending(outcome: Result<Outcome, Error>) -> WorkEnding {
    match outcome.unwrap() {
        Outcome::Done { response: Response::Worked(outcome) } => outcome.ending,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_rebuild_that_succeeds_begins_afresh_with_a_new_worker() {
    let daemon = Daemon::start().await;
    let session = session_of_project(&daemon).await;
    session.eval("define a").await;
    let before = session.now().await;
    let done = WorkEnding::Done { reason: YieldReason::EndTurn, value: json!([]) };
    assert_eq!(ending(session.submit(REBUILD).await), done);
    session.until_count("warmUpCompleted", 2).await;
    let story = [
        "rebuild: build of the project, then a hard reset",
        "Stdout building",
        "done",
        "hard reset",
        "warming up, HardReset",
        "ready",
    ];
    assert_eq!(session.story_after(before).await, story);
    assert_eq!(session.eval("names").await.value.as_deref(), Some(""));
    assert_eq!(daemon.workers.started(), 2);
}

#[tokio::test]
async fn a_build_that_succeeds_runs_the_definitions_again_with_a_new_worker() {
    let daemon = Daemon::start().await;
    let session = session_of_project(&daemon).await;
    session.eval("define a").await;
    let before = session.now().await;
    assert!(matches!(
        ending(session.submit(SessionCommand::Work(JobSpec::Build)).await),
        WorkEnding::Done { .. }
    ));
    session.until_count("warmUpCompleted", 2).await;
    let story = [
        "build: build of the project",
        "Stdout building",
        "done",
        "warming up, Refreshed",
        "ready, 1 replayed",
    ];
    assert_eq!(session.story_after(before).await, story);
    assert_eq!(session.eval("names").await.value.as_deref(), Some("a"));
}

#[tokio::test]
async fn a_rebuild_that_fails_leaves_the_session_as_it_was() {
    let daemon = Daemon::start().await;
    let session = session_of_project(&daemon).await;
    session.eval("define a").await;
    daemon.workers.next_builds([Build::Fails(undefined())]);
    let failed = WorkEnding::Failed { message: "1 error".to_owned(), diagnostics: vec![undefined()] };
    assert_eq!(ending(session.submit(REBUILD).await), failed);
    assert_eq!(session.eval("names").await.value.as_deref(), Some("a"));
    assert_eq!((daemon.workers.started(), session.count("sessionHardReset").await), (1, 0));
}

#[tokio::test]
async fn a_rebuild_can_be_cancelled_and_changes_nothing_then() {
    let daemon = Daemon::with(quick()).await;
    let session = session_of_project(&daemon).await;
    session.eval("define a").await;
    daemon.workers.next_builds([Build::Loops]);
    let running = session.send(command(next_id(), Admission::Now, REBUILD));
    session.until("outputProduced").await;
    session.submit(CANCEL).await.unwrap();
    let ending = ending(running.await.unwrap());
    assert!(matches!(ending, WorkEnding::Cancelled { .. }), "{ending}");
    assert_eq!(session.eval("names").await.value.as_deref(), Some("a"));
}

#[tokio::test]
async fn a_rebuild_takes_its_turn() {
    let daemon = Daemon::start().await;
    let session = session_of_project(&daemon).await;
    let first = session.begin("wait").await;
    assert!(matches!(session.submit(REBUILD).await, Err(Error::NotOffered { .. })));
    let second = session.send(command(next_id(), Admission::Queue, REBUILD));
    session.until("commandQueued").await;
    daemon.workers.let_go();
    first.await.unwrap().unwrap();
    assert!(matches!(ending(second.await.unwrap()), WorkEnding::Done { .. }));
}

#[tokio::test]
async fn a_session_without_a_project_has_nothing_to_rebuild() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let refused = session.submit(REBUILD).await;
    assert!(
        matches!(&refused, Err(Error::InvalidArgument { argument, .. }) if argument == "rebuild"),
        "{refused:?}"
    );
    assert_eq!(session.state().await, SessionState::Ready);
}

#[tokio::test]
async fn a_rebuild_that_the_daemon_was_lost_in_is_interrupted_and_nothing_is_dropped() {
    let daemon = Daemon::with(quick()).await;
    let session = session_of_project(&daemon).await;
    session.eval("define a").await;
    daemon.workers.next_builds([Build::Loops]);
    let id = next_id();
    let running = session.send(command(id.clone(), Admission::Now, REBUILD));
    session.until("outputProduced").await;
    running.abort();
    let session = session.leave();
    let daemon = daemon.crash().await;
    let session = daemon.client(session);
    let again = session.give(command(id, Admission::Now, REBUILD)).await;
    assert_eq!(ending(again), WorkEnding::Interrupted);
    session.until_count("warmUpCompleted", 2).await;
    assert_eq!(session.eval("names").await.value.as_deref(), Some("a"));
}
