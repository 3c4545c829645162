//! Transcribing: the entries that a session's events come to.
//!
//! A cell's input and its output become entries together, when the job has ended: so no transcript has an input whose
//! output is still to come.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Value, json};

use crate::Timestamp;
use crate::diagnostic::{Diagnostic, Severity};
use crate::entry::{Content, Entry, Origin, Role};
use crate::eval::{EvalResult, Failure, RaisedError};
use crate::event::{Event, EventBody};
use crate::id::{JobId, Seq, SessionKind};

/// An entry that came to be, and the events it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcribed {
    /// The entry.
    pub entry: Entry,
    /// All that it says.
    pub text: String,
    /// When it came to be.
    pub at: Timestamp,
    /// The first event of what it belongs to.
    pub first: Seq,
    /// The last.
    pub last: Seq,
    /// The entry it was brought from.
    pub origin: Option<Origin>,
}

/// What has been seen of one session. Its default has seen nothing; a job whose beginning it has not seen gives nothing.
#[derive(Debug, Default)]
pub struct Transcriber {
    running: Option<Cell>,
}

#[derive(Debug)]
struct Cell {
    job: JobId,
    requested: Seq,
    at: Timestamp,
    code: String,
    file: Option<String>,
    origin: Option<Origin>,
    printed: String,
    is_cut: bool,
}

impl Transcriber {
    /// Whether it has seen the beginning of this job, and not its end.
    pub fn is_in(&self, job: JobId) -> bool {
        self.running.as_ref().is_some_and(|cell| cell.job == job)
    }

    /// Takes in the next event of a session of this kind; gives what came to be with it.
    pub fn push(&mut self, kind: &SessionKind, event: &Event) -> Vec<Transcribed> {
        match &event.body {
            EventBody::EvalRequested { job, code, file, origin, .. } => {
                self.running = Some(Cell {
                    job: *job,
                    requested: event.seq,
                    at: event.at,
                    code: code.clone(),
                    file: file.clone(),
                    origin: *origin,
                    printed: String::new(),
                    is_cut: false,
                });
            }
            EventBody::OutputProduced { job: Some(job), text, .. } => {
                if let Some(cell) = self.running.as_mut().filter(|cell| cell.job == *job) {
                    cell.printed.push_str(text);
                }
            }
            EventBody::OutputCut { job, .. } => {
                if let Some(cell) = self.running.as_mut().filter(|cell| cell.job == *job) {
                    cell.is_cut = true;
                }
            }
            body => {
                if let Some((job, ending)) = Ending::of(body)
                    && let Some(cell) = self.running.take_if(|cell| cell.job == job)
                {
                    return cell.entries(kind, ending, event).into();
                }
            }
        }
        Vec::new()
    }
}

impl Cell {
    fn entries(self, kind: &SessionKind, ending: Ending, end: &Event) -> [Transcribed; 2] {
        let Self { requested, at, code, file, origin, printed, is_cut, .. } = self;
        let place = |role, text: String, metadata, at| {
            let entry = Entry { role, content: Content::of(text.clone()).0, metadata };
            Transcribed { entry, text, at, first: requested, last: end.seq, origin: None }
        };
        let mut about_code = BTreeMap::from([("language".to_owned(), json!(kind.as_str()))]);
        about_code.extend(file.map(|file| ("file".to_owned(), Value::from(file))));
        let Ending { word, text, value_type } = ending;
        let mut about_output = BTreeMap::from([("ending".to_owned(), json!(word))]);
        about_output.extend(value_type.map(|value_type| ("type".to_owned(), Value::from(value_type))));
        if !printed.is_empty() {
            about_output.insert("printedBytes".to_owned(), printed.len().into());
        }
        if is_cut {
            about_output.insert("printedIsCut".to_owned(), true.into());
        }
        let mut output = printed;
        if !text.is_empty() && !output.is_empty() && !output.ends_with('\n') {
            output.push('\n');
        }
        output.push_str(&text);
        let input = Transcribed { origin, ..place(Role::Input, code, about_code, at) };
        [input, place(Role::Output, output, about_output, end.at)]
    }
}

/// What an event that ends a job says of what came of it, beside what was printed; none of another event.
pub fn result_text(body: &EventBody) -> Option<String> {
    Ending::of(body).map(|(_, ending)| ending.text)
}

/// How a job ended, as its output entry has it: behind what was printed.
struct Ending {
    word: &'static str,
    text: String,
    value_type: Option<String>,
}

impl Ending {
    /// The job that an event ends, and how; none of an event that ends none.
    fn of(body: &EventBody) -> Option<(JobId, Self)> {
        let (job, _) = body.job_end()?;
        let ending = match body {
            EventBody::EvalCompleted { result, .. } => Self::completed(result),
            EventBody::EvalFailed { failure, result, .. } => Self::failed(failure, result),
            EventBody::EvalCancelled { .. } => Self::cut_off("cancelled"),
            EventBody::EvalInterrupted { .. } => Self::cut_off("interrupted"),
            EventBody::SessionCreated { .. }
            | EventBody::SessionForked(_)
            | EventBody::SessionImported { .. }
            | EventBody::SessionRenamed { .. }
            | EventBody::WarmUpStarted { .. }
            | EventBody::WarmUpCompleted { .. }
            | EventBody::SessionFaulted { .. }
            | EventBody::SessionReset
            | EventBody::SessionHardReset
            | EventBody::SessionStopped
            | EventBody::WorkerExited { .. }
            | EventBody::CommandQueued(_)
            | EventBody::CommandLeft { .. }
            | EventBody::AskRaised(_)
            | EventBody::AskEnded { .. }
            | EventBody::EvalRequested { .. }
            | EventBody::OutputProduced { .. }
            | EventBody::OutputCut { .. }
            | EventBody::EvalTimedOut { .. }
            | EventBody::CancelRequested { .. } => return None,
        };
        Some((job, ending))
    }

    fn completed(result: &EvalResult) -> Self {
        let mut text = result.display.clone();
        let told = result.diagnostics.iter().filter(|diagnostic| diagnostic.severity != Severity::Hidden);
        told.for_each(|diagnostic| push_diagnostic(&mut text, diagnostic));
        Self { word: "completed", text, value_type: result.value_type.clone() }
    }

    fn failed(failure: &Failure, result: &EvalResult) -> Self {
        let mut text = result.display.clone();
        result.diagnostics.iter().for_each(|diagnostic| push_diagnostic(&mut text, diagnostic));
        let word = match failure {
            Failure::Rejected => "rejected",
            Failure::Raised { error: RaisedError { kind, message, stack } } => {
                push_line(&mut text, &format!("{kind}: {message}"));
                stack.iter().for_each(|stack| push_line(&mut text, stack));
                "raised"
            }
            Failure::WorkerExited { exit } => {
                push_line(&mut text, &format!("the code ended its worker with {exit}"));
                "workerExited"
            }
        };
        Self { word, text, value_type: None }
    }

    const fn cut_off(word: &'static str) -> Self {
        Self { word, text: String::new(), value_type: None }
    }
}

fn push_diagnostic(text: &mut String, diagnostic: &Diagnostic) {
    let Diagnostic { severity, code, message, start, .. } = diagnostic;
    let severity = severity.name();
    push_line(text, &format!("{severity} {code} at {}:{}: {message}", start.line, start.column));
}

/// Adds a line to what stands in lines.
fn push_line(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    // Writing to a text never fails.
    writeln!(text, "{}", line.trim_end()).ok();
}
