//! Exported sessions for people and their tools: as Markdown, as an F# script, as a Jupyter notebook.

use std::fmt::Write;

use serde_json::{Value, json};

use super::said::Conversation;
use super::{Header, Item, Said};
use crate::eval::{Failure, RaisedError};
use crate::event::{JobPart, OutputStream};
use crate::transcribe::result_text;

/// A cell as it is shown.
struct Shown<'a> {
    code: &'a str,
    printed: String,
    errors_printed: String,
    /// What it gave, or why it did not run to its end.
    given: String,
    ending: Ending<'a>,
}

enum Ending<'a> {
    Completed,
    Raised(&'a RaisedError),
    Failed(&'static str),
}

impl<'a> Shown<'a> {
    fn of(events: &'a [Said]) -> Self {
        let ending = Ending::Failed("interrupted");
        let mut shown = Self {
            code: "",
            printed: String::new(),
            errors_printed: String::new(),
            given: String::new(),
            ending,
        };
        for Said { body, .. } in events {
            let Some((_, part)) = body.job_part() else { continue };
            shown.given.extend(result_text(part));
            match part {
                JobPart::Requested { withheld: true, .. } => shown.code = "// this code was withheld",
                JobPart::Requested { code, .. } => shown.code = code,
                JobPart::Printed { stream: OutputStream::Stdout, text } => shown.printed.push_str(text),
                JobPart::Printed { stream: OutputStream::Stderr, text } => {
                    shown.errors_printed.push_str(text)
                }
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

    /// All that came of it, in one text.
    fn output(&self) -> String {
        let mut output = String::new();
        for part in [&self.printed, &self.errors_printed, &self.given] {
            if !output.is_empty() && !output.ends_with('\n') && !part.is_empty() {
                output.push('\n');
            }
            output.push_str(part);
        }
        output
    }
}

/// As Markdown: each cell's code and what came of it, in fences; what was said under headings.
pub fn markdown(header: &Header, items: &[Item]) -> String {
    let mut text = format!("# {}\n", header.name);
    let mut conversation = Conversation::default();
    for item in items {
        match item {
            Item::Message { event, .. } => text.push_str(&conversation.message(event)),
            Item::Cell { events, .. } => {
                conversation.interrupted();
                let shown = Shown::of(events);
                push_fenced(&mut text, header.kind.as_str(), shown.code);
                let output = shown.output();
                if !output.trim().is_empty() {
                    push_fenced(&mut text, "text", &output);
                } else if let Some(why) = shown.failed() {
                    push_fenced(&mut text, "text", why);
                }
            }
            Item::Reset { .. } => {
                conversation.interrupted();
                text.push_str("\n---\n\n*reset: what is above was dropped*\n");
            }
            Item::Label { .. } | Item::End { .. } => {}
        }
    }
    text
}

/// In a fence that is longer than any in it.
pub(super) fn push_fenced(text: &mut String, language: &str, content: &str) {
    let ticks = content.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(ticks.max(2) + 1);
    // Writing to a text never fails.
    write!(text, "\n{fence}{language}\n{}\n{fence}\n", content.trim_end()).ok();
}

/// As a script: the code of the cells since the last reset that ran to their end; that of the others is commented out.
pub fn script(items: &[Item]) -> String {
    let since =
        items.iter().rposition(|item| matches!(item, Item::Reset { .. })).map_or(0, |reset| reset + 1);
    let mut text = String::new();
    for item in &items[since..] {
        let Item::Cell { events, .. } = item else { continue };
        let shown = Shown::of(events);
        if !text.is_empty() {
            text.push('\n');
        }
        match shown.failed() {
            None => text.push_str(shown.code.trim_end()),
            Some(why) => {
                write!(text, "// did not run to its end: {why}").ok();
                shown.code.trim_end().lines().for_each(|line| {
                    write!(text, "\n// {line}").ok();
                });
            }
        }
        text.push('\n');
    }
    text
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
    let mut outputs = Vec::new();
    for (name, text) in [("stdout", &shown.printed), ("stderr", &shown.errors_printed)] {
        if !text.is_empty() {
            outputs.push(json!({ "output_type": "stream", "name": name, "text": lines(text) }));
        }
    }
    match &shown.ending {
        Ending::Completed if shown.given.trim().is_empty() => {}
        Ending::Completed => outputs.push(json!({
            "output_type": "execute_result",
            "execution_count": number,
            "data": { "text/plain": lines(&shown.given) },
            "metadata": {},
        })),
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
    json!({
        "cell_type": "code",
        "execution_count": number,
        "id": format!("cell-{number}"),
        "metadata": {},
        "outputs": outputs,
        "source": lines(shown.code),
    })
}

/// A text as notebooks have it: its lines, with their ends.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}
