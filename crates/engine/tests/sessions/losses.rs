//! Workers that end, and workers that do not come up.

use std::time::Duration;

use mainstay_model::session::Rebuilt;
use mainstay_model::{
    Blame, Divergence, DivergenceKind, Error, EvalEnding, EventBody, Limits, Seq, SessionCommand,
    SessionState, WorkerExit,
};
use tokio::time::Instant;

use crate::scripted::Start;
use crate::support::{Client, Daemon, exited, quick};

#[tokio::test]
async fn code_that_ends_its_worker_is_told_so_and_the_session_comes_back() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    session.eval("define a").await;
    let before = session.now().await;
    assert_eq!(session.eval("print bye\nexit 3").await.ending, exited(3));
    assert_eq!(session.eval("names").await.value.as_deref(), Some("a"));
    let expected = [
        "eval print bye; exit 3",
        "Stdout bye",
        "ended its worker by exit code 3",
        "lost the worker by exit code 3, 0 in a row",
        "warming up, WorkerLost",
        "ready, 1 replayed",
        "eval names",
        "completed",
    ];
    assert_eq!(session.story_of_work_after(before).await, expected);
}

#[tokio::test]
async fn a_job_whose_worker_was_killed_from_outside_was_interrupted() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    assert_eq!(session.eval("signal 9").await.ending, EvalEnding::Interrupted);
    assert_eq!(session.eval("pure 1").await.ending, EvalEnding::Completed);
}

#[tokio::test]
async fn a_worker_that_vanishes_without_a_word_is_replaced() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    assert_eq!(session.eval("vanish").await.ending.name(), "workerExited");
    assert_eq!(session.eval("pure 1").await.ending, EvalEnding::Completed);
}

#[tokio::test(start_paused = true)]
async fn the_wait_before_a_replacement_doubles() {
    let daemon = Daemon::with(Limits::default()).await;
    let session = daemon.session().await;
    for (nth, seconds) in [1, 2, 4].into_iter().enumerate() {
        let lost = Instant::now();
        session.eval("signal 6").await;
        session.until_count("warmUpCompleted", nth + 2).await;
        let waited = lost.elapsed();
        assert!(
            waited >= Duration::from_secs(seconds) && waited < Duration::from_secs(2 * seconds),
            "{waited:?}"
        );
    }
}

fn crashed() -> EvalEnding {
    EvalEnding::WorkerExited { exit: WorkerExit::Signal(6) }
}

#[tokio::test]
async fn code_that_ends_with_an_exit_code_may_do_so_as_often_as_it_likes() {
    let daemon = Daemon::with(Limits { restart_first_ms: 600_000, ..quick() }).await;
    let session = daemon.session().await;
    session.eval("define a").await;
    for code in 0..10 {
        assert_eq!(session.eval(&format!("exit {code}")).await.ending, exited(code));
    }
    assert_eq!(session.eval("names").await.value.as_deref(), Some("a"));
}

/// Loses five workers in a row.
async fn unlucky(daemon: &Daemon) -> Client {
    let session = daemon.session().await;
    session.eval("define a").await;
    for _ in 0..5 {
        session.eval("signal 6").await;
    }
    session.eval("names").await;
    session
}

#[tokio::test]
async fn after_the_fifth_replacement_the_session_gives_up_until_it_is_reset() {
    for reset in [SessionCommand::Reset, SessionCommand::HardReset] {
        let daemon = Daemon::start().await;
        let session = unlucky(&daemon).await;
        let before = session.now().await;
        assert_eq!(session.eval("signal 6").await.ending, crashed());
        session.until("sessionFaulted").await;
        let story = session.story_after(before).await;
        assert_eq!(story[3], "faulted: the worker was lost 6 times in a row, last by signal 6");
        assert_eq!((session.state().await, daemon.workers.alive()), (SessionState::Faulted, 0));
        session.submit(reset).await.unwrap();
        assert_eq!(session.eval("names").await.value.as_deref(), Some(""));
        session.eval("signal 6").await;
        assert_eq!(session.eval("pure 1").await.ending, EvalEnding::Completed, "the count begins anew");
    }
}

#[tokio::test]
async fn a_session_that_gave_up_can_rest_and_come_back_with_its_definitions() {
    let daemon = Daemon::start().await;
    let session = unlucky(&daemon).await;
    session.eval("signal 6").await;
    session.until("sessionFaulted").await;
    session.submit(SessionCommand::Stop).await.unwrap();
    session.submit(SessionCommand::Start).await.unwrap();
    assert_eq!(session.eval("names").await.value.as_deref(), Some("a"));
}

#[tokio::test]
async fn a_kernel_that_this_machine_lacks_faults_the_session_with_what_to_do() {
    let daemon = Daemon::start().await;
    let error = Error::KernelUnavailable { reason: "there is no SDK".to_owned() };
    daemon.workers.next_starts([Start::Fails(error.clone())]);
    let session = daemon.starting_session().await;
    session.until("sessionFaulted").await;
    let story = session.story().await;
    assert_eq!(story[2..], [format!("faulted: {error}. {}", error.next_step())]);
    session.submit(SessionCommand::HardReset).await.unwrap();
    assert_eq!(session.eval("pure 1").await.ending, EvalEnding::Completed);
}

#[tokio::test]
async fn a_worker_that_does_not_come_up_is_tried_again() {
    let daemon = Daemon::start().await;
    let failing = Start::Fails(Error::WorkerFailed { reason: "no channel".to_owned() });
    daemon.workers.next_starts([failing.clone(), failing]);
    let session = daemon.starting_session().await;
    assert_eq!(session.eval("pure 1").await.ending, EvalEnding::Completed);
    let lost = "lost the worker by an unknown cause, 2 in a row".to_owned();
    assert!(session.story().await.contains(&lost));
}

#[tokio::test]
async fn a_kernel_that_takes_too_long_to_get_ready_is_tried_again() {
    let daemon = Daemon::with(Limits { prepare_ms: 20, ..quick() }).await;
    daemon.workers.next_starts([Start::NeverPrepared]);
    let session = daemon.starting_session().await;
    assert_eq!(session.eval("pure 1").await.ending, EvalEnding::Completed);
    assert_eq!(daemon.workers.asked(), 1, "no worker is started before");
}

#[tokio::test(start_paused = true)]
async fn getting_ready_does_not_count_as_starting() {
    let daemon = Daemon::with(Limits { worker_start_ms: 1, ..quick() }).await;
    daemon.workers.prepare_for(Duration::from_secs(60));
    let session = daemon.starting_session().await;
    assert_eq!(session.eval("pure 1").await.ending, EvalEnding::Completed);
    assert_eq!(daemon.workers.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn finding_out_what_a_start_needs_does_not_count_as_starting() {
    let daemon = Daemon::with(Limits { worker_start_ms: 1, ..quick() }).await;
    daemon.workers.gather_for(Duration::from_secs(60));
    let session = daemon.starting_session().await;
    assert_eq!(session.eval("pure 1").await.ending, EvalEnding::Completed);
    assert_eq!(daemon.workers.asked(), 1);
}

#[tokio::test]
async fn a_start_that_takes_too_long_is_tried_again() {
    let daemon = Daemon::with(Limits { worker_start_ms: 20, ..quick() }).await;
    daemon.workers.next_starts([Start::Hangs]);
    let session = daemon.starting_session().await;
    assert_eq!(session.eval("pure 1").await.ending, EvalEnding::Completed);
}

/// What the last rebuilding left otherwise than before.
async fn diverged(session: &Client) -> Vec<Divergence> {
    let events = session.attached.events(session.id, Seq::ZERO, usize::MAX).await.unwrap();
    let mut warm_ups = events.into_iter().filter_map(|event| match event.body {
        EventBody::WarmUpCompleted { diverged, .. } => Some(diverged),
        _ => None,
    });
    warm_ups.next_back().unwrap()
}

#[tokio::test]
async fn what_ends_otherwise_when_it_is_replayed_is_named() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let strange = session.eval("again raise").await;
    session.eval("define a").await;
    session.eval("exit 1").await;
    session.until_count("warmUpCompleted", 2).await;
    let expected = Divergence {
        requested: strange.requested,
        session: None,
        kind: DivergenceKind::Ending { error: Some("Boom: boom".to_owned()) },
    };
    assert_eq!(diverged(&session).await, [expected]);
    assert_eq!(session.eval("names").await.value.as_deref(), Some("a"));
}

#[tokio::test]
async fn a_value_that_differs_when_it_is_replayed_is_named_and_news_until_the_next_eval() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let tick = session.eval("tick").await;
    session.eval("exit 1").await;
    session.until_count("warmUpCompleted", 2).await;
    let kind = DivergenceKind::Values {
        names: vec!["tick".to_owned()],
        now: [("tick".to_owned(), "2".to_owned())].into(),
    };
    let expected = vec![Divergence { requested: tick.requested, session: None, kind }];
    assert_eq!(diverged(&session).await, expected);
    let rebuilt = async || daemon.local.status(session.id).await.unwrap().session.rebuilt;
    let news = |is_news| Some(Rebuilt { diverged: expected.clone(), is_news });
    assert_eq!(rebuilt().await, news(true));
    session.eval("pure 1").await;
    assert_eq!(rebuilt().await, news(false));
    session.submit(SessionCommand::Reset).await.unwrap();
    session.until_count("warmUpCompleted", 3).await;
    assert_eq!(rebuilt().await, None);
}

#[tokio::test]
async fn code_that_ends_two_workers_it_is_replayed_in_is_left_out_of_the_next() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    session.eval("define a").await;
    let deadly = session.eval("again exit 7").await;
    session.eval("define b").await;
    let before = session.now().await;
    session.eval("exit 1").await;
    let expected = [
        "eval exit 1",
        "ended its worker by exit code 1",
        "lost the worker by exit code 1, 0 in a row",
        "warming up, WorkerLost",
        "lost the worker by exit code 7, 1 in a row",
        "warming up, WorkerLost",
        "lost the worker by exit code 7, 2 in a row",
        "warming up, WorkerLost",
        "ready, 2 replayed, 1 diverged",
    ];
    session.until_count("warmUpCompleted", 2).await;
    assert_eq!(session.story_of_work_after(before).await, expected);
    let left_out = Divergence { requested: deadly.requested, session: None, kind: DivergenceKind::LeftOut };
    assert_eq!(diverged(&session).await, [left_out]);
    assert_eq!(session.eval("names").await.value.as_deref(), Some("a b"));
}

#[tokio::test]
async fn code_that_ended_its_worker_afterwards_is_not_run_again_and_named() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    session.eval("define a").await;
    let haunt = session.eval("haunt").await;
    assert_eq!(session.eval("pure 1").await.ending, EvalEnding::Interrupted, "others are cut off");
    assert_eq!(session.eval("names").await.value.as_deref(), Some("a"));
    let left_out = Divergence { requested: haunt.requested, session: None, kind: DivergenceKind::LeftOut };
    assert_eq!(diverged(&session).await, [left_out]);
    let events = session.attached.events(session.id, haunt.completed, usize::MAX).await.unwrap();
    let why = events.into_iter().find_map(|event| match event.body {
        EventBody::WorkerExited { reason, blame, .. } => Some((reason, blame)),
        _ => None,
    });
    let blame = Blame { job: haunt.job, is_sure: true };
    assert_eq!(why, Some((Some("Boom: too late".to_owned()), Some(blame))));
}

#[tokio::test]
async fn what_was_running_when_a_worker_was_killed_from_outside_is_not_blamed() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    session.eval("again signal 15").await;
    session.eval("signal 6").await;
    session.until("sessionFaulted").await;
    let story = session.story().await;
    assert_eq!(story.last().unwrap(), "faulted: the worker was lost 6 times in a row, last by signal 15");
    assert_eq!(daemon.workers.alive(), 0);
}

#[tokio::test]
async fn a_replay_that_takes_too_long_faults_the_session() {
    let daemon = Daemon::with(Limits { replay_ms: 20, ..quick() }).await;
    let session = daemon.session().await;
    session.eval("again stubborn").await;
    session.eval("exit 1").await;
    session.until("sessionFaulted").await;
    let story = session.story().await;
    let reason = "the worker failed: replaying the session took longer than 20 ms; #4 was running";
    let next_step = "Stop the session and use it again; see the daemon's log for more.";
    assert_eq!(story.last().unwrap(), &format!("faulted: {reason}. {next_step}"));
    assert_eq!(daemon.workers.alive(), 0);
}
