//! Whole sessions: clients, the engine, the sessions' tasks, their committers and workers.

use std::sync::{Arc, Mutex};

use futures::future::join_all;
use mainstay_log::{Directory, Log, SessionFilter};
use mainstay_model::command;
use mainstay_model::{
    Admission, Answered, Command, CommandId, CreateSession, Error, EvalEnding, EventFilter, IdempotencyKey,
    Limits, Outcome, Position, Principal, ProjectChoice, Response, Seq, SessionCommand, SessionId,
    SessionKind, Source,
};
use shuttle::future::{JoinHandle, spawn, yield_now};
use shuttle::rand::{Rng, thread_rng};
use tracing::Span;

use super::explore_a_part;
use super::memory_log::MemoryLog;
use super::worker::Workers;
use crate::claims::CommandKey;
use crate::creation::{Creation, CreationSource};
use crate::{Cursor, Engine};
use mainstay_runner::RunnerFactory;

/// A schedule of whole sessions takes so many times longer than one of the others.
const PART: usize = 4;

#[test]
fn a_command_that_is_sent_twice_at_once_runs_once_and_all_get_its_one_outcome() {
    explore_a_part(PART, || async {
        let daemon = Daemon::start().await;
        let session = daemon.create("create").await;
        let sent = ["x", "x", "y"].map(|id| {
            let command = Command { key: Some(IdempotencyKey::new("key").unwrap()), ..eval(id, "1") };
            daemon.submit(session, command)
        });
        let answers: Vec<Answered> =
            join_all(sent).await.into_iter().map(|answer| answer.unwrap().unwrap()).collect();
        assert_eq!(answers.iter().filter(|answer| !answer.is_replay).count(), 1);
        assert!(
            answers
                .iter()
                .all(|answer| answer.outcome == answers[0].outcome && is_completed(&answer.outcome))
        );
        assert_eq!(daemon.workers.ran(), ["1"]);
        daemon.stop().await;
    });
}

#[test]
fn an_id_that_is_sent_to_two_sessions_at_once_belongs_to_one_of_them() {
    explore_a_part(PART, || async {
        let daemon = Daemon::start().await;
        let [first, second] = [daemon.create("first").await, daemon.create("second").await];
        let sent = [first, second].map(|session| daemon.submit(session, eval("x", "1")));
        let answers = join_all(sent).await.into_iter().map(Result::unwrap);
        let (done, refused): (Vec<_>, Vec<_>) = answers.partition(Result::is_ok);
        assert_eq!(done.len(), 1);
        assert_eq!(refused, [Err(Error::CommandConflict { command: id("x") })]);
        assert_eq!(daemon.workers.ran(), ["1"]);
        daemon.stop().await;
    });
}

#[test]
fn a_creation_that_is_sent_twice_at_once_happens_once() {
    explore_a_part(PART, || async {
        let daemon = Daemon::start().await;
        let sent = [(); 2].map(|()| {
            let daemon = daemon.clone();
            spawn(async move { daemon.create("create").await })
        });
        let sessions: Vec<SessionId> = join_all(sent).await.into_iter().map(Result::unwrap).collect();
        assert_eq!(sessions[0], sessions[1]);
        assert_eq!(daemon.engine.sessions(SessionFilter::default()).await.unwrap().len(), 1);
        daemon.stop().await;
    });
}

#[test]
fn a_command_that_depends_on_one_of_another_session_runs_after_it() {
    explore_a_part(PART, || async {
        let daemon = Daemon::start().await;
        let [first, second] = [daemon.create("first").await, daemon.create("second").await];
        let cursor = Cursor::Session { session: first, after: Seq::ZERO };
        let mut events = daemon.engine.follow(cursor, EventFilter::default());
        let before = daemon.submit(first, eval("x", "1"));
        while events.next().await.unwrap().metadata.correlation != Some(id("x")) {}
        let after = daemon.submit(second, depending(eval("y", "2"), "x"));
        for answer in [before, after] {
            assert!(is_completed(&answer.await.unwrap().unwrap().outcome));
        }
        assert_eq!(daemon.workers.ran(), ["1", "2"]);
        drop(events);
        daemon.stop().await;
    });
}

#[test]
fn who_follows_from_where_a_session_is_gets_every_event_after_that_once() {
    explore_a_part(PART, || async {
        let daemon = Daemon::start().await;
        let session = daemon.create("create").await;
        let last = async || daemon.engine.session(session).await.unwrap().unwrap().last_seq;
        // Each is the only one who follows, so that nothing is kept for it before it does.
        for id in ["x", "y", "z"] {
            let running = daemon.submit(session, eval(id, "1"));
            some_time().await;
            let after = last().await;
            let cursor = Cursor::Session { session, after };
            let mut events = daemon.engine.follow(cursor, EventFilter::default());
            running.await.unwrap().unwrap();
            for seq in after.0 + 1..=last().await.0 {
                assert_eq!(events.next().await.unwrap().seq, Seq(seq));
            }
        }
        daemon.stop().await;
    });
}

#[test]
fn commands_that_depend_on_each_other_end_without_having_run() {
    explore_a_part(PART, || async {
        let daemon = Daemon::start().await;
        let [first, second] = [daemon.create("first").await, daemon.create("second").await];
        let sent = [
            daemon.submit(first, depending(eval("x", "1"), "y")),
            daemon.submit(second, depending(eval("y", "2"), "x")),
        ];
        for answer in sent {
            let Outcome::Failed { error } = answer.await.unwrap().unwrap().outcome else { panic!("it ran") };
            let is_of_dependencies = matches!(
                error,
                Error::DependencyCycle { .. }
                    | Error::DependencyUnknown { .. }
                    | Error::DependencyFailed { .. }
            );
            assert!(is_of_dependencies, "{error}");
        }
        assert!(daemon.workers.ran().is_empty());
        daemon.stop().await;
    });
}

#[test]
fn a_cancel_ends_its_command_wherever_it_is() {
    explore_a_part(PART, || async {
        let daemon = Daemon::start().await;
        let session = daemon.create("create").await;
        let cancelled = daemon.submit(session, eval("x", "loop"));
        let later = daemon.submit(session, eval("y", "1"));
        let mut number = 0;
        let cancel = loop {
            number += 1;
            let cancel = SessionCommand::Cancel(command::Cancel { target: Some(id("x")), grace_ms: None });
            let cancel = Command::new(id(&format!("cancel-{number}")), client(), cancel);
            match daemon.carry_out(session, cancel).await {
                Err(Error::NotRunning { .. }) => yield_now().await,
                answer => break answer.unwrap().outcome,
            }
        };
        assert!(matches!(cancel, Outcome::Done { .. }), "{cancel:?}");
        match cancelled.await.unwrap().unwrap().outcome {
            Outcome::Failed { error: Error::Cancelled } => {}
            Outcome::Done { response: Response::Evaluated(eval) } if eval.ending == EvalEnding::Cancelled => {
            }
            outcome => panic!("{outcome:?}"),
        }
        assert!(is_completed(&later.await.unwrap().unwrap().outcome));
        daemon.stop().await;
    });
}

#[test]
fn a_store_that_fails_once_loses_no_command() {
    explore_a_part(PART, || async {
        let daemon = Daemon::start().await;
        let session = daemon.create("create").await;
        daemon.log.refuse_after(thread_rng().gen_range(0..8));
        let clients = ["x", "y"].map(|id| {
            let daemon = daemon.clone();
            spawn(async move {
                loop {
                    match daemon.submit(session, eval(id, id)).await.unwrap() {
                        Err(Error::StoreFailed { .. }) => yield_now().await,
                        answer => return answer.unwrap(),
                    }
                }
            })
        });
        join_all(clients).await.into_iter().for_each(|answer| drop(answer.unwrap()));
        assert_eq!(daemon.engine.commands_under_way(), 0);
        daemon.stop().await;
    });
}

#[test]
fn a_daemon_that_stops_answers_everybody() {
    explore_a_part(PART, || async {
        let daemon = Daemon::start().await;
        let session = daemon.create("create").await;
        let sent = ["x", "y", "z"].map(|id| daemon.submit(session, eval(id, "1")));
        some_time().await;
        daemon.clone().stop().await;
        for answer in sent {
            match answer.await.unwrap() {
                Ok(_) | Err(Error::DaemonStopping | Error::SessionStopped) => {}
                Err(error) => panic!("{error}"),
            }
        }
    });
}

/// An engine, its store and its workers, and one who follows all that happens.
#[derive(Clone)]
struct Daemon {
    engine: Engine,
    log: Arc<MemoryLog>,
    workers: Arc<Workers>,
    follower: Arc<Mutex<Option<JoinHandle<u64>>>>,
}

impl Daemon {
    async fn start() -> Self {
        let (log, workers) = (MemoryLog::new(), Arc::<Workers>::default());
        let factory = Arc::clone(&workers) as Arc<dyn RunnerFactory>;
        let store = Arc::clone(&log) as Arc<dyn Log>;
        // What fails is told at once, or tried again.
        let store_wait_ms = if thread_rng().r#gen() { 0 } else { 600_000 };
        let limits = Limits { store_wait_ms, ..Limits::default() };
        let engine = Engine::open(store, vec![factory], limits).await.unwrap();
        let mut all = engine.follow(Cursor::Log { after: Position::ZERO }, EventFilter::default());
        let follower = spawn(async move {
            let mut got = 0;
            while let Ok(event) = all.next().await {
                got += 1;
                assert_eq!(event.position.0, got);
            }
            got
        });
        Self { engine, log, workers, follower: Arc::new(Mutex::new(Some(follower))) }
    }

    /// Stops it, and looks whether all is at its end.
    async fn stop(self) {
        self.engine.shut_down().await;
        let waiting = SessionFilter { waits: true, ..SessionFilter::default() };
        let waiting = self.log.sessions(waiting).await.unwrap();
        let kept: usize = waiting.iter().map(|session| session.lane.len()).sum();
        assert_eq!(
            self.engine.commands_under_way(),
            kept,
            "only what waits in a lane is left for the next daemon"
        );
        let follower = self.follower.lock().unwrap().take().unwrap();
        assert_eq!(Position(follower.await.unwrap()), self.log.end(), "it got all there is");
    }

    async fn create(&self, name: &str) -> SessionId {
        new_session(&self.engine, name).await
    }

    async fn carry_out(&self, session: SessionId, command: Command) -> Result<Answered, Error> {
        self.engine.begin(session, command, &Span::none()).await?.ended().await
    }

    /// A client that sends a command some time, and looks whether its outcome is durable when it has it.
    fn submit(&self, session: SessionId, command: Command) -> JoinHandle<Result<Answered, Error>> {
        let daemon = self.clone();
        spawn(async move {
            let key: CommandKey = (Principal::local(), command.id.clone());
            some_time().await;
            let answer = daemon.carry_out(session, command).await;
            assert!(
                answer.is_err() || daemon.log.has_outcome(&key),
                "{key:?} was answered before it was durable"
            );
            answer
        })
    }
}

/// A session of this name, created under an id of that name.
pub(super) async fn new_session(engine: &Engine, name: &str) -> SessionId {
    let create = CreateSession {
        kind: SessionKind::fsharp(),
        working_directory: "/".to_owned(),
        project: ProjectChoice::Nothing,
        arguments: Vec::new(),
        name: Some(name.to_owned()),
        alias: None,
    };
    let creation = Creation::new(id(name), CreationSource::Empty(create));
    let begun = engine.begin_creation(client(), creation, None, &Span::none()).await.unwrap();
    match begun.ended().await.unwrap().outcome {
        Outcome::Done { response: Response::Created { session } } => session,
        outcome => panic!("{outcome:?}"),
    }
}

/// Lets others go first, often or seldom.
pub(super) async fn some_time() {
    for _ in 0..thread_rng().gen_range(0..20) {
        yield_now().await;
    }
}

pub(super) fn eval(name: &str, code: &str) -> Command {
    let body = SessionCommand::Eval(command::Eval {
        code: code.to_owned(),
        file: None,
        command_line: None,
        origin: None,
        withheld: false,
    });
    Command { admission: Admission::Queue, ..Command::new(id(name), client(), body) }
}

fn depending(command: Command, on: &str) -> Command {
    Command { depends_on: vec![id(on)], ..command }
}

pub(super) fn id(name: &str) -> CommandId {
    CommandId::new(name).unwrap()
}

pub(super) fn client() -> Source {
    Source::Client { principal: Principal::local(), name: "test".to_owned() }
}

pub(super) fn is_completed(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Done { response: Response::Evaluated(eval) } if eval.success())
}
