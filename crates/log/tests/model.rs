//! The store beside the simplest one there could be: maps in memory. Whatever is asked of both, in whatever order, and
//! however often the store is opened anew, they agree.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use std::collections::BTreeMap;

use futures::future::join_all;
use mainstay_log::{Append, Epoch, EventLog, SqliteLog, SqliteOptions};
use mainstay_model::decide::Answer;
use mainstay_model::{CommandId, Error, Event, EventBody, Principal, Seq, Session, Timestamp, Version};
use proptest::collection::vec;
use proptest::prelude::*;
use support::{Line, answer, command_id, created, output, samples};

mod support;

const SESSIONS: u128 = 4;
const COMMANDS: u8 = 24;

/// What is asked at once, without waiting in between.
#[derive(Clone, Debug)]
enum Step {
    Queue(Vec<Ask>),
    OpenAnew,
}

#[derive(Clone, Debug)]
enum Ask {
    Append { session: u128, bodies: Vec<Body>, at: i64, seq_off: i64, epoch_off: i64, commands: Vec<u8> },
    Claim { session: u128 },
}

#[derive(Clone, Debug)]
enum Body {
    Output(String),
    Renamed(String),
    Sample(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![6 => vec(ask(), 1..12).prop_map(Step::Queue), 1 => Just(Step::OpenAnew)]
}

fn ask() -> impl Strategy<Value = Ask> {
    let off = || prop_oneof![12 => Just(0), 1 => -1_i64..=1];
    let append = (0..SESSIONS, vec(body(), 0..4), any::<i32>(), off(), off(), vec(0..COMMANDS, 0..3))
        .prop_map(|(session, bodies, at, seq_off, epoch_off, commands)| {
            let at = i64::from(at) * 1_000_003;
            Ask::Append { session, bodies, at, seq_off, epoch_off, commands }
        });
    prop_oneof![12 => append, 1 => (0..SESSIONS).prop_map(|session| Ask::Claim { session })]
}

fn body() -> impl Strategy<Value = Body> {
    prop_oneof![
        any::<String>().prop_map(Body::Output),
        ".{1,20}".prop_map(Body::Renamed),
        (0..samples::bodies().len()).prop_map(Body::Sample),
    ]
}

/// The simplest log that can be right.
#[derive(Default)]
struct Model {
    lines: BTreeMap<u128, Line>,
    events: BTreeMap<u128, Vec<(Timestamp, EventBody)>>,
    outcomes: BTreeMap<CommandId, Answer>,
    /// Of which session each is, and with which version of it it came.
    outcomes_of: BTreeMap<CommandId, (u128, Version)>,
}

impl Model {
    /// The append that an owner would make who is off by so much, and whether it is to be taken.
    fn append(&mut self, session: u128, bodies: Vec<EventBody>, append: &Off) -> (Append, Result<(), Error>) {
        let there = self.lines.get(&session);
        let bodies = if there.is_some() { bodies } else { [vec![created("new", "/work")], bodies].concat() };
        let line = Line { at: append.at, ..there.cloned().unwrap_or_else(|| Line::new(session)) };
        let mut right = line.peek(bodies);
        right.first = Seq(right.first.0.saturating_add_signed(append.seq));
        right.epoch = Epoch(right.epoch.0.saturating_add_signed(append.epoch));
        right.outcomes = append
            .commands
            .iter()
            .map(|command| answer(&format!("command-{command}"), right.first))
            .collect();
        let owned = right.first == line.last_seq().next() && right.epoch == line.epoch;
        let conflict = right.outcomes.iter().enumerate().find(|(index, answer)| {
            let before = &right.outcomes[..*index];
            self.outcomes.contains_key(&answer.command) || before.contains(answer)
        });
        // What is stored already is done, and not done again.
        let is_stored = |answer: &Answer| {
            let of = self.outcomes_of.get(&answer.command);
            self.outcomes.get(&answer.command) == Some(answer) && of == Some(&(session, right.version))
        };
        let is_repeated = there.is_some()
            && right.epoch == line.epoch
            && right.events.is_empty()
            && !right.outcomes.is_empty()
            && right.outcomes.iter().all(is_stored);
        if is_repeated {
            return (right, Ok(()));
        }
        let result = match (owned, conflict) {
            (false, _) if there.is_some() => Err(Error::SessionOwned),
            (false, _) => Err(Error::SessionNotFound { reference: line.id.to_string() }),
            (true, Some((_, answer))) => Err(Error::CommandConflict { command: answer.command.clone() }),
            (true, None) => Ok(()),
        };
        if result.is_ok() {
            self.take(session, line, &right);
        }
        (right, result)
    }

    fn take(&mut self, session: u128, line: Line, append: &Append) {
        self.lines.insert(session, Line { session: Some(append.projection.clone()), ..line });
        let events = append.events.iter().map(|event| (event.at, event.body.clone()));
        self.events.entry(session).or_default().extend(events);
        let of = |answer: &Answer| (answer.command.clone(), (session, append.version));
        self.outcomes_of.extend(append.outcomes.iter().map(of));
        self.outcomes.extend(append.outcomes.iter().map(|answer| (answer.command.clone(), answer.clone())));
    }

    fn claim(&mut self, session: u128) -> Result<Epoch, Error> {
        match self.lines.get_mut(&session) {
            Some(line) => {
                line.epoch = Epoch(line.epoch.0 + 1);
                Ok(line.epoch)
            }
            None => Err(Error::SessionNotFound { reference: support::session_id(session).to_string() }),
        }
    }
}

/// By how much an owner is wrong, and what else it appends.
struct Off {
    at: Timestamp,
    seq: i64,
    epoch: i64,
    commands: Vec<u8>,
}

/// Asks both for the same, and compares their answers.
async fn ask_both(log: &SqliteLog, model: &mut Model, asks: Vec<Ask>) {
    let mut appends = Vec::new();
    let mut expected = Vec::new();
    for ask in asks {
        match ask {
            Ask::Append { session, bodies, at, seq_off, epoch_off, commands } => {
                let at = Timestamp::from_microsecond(at).unwrap();
                let off = Off { at, seq: seq_off, epoch: epoch_off, commands };
                let (append, result) =
                    model.append(session, bodies.into_iter().map(event_body).collect(), &off);
                expected.push(result.map(|()| append.events.len()));
                appends.push(log.append(append));
            }
            // A claim is queued when first polled, and so asked for in its turn.
            Ask::Claim { session } => {
                let epoch = model.claim(session);
                assert_eq!(log.claim(support::session_id(session)).await.map_err(Error::from), epoch);
            }
        }
    }
    let answers: Vec<_> = join_all(appends)
        .await
        .into_iter()
        .map(|answer| answer.map(|events| events.len()).map_err(Error::from))
        .collect();
    assert_eq!(answers, expected);
}

/// Compares all that there is.
async fn compare(log: &SqliteLog, model: &Model) {
    let mut positions = Vec::new();
    for session in 0..SESSIONS {
        let id = support::session_id(session);
        let events = log.events(id, Seq::ZERO, usize::MAX).await.unwrap();
        let expected = model.events.get(&session).cloned().unwrap_or_default();
        assert_eq!(events.iter().map(|event| (event.at, event.body.clone())).collect::<Vec<_>>(), expected);
        assert!(events.iter().map(|event| event.seq.0).eq(1..=events.len() as u64));
        assert!(events.is_sorted_by_key(|event: &Event| event.position));
        let projection = log.session(id).await.unwrap();
        assert_eq!(projection, model.lines.get(&session).and_then(|line| line.session.clone()));
        assert_eq!(projection, Session::fold(&events));
        positions.extend(events.iter().map(|event| event.position));
    }
    let count = positions.len();
    positions.sort();
    positions.dedup();
    assert_eq!(positions.len(), count);
    for command in (0..COMMANDS).map(|command| command_id(&format!("command-{command}"))) {
        let stored = log.outcome(&Principal::local(), &command).await.unwrap();
        let expected = model.outcomes.get(&command);
        assert_eq!(
            stored.map(|stored| (stored.fingerprint, stored.outcome)),
            expected.map(|answer| (answer.fingerprint.clone(), answer.outcome.clone()))
        );
    }
}

fn event_body(body: Body) -> EventBody {
    match body {
        Body::Output(text) => output(text),
        Body::Renamed(name) => EventBody::SessionRenamed { name },
        Body::Sample(index) => samples::bodies().swap_remove(index),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn the_store_agrees_with_maps_in_memory(steps in vec(step(), 1..16)) {
        let home = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let open = || SqliteLog::open(home.path(), &SqliteOptions::default()).unwrap();
        runtime.block_on(async {
            let mut model = Model::default();
            let mut log = open();
            for step in steps {
                match step {
                    Step::Queue(asks) => ask_both(&log, &mut model, asks).await,
                    Step::OpenAnew => {
                        drop(log);
                        log = open();
                        compare(&log, &model).await;
                    }
                }
            }
            compare(&log, &model).await;
        });
    }
}
