//! Commands that wait for the ends of others in other sessions: claims, the tasks that wait, and the committers that end what
//! is waited for.

use std::sync::Arc;

use futures::future::join_all;
use mainstay_log::{Append, EventLog, Log};
use mainstay_model::decide::Answer;
use mainstay_model::{CommandFingerprint, CommandId, Error, Outcome, Principal, Response, Seq};
use shuttle::future::{spawn, yield_now};
use shuttle::rand::{Rng, thread_rng};
use tokio::sync::mpsc;

use super::explore;
use super::memory_log::MemoryLog;
use super::samples::{append, projection, session};
use crate::claims::{Claims, CommandKey};
use crate::commit::{Commit, CommitReceivers, Step, commit_in_order};
use crate::dependencies::{Dependant, WaitResult, Waiter};
use crate::hub::Hub;
use crate::retry::Retry;
use crate::sync::time::Instant;

#[test]
fn of_commands_that_wait_for_each_other_one_is_refused_and_the_others_fail_with_it() {
    explore(|| async {
        let stage = Stage::new();
        let size = thread_rng().gen_range(2..=3);
        (0..size).for_each(|number| stage.accept(number));
        let ends = (0..size).map(|number| {
            let stage = stage.clone();
            spawn(async move {
                let result = stage.wait(number, &[(number + 1) % size]).await;
                let outcome = match &result {
                    Ok(()) => done(),
                    Err(error) => Outcome::Failed { error: error.clone() },
                };
                stage.end(number, outcome).await;
                result
            })
        });
        let ends = join_all(ends.collect::<Vec<_>>()).await.into_iter().map(Result::unwrap);
        let mut cycles = 0;
        for end in ends {
            match end {
                Err(Error::DependencyCycle { .. }) => cycles += 1,
                Err(Error::DependencyFailed { .. }) => {}
                Ok(()) | Err(_) => panic!("{end:?}"),
            }
        }
        assert_eq!(cycles, 1);
        assert_eq!(stage.claims.count(), 0);
    });
}

#[test]
fn a_command_that_waits_hears_of_every_end() {
    explore(|| async {
        let stage = Stage::new();
        [0, 1, 2, 3].into_iter().for_each(|number| stage.accept(number));
        let is_done = thread_rng().r#gen::<bool>();
        let waits = [2, 3].map(|number| {
            let stage = stage.clone();
            spawn(async move { stage.wait(number, &[0, 1]).await })
        });
        let ends = spawn({
            let stage = stage.clone();
            async move {
                stage.end(1, done()).await;
                if is_done {
                    stage.end(0, done()).await;
                } else {
                    stage.claims.release(&key(0), session(0));
                }
            }
        });
        for result in join_all(waits).await {
            match result.unwrap() {
                Ok(()) => assert!(is_done),
                Err(Error::DependencyUnknown { dependency }) => {
                    assert_eq!((dependency, is_done), (key(0).1, false));
                }
                Err(error) => panic!("{error}"),
            }
        }
        ends.await.unwrap();
    });
}

#[test]
fn a_wait_that_is_given_up_holds_up_nobody() {
    explore(|| async {
        let stage = Stage::new();
        [0, 1].into_iter().for_each(|number| stage.accept(number));
        let given_up = stage.start_to_wait(0, &[1]);
        let waits = spawn({
            let stage = stage.clone();
            async move { stage.wait(1, &[0]).await }
        });
        yield_now().await;
        drop(given_up);
        stage.end(0, done()).await;
        match waits.await.unwrap() {
            Ok(()) | Err(Error::DependencyCycle { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        stage.accept(0);
        stage.end(1, done()).await;
        assert_eq!(stage.wait(0, &[1]).await, Ok(()), "nothing waits for it");
    });
}

/// Commands and sessions of the same numbers.
#[derive(Clone)]
struct Stage {
    claims: Arc<Claims>,
    log: Arc<MemoryLog>,
}

impl Stage {
    fn new() -> Self {
        Self { claims: Arc::default(), log: MemoryLog::new() }
    }

    fn accept(&self, number: u128) {
        assert!(self.claims.take(&key(number), session(number)));
    }

    /// Waits as a session's task lets the first command of its lane wait.
    async fn wait(&self, number: u128, others: &[u128]) -> Result<(), Error> {
        let (_waiter, mut waited) = self.start_to_wait(number, others);
        waited.recv().await.unwrap().result
    }

    fn start_to_wait(&self, number: u128, others: &[u128]) -> (Waiter, mpsc::Receiver<WaitResult>) {
        let depends_on = others.iter().map(|other| key(*other).1).collect();
        let dependant = Dependant { key: key(number), session: session(number), depends_on, limit_ms: 1 };
        let (tell, told) = mpsc::channel(1);
        let log = Arc::clone(&self.log) as Arc<dyn Log>;
        (Waiter::start(dependant, Arc::clone(&self.claims), log, tell), told)
    }

    /// Ends a command as its session's committer does.
    async fn end(&self, number: u128, outcome: Outcome) {
        let (session, key) = (session(number), key(number));
        let (commits, queued) = mpsc::unbounded_channel();
        let after = Arc::new(projection(session));
        let answer = Answer {
            principal: key.0.clone(),
            command: key.1.clone(),
            key: None,
            fingerprint: CommandFingerprint::of("", &""),
            outcome,
        };
        let appended = self.log.append(Append { outcomes: vec![answer], ..append(session, Seq(1), 0) });
        let (ended, version) = (vec![key], after.version);
        let commit = Commit {
            decided: Instant::now(),
            appended,
            after: Arc::clone(&after),
            ended,
            replies: Vec::new(),
            version,
            trace: Default::default(),
            forgets: None,
            delegates: None,
        };
        commits.send(Step::Commit(Box::new(commit))).ok();
        drop(commits);
        let hub = Arc::new(Hub::new(Default::default()));
        commit_in_order(
            session,
            hub,
            Arc::clone(&self.claims),
            CommitReceivers::by_nobody(after),
            Retry::never(),
            queued,
        )
        .await;
    }
}

fn key(number: u128) -> CommandKey {
    (Principal::local(), CommandId::new(number.to_string()).unwrap())
}

fn done() -> Outcome {
    Outcome::Done { response: Response::Recorded { seq: Seq(1) } }
}
