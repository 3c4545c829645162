//! The entries that events come to.

use crate::agents::{any_prompt, any_work_ending};
use crate::support::{any_history, any_message, client, command_id, creation, job_id, second, session_id};
use mainstay_model::entry::FORMS;
use mainstay_model::transcribe::{Transcribed, Transcriber};
use mainstay_model::{
    Bundle, CommandFingerprint, Delta, Diagnostic, Display, DisplayId, EvalResult, Event, EventBody, Failure,
    JobSpec, Message, Metadata, OutputStream, Part, PartRole, Position, RaisedError, Role, Seq, SessionKind,
    Severity, TextPosition, WorkEnding, WorkerExit,
};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

fn requested(code: &str) -> EventBody {
    EventBody::EvalRequested {
        job: job_id(1),
        command: command_id(1),
        fingerprint: CommandFingerprint::from_stored("f".to_owned()),
        key: None,
        deadline: None,
        grants: None,
        code: code.to_owned(),
        file: None,
        command_line: None,
        withheld: false,
        origin: None,
    }
}

fn printed(stream: OutputStream, text: &str) -> EventBody {
    EventBody::OutputProduced { job: Some(job_id(1)), stream, text: text.to_owned() }
}

fn completed(display: &str, diagnostics: Vec<Diagnostic>) -> EventBody {
    let value_type = (!display.is_empty()).then(|| "int".to_owned());
    let result = EvalResult { display: display.to_owned(), value_type, diagnostics, ..EvalResult::default() };
    EventBody::EvalCompleted { job: job_id(1), result, changes_state: false, duration_ms: 1 }
}

fn failed(failure: Failure, diagnostics: Vec<Diagnostic>) -> EventBody {
    let result = EvalResult { diagnostics, ..EvalResult::default() };
    EventBody::EvalFailed { job: job_id(1), failure, result, changes_state: false, duration_ms: 1 }
}

fn remark(severity: Severity) -> Diagnostic {
    let (start, end) = (TextPosition { line: 1, column: 5 }, TextPosition { line: 1, column: 6 });
    Diagnostic {
        severity,
        code: "FS0039".to_owned(),
        message: "it is not defined".to_owned(),
        file: None,
        start,
        end,
    }
}

fn transcribed(bodies: Vec<EventBody>) -> Vec<Transcribed> {
    let mut transcriber = Transcriber::default();
    let event = |(seq, body)| Event {
        session: session_id(),
        seq: Seq(seq),
        position: Position(seq),
        at: second(seq as i64),
        metadata: Metadata { source: client(), correlation: None, causation: None, environment: None },
        body,
    };
    let events: Vec<Event> = (2..).zip(bodies).map(event).collect();
    events.iter().flat_map(|event| transcriber.push(&SessionKind::fsharp(), event)).collect()
}

/// How a cell with this ending stands in a transcript.
fn told(mut bodies: Vec<EventBody>) -> String {
    bodies.insert(0, requested("f x"));
    let entries =
        transcribed(bodies).into_iter().map(|Transcribed { entry, text, at, first, last, .. }| {
            let metadata = serde_json::to_string(&entry.metadata).unwrap();
            format!("{:?} #{first}–#{last} {at} {metadata}\n{text}\n", entry.role)
        });
    entries.collect()
}

#[test]
fn a_cell_is_an_input_and_all_that_came_of_it() {
    let (out, err) = (OutputStream::Stdout, OutputStream::Stderr);
    let told = told(vec![
        printed(out, "hello\n"),
        printed(err, "careful\n"),
        completed("val it : int = 42\n", vec![remark(Severity::Warning), remark(Severity::Hidden)]),
    ]);
    insta::assert_snapshot!(told, @r#"
    Input #2–#5 1970-01-01T00:00:02Z {"language":"fsharp"}
    f x
    Output #2–#5 1970-01-01T00:00:05Z {"ending":"completed","printedBytes":14,"type":"int"}
    hello
    careful
    val it : int = 42
    warning FS0039 at 1:5: it is not defined
    "#);
}

#[test]
fn a_cell_that_failed_says_why() {
    insta::assert_snapshot!(told(vec![failed(Failure::Rejected, vec![remark(Severity::Error)])]), @r#"
    Input #2–#3 1970-01-01T00:00:02Z {"language":"fsharp"}
    f x
    Output #2–#3 1970-01-01T00:00:03Z {"ending":"rejected"}
    error FS0039 at 1:5: it is not defined
    "#);
    let error = RaisedError {
        kind: "E".to_owned(),
        message: "no".to_owned(),
        stack: Some("at f".to_owned()),
        coloured_stack: None,
    };
    insta::assert_snapshot!(told(vec![failed(Failure::Raised { error }, Vec::new())]), @r#"
    Input #2–#3 1970-01-01T00:00:02Z {"language":"fsharp"}
    f x
    Output #2–#3 1970-01-01T00:00:03Z {"ending":"raised"}
    E: no
    at f
    "#);
    let exited = Failure::WorkerExited { exit: WorkerExit::Code(3) };
    insta::assert_snapshot!(told(vec![printed(OutputStream::Stdout, "x"), failed(exited, Vec::new())]), @r#"
    Input #2–#4 1970-01-01T00:00:02Z {"language":"fsharp"}
    f x
    Output #2–#4 1970-01-01T00:00:04Z {"ending":"workerExited","printedBytes":1}
    x
    the code ended with exit code 3
    "#);
    let cut = EventBody::OutputCut { job: job_id(1), limit: 1 };
    let interrupted = EventBody::EvalInterrupted { job: job_id(1) };
    insta::assert_snapshot!(told(vec![printed(OutputStream::Stdout, "x"), cut, interrupted]), @r#"
    Input #2–#5 1970-01-01T00:00:02Z {"language":"fsharp"}
    f x
    Output #2–#5 1970-01-01T00:00:05Z {"ending":"interrupted","printedBytes":1,"printedIsCut":true}
    x
    "#);
}

fn shown(id: Option<&str>, text: &str) -> EventBody {
    let id = id.map(|id| DisplayId::new(id).unwrap());
    let forms = json!({ "text/html": format!("<b>{text}</b>"), "text/plain": text });
    let data: Bundle = serde_json::from_value(forms).unwrap();
    EventBody::OutputDisplayed {
        job: Some(job_id(1)),
        display: Box::new(Display { id, is_value: false, is_update: false, is_in_place: false, data }),
    }
}

#[test]
fn what_a_cell_shows_stands_between_its_input_and_its_output() {
    let out = |text: &str| printed(OutputStream::Stdout, text);
    let told = told(vec![
        out("one\n"),
        shown(None, "a"),
        shown(Some("bar"), "10 %"),
        out("two\n"),
        shown(Some("bar"), "100 %"),
        completed("val it : unit = ()", Vec::new()),
    ]);
    insta::assert_snapshot!(told, @r#"
    Input #2–#8 1970-01-01T00:00:02Z {"language":"fsharp"}
    f x
    Output #2–#8 1970-01-01T00:00:04Z {"forms":["text/html","text/plain"],"printedBefore":4}
    {"text/html":"<b>a</b>","text/plain":"a"}
    Output #2–#8 1970-01-01T00:00:07Z {"display":"bar","forms":["text/html","text/plain"],"printedBefore":4}
    {"text/html":"<b>100 %</b>","text/plain":"100 %"}
    Output #2–#8 1970-01-01T00:00:08Z {"ending":"completed","printedBytes":8,"type":"int"}
    one
    two
    val it : unit = ()
    "#);
}

#[test]
fn what_a_cell_took_back_is_no_part_of_it() {
    let told = told(vec![
        printed(OutputStream::Stdout, "one\n"),
        shown(None, "a"),
        EventBody::OutputCleared { job: job_id(1), is_replaced: true },
        printed(OutputStream::Stdout, "two\n"),
        completed("", Vec::new()),
    ]);
    insta::assert_snapshot!(told, @r#"
    Input #2–#7 1970-01-01T00:00:02Z {"language":"fsharp"}
    f x
    Output #2–#7 1970-01-01T00:00:07Z {"ending":"completed","printedBytes":4}
    two
    "#);
}

#[test]
fn what_is_printed_between_cells_is_nobodys() {
    let stray = EventBody::OutputProduced { job: None, stream: OutputStream::Stdout, text: "x".to_owned() };
    assert!(transcribed(vec![stray, completed("", Vec::new())]).is_empty());
}

proptest! {
    #[test]
    fn a_message_is_as_many_entries_as_it_has_parts_wherever_it_is_said(
        mut history in any_history(), message in any_message(), at in 1..40_usize,
    ) {
        let seen = |history: &[Event]| -> Vec<Transcribed> {
            let mut transcriber = Transcriber::default();
            history.iter().flat_map(|event| transcriber.push(&SessionKind::fsharp(), event)).collect()
        };
        // What an agent had begun to say is said with it.
        history.retain(|event| !matches!(event.body, EventBody::JobRequested { .. }));
        let before = seen(&history);
        let body = EventBody::MessageAdded(Box::new(message.clone()));
        let said = Event { seq: Seq(1_000), body, ..history[0].clone() };
        history.insert(at.min(history.len()), said);
        let (messages, rest): (Vec<_>, Vec<_>) = seen(&history).into_iter().partition(|entry| entry.first == Seq(1_000));
        let expected: Vec<_> = message.entries();
        prop_assert_eq!(messages.into_iter().map(|entry| (entry.entry, entry.text)).collect::<Vec<_>>(), expected);
        prop_assert_eq!(rest, before, "it is in nobody's way");
    }

    #[test]
    fn every_output_follows_its_input(mut history in any_history()) {
        let is_of_agents = |body: &EventBody| {
            matches!(
                body,
                EventBody::MessageAdded(_) | EventBody::TranscriptCompacted(_) | EventBody::JobRequested { .. }
            )
        };
        history.retain(|event| !is_of_agents(&event.body));
        (1..).zip(&mut history).for_each(|(seq, event)| event.seq = Seq(seq));
        let mut transcriber = Transcriber::default();
        let entries: Vec<_> =
            history.iter().flat_map(|event| transcriber.push(&SessionKind::fsharp(), event)).collect();
        for cell in entries.chunk_by(|_, next| next.entry.role != Role::Input) {
            let [input, shown @ .., output] = cell else { panic!("half a cell") };
            prop_assert_eq!(input.entry.role, Role::Input);
            prop_assert!(output.entry.metadata.contains_key("ending"));
            prop_assert!(shown.iter().all(|shown| shown.entry.metadata.contains_key(FORMS)));
            for answer in &cell[1..] {
                prop_assert_eq!(answer.entry.role, Role::Output);
                prop_assert_eq!((input.first, input.last), (answer.first, answer.last));
            }
            let begins = &history[input.first.0 as usize - 1].body;
            let is_its_request =
                matches!(begins, EventBody::EvalRequested { code, .. } if *code == input.text);
            prop_assert!(is_its_request);
            prop_assert!(history[input.last.0 as usize - 1].body.job_end().is_some());
        }
    }

    /// Each message is said in pieces, and added whole, but perhaps the last.
    #[test]
    fn what_an_agent_said_is_in_the_transcript_once_whole_or_not(
        prompt in any_prompt(),
        messages in vec((vec("[a-z ]{1,9}", 1..4), any::<bool>()), 0..4),
        is_last_whole: bool,
        ending in any_work_ending(),
    ) {
        let job = job_id(1);
        let mut bodies = vec![EventBody::JobRequested {
            job,
            command: command_id(1),
            fingerprint: CommandFingerprint::of("s", &"said"),
            key: None,
            deadline: None,
            grants: None,
            work: JobSpec::Turn { prompt: prompt.clone() },
        }];
        let mut expected: Vec<(Role, String)> = Vec::new();
        let mut added = false;
        let count = messages.len();
        for (index, (pieces, is_thought)) in messages.into_iter().enumerate() {
            let role = if is_thought { PartRole::Thinking } else { PartRole::Assistant };
            let mut offset = 0;
            for text in &pieces {
                let message = index as u32;
                let said = offset;
                offset += text.len() as u64;
                let text = text.clone();
                bodies.push(EventBody::MessageStreamed(Delta { job, message, part: 0, role, offset: said, text, tool: None }));
            }
            let text = pieces.concat();
            let is_done = matches!(ending, WorkEnding::Done { .. });
            if index + 1 < count || is_last_whole || is_done {
                let message = Message { parts: vec![Part::text(role, text.clone())], ..Message::default() };
                bodies.push(EventBody::MessageAdded(Box::new(message)));
                added = true;
            }
            expected.push((role.into(), text));
        }
        if !added && !matches!(ending, WorkEnding::Done { .. }) {
            let asked = prompt.message().entries().into_iter().map(|(entry, text)| (entry.role, text));
            expected.splice(0..0, asked);
        }
        bodies.push(EventBody::JobEnded { job, ending, duration_ms: 1, grace_ms: None });
        let mut transcriber = Transcriber::default();
        let mut entries = Vec::new();
        for (seq, body) in (1..).zip(bodies) {
            let event = Event { seq: Seq(seq), position: Position(seq), body, ..creation() };
            entries.extend(transcriber.push(&SessionKind::pi(), &event));
        }
        let said: Vec<_> = entries.into_iter().map(|made| (made.entry.role, made.text)).collect();
        prop_assert_eq!(said, expected);
    }
}
