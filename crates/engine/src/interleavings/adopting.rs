//! Daemons that have a session one after another, of which the earlier ones go on as if they still had it: each is fenced off by the
//! store and by the runner, and the runner's notices are taken once.

use std::sync::Arc;

use futures::future::join_all;
use mainstay_log::{EventLog, Log};
use mainstay_model::{
    Answered, Command, Error, EvalEnding, Event, EventBody, Limits, Outcome, Response, Seq, SessionCommand,
    SessionId, command,
};
use mainstay_runner::RunnerFactory;
use shuttle::future::{JoinHandle, spawn, yield_now};
use tracing::Span;

use super::explore_a_part;
use super::memory_log::MemoryLog;
use super::sessions::{client, eval, id, is_completed, new_session, some_time};
use super::survivor::Survivors;
use crate::Engine;

/// A schedule of several daemons takes so many times longer than one of tasks that meet.
const PART: usize = 8;

#[test]
fn what_a_runner_says_while_it_is_adopted_is_stored_once_and_in_order() {
    explore_a_part(PART, || async {
        let (house, first) = House::begin().await;
        let before = house.submit(&first, "x", "count 3");
        some_time().await;
        let second = house.open().await;
        assert!(is_completed(&house.answered(std::slice::from_ref(&second), "x", "count 3").await));
        house.is_whole(&["count 3"]).await;
        second.shut_down().await;
        // The first may have told it before it was fenced, and what it tells is the same.
        if let Ok(answered) = before.await.unwrap() {
            assert!(is_completed(&answered.outcome), "{answered:?}");
        }
    });
}

#[test]
fn daemons_that_take_a_session_from_each_other_run_each_command_once() {
    explore_a_part(PART, || async {
        let (house, first) = House::begin().await;
        let second = house.open().await;
        let clients = ["x", "y"].map(|id| {
            let (house, daemons) = (house.clone(), [first.clone(), second.clone()]);
            spawn(async move { house.answered(&daemons, id, "count 2").await })
        });
        for outcome in join_all(clients).await {
            assert!(is_completed(&outcome.unwrap()));
        }
        house.is_whole(&["count 2", "count 2"]).await;
        join_all([first.shut_down(), second.shut_down()]).await;
    });
}

#[test]
fn a_cancel_that_spans_two_daemons_ends_the_job_once() {
    explore_a_part(PART, || async {
        let (house, first) = House::begin().await;
        let before = house.submit(&first, "x", "loop");
        let cancel = house.cancel(&first);
        some_time().await;
        let second = house.open().await;
        let cancelled = house.cancel(&second);
        // The first may take the session back to cancel, and then the second does the same.
        let outcome = house.answered(std::slice::from_ref(&second), "x", "loop").await;
        match &outcome {
            Outcome::Failed { error: Error::Cancelled } => {}
            Outcome::Done { response: Response::Evaluated(eval) } if eval.ending == EvalEnding::Cancelled => {
            }
            outcome => panic!("{outcome:?}"),
        }
        drop(before);
        // One of them may have done it, and the other would go on to look for what runs.
        cancel.abort();
        cancelled.abort();
        let ends = house.events().await.into_iter().filter(|event| event.body.job_end().is_some()).count();
        assert!(ends <= 1, "{ends} ends");
        assert_eq!(house.survivors.started(), 1);
        second.shut_down().await;
    });
}

/// A store, a session of it, and the runner that lives on.
#[derive(Clone)]
struct House {
    log: Arc<MemoryLog>,
    survivors: Arc<Survivors>,
    session: SessionId,
}

impl House {
    /// With a session that is ready, in its first daemon.
    async fn begin() -> (Self, Engine) {
        let log = MemoryLog::new();
        let survivors = Survivors::new(&log);
        let house = Self { log, survivors, session: SessionId::from_uuid(uuid::Uuid::nil()) };
        let first = house.open().await;
        let session = new_session(&first, "create").await;
        let house = Self { session, ..house };
        while !house
            .events()
            .await
            .iter()
            .any(|event| matches!(event.body, EventBody::WarmUpCompleted { .. }))
        {
            yield_now().await;
        }
        (house, first)
    }

    /// A daemon that begins with what the store has, and so takes the session over.
    async fn open(&self) -> Engine {
        let factory = Arc::clone(&self.survivors) as Arc<dyn RunnerFactory>;
        Engine::open(Arc::clone(&self.log) as Arc<dyn Log>, vec![factory], Limits::default()).await.unwrap()
    }

    fn submit(&self, daemon: &Engine, id: &str, code: &str) -> JoinHandle<Result<Answered, Error>> {
        let (daemon, session, command) = (daemon.clone(), self.session, eval(id, code));
        spawn(async move { daemon.begin(session, command, &Span::none()).await?.ended().await })
    }

    /// Sends a command to one daemon after another until it has an outcome.
    async fn answered(&self, daemons: &[Engine], id: &str, code: &str) -> Outcome {
        for daemon in daemons.iter().cycle() {
            match self.submit(daemon, id, code).await.unwrap() {
                Ok(answered) => return answered.outcome,
                Err(Error::SessionOwned | Error::StoreFailed { .. }) => yield_now().await,
                Err(error) => panic!("{error}"),
            }
        }
        unreachable!("there is a daemon")
    }

    /// Cancels the job once it runs, in a daemon that has the session.
    fn cancel(&self, daemon: &Engine) -> JoinHandle<()> {
        let (daemon, session) = (daemon.clone(), self.session);
        spawn(async move {
            for number in 0.. {
                let cancel =
                    SessionCommand::Cancel(command::Cancel { target: Some(id("x")), grace_ms: None });
                let cancel = Command::new(id(&format!("cancel-{number}")), client(), cancel);
                let begun = match daemon.begin(session, cancel, &Span::none()).await {
                    Ok(begun) => begun.ended().await,
                    Err(error) => Err(error),
                };
                match begun {
                    Err(Error::NotRunning { .. } | Error::SessionOwned | Error::StoreFailed { .. }) => {
                        yield_now().await;
                    }
                    _ => return,
                }
            }
        })
    }

    async fn events(&self) -> Vec<Event> {
        self.log.events(self.session, Seq::ZERO, usize::MAX).await.unwrap()
    }

    /// Each of the commands ran once, in one worker, and what it printed is stored once.
    async fn is_whole(&self, codes: &[&str]) {
        assert_eq!(self.survivors.ran(), codes);
        assert_eq!(self.survivors.started(), 1);
        let events = self.events().await;
        let mut jobs = Vec::new();
        for (seq, event) in (1..).zip(&events) {
            assert_eq!(event.seq, Seq(seq));
            if let EventBody::EvalRequested { job, code, .. } = &event.body {
                jobs.push((*job, code.clone()));
            }
        }
        assert_eq!(jobs.len(), codes.len());
        for (of, code) in jobs {
            let count: u32 = code.strip_prefix("count ").unwrap().parse().unwrap();
            let printed: String = events.iter().filter_map(|event| text_of(event, of)).collect();
            assert_eq!(printed, (1..=count).map(|number| format!("{number}\n")).collect::<String>());
            let ends = events.iter().filter(|event| event.body.job_end().is_some_and(|(job, _)| job == of));
            assert_eq!(ends.count(), 1);
        }
        let warm_ups = events.iter().filter(|event| matches!(event.body, EventBody::WarmUpStarted { .. }));
        assert_eq!(warm_ups.count(), 1, "nothing was replayed");
    }
}

fn text_of(event: &Event, of: mainstay_model::JobId) -> Option<String> {
    match &event.body {
        EventBody::OutputProduced { job: Some(job), text, .. } if *job == of => Some(text.clone()),
        _ => None,
    }
}
