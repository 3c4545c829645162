//! Starting afresh, and becoming idle.

use mainstay_model::{
    Action, Error, EvalEnding, Outcome, Response, SessionCommand, SessionKind, SessionState,
};

use crate::scripted::Start;
use crate::support::{Daemon, ending, eventually};

#[tokio::test]
async fn a_reset_drops_the_definitions_and_keeps_the_worker() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    session.eval("define a").await;
    let before = session.now().await;
    let answer = session.submit(SessionCommand::Reset).await.unwrap();
    assert_eq!(answer, Outcome::Done { response: Response::Recorded { seq: before.next().next() } });
    session.until_count("warmUpCompleted", 2).await;
    assert_eq!(session.story_after(before).await, ["reset", "warming up, Reset", "ready"]);
    assert_eq!(session.eval("names").await.value.as_deref(), Some(""));
    assert_eq!(daemon.workers.started(), 1);
}

#[tokio::test]
async fn what_was_defined_before_a_reset_is_never_replayed() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    session.eval("define a").await;
    session.submit(SessionCommand::Reset).await.unwrap();
    session.eval("define b").await;
    session.eval("exit 1").await;
    assert_eq!(session.eval("names").await.value.as_deref(), Some("b"));
}

#[tokio::test]
async fn a_worker_that_does_not_reset_is_replaced() {
    let daemon = Daemon::start().await;
    daemon.workers.next_starts([Start::WithoutReset]);
    let session = daemon.session().await;
    session.eval("define a").await;
    session.submit(SessionCommand::Reset).await.unwrap();
    assert_eq!(session.eval("names").await.value.as_deref(), Some(""));
    assert_eq!((daemon.workers.started(), daemon.workers.alive()), (2, 1));
}

#[tokio::test]
async fn a_reset_is_refused_while_a_job_runs_and_a_hard_reset_is_not() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    session.eval("define a").await;
    let before = session.now().await;
    let running = session.begin("stubborn").await;
    let refused = session.submit(SessionCommand::Reset).await;
    assert_eq!(
        refused,
        Err(Error::NotOffered {
            action: Action::Reset,
            state: SessionState::Evaluating,
            kind: SessionKind::fsharp(),
            fault: None
        })
    );
    session.submit(SessionCommand::HardReset).await.unwrap();
    assert_eq!(ending(running).await, EvalEnding::Cancelled);
    session.until_count("warmUpCompleted", 2).await;
    let story = session.story_after(before).await;
    assert_eq!(story, ["eval stubborn", "cancelled, Killed", "hard reset", "warming up, HardReset", "ready"]);
    assert_eq!(session.eval("names").await.value.as_deref(), Some(""));
    assert_eq!((daemon.workers.started(), daemon.workers.alive()), (2, 1));
}

#[tokio::test]
async fn a_hard_reset_gets_a_session_out_of_a_start_that_hangs() {
    let daemon = Daemon::start().await;
    daemon.workers.next_starts([Start::Hangs]);
    let session = daemon.starting_session().await;
    eventually(|| daemon.workers.asked() == 1).await;
    session.submit(SessionCommand::HardReset).await.unwrap();
    assert_eq!(session.eval("pure 1").await.ending, EvalEnding::Completed);
    assert_eq!((daemon.workers.started(), daemon.workers.alive()), (1, 1));
}

#[tokio::test]
async fn a_hard_reset_gets_a_session_out_of_a_replay_that_hangs() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    session.eval("again stubborn").await;
    session.eval("exit 1").await;
    eventually(|| daemon.workers.ran().len() == 3).await;
    assert_eq!(session.state().await, SessionState::WarmingUp);
    session.submit(SessionCommand::HardReset).await.unwrap();
    assert_eq!(session.eval("pure 1").await.ending, EvalEnding::Completed);
    assert_eq!(daemon.workers.alive(), 1);
}

#[tokio::test]
async fn many_hard_resets_at_once_leave_one_worker() {
    let daemon = Daemon::start().await;
    let session = daemon.starting_session().await;
    for _ in 0..20 {
        session.submit(SessionCommand::HardReset).await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(session.eval("names").await.value.as_deref(), Some(""));
    assert_eq!(daemon.workers.alive(), 1);
}

#[tokio::test]
async fn a_session_at_rest_has_no_worker_and_comes_back_with_its_definitions() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    session.eval("define a").await;
    let before = session.now().await;
    let running = session.begin("stubborn").await;
    session.submit(SessionCommand::Stop).await.unwrap();
    assert_eq!(ending(running).await, EvalEnding::Cancelled);
    assert_eq!((session.state().await, daemon.workers.alive()), (SessionState::Uninitialized, 0));
    session.submit(SessionCommand::Start).await.unwrap();
    session.until_count("warmUpCompleted", 2).await;
    let story = session.story_after(before).await;
    let expected =
        ["eval stubborn", "cancelled, Killed", "stopped", "warming up, Started", "ready, 1 replayed"];
    assert_eq!(story, expected);
    assert_eq!(session.eval("names").await.value.as_deref(), Some("a"));
}

#[tokio::test]
async fn stopping_a_session_that_rests_or_warms_up_is_fine() {
    let daemon = Daemon::start().await;
    daemon.workers.next_starts([Start::Hangs]);
    let session = daemon.starting_session().await;
    let stopped = session.submit(SessionCommand::Stop).await.unwrap();
    assert_eq!(session.submit(SessionCommand::Stop).await.unwrap(), stopped);
    assert_eq!(session.story().await, ["created demo", "warming up, Started", "stopped"]);
}

#[tokio::test]
async fn a_session_that_runs_cannot_be_started() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let error = session.submit(SessionCommand::Start).await.unwrap_err();
    assert_eq!(
        error,
        Error::NotOffered {
            action: Action::Start,
            state: SessionState::Ready,
            kind: SessionKind::fsharp(),
            fault: None
        }
    );
}
