//! What a watcher sees, whichever way events and live pieces come.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::agent::{JobSpec, Note, Prompt, WorkEnding, YieldReason};
use crate::event::{Event, EventBody, Metadata};
use crate::fingerprint::CommandFingerprint;
use crate::id::{CommandId, JobId, Position, Seq, SessionId};
use crate::message::{Message, Part, PartRole};
use crate::{Source, Timestamp};

fn job() -> JobId {
    JobId::from_uuid(uuid::Uuid::from_u128(1))
}

fn events(bodies: impl IntoIterator<Item = EventBody>) -> Vec<Event> {
    let event = |(seq, body)| Event {
        session: SessionId::from_uuid(uuid::Uuid::nil()),
        seq: Seq(seq),
        position: Position(seq),
        at: Timestamp::UNIX_EPOCH,
        metadata: Metadata { source: Source::Worker, correlation: None, causation: None, environment: None },
        body,
    };
    (1..).zip(bodies).map(event).collect()
}

fn turn() -> EventBody {
    EventBody::JobRequested {
        job: job(),
        command: CommandId::from_uuid(job().as_uuid()),
        fingerprint: CommandFingerprint::from_stored("fixture".to_owned()),
        key: None,
        deadline: None,
        grants: None,
        work: JobSpec::Turn { prompt: Prompt::text("go") },
    }
}

fn added(parts: Vec<Part>) -> EventBody {
    EventBody::MessageAdded(Box::new(Message { parts, ..Message::default() }))
}

fn ended() -> EventBody {
    let ending = WorkEnding::Done { reason: YieldReason::EndTurn, value: Value::Null };
    EventBody::JobEnded { job: job(), ending, duration_ms: 1, grace_ms: None }
}

fn delta(message: u32, part: u32, role: PartRole, offset: u64, text: &str) -> Delta {
    Delta { job: job(), message, part, role, offset, text: text.to_owned(), tool: None }
}

/// One thing that a watcher is told.
#[derive(Clone, Debug)]
enum Told {
    Event(EventBody),
    Live(Live),
}

fn heard(message: u32, part: u32, role: PartRole, offset: u64, text: &str) -> Told {
    Told::Live(Live::Delta(delta(message, part, role, offset, text)))
}

/// The changes in few words, one on a line.
fn story(told: Vec<Told>) -> String {
    let bodies = told.iter().filter_map(|told| match told {
        Told::Event(body) => Some(body.clone()),
        Told::Live(_) => None,
    });
    let events = events(bodies);
    let mut events = events.iter();
    let mut view = LiveView::default();
    let mut lines = Vec::new();
    for told in &told {
        let changes = match told {
            Told::Event(_) => view.event(events.next().unwrap()),
            Told::Live(live) => view.live(live),
        };
        lines.extend(changes.iter().map(line));
    }
    lines.join("\n")
}

fn line(change: &ViewChange<'_>) -> String {
    match change {
        ViewChange::JobBegan { .. } => "job began".to_owned(),
        ViewChange::PartBegan { part, role, call, .. } => {
            let tool = call.as_ref().map(|call| format!(" {}", call.tool)).unwrap_or_default();
            format!("part {part} began: {role:?}{tool}")
        }
        ViewChange::PartGrew { part, text, .. } => format!("part {part}: {text:?}"),
        ViewChange::PartEnded { part, .. } => format!("part {part} ended"),
        ViewChange::MessageAdded { .. } => "message added".to_owned(),
        ViewChange::ToolBegan { call, .. } => format!("{} began", call.call),
        ViewChange::ToolProgressed { call, output, .. } => format!("{}: {output}", call.call),
        ViewChange::ToolAnswered { call, result, .. } => {
            let arguments = call.as_ref().map(|call| &call.arguments);
            format!("answer to {arguments:?}: {:?}", result.text)
        }
        ViewChange::JobEnded { unanswered, .. } => format!("job ended, {} unanswered", unanswered.len()),
        ViewChange::Event(event) => event.body.kind().to_owned(),
    }
}

use PartRole::{Assistant, Thinking, User};

#[test]
fn what_was_heard_is_not_told_again_and_what_was_missed_comes_with_its_event() {
    insta::assert_snapshot!(story(vec![
        Told::Event(turn()),
        Told::Event(added(vec![Part::text(User, "go")])),
        heard(1, 0, Assistant, 0, "one"),
        heard(1, 0, Assistant, 7, " thr"),
        Told::Event(EventBody::MessageStreamed(delta(1, 0, Assistant, 0, "one two thr"))),
        heard(1, 0, Assistant, 11, "ee"),
        Told::Event(added(vec![Part::text(Assistant, "one two three four")])),
        heard(1, 0, Assistant, 13, " four"),
        Told::Event(ended()),
        heard(1, 0, Assistant, 13, " four"),
    ]), @r#"
    job began
    message added
    part 0 began: Assistant
    part 0: "one"
    part 0: " two thr"
    part 0: "ee"
    part 0: " four"
    part 0 ended
    message added
    job ended, 0 unanswered
    "#);
}

#[test]
fn what_is_heard_early_waits_for_what_it_follows() {
    insta::assert_snapshot!(story(vec![
        heard(0, 0, Assistant, 0, "first"),
        Told::Event(turn()),
        heard(1, 0, Assistant, 0, "second"),
        Told::Event(added(vec![Part::text(Assistant, "first")])),
    ]), @r#"
    job began
    part 0 began: Assistant
    part 0: "first"
    part 0 ended
    message added
    part 0 began: Assistant
    part 0: "second"
    "#);
}

#[test]
fn a_part_that_the_whole_message_leaves_out_does_not_hide_another() {
    insta::assert_snapshot!(story(vec![
        Told::Event(turn()),
        heard(0, 0, Thinking, 0, "hm"),
        heard(0, 1, Assistant, 0, "Yes, "),
        Told::Event(added(vec![Part::text(Assistant, "Yes, indeed."), Part::text(Assistant, "No.")])),
    ]), @r#"
    job began
    part 0 began: Thinking
    part 0: "hm"
    part 0 ended
    part 1 began: Assistant
    part 1: "Yes, "
    part 1: "indeed."
    part 1 ended
    part 2 began: Assistant
    part 2: "No."
    part 2 ended
    message added
    "#);
}

#[test]
fn a_tool_is_told_to_begin_before_its_output_and_to_have_no_answer_when_the_job_ends() {
    let call = |id: &str| ToolCall { call: id.to_owned(), tool: "bash".to_owned() };
    let output = |id: &str, text: &str| Told::Live(Live::ToolOutput { call: call(id), output: json!(text) });
    let started = |id: &str| {
        let arguments = json!({ "command": id });
        Told::Event(EventBody::AgentNoted(Note::ToolStarted { call: call(id), arguments }))
    };
    let calls = ["c1", "c2"].map(|id| Part::tool_call(id, "bash", &json!({ "command": id })));
    insta::assert_snapshot!(story(vec![
        Told::Event(turn()),
        output("c1", "not known yet"),
        Told::Event(added(calls.into())),
        output("c1", "early"),
        started("c1"),
        output("c1", "later"),
        Told::Event(added(vec![Part::tool_result("c1", "done")])),
        output("c1", "too late"),
        started("c2"),
        Told::Event(ended()),
    ]), @r#"
    job began
    part 0 began: ToolCall bash
    part 0: "{\"command\":\"c1\"}"
    part 0 ended
    part 1 began: ToolCall bash
    part 1: "{\"command\":\"c2\"}"
    part 1 ended
    message added
    c1 began
    c1: "early"
    c1: "later"
    answer to Some(Object {"command": String("c1")}): "done"
    message added
    c2 began
    job ended, 1 unanswered
    "#);
}

#[test]
fn what_happens_outside_a_job_is_its_event() {
    let mut other = delta(0, 0, Assistant, 0, "of another job");
    other.job = JobId::from_uuid(uuid::Uuid::from_u128(2));
    insta::assert_snapshot!(story(vec![
        Told::Event(added(vec![Part::text(User, "imported")])),
        Told::Event(EventBody::SessionRenamed { name: "new".to_owned() }),
        Told::Live(Live::Delta(other)),
        Told::Event(turn()),
    ]), @r#"
    messageAdded
    sessionRenamed
    job began
    "#);
}

#[test]
fn early_pieces_are_kept_up_to_a_limit() {
    let mut view = LiveView::default();
    let piece = "x".repeat(100 * 1024);
    for part in 0..10 {
        view.live(&Live::Delta(delta(0, part, Assistant, 0, &piece)));
    }
    let events = events([turn()]);
    let told = view.event(&events[0]);
    assert_eq!(told.iter().filter(|change| matches!(change, ViewChange::PartGrew { .. })).count(), 2);
}

#[test]
fn early_pieces_of_jobs_that_are_over_take_no_room() {
    let mut view = LiveView::default();
    let mut other = delta(0, 0, Assistant, 0, &"x".repeat(200 * 1024));
    other.job = JobId::from_uuid(uuid::Uuid::from_u128(2));
    view.live(&Live::Delta(other));
    let events = events([turn(), added(vec![Part::text(User, "go")])]);
    view.event(&events[0]);
    view.live(&Live::Delta(delta(1, 0, Assistant, 0, &"y".repeat(200 * 1024))));
    let told = view.event(&events[1]);
    assert!(told.iter().any(|change| matches!(change, ViewChange::PartGrew { .. })), "{told:?}");
}

#[test]
fn early_pieces_without_text_are_kept_up_to_a_limit_too() {
    let mut view = LiveView::default();
    for part in 0..100_000 {
        view.live(&Live::Delta(delta(0, part, Assistant, 0, "")));
    }
    let events = events([turn()]);
    let told = view.event(&events[0]).len();
    assert!((100..10_000).contains(&told), "{told} changes were told");
}

/// A message of a model's, by its parts, and for each part how it is cut into pieces and whether each is stored.
type Script = Vec<Vec<(PartRole, Vec<(String, bool)>)>>;

fn any_script() -> impl Strategy<Value = Script> {
    let role = prop_oneof![Just(Assistant), Just(Thinking), Just(PartRole::ToolCall)];
    let pieces = proptest::collection::vec(("[a-zäλ ]{0,5}", any::<bool>()), 1..5);
    let parts = proptest::collection::vec((role, pieces), 1..4);
    proptest::collection::vec(parts, 1..4)
}

/// The bodies of the turn's events, and all of its live pieces.
fn played(script: &Script) -> (Vec<EventBody>, Vec<Live>) {
    let mut bodies = vec![turn()];
    let mut live = Vec::new();
    for (message, parts) in (0..).zip(script) {
        let mut whole = Vec::new();
        for (number, (role, pieces)) in (0..).zip(parts) {
            let id = format!("c{message}-{number}");
            let call = ToolCall { call: id.clone(), tool: "t".to_owned() };
            let is_call = *role == PartRole::ToolCall;
            // Stored chunks are joined from pieces, without a gap; what is behind the last one is in the message alone.
            let (mut said, mut stored) = (String::new(), 0);
            for (text, is_stored) in pieces {
                let tool = is_call.then(|| call.clone());
                let piece =
                    Delta { tool: tool.clone(), ..delta(message, number, *role, said.len() as u64, text) };
                live.push(Live::Delta(piece));
                said.push_str(text);
                if *is_stored {
                    let chunk =
                        Delta { tool, ..delta(message, number, *role, stored as u64, &said[stored..]) };
                    bodies.push(EventBody::MessageStreamed(chunk));
                    stored = said.len();
                }
            }
            let part = Part::text(*role, said);
            whole.push(if is_call { part.with("call", id).with("tool", "t") } else { part });
        }
        bodies.push(added(whole));
    }
    bodies.push(ended());
    (bodies, live)
}

/// What a watcher has at the end, by applying changes: the parts of each message, in their order.
fn parts_of(changes: &[ViewChange<'_>]) -> Vec<Vec<(PartRole, String)>> {
    let mut partial = PartialMessage::default();
    let mut messages = Vec::new();
    for change in changes {
        if let ViewChange::MessageAdded { .. } = change {
            assert!(partial.parts.values().all(|part| part.has_ended), "a part of a whole message goes on");
            let mut parts: Vec<_> =
                partial.parts.values().map(|part| (part.role, part.text.clone())).collect();
            parts.sort();
            messages.push(parts);
        }
        partial.apply(change);
    }
    messages
}

/// Events in their order, and those live pieces that are heard in theirs, by turns as `is_live` says.
fn watched<'a>(events: &'a [Event], live: &[Live], is_live: &[bool], times: usize) -> Vec<ViewChange<'a>> {
    let (mut events, mut live) = (events.iter().peekable(), live.iter().peekable());
    let mut turns = is_live.iter().copied().cycle();
    let mut view = LiveView::default();
    let mut applied = PartialMessage::default();
    let mut changes = Vec::new();
    while events.peek().is_some() || live.peek().is_some() {
        let new: Vec<ViewChange<'a>> = match (turns.next(), live.peek(), events.peek()) {
            (Some(true), Some(_), _) | (_, Some(_), None) => {
                let piece = live.next().unwrap();
                (0..times).flat_map(|_| view.live(piece)).collect()
            }
            _ => {
                let event = events.next().unwrap();
                (0..times).flat_map(|_| view.event(event)).collect()
            }
        };
        new.iter().for_each(|change| applied.apply(change));
        assert_eq!(view.message().cloned().unwrap_or_default(), applied, "after {new:?}");
        changes.extend(new);
    }
    changes
}

proptest! {
    /// Whatever is heard, and however far ahead of the events or behind them, a watcher has all of each message once, and each part
    /// begins and ends once.
    #[test]
    fn a_message_is_told_once_whatever_is_heard_and_when(
        script in any_script(),
        is_heard in proptest::collection::vec(any::<bool>(), 1..40),
        is_live in proptest::collection::vec(any::<bool>(), 1..40),
    ) {
        let (bodies, live) = played(&script);
        let events = events(bodies);
        let heard = live.into_iter().zip(is_heard.iter().cycle()).filter(|(_, heard)| **heard);
        let heard: Vec<Live> = heard.map(|(live, _)| live).collect();
        let changes = watched(&events, &heard, &is_live, 1);
        let whole: Vec<Vec<(PartRole, String)>> = script.iter().map(|parts| {
            let text = |pieces: &[(String, bool)]| pieces.iter().map(|(text, _)| text.as_str()).collect::<String>();
            let mut parts: Vec<_> = parts.iter().map(|(role, pieces)| (*role, text(pieces))).collect();
            parts.sort();
            parts
        }).collect();
        prop_assert_eq!(parts_of(&changes), whole);
        let mut ends = BTreeMap::new();
        let mut message = 0;
        for change in &changes {
            match change {
                ViewChange::PartBegan { part, .. } => prop_assert!(ends.insert((message, *part), 0).is_none()),
                ViewChange::PartEnded { part, .. } => *ends.get_mut(&(message, *part)).unwrap() += 1,
                ViewChange::MessageAdded { .. } => message += 1,
                _ => {}
            }
        }
        prop_assert!(ends.values().all(|ends| *ends == 1));
    }

    /// An event or a piece of a message that comes twice changes nothing.
    #[test]
    fn what_comes_twice_is_told_once(script in any_script(), is_live in proptest::collection::vec(any::<bool>(), 1..40)) {
        let (bodies, live) = played(&script);
        let events = events(bodies);
        prop_assert_eq!(watched(&events, &live, &is_live, 2), watched(&events, &live, &is_live, 1));
    }

    /// Who comes in the middle of a job reads its events first, and sees from there on what everyone sees.
    #[test]
    fn who_reads_a_job_from_its_beginning_goes_on_as_if_always_there(
        script in any_script(),
        at in any::<prop::sample::Index>(),
    ) {
        let (bodies, live) = played(&script);
        let events = events(bodies);
        let (read, rest) = events.split_at(at.index(events.len()));
        let mut late = LiveView::default();
        let earlier: Vec<ViewChange<'_>> = read.iter().flat_map(|event| late.event(event)).collect();
        let mut changes = earlier;
        // All pieces come again: those that the events had say nothing new.
        for piece in &live {
            changes.extend(late.live(piece));
        }
        changes.extend(rest.iter().flat_map(|event| late.event(event)));
        let all: Vec<ViewChange<'_>> = watched(&events, &live, &[true, false], 1);
        prop_assert_eq!(parts_of(&changes), parts_of(&all));
    }
}
