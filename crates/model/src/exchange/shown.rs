//! Exported sessions for people and their tools: as Markdown, as an F# script, as a Polyglot or a Jupyter notebook.

use std::fmt::Write;

use serde_json::{Value, json};

use super::displayed::{self, lines};
use super::said::Conversation;
use super::{Header, Item, Said};
use crate::display::Display;
use crate::eval::{Failure, RaisedError};
use crate::event::{EventBody, JobPart, OutputStream};
use crate::id::{CommandId, SessionKind};
use crate::notebook::{self, CellKind, Language};
use crate::transcribe::result_text;

/// A cell as it is shown.
struct Shown<'a> {
    code: &'a str,
    /// In order; what was printed to both streams between two displays stands together.
    put_out: Vec<PutOut<'a>>,
    /// The value in more forms than the language prints.
    value: Option<&'a Display>,
    /// What it gave, or why it did not run to its end.
    given: String,
    ending: Ending<'a>,
}

/// What a cell put out while it ran.
enum PutOut<'a> {
    Printed { stdout: String, stderr: String },
    Displayed(&'a Display),
}

enum Ending<'a> {
    Completed,
    Raised(&'a RaisedError),
    Failed(&'static str),
}

impl<'a> Shown<'a> {
    fn of(events: &'a [Said]) -> Self {
        let ending = Ending::Failed("interrupted");
        let mut shown = Self { code: "", put_out: Vec::new(), value: None, given: String::new(), ending };
        for Said { body, .. } in events {
            let Some((_, part)) = body.job_part() else { continue };
            shown.given.extend(result_text(part));
            match part {
                JobPart::Requested { withheld: true, .. } => shown.code = "// this code was withheld",
                JobPart::Requested { code, .. } => shown.code = code,
                JobPart::Printed { stream, text } => shown.print(stream, text),
                JobPart::Displayed(display) if display.is_value => shown.value = Some(display),
                JobPart::Displayed(display) => shown.display(display),
                JobPart::Completed { .. } => shown.ending = Ending::Completed,
                JobPart::Failed { failure, .. } => {
                    shown.ending = match failure {
                        Failure::Rejected => Ending::Failed("rejected"),
                        Failure::Raised { error } => Ending::Raised(error),
                        Failure::WorkerExited { .. } => Ending::Failed("workerExited"),
                    };
                }
                JobPart::Cancelled(_) => shown.ending = Ending::Failed("cancelled"),
                JobPart::Interrupted | JobPart::OutputCut | JobPart::CancelRequested | JobPart::TimedOut => {}
            }
        }
        shown
    }

    fn failed(&self) -> Option<&str> {
        match &self.ending {
            Ending::Completed => None,
            Ending::Raised(error) => Some(&error.kind),
            Ending::Failed(why) => Some(why),
        }
    }

    fn print(&mut self, stream: OutputStream, text: &str) {
        if !matches!(self.put_out.last(), Some(PutOut::Printed { .. })) {
            self.put_out.push(PutOut::Printed { stdout: String::new(), stderr: String::new() });
        }
        if let Some(PutOut::Printed { stdout, stderr }) = self.put_out.last_mut() {
            match stream {
                OutputStream::Stdout => stdout.push_str(text),
                OutputStream::Stderr => stderr.push_str(text),
            }
        }
    }

    /// A display under the name of another stands in its place.
    fn display(&mut self, display: &'a Display) {
        let is_same = |other: &&mut PutOut<'a>| matches!(other, PutOut::Displayed(other) if display.id.is_some() && other.id == display.id);
        match self.put_out.iter_mut().find(is_same) {
            Some(place) => *place = PutOut::Displayed(display),
            None => self.put_out.push(PutOut::Displayed(display)),
        }
    }

    /// All that came of it as Markdown: text in fences, displays between them.
    fn output(&self) -> String {
        let (mut output, mut text) = (String::new(), String::new());
        for put_out in &self.put_out {
            match put_out {
                PutOut::Printed { stdout, stderr } => {
                    [stdout, stderr].iter().for_each(|part| append(&mut text, part))
                }
                PutOut::Displayed(display) => {
                    push_text(&mut output, &std::mem::take(&mut text));
                    displayed::markdown(&mut output, &display.data);
                }
            }
        }
        append(&mut text, &self.given);
        push_text(&mut output, &text);
        self.value.iter().for_each(|value| displayed::markdown(&mut output, &value.data));
        output
    }
}

/// Adds text that begins on a line of its own.
fn append(text: &mut String, part: &str) {
    if !text.is_empty() && !text.ends_with('\n') && !part.is_empty() {
        text.push('\n');
    }
    text.push_str(part);
}

fn push_text(markdown: &mut String, text: &str) {
    if !text.trim().is_empty() {
        push_fenced(markdown, "text", text);
    }
}

/// As Markdown: each cell's code and what came of it, in fences; what was said under headings.
pub fn markdown(header: &Header, items: &[Item]) -> String {
    let mut text = format!("# {}\n", header.name);
    let mut conversation = Conversation::default();
    items.iter().for_each(|item| push_item(&mut text, &mut conversation, &header.kind, item));
    text
}

/// One item as Markdown, as it is in that of a session of this kind.
pub fn item_markdown(kind: &SessionKind, item: &Item) -> String {
    let mut text = String::new();
    push_item(&mut text, &mut Conversation::default(), kind, item);
    text
}

fn push_item(text: &mut String, conversation: &mut Conversation, kind: &SessionKind, item: &Item) {
    match item {
        Item::Message { event, .. } => text.push_str(&conversation.message(event)),
        Item::Cell { events, .. } => {
            conversation.interrupted();
            let shown = Shown::of(events);
            push_fenced(text, kind.as_str(), shown.code);
            let output = shown.output();
            text.push_str(&output);
            if let (true, Some(why)) = (output.is_empty(), shown.failed()) {
                push_fenced(text, "text", why);
            }
        }
        Item::Reset { .. } => {
            conversation.interrupted();
            text.push_str("\n---\n\n*reset: what is above was dropped*\n");
        }
        Item::Label { .. } | Item::End { .. } => {}
    }
}

/// In a fence that is longer than any in it.
pub(super) fn push_fenced(text: &mut String, language: &str, content: &str) {
    let ticks = content.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(ticks.max(2) + 1);
    // Writing to a text never fails.
    write!(text, "\n{fence}{language}\n{}\n{fence}\n", content.trim_end()).ok();
}

/// As a script in cells.
pub fn script(items: &[Item]) -> String {
    let cells: Vec<String> =
        code_since_reset(items).iter().map(|code| format!("{}\n{code}\n", notebook::SCRIPT_MARK)).collect();
    cells.join("\n")
}

/// As a Polyglot notebook.
pub fn dib(header: &Header, items: &[Item]) -> String {
    let language = Language::named(header.kind.as_str());
    let cells = code_since_reset(items);
    let code = || CellKind::Code(Some(language.clone()));
    notebook::dib_text(&language, cells.iter().map(|cell| (code(), cell.as_str())))
}

/// The code of the cells since the last reset that ran to their end; that of the others is commented out.
fn code_since_reset(items: &[Item]) -> Vec<String> {
    let since =
        items.iter().rposition(|item| matches!(item, Item::Reset { .. })).map_or(0, |reset| reset + 1);
    let mut cells = Vec::new();
    for item in &items[since..] {
        let Item::Cell { events, .. } = item else { continue };
        let shown = Shown::of(events);
        let code = shown.code.trim_end();
        cells.push(match shown.failed() {
            None => code.to_owned(),
            Some(why) => {
                let lines = code.lines().map(|line| format!("\n// {line}"));
                format!("// did not run to its end: {why}{}", lines.collect::<String>())
            }
        });
    }
    cells
}

/// What came of the cell that this command ran, as a notebook has it: its outputs, under this number.
pub fn outputs_of(items: &[Item], command: &CommandId, number: u64) -> Option<Vec<Value>> {
    let events = items.iter().find_map(|item| match item {
        Item::Cell { events, .. } => {
            let is_its = |said: &Said| matches!(&said.body, EventBody::EvalRequested { command: of, .. } if of == command);
            events.iter().any(is_its).then_some(events)
        }
        Item::Message { .. } | Item::Reset { .. } | Item::Label { .. } | Item::End { .. } => None,
    })?;
    Some(outputs(&Shown::of(events), number))
}

/// As a Jupyter notebook (nbformat 4.5); what was said are its Markdown cells.
pub fn notebook(header: &Header, items: &[Item]) -> Value {
    let (mut cells, mut number, mut conversation) = (Vec::new(), 0, Conversation::default());
    for item in items {
        match item {
            Item::Cell { events, .. } => {
                number += 1;
                cells.push(notebook_cell(&Shown::of(events), number));
            }
            Item::Message { event, .. } => {
                conversation.interrupted();
                let text = conversation.message(event);
                cells.push(json!({
                    "cell_type": "markdown",
                    "id": format!("message-{}", cells.len() + 1),
                    "metadata": {},
                    "source": lines(text.trim_start_matches('\n')),
                }));
            }
            Item::Reset { .. } | Item::Label { .. } | Item::End { .. } => {}
        }
    }
    let kernel = match header.kind.as_str() {
        "fsharp" => json!({ "display_name": ".NET (F#)", "language": "F#", "name": ".net-fsharp" }),
        kind => json!({ "display_name": kind, "language": kind, "name": kind }),
    };
    json!({
        "cells": cells,
        "metadata": { "kernelspec": kernel, "language_info": { "name": kernel["language"] } },
        "nbformat": 4,
        "nbformat_minor": 5,
    })
}

fn notebook_cell(shown: &Shown<'_>, number: u64) -> Value {
    json!({
        "cell_type": "code",
        "execution_count": number,
        "id": format!("cell-{number}"),
        "metadata": {},
        "outputs": outputs(shown, number),
        "source": lines(shown.code),
    })
}

fn outputs(shown: &Shown<'_>, number: u64) -> Vec<Value> {
    let mut outputs: Vec<Value> = shown.put_out.iter().flat_map(notebook_outputs).collect();
    match &shown.ending {
        Ending::Completed if shown.given.trim().is_empty() && shown.value.is_none() => {}
        Ending::Completed => {
            let mut data = shown.value.map(|value| displayed::notebook(&value.data)).unwrap_or_default();
            data.insert("text/plain".to_owned(), json!(lines(&shown.given)));
            outputs.push(json!({
                "output_type": "execute_result", "execution_count": number, "data": data, "metadata": {},
            }));
        }
        Ending::Raised(RaisedError { kind, message, stack }) => {
            let traceback: Vec<&str> = stack.iter().flat_map(|stack| stack.lines()).collect();
            outputs.push(
                json!({ "output_type": "error", "ename": kind, "evalue": message, "traceback": traceback }),
            );
        }
        Ending::Failed(why) => outputs.push(json!({
            "output_type": "error", "ename": why, "evalue": shown.given.trim_end(), "traceback": [],
        })),
    }
    outputs
}

fn notebook_outputs(put_out: &PutOut<'_>) -> Vec<Value> {
    match put_out {
        PutOut::Printed { stdout, stderr } => [("stdout", stdout), ("stderr", stderr)]
            .into_iter()
            .filter(|(_, text)| !text.is_empty())
            .map(|(name, text)| json!({ "output_type": "stream", "name": name, "text": lines(text) }))
            .collect(),
        PutOut::Displayed(display) => {
            let data = displayed::notebook(&display.data);
            vec![json!({ "output_type": "display_data", "data": data, "metadata": {} })]
        }
    }
}
