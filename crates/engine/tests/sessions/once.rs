//! One outcome for every command, whatever happens: random commands under few ids and keys, sent again and again, cancelled,
//! timed out, in two sessions that depend on each other, by a daemon that is lost again and again. The model is a map.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mainstay_log::EventLog;
use mainstay_model::command;
use mainstay_model::{
    Admission, Command, CommandId, Error, EventBody, IdempotencyKey, Outcome, Principal, Question, Raiser,
    Seq, SessionCommand, Version,
};
use proptest::prelude::*;
use proptest::sample::select;

use crate::support::{Client, Daemon, cancel, command, eval, id, quick};

/// How long a case may take before somebody is taken to wait for ever.
const PATIENCE: Duration = Duration::from_secs(30);

/// A command that a client sends, maybe not for the first time.
#[derive(Clone, Debug)]
struct Sent {
    /// Under one of few ids.
    name: usize,
    /// In one of two sessions.
    session: usize,
    said: SentCommand,
    key: Option<usize>,
    timeout_ms: Option<u64>,
    /// How many turns of the scheduler come first.
    pause: usize,
}

/// What a command says: what its fingerprint is of.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SentCommand {
    what: What,
    depends_on: Vec<usize>,
    if_version: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Eval(&'static str),
    Cancel(usize),
    Reset,
    Rename,
    /// Asks, and is answered by and by.
    Ask,
}

fn any_sent() -> impl Strategy<Value = Sent> {
    let code = select(vec!["pure 1", "define a", "loop", "raise", "exit 1", "signal 6", "tick", "ask ?"]);
    let what = prop_oneof![
        6 => code.prop_map(What::Eval),
        3 => (0_usize..5).prop_map(What::Cancel),
        1 => Just(What::Reset),
        1 => Just(What::Rename),
        2 => Just(What::Ask),
    ];
    let said = (what, prop::collection::vec(0_usize..5, 0..2), prop::option::weighted(0.1, 0_u64..3))
        .prop_map(|(what, depends_on, if_version)| SentCommand { what, depends_on, if_version });
    let pause = prop_oneof![Just(0), 0_usize..200];
    let key = prop::option::weighted(0.3, 0_usize..2);
    let timeout_ms = prop::option::weighted(0.3, 1_u64..20);
    (0_usize..5, 0_usize..2, said, key, timeout_ms, pause).prop_map(
        |(name, session, said, key, timeout_ms, pause)| Sent { name, session, said, key, timeout_ms, pause },
    )
}

/// Commands between two losses of the daemon; some are sent twice.
fn any_life() -> impl Strategy<Value = Vec<Sent>> {
    prop::collection::vec(any_sent(), 1..8)
}

struct Case {
    number: usize,
    /// What each id said first among those that were answered, where, and its answer.
    outcomes: BTreeMap<CommandId, (usize, SentCommand, Outcome)>,
}

impl Case {
    fn name(&self, number: usize) -> CommandId {
        id(&format!("{}-{number}", self.number))
    }

    fn command(&self, sent: &Sent) -> Command {
        let body = match &sent.said.what {
            What::Eval(code) => eval(code),
            What::Cancel(target) => cancel(&self.name(*target)),
            What::Reset => SessionCommand::Reset,
            What::Rename => SessionCommand::Rename(command::Rename { name: "other".to_owned() }),
            What::Ask => SessionCommand::Ask(Question::text("?")),
        };
        Command {
            key: sent.key.map(|key| IdempotencyKey::new(format!("{}-{key}", self.number)).unwrap()),
            depends_on: sent.said.depends_on.iter().map(|name| self.name(*name)).collect(),
            if_version: sent.said.if_version.map(Version),
            timeout_ms: sent.timeout_ms,
            ..command(self.name(sent.name), Admission::Queue, body)
        }
    }

    /// Holds an answer against all that was answered before under the same id.
    fn check(&mut self, sent: &Sent, answer: Result<Outcome, Error>) {
        let name = self.name(sent.name);
        let Ok(outcome) = answer else { return };
        let first = self
            .outcomes
            .entry(name.clone())
            .or_insert_with(|| (sent.session, sent.said.clone(), outcome.clone()));
        assert_eq!(first, &mut (sent.session, sent.said.clone(), outcome), "{name} has two answers");
    }
}

/// Sends all of it; those that nobody answers before the daemon is lost are not waited for.
async fn live(case: &mut Case, clients: &[Client; 2], life: Vec<Sent>, is_last: bool) {
    let mut running = Vec::new();
    for sent in life {
        for _ in 0..sent.pause {
            tokio::task::yield_now().await;
        }
        let task = clients[sent.session].send(case.command(&sent));
        running.push((sent, task));
    }
    for (sent, task) in running {
        if is_last {
            while !task.is_finished() {
                // What runs may run for ever, and what waits for it as well.
                for client in clients {
                    client.submit(SessionCommand::Stop).await.ok();
                    client.answer_all().await;
                }
            }
        }
        task.abort();
        if let Ok(answer) = task.await {
            case.check(&sent, answer);
        }
    }
}

impl Client {
    /// Answers all that is asked in the session.
    async fn answer_all(&self) {
        let Ok(status) = self.attached.status(self.id).await else { return };
        for pending in status.session.asks {
            let (ask, value) = (pending.ask.ask, "x".into());
            // It may have ended meanwhile.
            self.submit(SessionCommand::Answer(command::Answer::new(ask, value))).await.ok();
        }
    }
}

/// Whether a command still waits in a session, for its turn or an answer.
async fn has_something_left(daemon: &Daemon, client: &Client) -> bool {
    let session = daemon.store.session(client.id).await.unwrap();
    session.is_some_and(|session| !session.lane.is_empty() || !session.asks.is_empty())
}

async fn assert_all_answered(daemon: &Daemon, clients: &[Client; 2], case: &Case) {
    let mut requested = BTreeSet::new();
    for client in clients {
        while has_something_left(daemon, client).await {
            // What waited in an earlier life may run for ever as well.
            client.submit(SessionCommand::Stop).await.ok();
            client.answer_all().await;
        }
        let mut asked = BTreeSet::new();
        for event in daemon.store.events(client.id, Seq::ZERO, usize::MAX).await.unwrap() {
            match event.body {
                EventBody::EvalRequested { command, .. } => {
                    assert!(requested.insert(command.clone()), "{command} ran twice");
                    let stored = daemon.store.outcome(&Principal::local(), &command).await.unwrap();
                    assert!(stored.is_some(), "{command} ran and has no outcome");
                }
                EventBody::AskRaised(ask) => {
                    let Raiser::Command { command, .. } = ask.raiser else { continue };
                    assert!(asked.insert(command.clone()), "{command} asked twice");
                    let stored = daemon.store.outcome(&Principal::local(), &command).await.unwrap();
                    assert!(stored.is_some(), "{command} asked and has no outcome");
                }
                EventBody::CommandQueued(queued) => {
                    let stored = daemon.store.outcome(&Principal::local(), &queued.command).await.unwrap();
                    assert!(stored.is_some(), "{} was accepted and has no outcome", queued.command);
                }
                _ => {}
            }
        }
    }
    for (name, (_, _, outcome)) in &case.outcomes {
        let stored = daemon.store.outcome(&Principal::local(), name).await.unwrap();
        assert_eq!(stored.map(|stored| stored.outcome).as_ref(), Some(outcome), "{name}");
    }
}

#[test]
fn every_command_has_one_outcome_whatever_happens() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let number = Cell::new(0);
    proptest!(ProptestConfig::with_cases(48), |(lives in prop::collection::vec(any_life(), 1..4))| {
        number.set(number.get() + 1);
        let mut case = Case { number: number.get(), outcomes: BTreeMap::new() };
        let all = async {
            let mut daemon = Daemon::with(quick()).await;
            let ids = [daemon.session().await.leave(), daemon.session().await.leave()];
            let last = lives.len() - 1;
            for (turn, life) in lives.into_iter().enumerate() {
                let clients = ids.map(|session| daemon.client(session));
                live(&mut case, &clients, life, turn == last).await;
                drop(clients);
                daemon = daemon.crash().await;
            }
            let clients = ids.map(|session| daemon.client(session));
            for client in &clients {
                client.submit(SessionCommand::Stop).await.ok();
            }
            assert_all_answered(&daemon, &clients, &case).await;
        };
        runtime.block_on(async { tokio::time::timeout(PATIENCE, all).await.expect("somebody waits for ever") });
    });
}
