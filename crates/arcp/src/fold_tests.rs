//! The fold of a session's jobs tells the same messages, with the same numbers and ids, wherever it was cut.

use mainstay_arcp_protocol::a::subscription::Filter;
use mainstay_model::grant::LeaseChange;
use mainstay_model::{
    Ask, AskEnding, AskId, CommandId, Error, EvalResult, Event, EventBody, JobId, LeaseId, Metadata,
    OutputStream, Position, Principal, Question, Raiser, Seq, SessionId, Source, Timestamp,
};
use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

use crate::a::test_translator as translator_of_a;
use crate::b::test_translator as translator_of_b;
use crate::fold_place::Base;
use crate::message_fold::{MessageFold, Numbered, Translator};
use crate::observer::Observer;
use crate::submission_key::SubmissionKey;

const OWN: &str = "sess_own";
const OTHER: &str = "sess_other";

/// What happens next to one of a few jobs.
#[derive(Clone, Copy, Debug)]
enum Step {
    Queue,
    Begin,
    Print,
    Show,
    Spend,
    Ask,
    Answer,
    Lease,
    HandOff,
    TakeOver,
    Deny,
    End,
}

/// A job, as far as it has come.
#[derive(Clone, Copy, Default)]
struct Job {
    queued: Option<Seq>,
    begun: Option<Seq>,
    asks: Option<AskId>,
    has_ended: bool,
}

fn steps() -> impl Strategy<Value = Vec<(usize, Step)>> {
    let step = prop_oneof![
        Just(Step::Queue),
        Just(Step::Begin),
        Just(Step::Print),
        Just(Step::Show),
        Just(Step::Spend),
        Just(Step::Ask),
        Just(Step::Answer),
        Just(Step::Lease),
        Just(Step::HandOff),
        Just(Step::TakeOver),
        Just(Step::Deny),
        Just(Step::End),
    ];
    proptest::collection::vec((0_usize..4, step), 0..60)
}

fn home() -> SessionId {
    SessionId::from_uuid(Uuid::from_u128(7))
}

fn id_of(job: usize) -> CommandId {
    CommandId::new(format!("job_{job}")).unwrap()
}

/// The events of a log in which these steps happen, those that cannot left out. Every other job is another session's.
fn log_of(steps: &[(usize, Step)]) -> Vec<Event> {
    let mut jobs = [Job::default(); 4];
    let mut events: Vec<Event> = Vec::new();
    for (number, step) in steps {
        let seq = Seq(events.len() as u64 + 1);
        if let Some((causation, body)) = next(&mut jobs[*number], *number, *step, seq) {
            let correlation = match step {
                Step::Answer | Step::HandOff | Step::TakeOver => CommandId::new("other").unwrap(),
                _ => id_of(*number),
            };
            let source = Source::Client { principal: Principal::local(), name: "test".to_owned() };
            events.push(Event {
                session: home(),
                seq,
                position: Position(seq.0 * 3),
                at: Timestamp::from_second(seq.0.cast_signed()).unwrap(),
                metadata: Metadata { source, correlation: Some(correlation), causation, environment: None },
                body,
            });
        }
    }
    events
}

fn next(job: &mut Job, number: usize, step: Step, seq: Seq) -> Option<(Option<Seq>, EventBody)> {
    let (command, uuid) = (id_of(number), Uuid::from_u128(number as u128 + 1));
    let session = if number.is_multiple_of(2) { OWN } else { OTHER }.to_owned();
    let key = SubmissionKey { session, trace: None, message: Some(format!("m{number}")) };
    let key = key.of_job(&command).unwrap();
    let fingerprint = "0".repeat(64);
    let read = |kind: &str, body: serde_json::Value| {
        serde_json::from_value::<EventBody>(json!({ "kind": kind, "body": body })).unwrap()
    };
    let runs = job.begun.is_some() && !job.has_ended;
    match step {
        Step::Queue if job.queued.is_none() && job.begun.is_none() => {
            job.queued = Some(seq);
            let body = json!({
                "command": command, "fingerprint": fingerprint, "key": key,
                "grants": grants(), "body": { "command": "eval", "code": "1" },
            });
            Some((None, read("commandQueued", body)))
        }
        Step::Begin if job.begun.is_none() => {
            job.begun = Some(seq);
            let body = json!({
                "job": uuid, "command": command, "fingerprint": fingerprint, "key": key, "code": "1",
                "grants": grants(),
            });
            Some((job.queued, read("evalRequested", body)))
        }
        Step::Print if runs => {
            let (job_id, text) = (Some(JobId::from_uuid(uuid)), format!("line {}\n", seq.0));
            Some((job.begun, EventBody::OutputProduced { job: job_id, stream: OutputStream::Stdout, text }))
        }
        Step::Show if runs => {
            let words = format!("picture {}", seq.0);
            let forms =
                json!({ "text/plain": words, "image/png": "iVBORw==", "application/pdf": "JVBERg==" });
            Some((job.begun, read("outputDisplayed", json!({ "job": uuid, "data": forms }))))
        }
        Step::Spend if runs => {
            let body = json!({
                "parts": [{ "role": "assistant", "text": format!("said {}", seq.0) }],
                "usage": { "output": 5, "cost": 0.01 },
            });
            Some((job.begun, read("messageAdded", body)))
        }
        Step::Deny if runs => {
            job.has_ended = true;
            let error = Error::BudgetExhausted { currency: "USD".to_owned() };
            Some((job.begun, EventBody::JobDenied { job: JobId::from_uuid(uuid), error }))
        }
        Step::Ask if runs && job.asks.is_none() => {
            let ask = AskId::from_uuid(Uuid::from_u128(seq.0.into()));
            job.asks = Some(ask);
            let raiser = Raiser::Job { job: JobId::from_uuid(uuid) };
            let raised = Ask { ask, raiser, question: Question::text("?"), deadline: None };
            Some((job.begun, EventBody::AskRaised(Box::new(raised))))
        }
        Step::Answer if runs => {
            let (ask, ending) = (job.asks.take()?, AskEnding::Answered { value: json!("yes") });
            Some((job.begun, EventBody::AskEnded { ask, ending, channel: None }))
        }
        Step::Lease if runs => {
            let lease = LeaseId::from_uuid(Uuid::from_u128(seq.0.into()));
            let change = LeaseChange::Revoked { reason: "enough".to_owned() };
            Some((job.begun, EventBody::LeaseChanged { job: JobId::from_uuid(uuid), lease, change }))
        }
        Step::HandOff | Step::TakeOver if job.queued.or(job.begun).is_some() && !job.has_ended => {
            Some((None, handed_over(command, matches!(step, Step::HandOff))))
        }
        Step::End if runs => {
            job.has_ended = true;
            let ended = EventBody::EvalCompleted {
                job: JobId::from_uuid(uuid),
                result: EvalResult::default(),
                changes_state: false,
                duration_ms: 1,
            };
            Some((job.begun, ended))
        }
        _ => None,
    }
}

fn handed_over(command: CommandId, is_by_own: bool) -> EventBody {
    let (from, to) = if is_by_own { (OWN, OTHER) } else { (OTHER, OWN) };
    EventBody::JobHandedOver { command, from: from.to_owned(), to: to.to_owned() }
}

fn grants() -> serde_json::Value {
    json!({ "capabilities": { "tool.call": ["bash"] }, "budget": { "USD": { "granted": "0.25" } } })
}

fn start(observes: bool) -> Base {
    let observer = Observer {
        subscription: "sub_1".to_owned(),
        since: Timestamp::UNIX_EPOCH,
        filter: Filter::default(),
    };
    let observers = if observes { vec![observer] } else { Vec::new() };
    Base { position: Position(0), seq: 0, jobs: Vec::new(), observers }
}

/// What is told of these events from this place on: number, id and text of each message.
fn told<V: Translator>(
    translator: &V,
    base: &Base,
    events: &[Event],
) -> (Vec<(u64, String, String)>, Vec<Base>) {
    let mut fold = MessageFold::new(OWN, &Principal::local(), translator.clone(), base);
    let (mut all, mut places) = (Vec::new(), vec![base.clone()]);
    for event in events {
        let messages = fold.tell(event, |_| "fsharp@1".to_owned());
        all.extend(
            messages.iter().map(|message| (message.seq(), message.id().to_owned(), message.encode().text)),
        );
        places.push(fold.base(event.position));
    }
    (all, places)
}

fn is_the_same_over_any_cut<V: Translator>(translator: &V, observes: bool, events: &[Event]) {
    let (whole, places) = told(translator, &start(observes), events);
    let numbers: Vec<_> = whole.iter().map(|(seq, ..)| *seq).collect();
    assert_eq!(numbers, (1..=whole.len() as u64).collect::<Vec<_>>());
    for (cut, place) in places.iter().enumerate() {
        // As it is stored.
        let place: Base = serde_json::from_value(json!(place)).unwrap();
        let (rest, _) = told(translator, &place, &events[cut..]);
        let behind = usize::try_from(place.seq).unwrap();
        assert_eq!(rest, whole[behind..], "cut behind {cut} events");
    }
}

proptest! {
    #[test]
    fn both_dialects_tell_the_same_without_a_gap_over_any_cut(steps in steps()) {
        let events = log_of(&steps);
        is_the_same_over_any_cut(&translator_of_b(OWN), false, &events);
        for (streams, observes) in [(true, true), (false, true), (true, false)] {
            is_the_same_over_any_cut(&translator_of_a(OWN, streams), observes, &events);
        }
    }

    #[test]
    fn an_id_of_dialect_a_names_one_message_whoever_reads_it(steps in steps()) {
        let events = log_of(&steps);
        let mut names = std::collections::BTreeMap::new();
        for streams in [true, false] {
            let (all, _) = told(&translator_of_a(OWN, streams), &start(false), &events);
            let mut ids = std::collections::BTreeSet::new();
            for (_, id, text) in all {
                assert!(ids.insert(id.clone()), "{id} is told twice");
                let message: serde_json::Value = serde_json::from_str(&text).unwrap();
                let kind = message["type"].as_str().unwrap().to_owned();
                // What is a piece of a stream for one reader is a line of a log for the other.
                let kind = if kind == "stream.chunk" { "log".to_owned() } else { kind };
                assert_eq!(names.entry(id).or_insert(kind.clone()), &kind);
            }
        }
    }
}
