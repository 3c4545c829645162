//! Cells as people see them, and pages that lose their connection anywhere.

use std::collections::BTreeMap;

use mainstay_model::Language;
use mainstay_model::agent::ToolCall;
use mainstay_model::display::METADATA;
use mainstay_model::event::CancelEnding;
use mainstay_model::{
    Ask, AskEnding, AskId, Binding, CommandFingerprint, CommandId, Delta, Diagnostic, EvalResult, Event,
    EventBody, Failure, JobId, JobSpec, Live, Message, Metadata, OutputStream, Part, PartRole, Position,
    Principal, Prompt, Question, RaisedError, Raiser, Seq, SessionId, Severity, Source, TextPosition,
    Timestamp, WorkEnding, YieldReason,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::cell;
use super::page::Page;
use super::patch::Patch;

/// A session in which things happen.
#[derive(Default)]
struct SessionHistory {
    events: Vec<Event>,
    jobs: u128,
}

impl SessionHistory {
    fn add(&mut self, body: EventBody) {
        let principal =
            Principal::new(if self.events.len().is_multiple_of(2) { "ada" } else { "bob" }).unwrap();
        let source = Source::Client { principal, name: "terminal".to_owned() };
        let metadata = Metadata { source, correlation: None, causation: None, environment: None };
        let seq = self.events.len() as u64 + 1;
        self.events.push(Event {
            session: SessionId::from_uuid(uuid::Uuid::nil()),
            seq: Seq(seq),
            position: Position(seq),
            at: Timestamp::UNIX_EPOCH,
            metadata,
            body,
        });
    }

    fn job(&mut self) -> JobId {
        self.jobs += 1;
        JobId::from_uuid(uuid::Uuid::from_u128(self.jobs))
    }

    fn eval(&mut self, code: &str) -> JobId {
        let job = self.job();
        self.add(EventBody::EvalRequested {
            job,
            command: CommandId::new(format!("c{}", self.jobs)).unwrap(),
            fingerprint: CommandFingerprint::of("s", &()),
            key: None,
            deadline: None,
            code: code.to_owned(),
            file: None,
            command_line: None,
            origin: None,
            withheld: false,
        });
        job
    }

    fn turn(&mut self, text: &str) -> JobId {
        let job = self.job();
        self.add(EventBody::JobRequested {
            job,
            command: CommandId::new(format!("c{}", self.jobs)).unwrap(),
            fingerprint: CommandFingerprint::of("s", &()),
            key: None,
            deadline: None,
            work: JobSpec::Turn { prompt: Prompt::text(text) },
        });
        job
    }

    fn prints(&mut self, job: JobId, text: &str) {
        self.add(EventBody::OutputProduced {
            job: Some(job),
            stream: OutputStream::Stdout,
            text: text.to_owned(),
        });
    }

    fn completes(&mut self, job: JobId, result: EvalResult) {
        self.add(EventBody::EvalCompleted { job, result, changes_state: true, duration_ms: 12 });
    }

    fn fails(&mut self, job: JobId, failure: Failure, result: EvalResult) {
        self.add(EventBody::EvalFailed { job, failure, result, changes_state: false, duration_ms: 1_234 });
    }

    fn message(&mut self, parts: Vec<Part>) {
        self.add(EventBody::MessageAdded(Box::new(Message { parts, ..Message::default() })));
    }

    fn shown(&self) -> String {
        fresh(&self.events).written()
    }
}

fn fresh(events: &[Event]) -> Element {
    let mut page = Page::default();
    events.iter().for_each(|event| page.take(event));
    let cells: String = page
        .cells()
        .map(|shown| cell::whole(shown, Some(&Language::named("fsharp"))).into_string())
        .collect();
    read(&format!("<main><div id=\"cells\">{cells}</div></main>"))
}

/// What a browser has: elements, with their texts.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Text(String),
    Element(Element),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Element {
    open: String,
    children: Vec<Node>,
}

/// Reads what maud writes: every element but a picture is closed.
fn read(html: &str) -> Element {
    let mut root = read_all(html);
    assert_eq!(root.len(), 1, "{html}");
    match root.remove(0) {
        Node::Element(element) => element,
        Node::Text(text) => panic!("{text} is no element"),
    }
}

fn read_all(html: &str) -> Vec<Node> {
    let mut stack = vec![Element { open: String::new(), children: Vec::new() }];
    let mut rest = html;
    while !rest.is_empty() {
        if let Some(tag) = rest.strip_prefix("</") {
            let closed = stack.pop().unwrap();
            stack.last_mut().unwrap().children.push(Node::Element(closed));
            rest = tag.split_once('>').unwrap().1;
        } else if let Some(tag) = rest.strip_prefix('<') {
            let (open, after) = tag.split_once('>').unwrap();
            let element = Element { open: open.to_owned(), children: Vec::new() };
            match open.starts_with("img ") {
                true => stack.last_mut().unwrap().children.push(Node::Element(element)),
                false => stack.push(element),
            }
            rest = after;
        } else {
            let end = rest.find('<').unwrap_or(rest.len());
            stack.last_mut().unwrap().children.push(Node::Text(rest[..end].to_owned()));
            rest = &rest[end..];
        }
    }
    assert_eq!(stack.len(), 1, "{html} does not close what it opens");
    stack.remove(0).children
}

impl Element {
    fn id(&self) -> Option<&str> {
        Some(self.open.split_once(" id=\"")?.1.split_once('"')?.0)
    }

    fn find(&mut self, id: &str) -> Option<&mut Element> {
        if self.id() == Some(id) {
            return Some(self);
        }
        self.children.iter_mut().find_map(|child| match child {
            Node::Element(child) => child.find(id),
            Node::Text(_) => None,
        })
    }

    fn remove(&mut self, id: &str) {
        self.children.retain(|child| !matches!(child, Node::Element(child) if child.id() == Some(id)));
        for child in &mut self.children {
            if let Node::Element(child) = child {
                child.remove(id);
            }
        }
    }

    /// As `assets/live.js` does it.
    fn apply(&mut self, patch: &Patch) {
        match patch {
            Patch::Morph(html) => {
                for node in read_all(html) {
                    let Node::Element(new) = node else { panic!("a morph of {node:?}") };
                    let old = self.find(new.id().unwrap());
                    *old.unwrap_or_else(|| panic!("it is not there: {html}")) = new;
                }
            }
            Patch::Add { to, id, html } => {
                self.remove(id);
                self.find(to).unwrap().children.extend(read_all(html));
            }
            Patch::Append { to, html } => self.find(to).unwrap().children.extend(read_all(html)),
            Patch::Prepend { to, html } => drop(self.find(to).unwrap().children.splice(0..0, read_all(html))),
        }
    }

    /// A line for each text, behind what it is in.
    fn written(&self) -> String {
        let mut lines = String::new();
        self.write(&mut lines, 0);
        lines
    }

    fn write(&self, lines: &mut String, depth: usize) {
        use std::fmt::Write;
        writeln!(lines, "{}<{}>", "  ".repeat(depth), self.open).unwrap();
        for child in &self.children {
            match child {
                Node::Text(text) => {
                    writeln!(lines, "{}{}", "  ".repeat(depth + 1), text.escape_debug()).unwrap()
                }
                Node::Element(child) => child.write(lines, depth + 1),
            }
        }
    }
}

fn value(value: &str, of: &str) -> EvalResult {
    EvalResult { value: Some(value.to_owned()), value_type: Some(of.to_owned()), ..EvalResult::default() }
}

fn remark(severity: Severity) -> Diagnostic {
    let (start, end) = (TextPosition { line: 2, column: 5 }, TextPosition { line: 2, column: 6 });
    Diagnostic {
        severity,
        code: "FS0039".to_owned(),
        message: "`<x>` is not defined.".to_owned(),
        file: None,
        start,
        end,
    }
}

#[test]
fn an_eval_shows_its_code_what_it_printed_and_what_it_gave() {
    let mut story = SessionHistory::default();
    let job = story.eval("let x = \"<b>\"\nprintfn \"&\"; x");
    story.prints(job, "&\n<script>alert(1)</script>\n");
    let binding =
        Binding { name: "x".to_owned(), value_type: "string".to_owned(), value: Some("\"<b>\"".to_owned()) };
    let imported = Binding { name: "os".to_owned(), value_type: "module".to_owned(), value: None };
    story.completes(job, EvalResult { bindings: vec![imported, binding], ..value("\"<b>\"", "string") });
    insta::assert_snapshot!(story.shown());
}

#[test]
fn an_eval_that_did_not_run_to_its_end_says_why() {
    let mut story = SessionHistory::default();
    let job = story.eval("x");
    let diagnostics = vec![remark(Severity::Error), remark(Severity::Hidden), remark(Severity::Warning)];
    story.fails(job, Failure::Rejected, EvalResult { diagnostics, ..EvalResult::default() });
    let job = story.eval("failwith \"no\"");
    let error = RaisedError {
        kind: "System.Exception".to_owned(),
        message: "no".to_owned(),
        stack: Some("at <f>".to_owned()),
        coloured_stack: Some("at \u{1b}[32m<f>\u{1b}[0m".to_owned()),
    };
    story.fails(job, Failure::Raised { error }, EvalResult::default());
    let job = story.eval("exit 3");
    story.fails(
        job,
        Failure::WorkerExited { exit: mainstay_model::WorkerExit::Code(3) },
        EvalResult::default(),
    );
    let job = story.eval("while true do ()");
    story.add(EventBody::CancelRequested { job });
    story.add(EventBody::EvalCancelled { job, ending: CancelEnding::Killed, kept: None });
    let job = story.eval("1");
    story.add(EventBody::EvalInterrupted { job });
    insta::assert_snapshot!(story.shown());
}

#[test]
fn a_turn_shows_what_was_thought_said_called_and_answered() {
    let mut story = SessionHistory::default();
    let job = story.turn("look <here>");
    story.message(vec![Part::text(PartRole::User, "look <here>")]);
    story.message(vec![
        Part::text(PartRole::Thinking, "hm"),
        Part::text(PartRole::Assistant, "I look."),
        Part::tool_call("t1", "read", &json!({ "path": "<a>" })),
    ]);
    story.message(vec![Part::tool_result("t1", "what stands in <a>")]);
    story.message(vec![Part::tool_call("t2", "bash", &json!({ "command": "ls" }))]);
    let ending = WorkEnding::Cancelled { by: CancelEnding::Yielded };
    story.add(EventBody::JobEnded { job, ending, duration_ms: 61_000 });
    insta::assert_snapshot!(story.shown());
}

#[test]
fn an_imported_conversation_shows_every_part_with_who_says_it() {
    let mut story = SessionHistory::default();
    story.message(vec![Part::text(PartRole::System, "a notice")]);
    story.message(vec![
        Part::text(PartRole::User, "look <here>"),
        Part::block(PartRole::User, "image", &json!({ "type": "image", "data": "aGk=" })),
    ]);
    let parts = vec![
        Part::text(PartRole::Thinking, "hm"),
        Part::text(PartRole::Assistant, "I look at two."),
        Part::tool_call("t1", "read", &json!({ "path": "<a>" })),
        Part::tool_call("t2", "read", &json!({ "path": "<b>" })),
    ];
    let metadata = BTreeMap::from([("model".to_owned(), json!("claude"))]);
    story.add(EventBody::MessageAdded(Box::new(Message { parts, metadata, usage: None })));
    let failed = Part::tool_result("t2", "no such file").with("isError", true);
    story.message(vec![Part::tool_result("t1", "what stands in <a>"), failed]);
    story.message(vec![Part::tool_call("t3", "bash", &json!({ "command": "ls" }))]);
    story.message(vec![Part::text(PartRole::User, "stop")]);
    story.message(vec![Part::tool_result("t3", "too late"), Part::tool_result("t4", "of something else")]);
    insta::assert_snapshot!(story.shown());
}

#[test]
fn what_is_said_is_shown_while_it_is_said() {
    let mut story = SessionHistory::default();
    let job = story.turn("go");
    let mut page = Page::default();
    story.events.iter().for_each(|event| page.take(event));
    for (part, role, offset, text, tool) in [
        (0, PartRole::Thinking, 0, "hm, ", None),
        (0, PartRole::Thinking, 2, ", yes", None),
        (0, PartRole::Thinking, 90, "what was missed", None),
        (
            1,
            PartRole::ToolCall,
            0,
            "{\"a\"",
            Some(ToolCall { call: "t1".to_owned(), tool: "read".to_owned() }),
        ),
    ] {
        page.hear(&Live::Delta(Delta { job, message: 0, part, role, offset, text: text.to_owned(), tool }));
    }
    let cells: String = page
        .cells()
        .map(|shown| cell::whole(shown, Some(&Language::named("fsharp"))).into_string())
        .collect();
    insta::assert_snapshot!(read(&cells).written());
}

#[test]
fn asks_and_what_happens_between_jobs_stand_on_a_line_each() {
    let mut story = SessionHistory::default();
    let created = json!({ "kind": "sessionCreated", "body": { "kind": "fsharp", "name": "n", "workingDirectory": "/w" } });
    story.add(serde_json::from_value(created).unwrap());
    let ready = json!({ "kernel": "F# 4.7", "runtime": ".NET 3.1", "pid": 1, "replayed": 2, "diverged": [7], "durationMs": 5 });
    story.add(serde_json::from_value(json!({ "kind": "warmUpCompleted", "body": ready })).unwrap());
    let job = story.eval("stdin.ReadLine()");
    let ask = AskId::from_uuid(uuid::Uuid::nil());
    let question = Question::text("<who> are you?");
    story.add(EventBody::AskRaised(Box::new(Ask {
        ask,
        raiser: Raiser::Job { job },
        question,
        deadline: None,
    })));
    story.add(EventBody::AskEnded { ask, ending: AskEnding::Answered { value: json!("<Ada>") } });
    story.completes(job, value("\"<Ada>\"", "string"));
    story.add(EventBody::SessionReset);
    story.add(EventBody::OutputProduced { job: None, stream: OutputStream::Stdout, text: "late".to_owned() });
    insta::assert_snapshot!(story.shown());
}

#[test]
fn what_code_left_running_prints_stands_in_its_own_cell_or_says_whose_it_is() {
    let late = |story: &mut SessionHistory, job: JobId| {
        let (job, text) = (Some(job), "<late>".to_owned());
        story.add(EventBody::OutputProduced { job, stream: OutputStream::Stdout, text });
    };
    let mut story = SessionHistory::default();
    let first = story.eval("first");
    story.completes(first, EvalResult::default());
    let second = story.eval("second");
    late(&mut story, first);
    story.completes(second, value("2", "int"));
    let shown = story.shown();
    let cells: Vec<_> = shown.split("first").nth(1).unwrap().split("second").collect();
    assert!(cells[0].contains("&lt;late&gt;") && !cells[1].contains("late"), "{shown}");

    late(&mut story, JobId::from_uuid(uuid::Uuid::max()));
    let shown = story.shown();
    assert!(shown.contains("printed by code that an earlier cell left running: &lt;late&gt;"), "{shown}");
}

#[test]
fn what_is_printed_looks_as_in_a_terminal() {
    let mut story = SessionHistory::default();
    let job = story.eval("for x in tqdm(range(3)):");
    story.prints(job, "begins\n");
    for done in 0..=3 {
        story.add(EventBody::OutputProduced {
            job: Some(job),
            stream: OutputStream::Stderr,
            text: format!("\r{}% |{:<3}|", done * 33, "█".repeat(done)),
        });
    }
    story.prints(job, "\n\u{1b}[1;32mpassed\u{1b}[0m <all>\n");
    story.completes(job, EvalResult::default());
    insta::assert_snapshot!(story.shown());
}

#[test]
fn of_a_flood_the_beginning_and_the_end_are_shown() {
    let mut story = SessionHistory::default();
    let job = story.eval("flood");
    let lines: Vec<String> = (0..40_000).map(|line| format!("line {line}\n")).collect();
    lines.chunks(500).for_each(|chunk| story.prints(job, &chunk.concat()));
    story.completes(job, EvalResult::default());
    let shown = story.shown();
    let is_shown = |line: u32| shown.contains(&format!("line {line}\\n"));
    let ends = [0, 1, 10_000, 37_100, 39_998, 39_999];
    assert!(ends.into_iter().all(is_shown), "{:?}", ends.map(is_shown));
    let middle = [13_000, 20_000, 35_000];
    assert!(!middle.into_iter().any(is_shown), "{:?}", middle.map(is_shown));
    let left_out = lines.concat().len() - 128 * 1024 - 32 * 1024;
    let told = shown.split("… ").nth(1).unwrap().split(' ').next().unwrap().parse::<usize>().unwrap();
    assert!(told.abs_diff(left_out) < 100, "{told} of {left_out}");
}

#[test]
fn what_is_a_little_too_much_is_shown_whole() {
    let mut story = SessionHistory::default();
    let job = story.eval("a little flood");
    let lines: String = (0..13_500).map(|line| format!("line {line}\n")).collect();
    assert!(lines.len() > 128 * 1024 + 5_000, "{}", lines.len());
    story.prints(job, &lines);
    story.completes(job, EvalResult::default());
    let mut page = fresh(&story.events);
    let parts = page.find("c1-parts").unwrap();
    let shown: String = parts.children.iter().map(text_of).collect();
    assert_eq!(shown.replace("… of what follows only the end is kept", ""), lines);
    assert!(story.shown().contains("span class=\"cut\" id=\"c1-p"), "a hidden one");
}

/// What stands in it.
fn text_of(node: &Node) -> String {
    match node {
        Node::Text(text) => text.clone(),
        Node::Element(element) => element.children.iter().map(text_of).collect(),
    }
}

#[test]
fn what_code_shows_is_a_table_a_picture_or_a_frame_without_rights() {
    let mut story = SessionHistory::default();
    let job = story.eval("shows");
    let rows = json!({ "schema": { "fields": [{ "name": "<n>" }, { "name": "of" }] }, "data": [{ "<n>": 1, "of": "<x>" }] });
    for data in [
        json!({ "text/plain": "t", "application/vnd.dataresource+json": rows }),
        json!({ "text/plain": "<p>", "image/png": "iVBORw0KGgo=" }),
        json!({ "text/plain": "a drawing", "image/svg+xml": "<svg/>" }),
        json!({ "text/plain": "a page", "text/html": "<script>alert(1)</script>" }),
        json!({ "text/plain": "<only> text", "text/markdown": "# m" }),
        json!({ "text/plain": "a chart", "application/vnd.vegalite.v6+json": { "mark": "<bar>" }, "text/html": "<script>" }),
        json!({ "text/plain": "x", "text/latex": "$x < y$\n" }),
        json!({ "text/plain": "some data", "application/json": { "a": "<b>" } }),
    ] {
        let body = json!({ "job": job, "data": data });
        story.add(serde_json::from_value(json!({ "kind": "outputDisplayed", "body": body })).unwrap());
    }
    for text in ["first", "second"] {
        let body = json!({ "job": job, "id": "d", "data": { "text/plain": text } });
        story.add(serde_json::from_value(json!({ "kind": "outputDisplayed", "body": body })).unwrap());
    }
    insta::assert_snapshot!(story.shown());
}

#[test]
fn a_chart_is_drawn_whatever_the_version_in_its_type() {
    let chart = json!({
        "mark": "bar",
        "data": { "values": [{ "day": "Mon", "builds": 3 }, { "day": "Tue", "builds": 5 }] },
        "encoding": { "x": { "field": "day", "type": "nominal" }, "y": { "field": "builds", "type": "quantitative" } },
    });
    for kind in ["application/vnd.vegalite.v5+json", "application/vnd.vegalite.v6.json"] {
        let mut story = SessionHistory::default();
        let job = story.eval("shows");
        let body = json!({ "job": job, "data": { "text/plain": "a chart", kind: chart } });
        story.add(serde_json::from_value(json!({ "kind": "outputDisplayed", "body": body })).unwrap());
        assert!(story.shown().contains("<svg"), "{kind}");
    }
}

#[test]
fn how_far_tests_are_stands_in_one_place_until_their_report_does() {
    let mut story = SessionHistory::default();
    let job = story.eval("Mainstay.Tests.run()");
    let mut shows = |data: Value| {
        let body = json!({ "job": job, "id": "tests-1", "data": data });
        story.add(serde_json::from_value(json!({ "kind": "outputDisplayed", "body": body })).unwrap());
        story.shown()
    };
    let progress = json!({ "nth": 1, "passed": 1, "failed": 0, "timedOut": 0, "skipped": 0, "tests": [] });
    let words = "running: 1 passed";
    let runs = shows(json!({ "text/plain": words, "application/vnd.mainstay.test-progress+json": progress }));
    assert!(runs.contains(words) && !runs.contains("test-progress"), "{runs}");
    let ended = shows(json!({ "text/plain": "1 passed in 3 ms", "application/vnd.mainstay.tests+json": {} }));
    assert!(ended.contains("1 passed in 3 ms") && !ended.contains(words), "{ended}");
}

#[test]
fn a_picture_is_as_wide_as_its_code_says() {
    let mut story = SessionHistory::default();
    let job = story.eval("Image(data=dot, width=120)");
    let png = "iVBORw0KGgoAAAANSUhEUgAAAoAAAAHgCAYAAAA=";
    let data = json!({ "text/plain": "it", "image/png": png, METADATA: { "image/png": { "width": 120 } } });
    let body = json!({ "job": job, "data": data });
    story.add(serde_json::from_value(json!({ "kind": "outputDisplayed", "body": body })).unwrap());
    let shown = story.shown();
    assert!(shown.contains(r#"width="120""#) && !shown.contains("metadata"), "{shown}");
}

#[test]
fn a_value_that_stands_in_a_richer_form_is_not_told_again() {
    let shown = |text: &str, kind: &str| {
        let mut story = SessionHistory::default();
        let job = story.eval("frame");
        let data = json!({ "text/plain": text, kind: "<table>" });
        let body = json!({ "job": job, "isValue": true, "data": data });
        story.add(serde_json::from_value(json!({ "kind": "outputDisplayed", "body": body })).unwrap());
        story.completes(job, value("the frame", "DataFrame"));
        story.shown()
    };
    for rich in [shown("the frame", "text/html"), shown("a table in words", "text/html")] {
        assert!(!rich.contains("the frame") && rich.contains("DataFrame"), "{rich}");
    }
    assert!(shown("in other words", "text/x-frame").contains("the frame"));
}

#[test]
fn of_a_line_without_end_the_beginning_and_the_end_are_shown() {
    let mut story = SessionHistory::default();
    let job = story.eval("flood");
    for _ in 0..100 {
        story.prints(job, &"é".repeat(2_048));
    }
    story.prints(job, "the end");
    let shown = story.shown();
    assert!(shown.len() < 200_000, "{} bytes", shown.len());
    assert!(shown.contains("éthe end") && shown.contains(" bytes are not shown here"));
}

/// What happens next, in a few numbers.
fn happens(story: &mut SessionHistory, open: &mut Option<Open>, step: (u8, u8)) {
    let (what, text) = (step.0 % 8, format!("<{}>&", step.1));
    match open.take() {
        None => match what {
            0..3 => *open = Some(Open::Eval(story.eval(&text))),
            3..6 => {
                *open = Some(Open::Turn(Turn { job: story.turn(&text), added: 0, said: BTreeMap::new() }))
            }
            6 => story.add(EventBody::SessionReset),
            _ => imports(story, step.1, &text),
        },
        Some(Open::Eval(job)) => match what {
            0 => story.completes(job, value(&text, "int")),
            1 => {
                story.add(EventBody::CancelRequested { job });
                *open = Some(Open::Eval(job));
            }
            2 => {
                let ask = AskId::from_uuid(uuid::Uuid::from_u128(story.jobs));
                let question = Question::text(text);
                story.add(EventBody::AskRaised(Box::new(Ask {
                    ask,
                    raiser: Raiser::Job { job },
                    question,
                    deadline: None,
                })));
                story.prints(job, "meanwhile");
                story.add(EventBody::AskEnded { ask, ending: AskEnding::Cancelled });
                *open = Some(Open::Eval(job));
            }
            _ => {
                let text = match (what, step.1) {
                    (3, _) => format!("\r\u{1b}[3{}m{text}", step.1 % 8),
                    (4, _) => format!("{text}\n").repeat(usize::from(step.1)),
                    (5, 240..) => format!("{text}\n").repeat(12_000),
                    _ => text,
                };
                story.prints(job, &text);
                *open = Some(Open::Eval(job));
            }
        },
        Some(Open::Turn(mut turn)) => {
            if what == 0 {
                let ending = WorkEnding::Done { reason: YieldReason::EndTurn, value: Value::Null };
                story.add(EventBody::JobEnded { job: turn.job, ending, duration_ms: 1 });
            } else {
                turn.goes_on(story, what, &text);
                *open = Some(Open::Turn(turn));
            }
        }
    }
}

/// A message that came with a file.
fn imports(story: &mut SessionHistory, which: u8, text: &str) {
    let call = format!("i{}", which / 4 % 4);
    story.message(match which % 4 {
        0 => vec![Part::text(PartRole::User, text)],
        1 => vec![Part::tool_result(&call, text)],
        2 => vec![Part::text(PartRole::Thinking, text), Part::text(PartRole::Assistant, text)],
        _ => vec![Part::text(PartRole::Assistant, text), Part::tool_call(&call, "read", &json!({}))],
    });
}

enum Open {
    Eval(JobId),
    Turn(Turn),
}

struct Turn {
    job: JobId,
    added: u32,
    said: BTreeMap<u32, String>,
}

impl Turn {
    fn goes_on(&mut self, story: &mut SessionHistory, what: u8, text: &str) {
        let last = self.said.keys().last().copied();
        match what {
            1 => {
                let parts = self.said.values().map(|text| Part::text(PartRole::Assistant, text.as_str()));
                let call = format!("t{}", self.added);
                let parts = parts.chain([Part::tool_call(&call, "read", &json!({}))]).collect();
                story.message(parts);
                story.message(vec![Part::tool_result(&call, text)]);
                self.added += 2;
                self.said.clear();
            }
            _ => {
                let part = match last {
                    None => 0,
                    Some(last) => last + u32::from(what == 2),
                };
                let said = self.said.entry(part).or_default();
                let (offset, role, job) = (said.len() as u64, PartRole::Assistant, self.job);
                said.push_str(text);
                let delta =
                    Delta { job, message: self.added, part, role, offset, text: text.to_owned(), tool: None };
                story.add(EventBody::MessageStreamed(delta));
            }
        }
    }
}

/// One connection that begins after `from` events and sends those up to `until`, so many together.
fn connection(events: &[Event], from: usize, until: usize, together: usize) -> Vec<(Vec<Patch>, usize)> {
    let mut page = Page::default();
    events[..from].iter().for_each(|event| page.take(event));
    page.take_changes();
    page.forget_ended();
    let open = page
        .open_cells()
        .map(|shown| Patch::morph(cell::whole(shown, Some(&Language::named("fsharp")))))
        .collect();
    let mut sent = vec![(open, from)];
    let mut at = from;
    for events in events[from..until].chunks(together.max(1)) {
        events.iter().for_each(|event| page.take(event));
        at += events.len();
        let changes = page.take_changes();
        let changed = changes.iter().filter_map(|(seq, change)| Some((page.cell(*seq)?, change)));
        sent.push((
            changed
                .flat_map(|(shown, change)| cell::patches(shown, change, Some(&Language::named("fsharp"))))
                .collect(),
            at,
        ));
        page.forget_ended();
    }
    sent
}

proptest! {
    #[test]
    fn wherever_connections_end_nothing_is_missing_and_nothing_twice(
        steps in proptest::collection::vec(any::<(u8, u8)>(), 1..60),
        first in 0_usize..20,
        connections in proptest::collection::vec((1_usize..30, 1_usize..9, 0_usize..4), 0..8),
    ) {
        let mut story = SessionHistory::default();
        let mut open = None;
        steps.into_iter().for_each(|step| happens(&mut story, &mut open, step));
        let events = &story.events;
        let mut at = first.min(events.len());
        let mut shown = fresh(&events[..at]);
        for (length, together, lost) in connections.into_iter().chain([(usize::MAX, 3, 0)]) {
            let until = at.saturating_add(length).min(events.len());
            let sent = connection(events, at, until, together);
            let last = sent.len() - 1;
            for (index, (patches, reached)) in sent.into_iter().enumerate() {
                // The last piece arrived in part: some of its patches, and not how far it was.
                let arrived = if index == last { patches.len().saturating_sub(lost) } else { patches.len() };
                patches[..arrived].iter().for_each(|patch| shown.apply(patch));
                if index < last || lost == 0 {
                    at = reached;
                }
            }
        }
        prop_assert_eq!(shown.written(), fresh(events).written());
    }
}
