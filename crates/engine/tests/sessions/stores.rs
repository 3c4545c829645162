//! A store that refuses.

use mainstay_log::EventLog;
use mainstay_model::command;
use mainstay_model::{
    Admission, Error, EvalEnding, Limits, Question, SessionCommand, SessionId, SessionState,
};
use uuid::Uuid;

use crate::support::{CANCEL, Daemon, breathe, command, eval, evaluated, id, patient, quick};

fn disk_full() -> Error {
    Error::StoreFailed { reason: "the disk is full".to_owned() }
}

#[tokio::test]
async fn a_command_whose_append_fails_is_told_and_may_be_sent_again_at_once() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    session.eval("define a").await;
    for round in 0..10 {
        let rename = command(
            id(&format!("r{round}")),
            Admission::Now,
            SessionCommand::Rename(command::Rename { name: "b".to_owned() }),
        );
        // The worker that the round before this one lost is back, and has said all that is stored of it.
        session.eval("pure 1").await;
        daemon.store.refuse_after(0);
        assert_eq!(session.give(rename.clone()).await, Err(disk_full()));
        assert!(session.give(rename).await.is_ok());
    }
    assert_eq!(session.eval("names").await.value.as_deref(), Some("a"));
    assert_eq!(daemon.workers.alive(), 1);
    assert_eq!(session.story().await.iter().filter(|event| *event == "renamed b").count(), 10);
}

#[tokio::test]
async fn an_eval_whose_acceptance_or_outcome_cannot_be_stored_is_told() {
    for skipped in [0, 1] {
        let daemon = Daemon::start().await;
        let session = daemon.session().await;
        session.eval("define a").await;
        daemon.store.refuse_after(skipped);
        let same = || command(id("same"), Admission::Queue, eval("define b"));
        let refused = session.give(same()).await;
        assert!(matches!(refused, Err(Error::StoreFailed { .. })), "{refused:?}");
        let ending = evaluated(session.give(same()).await).ending;
        let names = session.eval("names").await.value.unwrap();
        match skipped {
            0 => {
                assert_eq!((ending, names.as_str()), (EvalEnding::Completed, "a b"), "it was never accepted")
            }
            _ => assert_eq!((ending, names.as_str()), (EvalEnding::Interrupted, "a"), "its end was lost"),
        }
    }
}

#[tokio::test]
async fn commands_that_wait_when_the_store_fails_are_told_too() {
    let daemon = Daemon::with(patient()).await;
    let session = daemon.session().await;
    let running = session.begin("loop").await;
    let waiting = session.queue("pure 1");
    breathe().await;
    daemon.store.refuse_after(0);
    // It is stored at once; a name is looked for first.
    let ask = SessionCommand::Ask(Question::text("which?"));
    assert!(matches!(session.submit(ask).await, Err(Error::StoreFailed { .. })));
    for command in [running, waiting] {
        assert!(matches!(command.await.unwrap(), Err(Error::StoreFailed { .. })));
    }
    assert_eq!(session.eval("pure 2").await.ending, EvalEnding::Completed);
    assert_eq!(session.state().await, SessionState::Ready);
    assert_eq!(daemon.workers.alive(), 1);
}

#[tokio::test]
async fn no_answer_leaves_before_the_store_has_it() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    daemon.store.hold(true);
    let running = session.queue("pure 1");
    breathe().await;
    breathe().await;
    assert!(!running.is_finished());
    daemon.store.hold(false);
    assert!(running.await.unwrap().is_ok());
}

#[tokio::test]
async fn a_status_is_never_older_than_an_event_that_was_read() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    daemon.store.hold(true);
    let running = session.queue("pure 1");
    session.until_stored(1).await;
    assert_eq!(session.state().await, SessionState::Ready);
    assert_eq!(session.now().await.0, session.story().await.len() as u64);
    daemon.store.hold(false);
    assert!(running.await.unwrap().is_ok());
}

#[tokio::test]
async fn a_daemon_whose_store_fails_as_it_shuts_down_ends_nevertheless() {
    let daemon = Daemon::start().await;
    daemon.session().await;
    daemon.store.refuse_after(0);
    daemon.engine.shut_down().await;
    assert_eq!(daemon.workers.alive(), 0);
}

/// Limits under which a store that is away is waited for.
fn waiting() -> Limits {
    Limits { store_wait_ms: 600_000, ..quick() }
}

#[tokio::test]
async fn what_a_store_that_is_away_cannot_take_is_stored_in_order_once_it_is_back() {
    let daemon = Daemon::with(waiting()).await;
    let session = daemon.session().await;
    session.eval("define a").await;
    let worker = daemon.workers.started();
    daemon.store.be_away(true);
    let (first, second) = (session.queue("define b"), session.queue("names"));
    daemon.store.failed(3).await;
    assert!(!first.is_finished() && !second.is_finished(), "nothing is answered that is not durable");
    daemon.store.be_away(false);
    assert_eq!(evaluated(first.await.unwrap()).ending, EvalEnding::Completed);
    assert_eq!(evaluated(second.await.unwrap()).value.as_deref(), Some("a b"));
    assert_eq!(daemon.workers.started(), worker, "the worker ran on");
}

#[tokio::test]
async fn an_append_whose_answer_was_lost_counts_as_done_when_it_is_tried_again() {
    // The acceptance, the output, the end.
    for skipped in 0..3 {
        let daemon = Daemon::with(waiting()).await;
        let session = daemon.session().await;
        session.eval("define a").await;
        let (before, worker) = (session.now().await, daemon.workers.started());
        daemon.store.lose_answer_after(skipped);
        let (first, second) = (session.queue("print x"), session.queue("names"));
        assert_eq!(evaluated(first.await.unwrap()).ending, EvalEnding::Completed, "{skipped}");
        assert_eq!(evaluated(second.await.unwrap()).value.as_deref(), Some("a"), "{skipped}");
        let story = session.story_of_work_after(before).await;
        assert_eq!(story.iter().filter(|event| *event == "eval print x").count(), 1, "{story:?}");
        assert_eq!(daemon.workers.started(), worker, "the worker ran on");
    }
}

#[tokio::test]
async fn a_follower_hears_of_what_was_stored_though_its_answer_never_came() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    session.eval("define a").await;
    let mut follower = session.attached.subscribe(session.id, session.now().await).await.unwrap();
    daemon.store.lose_answer_after(0);
    let ask = SessionCommand::Ask(Question::text("which?"));
    assert!(matches!(session.submit(ask).await, Err(Error::StoreFailed { .. })));
    assert_eq!(follower.next().await.unwrap().body.kind(), "askRaised", "though nobody uses the session");
}

#[tokio::test]
async fn new_commands_are_refused_once_too_much_waits_for_a_store_that_is_away() {
    let daemon = Daemon::with(Limits { store_queue: 1, ..waiting() }).await;
    let session = daemon.session().await;
    session.eval("define a").await;
    daemon.store.be_away(true);
    let running = session.queue("define b");
    // The second is of an append that is tried again.
    daemon.store.failed(2).await;
    let refused = session.give(command(id("late"), Admission::Queue, eval("names"))).await;
    assert!(matches!(refused, Err(Error::StoreFailed { .. })), "{refused:?}");
    daemon.store.be_away(false);
    assert!(running.await.unwrap().is_ok());
    assert_eq!(session.eval("names").await.value.as_deref(), Some("a b"));
}

#[tokio::test]
async fn an_append_that_is_fenced_ends_its_sessions_task_at_once() {
    let daemon = Daemon::with(waiting()).await;
    let session = daemon.session().await;
    session.eval("define a").await;
    daemon.store.claim(session.id).await.unwrap();
    let fenced = session.give(command(id("late"), Admission::Queue, eval("define b"))).await;
    assert_eq!(fenced, Err(Error::SessionOwned));
    assert_eq!(session.eval("names").await.value.as_deref(), Some("a"), "it is read anew");
}

#[tokio::test]
async fn a_read_that_is_blocked_delays_neither_a_cancel_nor_an_answer() {
    let daemon = Daemon::with(patient()).await;
    let session = daemon.session().await;
    daemon.store.block(Some(id("stuck")));
    let running = session.begin("ask which?").await;
    let stuck = session.send(command(id("stuck"), Admission::Queue, eval("define b")));
    let behind = session.queue("names");
    session.until("askRaised").await;
    let ask = session.attached.status(session.id).await.unwrap().session.asks[0].ask.ask;
    let answer = SessionCommand::Answer(command::Answer::new(ask, "yes".into()));
    assert!(session.submit(answer).await.is_ok());
    assert_eq!(evaluated(running.await.unwrap()).ending, EvalEnding::Completed);
    assert!(!stuck.is_finished() && !behind.is_finished());
    daemon.store.block(None);
    assert_eq!(evaluated(stuck.await.unwrap()).ending, EvalEnding::Completed);
    let names = evaluated(behind.await.unwrap()).value.unwrap();
    assert!(names.ends_with(" b"), "they keep their order: {names}");

    let running = session.begin("loop").await;
    daemon.store.block(Some(id("stuck-again")));
    let stuck = session.send(command(id("stuck-again"), Admission::Queue, eval("names")));
    breathe().await;
    assert!(session.submit(CANCEL).await.is_ok());
    assert_eq!(evaluated(running.await.unwrap()).ending, EvalEnding::Cancelled);
    assert!(!stuck.is_finished());
    daemon.store.block(None);
    assert_eq!(evaluated(stuck.await.unwrap()).ending, EvalEnding::Completed);
}

#[tokio::test]
async fn a_cancel_whose_lookup_takes_long_ends_no_job_but_the_one_that_ran_when_it_came() {
    let daemon = Daemon::with(patient()).await;
    let session = daemon.session().await;
    daemon.store.block(Some(id("late")));
    let first = session.begin("wait").await;
    let second = session.queue("loop");
    breathe().await;
    let late = session.send(command(id("late"), Admission::Queue, CANCEL));
    breathe().await;
    daemon.workers.let_go();
    assert_eq!(evaluated(first.await.unwrap()).ending, EvalEnding::Completed);
    breathe().await;
    assert!(!late.is_finished());
    daemon.store.block(None);
    assert!(matches!(late.await.unwrap(), Err(Error::NotRunning { .. })), "what it meant has ended");
    assert!(!second.is_finished());
    assert!(session.submit(CANCEL).await.is_ok());
    assert_eq!(evaluated(second.await.unwrap()).ending, EvalEnding::Cancelled);
}

#[tokio::test]
async fn a_session_that_does_not_exist_is_not_found() {
    let daemon = Daemon::start().await;
    let nobody = SessionId::from_uuid(Uuid::nil());
    let error = Error::SessionNotFound { reference: nobody.to_string() };
    assert_eq!(daemon.client(nobody).submit(eval("pure 1")).await, Err(error.clone()));
    assert_eq!(daemon.local.status(nobody).await.map(|status| status.session), Err(error));
}
