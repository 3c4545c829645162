//! Exported sessions for people and their tools: as Markdown, as a script, as a Polyglot or a Jupyter notebook.

use std::fmt::Write;

use serde_json::{Value, json};

use super::displays::{self, Pictures, lines};
use super::kernel::Kernel;
use super::messages::MarkdownMessages;
use super::outputs::Outputs;
use super::{ExportedEvent, Header, Item};
use crate::notebook::{self, CellKind, ScriptLanguage};
use mainstay_model::diagnostic::Diagnostic;
use mainstay_model::display::Display;
use mainstay_model::eval::{Failure, RaisedError};
use mainstay_model::event::{EvalEnd, JobPart, OutputStream};
use mainstay_model::screen::{Screen, settled};
use mainstay_model::transcribe::result_text;

/// What stands where a cell put out more than is kept.
const CUT: &str = "… (what follows is not kept: `output-bytes-per-job`)\n";

/// A cell as it is shown.
pub(super) struct DocumentCell<'a> {
    pub(super) code: &'a str,
    /// In order; what was printed to both streams between two displays stands together.
    pub(super) put_out: Vec<PutOut<'a>>,
    /// The value in more forms than the language prints.
    pub(super) value: Option<&'a Display>,
    /// What it gave, or why it did not run to its end.
    pub(super) given: String,
    pub(super) ending: Ending<'a>,
    /// Whether what shows under a name stands where the cell has shown that before.
    shows_in_place: bool,
}

/// What a cell put out while it ran.
pub(super) enum PutOut<'a> {
    Printed {
        stdout: String,
        stderr: String,
        /// Both, in the order in which they were printed.
        screen: Screen,
    },
    Displayed(&'a Display),
    /// The value, in its place.
    Value(&'a Display),
    /// What stands for something that another cell has shown.
    Updated(&'a Display),
}

pub(super) enum Ending<'a> {
    Completed,
    /// What is wrong with it, where that is known.
    Rejected(Option<&'a Diagnostic>),
    Raised(&'a RaisedError),
    Failed(&'static str),
}

impl<'a> DocumentCell<'a> {
    pub(super) fn of(kernel: &Kernel, events: &'a [ExportedEvent]) -> Self {
        let mut shown = Self {
            code: "",
            put_out: Vec::new(),
            value: None,
            given: String::new(),
            ending: Ending::Failed("interrupted"),
            shows_in_place: kernel.shows_in_place(),
        };
        let mut is_cut = false;
        for ExportedEvent { body, .. } in events {
            let Some((_, part)) = body.job_part() else { continue };
            match part {
                JobPart::Requested { withheld: true, .. } => {
                    let by_hash = kernel.language.comments_by_hash();
                    shown.code =
                        if by_hash { "# this code was withheld" } else { "// this code was withheld" };
                }
                JobPart::Requested { code, .. } => shown.code = code,
                JobPart::Printed { stream, text } => {
                    // What comes then says itself how much was left out.
                    is_cut = false;
                    shown.print(stream, text);
                }
                JobPart::Displayed(display) if !display.is_put_out() => shown.value = Some(display),
                JobPart::Displayed(display) if display.is_value => {
                    shown.put_out.push(PutOut::Value(display));
                }
                JobPart::Displayed(display) => shown.display(display),
                JobPart::Cleared => shown.put_out.clear(),
                JobPart::OutputCut => is_cut = true,
                JobPart::CancelRequested | JobPart::TimedOut | JobPart::Denied(_) => {}
                JobPart::Ended(end) => shown.end(end),
            }
        }
        if is_cut {
            shown.print(OutputStream::Stderr, CUT);
        }
        shown
    }

    fn end(&mut self, end: EvalEnd<'a>) {
        self.given = result_text(end);
        self.ending = match end {
            EvalEnd::Completed { .. } => Ending::Completed,
            EvalEnd::Failed { failure, result } => match failure {
                Failure::Rejected => Ending::Rejected(result.diagnostics.first()),
                Failure::Raised { error } => Ending::Raised(error),
                Failure::WorkerExited { .. } => Ending::Failed("workerExited"),
            },
            EvalEnd::Cancelled(_) => Ending::Failed("cancelled"),
            EvalEnd::Interrupted => Ending::Failed("interrupted"),
        };
    }

    fn failed(&self) -> Option<&str> {
        match &self.ending {
            Ending::Completed => None,
            Ending::Rejected(_) => Some("rejected"),
            Ending::Raised(error) => Some(&error.kind),
            Ending::Failed(why) => Some(why),
        }
    }

    fn print(&mut self, stream: OutputStream, text: &str) {
        if !matches!(self.put_out.last(), Some(PutOut::Printed { .. })) {
            let (stdout, stderr) = (String::new(), String::new());
            self.put_out.push(PutOut::Printed { stdout, stderr, screen: Screen::default() });
        }
        if let Some(PutOut::Printed { stdout, stderr, screen }) = self.put_out.last_mut() {
            screen.print(stream, text);
            match stream {
                OutputStream::Stdout => stdout.push_str(text),
                OutputStream::Stderr => stderr.push_str(text),
            }
        }
    }

    /// What stands for another does so in its place.
    fn display(&mut self, display: &'a Display) {
        let is_same = |other: &&mut PutOut<'a>| match other {
            PutOut::Displayed(other) | PutOut::Updated(other) => {
                display.id.is_some() && other.id == display.id
            }
            PutOut::Value(_) | PutOut::Printed { .. } => false,
        };
        let mut same = self.put_out.iter_mut().filter(is_same).peekable();
        match (same.peek().is_some(), display.is_update) {
            (true, true) => same.for_each(|place| place.show(display)),
            (true, false) if self.shows_in_place => same.for_each(|place| place.show(display)),
            (true | false, false) => self.put_out.push(PutOut::Displayed(display)),
            (false, true) => self.put_out.push(PutOut::Updated(display)),
        }
    }

    /// All that came of it as Markdown: text in fences, displays between them.
    fn output(&self, pictures: Pictures) -> String {
        let (mut output, mut text) = (String::new(), String::new());
        for put_out in &self.put_out {
            match put_out {
                PutOut::Printed { screen, .. } => append(&mut text, &screen.text()),
                PutOut::Displayed(display) | PutOut::Updated(display) | PutOut::Value(display) => {
                    push_text(&mut output, &std::mem::take(&mut text));
                    displays::markdown(&mut output, &display.data, pictures);
                }
            }
        }
        append(&mut text, &settled(&self.given));
        // Whoever reads what it printed would take it for all of it.
        if let (true, Ending::Failed(why)) = (self.given.is_empty() && !self.put_out.is_empty(), &self.ending)
        {
            append(&mut text, &format!("({why})"));
        }
        push_text(&mut output, &text);
        self.value.iter().for_each(|value| displays::markdown(&mut output, &value.data, pictures));
        output
    }
}

impl<'a> PutOut<'a> {
    /// Has something else in its place.
    fn show(&mut self, display: &'a Display) {
        match self {
            Self::Displayed(shown) | Self::Updated(shown) => *shown = display,
            Self::Value(_) | Self::Printed { .. } => {}
        }
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
pub fn markdown(header: &Header, kernel: &Kernel, items: &[Item]) -> String {
    let mut text = format!("# {}\n", header.name);
    let mut conversation = MarkdownMessages::default();
    items.iter().for_each(|item| push_item((&mut text, Pictures::Embedded), &mut conversation, kernel, item));
    text
}

/// One item as Markdown, as it is in that of a session whose code this kernel ran, with what its pictures are called in their place.
pub fn item_markdown(kernel: &Kernel, item: &Item) -> String {
    let mut text = String::new();
    push_item((&mut text, Pictures::Named), &mut MarkdownMessages::default(), kernel, item);
    text
}

fn push_item(
    (text, pictures): (&mut String, Pictures),
    conversation: &mut MarkdownMessages,
    kernel: &Kernel,
    item: &Item,
) {
    match item {
        Item::Message { event, .. } => text.push_str(&conversation.message(event)),
        Item::Cell { events, .. } => {
            conversation.interrupted();
            let shown = DocumentCell::of(kernel, events);
            push_fenced(text, kernel.language.as_str(), shown.code);
            let output = shown.output(pictures);
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

/// As a script in cells, of this language.
pub fn script(language: ScriptLanguage, kernel: &Kernel, items: &[Item]) -> String {
    let comment = language.comment();
    let cells = code_since_reset(comment, kernel, items);
    let cells: Vec<String> = cells.iter().map(|code| format!("{comment} %%\n{code}\n")).collect();
    cells.join("\n")
}

/// As a Polyglot notebook.
pub fn dib(kernel: &Kernel, items: &[Item]) -> String {
    let cells = code_since_reset(ScriptLanguage::FSharp.comment(), kernel, items);
    let code = || CellKind::Code(Some(kernel.language.clone()));
    notebook::dib_text(&kernel.language, cells.iter().map(|cell| (code(), cell.as_str())))
}

/// The code of the cells since the last reset that ran to their end; that of the others is commented out.
fn code_since_reset(comment: &str, kernel: &Kernel, items: &[Item]) -> Vec<String> {
    let since =
        items.iter().rposition(|item| matches!(item, Item::Reset { .. })).map_or(0, |reset| reset + 1);
    let mut cells = Vec::new();
    for item in &items[since..] {
        let Item::Cell { events, .. } = item else { continue };
        let shown = DocumentCell::of(kernel, events);
        let code = shown.code.trim_end();
        cells.push(match shown.failed() {
            None => code.to_owned(),
            Some(why) => {
                let lines = code.lines().map(|line| format!("\n{comment} {line}"));
                format!("{comment} did not run to its end: {why}{}", lines.collect::<String>())
            }
        });
    }
    cells
}

/// As a Jupyter notebook (nbformat 4.5); what was said are its Markdown cells.
pub fn notebook(kernel: &Kernel, items: &[Item]) -> Value {
    let outputs = Outputs::of(kernel, items);
    let (mut cells, mut number, mut conversation) = (Vec::new(), 0, MarkdownMessages::default());
    for item in items {
        match item {
            Item::Cell { events, .. } => {
                number += 1;
                cells.push(notebook_cell(&outputs, &DocumentCell::of(kernel, events), number));
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
    json!({ "cells": cells, "metadata": kernel.metadata(), "nbformat": 4, "nbformat_minor": 5 })
}

fn notebook_cell(outputs: &Outputs<'_>, shown: &DocumentCell<'_>, number: u64) -> Value {
    json!({
        "cell_type": "code",
        "execution_count": number,
        "id": format!("cell-{number}"),
        "metadata": {},
        "outputs": outputs.of_shown(shown, number),
        "source": lines(shown.code),
    })
}
