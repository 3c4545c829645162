//! Ending a job before its end.

use std::time::Duration;

use mainstay_model::command::Cancel;
use mainstay_model::{
    Action, Admission, Error, EvalEnding, EventBody, Limits, Outcome, Response, SessionCommand, SessionKind,
    SessionState,
};
use proptest::prelude::*;

use crate::scripted::Start;
use crate::support::{
    CANCEL, Daemon, breathe, cancel, command, ending, eval, evaluated, eventually, id, next_id, patient,
    quick,
};

#[tokio::test]
async fn a_job_that_yields_is_cancelled_and_its_worker_stays() {
    let daemon = Daemon::with(patient()).await;
    let session = daemon.session().await;
    session.eval("define a").await;
    let before = session.now().await;
    let running = session.begin("loop").await;
    let answer = session.submit(CANCEL).await.unwrap();
    let outcome = evaluated(running.await.unwrap());
    assert_eq!(answer, Outcome::Done { response: Response::Cancelling { job: outcome.job } });
    assert_eq!(outcome.ending, EvalEnding::Cancelled);
    assert_eq!(session.story_after(before).await, ["eval loop", "cancel", "cancelled, Yielded"]);
    assert_eq!(session.eval("names").await.value.as_deref(), Some("a"));
    assert_eq!(daemon.workers.started(), 1);
}

#[tokio::test]
async fn a_stubborn_job_costs_its_worker_and_the_session_comes_back_with_its_definitions() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    session.eval("define a").await;
    let before = session.now().await;
    let running = session.begin("stubborn").await;
    session.submit(CANCEL).await.unwrap();
    assert_eq!(ending(running).await, EvalEnding::Cancelled);
    session.until_count("warmUpCompleted", 2).await;
    let story = session.story_after(before).await;
    let expected =
        ["eval stubborn", "cancel", "cancelled, Killed", "warming up, Cancelled", "ready, 1 replayed"];
    assert_eq!(story, expected);
    assert_eq!(session.eval("names").await.value.as_deref(), Some("a"));
    assert_eq!((daemon.workers.started(), daemon.workers.alive()), (2, 1));
}

#[tokio::test]
async fn a_cancel_may_say_how_long_its_job_has_to_stop_up_to_a_limit() {
    for (limits, grace_ms, stored) in
        [(patient(), 20, 20), (Limits { cancel_longest_ms: 10, ..patient() }, u64::MAX, 10)]
    {
        let daemon = Daemon::with(limits).await;
        let session = daemon.session().await;
        let running = session.begin("stubborn").await;
        let before = session.now().await;
        let cancel = Cancel { target: None, grace_ms: Some(grace_ms) };
        session.submit(SessionCommand::Cancel(cancel)).await.unwrap();
        assert_eq!(ending(running).await, EvalEnding::Cancelled);
        let events = session.attached.events(session.id, before, usize::MAX).await.unwrap();
        let told = events.iter().find_map(|event| match event.body {
            EventBody::CancelRequested { grace_ms, .. } => grace_ms,
            _ => None,
        });
        assert_eq!(told, Some(stored));
        assert_eq!(session.story_after(before).await[..2], ["cancel", "cancelled, Killed"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_never_stops_talking_is_killed_all_the_same() {
    for limit in [0, 1024, usize::MAX] {
        let daemon = Daemon::with(Limits { output_bytes_per_job: limit, ..quick() }).await;
        let session = daemon.session().await;
        let running = session.begin("noisy").await;
        session.submit(CANCEL).await.unwrap();
        assert_eq!(ending(running).await, EvalEnding::Cancelled);
        assert_eq!(session.eval("pure 1").await.value.as_deref(), Some("1"));
    }
}

#[tokio::test]
async fn a_cancel_on_the_heels_of_its_eval_reaches_it() {
    let daemon = Daemon::with(patient()).await;
    let session = daemon.session().await;
    for _ in 0..20 {
        let running = session.queue("loop");
        while let Err(error) = session.submit(CANCEL).await {
            assert_eq!(
                error,
                Error::NotOffered {
                    action: Action::Cancel,
                    state: SessionState::Ready,
                    kind: SessionKind::fsharp(),
                    fault: None
                }
            );
        }
        assert_eq!(ending(running).await, EvalEnding::Cancelled);
    }
    assert_eq!(daemon.workers.started(), 1);
}

#[tokio::test]
async fn a_second_cancel_changes_nothing() {
    let daemon = Daemon::with(patient()).await;
    let session = daemon.session().await;
    let running = session.begin("stubborn").await;
    let first = session.submit(CANCEL).await.unwrap();
    assert_eq!(session.submit(CANCEL).await.unwrap(), first);
    session.submit(SessionCommand::Stop).await.unwrap();
    assert_eq!(ending(running).await, EvalEnding::Cancelled);
    assert_eq!(session.story().await.iter().filter(|event| *event == "cancel").count(), 1);
}

#[tokio::test]
async fn where_nothing_runs_there_is_nothing_to_cancel() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let error = session.submit(CANCEL).await.unwrap_err();
    assert_eq!(
        error,
        Error::NotOffered {
            action: Action::Cancel,
            state: SessionState::Ready,
            kind: SessionKind::fsharp(),
            fault: None
        }
    );
    assert_eq!(error.next_step(), "Nothing runs; there is nothing to cancel.");
}

#[tokio::test(start_paused = true)]
async fn the_grace_of_a_job_that_yielded_is_not_its_successors() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let first = session.begin("loop").await;
    session.submit(CANCEL).await.unwrap();
    assert_eq!(ending(first).await, EvalEnding::Cancelled);
    let second = session.begin("loop").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((session.state().await, daemon.workers.started()), (SessionState::Evaluating, 1));
    second.abort();
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_that_is_never_answered_does_not_hold_up_the_next_job() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    daemon.workers.turn_deaf();
    let running = session.begin("wait").await;
    let cancel = session.send(command(next_id(), Admission::Now, CANCEL));
    // No time passes as long as there is something to do.
    eventually(|| daemon.workers.interrupts() == 1).await;
    daemon.workers.let_go();
    eventually(|| running.is_finished()).await;
    assert_eq!(ending(running).await, EvalEnding::Completed);
    cancel.await.unwrap().unwrap();
    assert_eq!(session.eval("pure 1").await.ending, EvalEnding::Completed);
    assert_eq!(daemon.workers.started(), 1);
}

#[tokio::test]
async fn of_cancelled_code_what_had_run_to_its_end_is_there_again_after_a_loss() {
    let daemon = Daemon::with(patient()).await;
    let session = daemon.session().await;
    let running = session.begin("define a\ndefine b\nloop\ndefine c").await;
    session.submit(CANCEL).await.unwrap();
    assert_eq!(ending(running).await, EvalEnding::Cancelled);
    assert_eq!(session.eval("names").await.value.as_deref(), Some("a b"));
    session.eval("exit 1").await;
    assert_eq!(session.eval("names").await.value.as_deref(), Some("a b"));
    assert_eq!(daemon.workers.ran()[3], "define a\ndefine b\n");
}

#[tokio::test]
async fn a_command_is_cancelled_by_its_id_while_it_runs() {
    let daemon = Daemon::with(patient()).await;
    let session = daemon.session().await;
    let running = session.send(command(id("mine"), Admission::Queue, eval("loop")));
    session.until("evalRequested").await;
    let error = session.submit(cancel(&id("other"))).await.unwrap_err();
    assert_eq!(error, Error::NotRunning { command: id("other") });
    session.submit(cancel(&id("mine"))).await.unwrap();
    assert_eq!(ending(running).await, EvalEnding::Cancelled);
    let error = session.submit(cancel(&id("mine"))).await.unwrap_err();
    assert_eq!(error, Error::NotRunning { command: id("mine") });
}

#[tokio::test]
async fn a_command_that_waits_is_withdrawn_and_those_around_it_are_not() {
    let daemon = Daemon::with(patient()).await;
    let session = daemon.session().await;
    let running = session.begin("loop").await;
    let waiting = command(id("waits"), Admission::Queue, eval("pure 1"));
    let sent = session.send(waiting.clone());
    breathe().await;
    let behind = session.queue("pure 2");
    breathe().await;
    let withdrawal = command(id("withdraws"), Admission::Now, cancel(&waiting.id));
    let withdrawn = Outcome::Done { response: Response::Withdrawn { command: waiting.id.clone() } };
    for _ in 0..2 {
        assert_eq!(session.give(withdrawal.clone()).await, Ok(withdrawn.clone()));
    }
    let cancelled = Ok(Outcome::Failed { error: Error::Cancelled });
    assert_eq!(sent.await.unwrap(), cancelled);
    assert!(!running.is_finished());
    session.submit(CANCEL).await.unwrap();
    assert_eq!(ending(running).await, EvalEnding::Cancelled);
    assert_eq!(ending(behind).await, EvalEnding::Completed);
    assert_eq!(session.give(waiting).await, cancelled, "its answer stays");
    assert_eq!(daemon.workers.ran(), ["loop", "pure 2"]);
}

#[tokio::test]
async fn a_command_that_waits_for_a_worker_is_withdrawn() {
    let daemon = Daemon::start().await;
    daemon.workers.next_starts([Start::Hangs]);
    let session = daemon.starting_session().await;
    let waiting = command(id("waits"), Admission::Queue, eval("pure 1"));
    let sent = session.send(waiting.clone());
    breathe().await;
    session.submit(cancel(&waiting.id)).await.unwrap();
    assert_eq!(sent.await.unwrap(), Ok(Outcome::Failed { error: Error::Cancelled }));
}

#[tokio::test]
async fn the_command_of_another_principal_is_not_cancelled_by_its_id() {
    let daemon = Daemon::with(patient()).await;
    let session = daemon.session().await;
    let running = session.send(command(id("mine"), Admission::Queue, eval("loop")));
    let waiting = session.send(command(id("next"), Admission::Queue, eval("pure 1")));
    session.until("evalRequested").await;
    breathe().await;
    let ada = daemon.client_of("ada", session.id);
    for target in ["mine", "next"] {
        let error = ada.submit(cancel(&id(target))).await.unwrap_err();
        assert_eq!(error, Error::NotRunning { command: id(target) });
    }
    session.submit(CANCEL).await.unwrap();
    assert_eq!(ending(running).await, EvalEnding::Cancelled);
    assert_eq!(ending(waiting).await, EvalEnding::Completed);
}

/// Cancels that come whenever they like. Whatever they meet, every eval ends, the next one is not harmed, and no worker
/// is left behind.
#[test]
fn a_cancel_that_races_with_the_end_harms_nobody() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let daemon = runtime.block_on(Daemon::with(patient()));
    let session = runtime.block_on(daemon.session());
    proptest!(ProptestConfig::with_cases(64), |(pause in 0_usize..40)| {
        runtime.block_on(async {
            let first = session.queue("pure 1");
            let second = session.queue("pure 2");
            for _ in 0..pause {
                tokio::task::yield_now().await;
            }
            match session.submit(CANCEL).await {
                Ok(_) | Err(Error::NotOffered { action: Action::Cancel, .. }) => {}
                Err(other) => panic!("{other:?}"),
            }
            for running in [first, second] {
                assert_eq!(ending(running).await, EvalEnding::Completed);
            }
            breathe().await;
        });
    });
    assert_eq!((daemon.workers.started(), daemon.workers.alive()), (1, 1));
}
