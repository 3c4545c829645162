//! Cells as people see them: what the tests build a session with, and how they read a page.

mod connections;
mod displays;
mod evals;
mod messages;
mod printed;

use std::collections::BTreeMap;

use mainstay_model::Language;
use mainstay_model::agent::ToolCall;
use mainstay_model::display::METADATA;
use mainstay_model::event::CancelEnding;
use mainstay_model::{
    Ask, AskEnding, AskId, Binding, CommandFingerprint, CommandId, Delta, Diagnostic, EvalResult, Event,
    EventBody, Failure, JobId, JobSpec, Live, Message, Metadata, Note, OutputStream, Part, PartRole,
    Position, Principal, Prompt, Question, RaisedError, Raiser, Seq, SessionId, Severity, Source,
    TextPosition, Timestamp, WorkEnding, YieldReason,
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
            grants: None,
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
            grants: None,
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
