//! Sessions beyond the life of the daemon that served them.

use std::time::Duration;

use mainstay_model::command;
use mainstay_model::{Admission, Error, EvalEnding, Limits, Outcome, SessionCommand, SessionState};

use crate::scripted::Start;
use crate::support::{Daemon, breathe, command, ending, eval, evaluated, eventually, id, patient, quick};

#[tokio::test]
async fn a_job_that_was_cut_off_with_its_daemon_is_interrupted_and_the_session_comes_back() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    session.eval("define a").await;
    let before = session.now().await;
    let same = || command(id("cut-off"), Admission::Now, eval("define b\nloop"));
    let running = session.send(same());
    session.until_count("evalRequested", 2).await;
    running.abort();
    let session = session.leave();
    let daemon = daemon.crash().await;
    let session = daemon.client(session);
    let outcome = evaluated(session.give(same()).await);
    assert_eq!(outcome.ending, EvalEnding::Interrupted);
    assert_eq!(session.eval("names").await.value.as_deref(), Some("a"));
    let expected = [
        "eval define b; loop",
        "interrupted",
        "warming up, DaemonLost",
        "ready, 1 replayed",
        "eval names",
        "completed",
    ];
    assert_eq!(session.story_of_work_after(before).await, expected);
    assert_eq!(daemon.workers.alive(), 1);
}

#[tokio::test]
async fn a_session_comes_back_without_being_asked_for() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await.leave();
    let daemon = daemon.crash().await;
    let settled = daemon.local.settled(session, Duration::from_secs(60)).await.unwrap();
    assert_eq!(settled.state(), SessionState::Ready);
}

#[tokio::test]
async fn a_session_that_was_warming_up_comes_back() {
    let daemon = Daemon::start().await;
    daemon.workers.next_starts([Start::Hangs]);
    let session = daemon.starting_session().await.leave();
    eventually(|| daemon.workers.asked() == 1).await;
    let daemon = daemon.crash().await;
    assert_eq!(daemon.client(session).eval("pure 1").await.ending, EvalEnding::Completed);
}

#[tokio::test]
async fn a_session_at_rest_stays_at_rest() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    session.submit(SessionCommand::Stop).await.unwrap();
    let before = session.now().await;
    let session = session.leave();
    let daemon = daemon.crash().await;
    breathe().await;
    let session = daemon.client(session);
    assert_eq!((session.now().await, daemon.workers.alive()), (before, 0));
}

#[tokio::test]
async fn shutting_down_puts_every_session_to_rest_and_interrupts_its_job() {
    let daemon = Daemon::start().await;
    let (idle, busy) = (daemon.session().await, daemon.session().await);
    idle.eval("define a").await;
    let running = busy.begin("stubborn").await;
    daemon.engine.shut_down().await;
    assert_eq!(daemon.workers.alive(), 0);
    assert_eq!(ending(running).await, EvalEnding::Interrupted);
    assert_eq!(idle.story().await.last().unwrap(), "stopped");
    assert_eq!(busy.story().await[3..], ["eval stubborn", "interrupted", "stopped"]);

    assert_eq!(idle.submit(eval("names")).await, Err(Error::DaemonStopping));
    let idle = idle.leave();
    drop(busy);
    let daemon = daemon.crash().await;
    assert_eq!(daemon.client(idle).state().await, SessionState::Uninitialized);
    assert_eq!(daemon.client(idle).eval("names").await.value.as_deref(), Some("a"));
}

#[tokio::test]
async fn shutting_down_lets_a_job_end_that_does_so_in_time() {
    let daemon = Daemon::with(Limits { drain_ms: 600_000, ..quick() }).await;
    let session = daemon.session().await;
    let running = session.begin("wait\npure 1").await;
    let engine = daemon.engine.clone();
    let stopping = tokio::spawn(async move { engine.shut_down().await });
    breathe().await;
    assert_eq!(session.submit(eval("pure 2")).await, Err(Error::DaemonStopping));
    assert!(!running.is_finished() && !stopping.is_finished());
    daemon.workers.let_go();
    assert_eq!(ending(running).await, EvalEnding::Completed);
    stopping.await.unwrap();
    assert_eq!(session.story().await[3..], ["eval wait; pure 1", "completed", "stopped"]);
}

#[tokio::test]
async fn shutting_down_keeps_the_commands_that_wait_and_the_next_daemon_carries_them_out() {
    let daemon = Daemon::with(patient()).await;
    let session = daemon.session().await;
    let running = session.begin("loop").await;
    let waiting = |name: &str| command(id(name), Admission::Queue, eval(&format!("define {name}")));
    let sent = [session.send(waiting("a")), session.send(waiting("b"))];
    session.until_count("commandQueued", 2).await;
    daemon.engine.shut_down().await;
    assert_eq!(ending(running).await, EvalEnding::Interrupted);
    for sent in sent {
        assert_eq!(sent.await.unwrap(), Err(Error::DaemonStopping), "nobody is left waiting");
    }
    assert_eq!(session.story().await.last().unwrap(), "stopped");
    let session = session.leave();
    let daemon = daemon.crash().await;
    let session = daemon.client(session);
    let again = session.attached.submit(session.id, waiting("b")).await.unwrap();
    assert!(again.is_replay);
    assert_eq!(evaluated(Ok(again.outcome)).ending, EvalEnding::Completed);
    assert_eq!(session.eval("names").await.value.as_deref(), Some("a b"));
    assert_eq!(daemon.workers.ran(), ["loop", "define a", "define b", "names"]);
}

#[tokio::test]
async fn commands_that_waited_when_the_daemon_was_lost_run_once_and_in_their_order() {
    let daemon = Daemon::with(patient()).await;
    let session = daemon.session().await;
    session.eval("define a").await;
    let running = session.begin("loop").await;
    let waiting = |name: &str| command(id(name), Admission::Queue, eval(&format!("define {name}")));
    let sent = [session.send(waiting("b")), session.send(waiting("c"))];
    session.until_count("commandQueued", 2).await;
    // What was accepted may be lost before its worker has it; here it has.
    while !daemon.workers.ran().iter().any(|ran| ran == "loop") {
        tokio::task::yield_now().await;
    }
    running.abort();
    sent.iter().for_each(tokio::task::JoinHandle::abort);
    let session = session.leave();
    let daemon = daemon.crash().await;
    let session = daemon.client(session);
    let again = session.give(waiting("c")).await;
    assert_eq!(evaluated(again).ending, EvalEnding::Completed);
    assert_eq!(session.eval("names").await.value.as_deref(), Some("a b c"));
    let told = session.attached.submit(session.id, waiting("b")).await.unwrap();
    assert!(told.is_replay);
    assert_eq!(evaluated(Ok(told.outcome)).ending, EvalEnding::Completed);
    assert_eq!(daemon.workers.ran(), ["define a", "loop", "define a", "define b", "define c", "names"]);
}

#[tokio::test]
async fn shutting_down_twice_and_with_a_start_that_hangs_ends() {
    let daemon = Daemon::start().await;
    daemon.workers.next_starts([Start::Hangs]);
    let session = daemon.starting_session().await;
    daemon.engine.shut_down().await;
    daemon.engine.shut_down().await;
    assert_eq!(session.story().await, ["created demo", "warming up, Started", "stopped"]);
}

#[tokio::test]
async fn a_daemon_lost_again_and_again_loses_nothing() {
    let mut daemon = Daemon::start().await;
    let session = daemon.session().await.leave();
    for round in 0..4 {
        daemon.client(session).eval(&format!("define n{round}")).await;
        daemon = daemon.crash().await;
    }
    assert_eq!(daemon.client(session).eval("names").await.value.as_deref(), Some("n0 n1 n2 n3"));
}

#[tokio::test]
async fn what_runs_can_be_cancelled_and_answered_while_the_daemon_waits_for_it() {
    let daemon = Daemon::with(Limits { drain_ms: 600_000, ..quick() }).await;
    let (asks, loops) = (daemon.session().await, daemon.session().await);
    let running = [asks.begin("ask Name?").await, loops.begin("loop").await];
    crate::support::until_it(async || !asks.attached.asks().await.unwrap().is_empty()).await;
    let ask = asks.attached.asks().await.unwrap()[0].pending.ask.ask;
    let stopping = daemon.engine.shut_down();
    let ending_all = async {
        while loops.submit(eval("pure 1")).await != Err(Error::DaemonStopping) {
            tokio::task::yield_now().await;
        }
    };
    let answer = SessionCommand::Answer(command::Answer::new(ask, "Ada".into()));
    let (asks_handle, loops_handle) = (asks.clone(), loops.clone());
    let ends = async {
        ending_all.await;
        asks_handle.submit(answer).await.ok();
        loops_handle.submit(crate::support::CANCEL).await.ok();
    };
    tokio::join!(stopping, ends);
    for (running, expected) in running.into_iter().zip([EvalEnding::Completed, EvalEnding::Cancelled]) {
        assert_eq!(ending(running).await, expected);
    }
}

#[tokio::test]
async fn a_session_at_rest_costs_no_task_and_is_there_when_it_is_used() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    session.eval("define a").await;
    assert_eq!(daemon.engine.sessions_in_use(), 1);
    for _ in 0..3 {
        session.submit(SessionCommand::Stop).await.unwrap();
        eventually(|| daemon.engine.sessions_in_use() == 0).await;
        assert_eq!(session.eval("names").await.value.as_deref(), Some("a"));
    }
}

#[tokio::test]
async fn a_session_at_rest_in_which_something_is_asked_keeps_its_task_until_it_is_answered() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let question = mainstay_model::Question::text("Which?");
    let asking = session.send(command(id("asks"), Admission::Now, SessionCommand::Ask(question)));
    session.until("askRaised").await;
    session.submit(SessionCommand::Stop).await.unwrap();
    assert_eq!(daemon.engine.sessions_in_use(), 1);
    session.submit(crate::support::cancel(&id("asks"))).await.unwrap();
    assert_eq!(asking.await.unwrap(), Ok(Outcome::Failed { error: Error::Cancelled }));
    eventually(|| daemon.engine.sessions_in_use() == 0).await;
}

/// Stops and evals that come whenever they like: each is answered, whether or not the session's task has just ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_ends_loses_no_request() {
    let daemon = Daemon::start().await;
    let session = daemon.session().await;
    let clients: Vec<_> = (0..4)
        .map(|number| {
            let session = session.clone();
            tokio::spawn(async move {
                for _ in 0..50 {
                    match number % 2 {
                        0 => drop(session.submit(SessionCommand::Stop).await.unwrap()),
                        // Stopped before its turn, or run.
                        _ => drop(session.queue("pure 1").await.unwrap().unwrap()),
                    }
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    session.submit(SessionCommand::Stop).await.unwrap();
    eventually(|| daemon.engine.sessions_in_use() == 0).await;
}
