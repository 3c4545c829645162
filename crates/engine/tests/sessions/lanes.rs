//! Commands that wait for their turn.

use mainstay_model::{
    Action, Admission, Error, EvalEnding, Limits, Outcome, SessionCommand, SessionKind, SessionState,
};

use crate::support::{
    CANCEL, Daemon, breathe, command, ending, eval, evaluated, eventually, exited, id, next_id, patient,
    quick,
};

#[tokio::test]
async fn a_second_eval_is_refused_with_what_is_offered() {
    let daemon = Daemon::with(patient()).await;
    let session = daemon.session().await;
    let _running = session.begin("loop").await;
    let error = session.submit(eval("pure 1")).await.unwrap_err();
    assert_eq!(
        error,
        Error::NotOffered {
            action: Action::Eval,
            state: SessionState::Evaluating,
            kind: SessionKind::fsharp(),
            fault: None
        }
    );
    let offered = [Action::Cancel, Action::Check, Action::Complete, Action::Events, Action::Status];
    assert_eq!(error.offered(), offered);
    eventually(|| !daemon.workers.ran().is_empty()).await;
    assert_eq!(daemon.workers.ran(), ["loop"]);
}

#[tokio::test]
async fn queued_evals_run_one_at_a_time_in_the_order_they_came() {
    let daemon = Daemon::with(patient()).await;
    let session = daemon.session().await;
    let first = session.begin("loop").await;
    let mut others = Vec::new();
    for number in 0..5 {
        others.push(session.queue(&format!("pure {number}")));
        breathe().await;
    }
    assert_eq!(daemon.workers.ran(), ["loop"]);
    session.submit(CANCEL).await.unwrap();
    assert_eq!(ending(first).await, EvalEnding::Cancelled);
    for (number, other) in others.into_iter().enumerate() {
        assert_eq!(evaluated(other.await.unwrap()).value, Some(number.to_string()));
    }
    assert_eq!(daemon.workers.ran(), ["loop", "pure 0", "pure 1", "pure 2", "pure 3", "pure 4"]);
}

#[tokio::test]
async fn an_eval_waits_for_a_session_that_warms_up() {
    let daemon = Daemon::start().await;
    let session = daemon.starting_session().await;
    assert_eq!(session.eval("pure 1").await.value.as_deref(), Some("1"));
}

#[tokio::test]
async fn a_reset_takes_its_turn_too() {
    let daemon = Daemon::with(patient()).await;
    let session = daemon.session().await;
    let first = session.begin("define a\nloop").await;
    let reset = session.send(command(next_id(), Admission::Queue, SessionCommand::Reset));
    breathe().await;
    let names = session.queue("names");
    breathe().await;
    session.submit(CANCEL).await.unwrap();
    assert_eq!(ending(first).await, EvalEnding::Cancelled);
    reset.await.unwrap().unwrap();
    assert_eq!(evaluated(names.await.unwrap()).value.as_deref(), Some(""));
}

#[tokio::test]
async fn a_full_lane_refuses_and_keeps_what_it_has() {
    let daemon = Daemon::with(Limits { lane_commands: 2, ..patient() }).await;
    let session = daemon.session().await;
    let _running = session.begin("loop").await;
    let kept = [session.queue("pure 1"), session.queue("pure 2")];
    breathe().await;
    let refused = session.queue("pure 3").await.unwrap();
    assert_eq!(refused, Err(Error::LaneFull { limit: 2 }));
    session.submit(CANCEL).await.unwrap();
    for running in kept {
        assert_eq!(ending(running).await, EvalEnding::Completed);
    }
}

#[tokio::test]
async fn the_lane_outlives_the_worker() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    session.eval("define a").await;
    let first = session.queue("exit 3");
    let second = session.queue("names");
    assert_eq!(ending(first).await, exited(3));
    assert_eq!(evaluated(second.await.unwrap()).value.as_deref(), Some("a"));
}

#[tokio::test]
async fn the_lane_outlives_a_hard_reset() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let first = session.begin("define a\nloop").await;
    let second = session.queue("names");
    breathe().await;
    session.submit(SessionCommand::HardReset).await.unwrap();
    assert_eq!(ending(first).await, EvalEnding::Cancelled);
    assert_eq!(evaluated(second.await.unwrap()).value.as_deref(), Some(""));
}

#[tokio::test]
async fn stopping_answers_the_commands_that_wait_and_their_answer_stays() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let running = session.begin("loop").await;
    let waiting = command(id("waits"), Admission::Queue, eval("pure 1"));
    let sent = session.send(waiting.clone());
    breathe().await;
    session.submit(SessionCommand::Stop).await.unwrap();
    assert_eq!(ending(running).await, EvalEnding::Cancelled);
    let stopped = Ok(Outcome::Failed { error: Error::SessionStopped });
    assert_eq!(sent.await.unwrap(), stopped);
    session.submit(SessionCommand::Start).await.unwrap();
    session.until_count("warmUpCompleted", 2).await;
    assert_eq!(session.give(waiting).await, stopped);
    assert_eq!(daemon.workers.ran(), ["loop"]);
}

#[tokio::test]
async fn a_session_that_faults_answers_the_commands_that_wait() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let cause = Error::KernelUnavailable { reason: "gone".to_owned() };
    daemon.workers.next_starts([crate::scripted::Start::Fails(cause.clone())]);
    let first = session.queue("exit 3");
    let second = session.queue("pure 1");
    assert_eq!(ending(first).await, exited(3));
    let error = Error::NotOffered {
        action: Action::Eval,
        state: SessionState::Faulted,
        kind: SessionKind::fsharp(),
        fault: Some(format!("{cause}. {}", cause.next_step())),
    };
    assert!(
        error.to_string().contains("the session is Faulted: the kernel cannot be started: gone"),
        "{error}"
    );
    assert_eq!(second.await.unwrap(), Ok(Outcome::Failed { error: error.clone() }));
    assert_eq!(session.queue("pure 2").await.unwrap(), Err(error), "a faulted session takes nothing in");
}

#[tokio::test]
async fn an_eval_for_a_session_at_rest_starts_it_with_its_definitions() {
    let daemon = Daemon::with(Limits { lane_commands: 1, ..quick() }).await;
    let session = daemon.session().await;
    session.eval("define a").await;
    session.submit(SessionCommand::Stop).await.unwrap();
    assert_eq!(daemon.workers.alive(), 0);
    let refused = session.submit(eval("names")).await;
    assert_eq!(
        refused,
        Err(Error::NotOffered {
            action: Action::Eval,
            state: SessionState::Uninitialized,
            kind: SessionKind::fsharp(),
            fault: None
        })
    );
    let before = session.now().await;
    assert_eq!(session.eval("names").await.value.as_deref(), Some("a"));
    let story = session.story_after(before).await;
    assert_eq!(story, ["warming up, Started", "queued", "ready, 1 replayed", "eval names", "completed"]);
}
