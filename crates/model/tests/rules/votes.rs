//! Asks that need the same answer of several principals.

use std::collections::BTreeMap;

use mainstay_model::ask::AskEnding;
use mainstay_model::command::{Answer, Decline};
use mainstay_model::grant::{AskedOperation, Grants, LeaseChange, LeaseTerms, OperationKind};
use mainstay_model::{
    AskId, Command, Effect, Error, EventBody, Input, Limits, Notice, Outcome, Principal, Question, Response,
    RunnerNotice, Session, SessionCommand, SessionKind, Source,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::decide::{SessionHistory, Step};
use crate::grants::{JOB, agent, begin, hear, turn};
use crate::support::{ask_id, command_id, job_id};

const CHOICES: [&str; 3] = ["red", "green", "blue"];

fn voter(name: &str) -> Source {
    Source::Client { principal: Principal::new(name).unwrap(), name: "test".to_owned() }
}

fn question(quorum: u32) -> Question {
    Question { schema: json!({ "enum": CHOICES }), quorum: Some(quorum), ..Question::text("Which?") }
}

/// A session of which a client has asked this.
fn asked(question: Question) -> (SessionHistory, AskId) {
    let mut story = SessionHistory::begin(SessionKind::fsharp());
    story.take(Step::Command(SessionCommand::Ask(question)));
    let ask = story.session.asks[0].ask.ask;
    (story, ask)
}

/// Has a principal send a command; gives what came of it.
fn send(story: &mut SessionHistory, name: &str, body: SessionCommand) -> Result<Response, Error> {
    story.steps += 1;
    let id = command_id(1_000 + story.steps);
    let command = Command::new(id.clone(), voter(name), body);
    let fingerprint = command.fingerprint(story.session.id);
    let fresh = Uuid::from_u128(9);
    let decision = story.decide(Input::Command { command, fingerprint, deadline: None, fresh })?;
    story.carry(decision);
    match &story.answers[id.as_str()] {
        Outcome::Done { response } => Ok(response.clone()),
        Outcome::Failed { error } => Err(error.clone()),
    }
}

fn vote(story: &mut SessionHistory, name: &str, ask: AskId, value: Value) -> Result<Response, Error> {
    send(story, name, SessionCommand::Answer(Answer::new(ask, value)))
}

/// How many votes are missing after this one; none where the ask has ended by it.
fn missing(response: Result<Response, Error>) -> Option<u32> {
    match response.unwrap() {
        Response::Voted { missing, .. } => Some(missing),
        Response::Recorded { .. } => None,
        other => panic!("{other:?}"),
    }
}

fn outcome(story: &SessionHistory) -> Option<&Outcome> {
    story.answers.get(command_id(1).as_str())
}

fn last_ending(story: &SessionHistory) -> &AskEnding {
    match &story.events.last().unwrap().body {
        EventBody::AskEnded { ending, .. } => ending,
        other => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn an_ask_ends_exactly_when_so_many_principals_say_the_same(
        quorum in 1_u32..5,
        votes in vec((select(vec!["ada", "bob", "cyd", "dan", "eve"]), select(CHOICES.to_vec())), 1..30),
    ) {
        let (mut story, ask) = asked(question(quorum));
        let mut said: BTreeMap<&str, &str> = BTreeMap::new();
        for (name, value) in votes {
            said.insert(name, value);
            let count = said.values().filter(|other| **other == value).count() as u32;
            let response = vote(&mut story, name, ask, json!(value));
            prop_assert_eq!(missing(response.clone()).unwrap_or(0), quorum - count);
            if count == quorum {
                let answered = Outcome::Done {
                    response: Response::Answered { ask, value: json!(value), by: voter(name) },
                };
                prop_assert_eq!(outcome(&story), Some(&answered));
                let late = vote(&mut story, "ada", ask, json!("red"));
                prop_assert_eq!(late, Err(Error::AskNotPending { reference: ask.to_string() }));
                break;
            }
            prop_assert_eq!(outcome(&story), None, "nobody has the answer yet");
            let Response::Voted { votes, .. } = response.unwrap() else { panic!("it was counted") };
            prop_assert_eq!(votes, count);
            let counted: BTreeMap<_, _> = story.session.asks[0]
                .votes
                .iter()
                .map(|vote| (vote.source.principal().to_string(), vote.value.clone()))
                .collect();
            let expected: BTreeMap<_, _> =
                said.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
            prop_assert_eq!(counted, expected, "each principal has one vote");
        }
        // A daemon that starts reads them from the log.
        prop_assert_eq!(Session::fold(&story.events), Some(story.session));
    }
}

#[test]
fn equal_values_count_together_whatever_their_form() {
    let schema = json!({ "type": "object" });
    let (mut story, ask) = asked(Question { schema, ..question(2) });
    assert_eq!(missing(vote(&mut story, "ada", ask, json!({ "a": 1, "b": [] }))), Some(1));
    assert_eq!(missing(vote(&mut story, "bob", ask, json!({ "b": [], "a": 2 }))), Some(1));
    assert_eq!(missing(vote(&mut story, "cyd", ask, json!({ "b": [], "a": 1.0 }))), None);
}

#[test]
fn what_is_no_answer_is_no_vote() {
    let (mut story, ask) = asked(question(2));
    let refused = vote(&mut story, "ada", ask, json!("black"));
    assert!(matches!(refused, Err(Error::AnswerInvalid { .. })), "{refused:?}");
    assert_eq!(missing(vote(&mut story, "ada", ask, json!("red"))), Some(1));
}

#[test]
fn votes_that_are_too_few_count_for_nothing_at_the_deadline() {
    let (mut story, ask) = asked(question(2));
    vote(&mut story, "ada", ask, json!("red")).unwrap();
    story.take(Step::AskOverdue);
    // It was asked without a deadline.
    assert_eq!(outcome(&story), None);
    send(&mut story, "bob", SessionCommand::Decline(Decline { ask })).unwrap();
    assert_eq!(*last_ending(&story), AskEnding::Cancelled);

    let mut story = bounded(2);
    asks(&mut story, Question { default: Some(json!("blue")), ..question(2) });
    vote(&mut story, "ada", ask_id(3), json!("red")).unwrap();
    let decision = story.decide(Input::Notice(Notice::AskOverdue { ask: ask_id(3) })).unwrap();
    story.carry(decision);
    assert_eq!(*last_ending(&story), AskEnding::Defaulted { value: json!("blue") });
}

#[test]
fn a_quorum_that_cannot_be_is_refused() {
    let limits = Limits { quorum: 3, ..Limits::default() };
    let refused = |quorum| question(quorum).validate(&limits).unwrap_err().to_string();
    insta::assert_snapshot!(refused(0), @"quorum is not valid: it must be at least 1");
    insta::assert_snapshot!(refused(4), @"quorum is not valid: it is 4; `quorum` allows 3");
    assert_eq!(question(3).validate(&limits), Ok(()));
    let secret = Question { schema: json!({ "type": "string", "writeOnly": true }), ..question(2) };
    insta::assert_snapshot!(secret.validate(&limits).unwrap_err(), @"quorum is not valid: a secret has none");
    assert_eq!(Question { quorum: Some(1), ..secret }.validate(&limits), Ok(()));

    let grants = Some(Box::new(Grants::default().wanting(Some(4))));
    let rename = SessionCommand::Rename(mainstay_model::command::Rename { name: "a".to_owned() });
    let command = Command { grants, ..Command::new(command_id(1), voter("ada"), rename) };
    insta::assert_snapshot!(command.validate(&limits).unwrap_err(), @"quorum is not valid: it is 4; `quorum` allows 3");
}

/// An agent with a job whose questions need the same answer of so many.
fn bounded(quorum: u32) -> SessionHistory {
    let mut story = agent();
    begin(&mut story, turn(), Grants::default().asking().wanting(Some(quorum))).unwrap();
    story
}

fn asks(story: &mut SessionHistory, question: Question) -> Vec<Effect> {
    let asks = RunnerNotice::Asks { job: job_id(JOB), ask: ask_id(3), question, timeout_ms: None };
    hear(story, asks)
}

#[test]
fn what_a_job_asks_needs_as_many_as_its_grant_says() {
    let mut story = bounded(2);
    assert_eq!(asks(&mut story, Question::text("Name?")), []);
    assert_eq!(missing(vote(&mut story, "ada", ask_id(3), json!("x"))), Some(1));
    assert_eq!(missing(vote(&mut story, "bob", ask_id(3), json!("x"))), None);
    assert_eq!(*last_ending(&story), AskEnding::Answered { value: json!("x") });

    let secret =
        Question { schema: json!({ "type": "string", "writeOnly": true }), ..Question::text("Key?") };
    let refused = asks(&mut story, secret);
    assert!(matches!(refused.as_slice(), [Effect::Answer { answer: Err(_), .. }]), "{refused:?}");
}

/// For how many seconds somebody gives a permission, and for what.
type Terms = (u64, Option<&'static str>);

/// Has the job ask for a permission, of which each of these gives a part; gives the lease that comes of it.
fn lease_of(given: &[(&str, Option<Terms>)]) -> Option<(u64, String)> {
    let mut story = bounded(u32::try_from(given.len()).unwrap());
    let operation =
        AskedOperation { kind: OperationKind::FS_WRITE, target: "/work/a".to_owned(), is_recursive: false };
    hear(&mut story, RunnerNotice::Checks { job: job_id(JOB), check: ask_id(3), operation });
    for (name, terms) in given {
        let lease = terms.map(|(seconds, pattern)| LeaseTerms {
            duration_ms: seconds * 1_000,
            pattern: pattern.map(str::to_owned),
        });
        let answer = Answer { lease, ..Answer::new(ask_id(3), json!("once")) };
        send(&mut story, name, SessionCommand::Answer(answer)).unwrap();
    }
    assert!(story.session.asks.is_empty());
    match &story.events.last().unwrap().body {
        EventBody::LeaseChanged { change: LeaseChange::Granted { terms }, .. } => {
            let held = terms.expires_at().duration_since(story.events.last().unwrap().at);
            Some((held.as_secs().unsigned_abs(), terms.resource().to_owned()))
        }
        _ => None,
    }
}

#[test]
fn a_permission_is_given_for_what_all_of_them_allow() {
    let whole = Some("/work/**");
    assert_eq!(
        lease_of(&[("ada", Some((60, whole))), ("bob", Some((30, whole)))]),
        Some((30, "/work/**".to_owned()))
    );
    let wider = lease_of(&[("ada", Some((60, None))), ("bob", Some((600, whole)))]);
    assert_eq!(wider, Some((60, "/work/a".to_owned())), "the last alone gives nothing");
    assert_eq!(lease_of(&[("ada", None), ("bob", Some((600, whole)))]), None, "the first gave it once");
    assert_eq!(lease_of(&[("ada", Some((600, whole))), ("bob", None)]), None);
}
