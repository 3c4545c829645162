//! Transcribing: the entries that a session's events come to.
//!
//! A cell's input, what it showed, and its output become entries together, when the job has ended: so no transcript has an input
//! whose output is still to come. A message's parts, and a summary, are entries at once. What an agent's turn had said of a message that
//! it did not come to add, because it was cut off, becomes entries when the turn has ended.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Value, json};

use crate::Timestamp;
use crate::agent::{Delta, JobSpec, Prompt, WorkEnding};
use crate::command_line::CommandLine;
use crate::diagnostic::{Diagnostic, Severity};
use crate::display::Display;
use crate::entry::{Content, Entry, FORMS, Origin, Role};
use crate::eval::{EvalResult, Failure, RaisedError};
use crate::event::{EvalEnd, Event, EventBody, JobPart};
use crate::id::{JobId, Seq, SessionKind};
use crate::message::{Message, Part, PartRole};

/// An entry that came to be, and the events it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcribed {
    /// The entry that was transcribed.
    pub entry: Entry,
    /// All that it says.
    pub text: String,
    /// When it came to be.
    pub at: Timestamp,
    /// The first event of what it belongs to.
    pub first: Seq,
    /// The last event that belongs to the entry.
    pub last: Seq,
    /// The entry it was brought from.
    pub origin: Option<Origin>,
}

/// What has been seen of one session. Its default has seen nothing; a job whose beginning it has not seen gives nothing.
#[derive(Debug, Default)]
pub struct Transcriber {
    running: Option<Cell>,
    turn: Option<Turn>,
}

/// A turn of an agent, as far as it has added no message of it.
#[derive(Debug)]
struct Turn {
    job: JobId,
    requested: Seq,
    at: Timestamp,
    /// What it is to answer, until it has said anything.
    prompt: Option<Prompt>,
    /// The parts that it has begun to say of the next message.
    said: BTreeMap<u32, SaidPart>,
    /// The event with which the turn began.
    begun: Option<Seq>,
}

#[derive(Debug)]
struct SaidPart {
    role: PartRole,
    text: String,
}

#[derive(Debug)]
struct Cell {
    job: JobId,
    requested: Seq,
    at: Timestamp,
    code: String,
    file: Option<String>,
    command_line: Option<CommandLine>,
    origin: Option<Origin>,
    printed: String,
    shown: Vec<CellDisplay>,
    is_cut: bool,
}

/// A display of a cell.
#[derive(Debug)]
struct CellDisplay {
    display: Display,
    at: Timestamp,
    /// How many bytes had been printed before it.
    printed: usize,
}

impl Transcriber {
    /// Whether it has seen the beginning of this job, and not its end.
    pub fn is_in(&self, job: JobId) -> bool {
        self.running.as_ref().is_some_and(|cell| cell.job == job)
            || self.turn.as_ref().is_some_and(|turn| turn.job == job)
    }

    /// Takes in the next event of a session of this kind; gives what came to be with it.
    pub fn push(&mut self, kind: &SessionKind, event: &Event) -> Vec<Transcribed> {
        let Some((job, part)) = event.body.job_part() else { return self.push_of_agent(event) };
        // Of code that is withheld nothing is in the transcript: an output never parts from its input.
        if let JobPart::Requested { code, file, command_line, origin, withheld } = part {
            self.running = (!withheld).then(|| Cell {
                job,
                requested: event.seq,
                at: event.at,
                code: code.to_owned(),
                file: file.map(str::to_owned),
                command_line: command_line.cloned(),
                origin,
                printed: String::new(),
                shown: Vec::new(),
                is_cut: false,
            });
        }
        let Some(cell) = self.running.as_mut().filter(|cell| cell.job == job) else { return Vec::new() };
        match part {
            JobPart::Printed { text, .. } => cell.printed.push_str(text),
            JobPart::Displayed(display) => cell.show(display, event.at),
            JobPart::Cleared => cell.clear(),
            JobPart::OutputCut => cell.is_cut = true,
            JobPart::Requested { .. } | JobPart::CancelRequested | JobPart::TimedOut | JobPart::Denied(_) => {
            }
            JobPart::Ended(end) => {
                let cell = self.running.take();
                return cell.map_or_else(Vec::new, |cell| cell.entries(kind, Ending::of(end), event));
            }
        }
        Vec::new()
    }
}

impl Transcriber {
    /// What an event of no cell comes to.
    fn push_of_agent(&mut self, event: &Event) -> Vec<Transcribed> {
        if let EventBody::JobRequested { job, work: JobSpec::Turn { prompt }, .. } = &event.body {
            self.turn = Some(Turn {
                job: *job,
                requested: event.seq,
                at: event.at,
                prompt: Some(prompt.clone()),
                said: BTreeMap::new(),
                begun: None,
            });
        } else if let EventBody::MessageStreamed(delta) = &event.body {
            if let Some(turn) = self.turn.as_mut().filter(|turn| turn.job == delta.job) {
                turn.push(event.seq, delta);
            }
        } else if let EventBody::MessageAdded(_) = &event.body {
            if let Some(turn) = &mut self.turn {
                turn.has_added();
            }
        } else if let EventBody::JobEnded { job, ending, .. } = &event.body {
            let turn = self.turn.take_if(|turn| turn.job == *job);
            return turn.map(|turn| turn.entries(ending, event)).unwrap_or_default();
        }
        said(event)
    }
}

impl Turn {
    fn push(&mut self, seq: Seq, delta: &Delta) {
        self.begun.get_or_insert(seq);
        let Delta { role, text, .. } = delta;
        let begin = || SaidPart { role: *role, text: String::new() };
        self.said.entry(delta.part).or_insert_with(begin).text.push_str(text);
    }

    /// A message is whole: what was said of it is in it.
    fn has_added(&mut self) {
        self.prompt = None;
        self.said.clear();
        self.begun = None;
    }

    /// What it had not come to add. A call that was not said to its end was never made.
    fn entries(self, ending: &WorkEnding, end: &Event) -> Vec<Transcribed> {
        if matches!(ending, WorkEnding::Done { .. }) {
            return Vec::new();
        }
        let asked = self.prompt.iter().flat_map(|prompt| prompt.message().entries());
        let asked = asked.map(|(entry, text)| (entry, text, self.at, self.requested));
        let is_call = |part: &SaidPart| part.role == PartRole::ToolCall;
        let parts = self.said.into_values().filter(|part| !is_call(part) && !part.text.is_empty());
        let parts = parts.map(|SaidPart { role, text }| Part::text(role, text)).collect();
        // Not as a reason why the model stopped: agents show their models nothing of what ended so.
        let cut_off = [("ending".to_owned(), json!(ending.name()))].into();
        let begun = self.begun.unwrap_or(end.seq);
        let said = Message { parts, metadata: cut_off, usage: None }.entries();
        let said = said.into_iter().map(|(entry, text)| (entry, text, end.at, begun));
        let transcribed =
            |(entry, text, at, first)| Transcribed { entry, text, at, first, last: end.seq, origin: None };
        asked.chain(said).map(transcribed).collect()
    }
}

/// What an event comes to by itself.
fn said(event: &Event) -> Vec<Transcribed> {
    let entries = if let EventBody::MessageAdded(message) = &event.body {
        message.entries()
    } else if let EventBody::TranscriptCompacted(compaction) = &event.body {
        vec![compaction.entry()]
    } else {
        Vec::new()
    };
    let (at, first, last) = (event.at, event.seq, event.seq);
    let transcribed = |(entry, text)| Transcribed { entry, text, at, first, last, origin: None };
    entries.into_iter().map(transcribed).collect()
}

impl Cell {
    /// Nothing that it has put out so far is of it any more.
    fn clear(&mut self) {
        self.printed.clear();
        self.shown.clear();
    }

    /// Takes in a display; one that is under the name of another stands in its place.
    fn show(&mut self, display: &Display, at: Timestamp) {
        let shown = CellDisplay { display: display.clone(), at, printed: self.printed.len() };
        let is_same = |other: &CellDisplay| display.id.is_some() && other.display.id == display.id;
        match self.shown.iter().position(is_same) {
            Some(place) => self.shown[place] = CellDisplay { printed: self.shown[place].printed, ..shown },
            None => self.shown.push(shown),
        }
    }

    fn entries(self, kind: &SessionKind, ending: Ending, end: &Event) -> Vec<Transcribed> {
        let Self { requested, at, code, file, command_line, origin, printed, shown, is_cut, .. } = self;
        let place = |role, text: String, metadata, at| {
            let entry = Entry { role, content: Content::of(text.clone()).0, metadata };
            Transcribed { entry, text, at, first: requested, last: end.seq, origin: None }
        };
        let mut about_code = BTreeMap::from([("language".to_owned(), json!(kind.as_str()))]);
        about_code.extend(file.map(|file| ("file".to_owned(), Value::from(file))));
        about_code.extend(command_line.map(|line| ("commandLine".to_owned(), json!(line))));
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
        let (first, last) = (requested, end.seq);
        let display = |shown: CellDisplay| {
            let at = shown.at;
            let (entry, text) = shown.entry();
            Transcribed { entry, text, at, first, last, origin: None }
        };
        let output = place(Role::Output, output, about_output, end.at);
        [input].into_iter().chain(shown.into_iter().map(display)).chain([output]).collect()
    }
}

impl CellDisplay {
    /// The entry, and all that it says.
    fn entry(self) -> (Entry, String) {
        let Self { display: Display { id, is_value, is_update: _, is_in_place: _, data }, at: _, printed } =
            self;
        let mut metadata = BTreeMap::from([(FORMS.to_owned(), json!(data.kinds()))]);
        metadata.extend(id.map(|id| ("display".to_owned(), Value::from(id.as_str()))));
        if is_value {
            metadata.insert("isValue".to_owned(), true.into());
        }
        if printed > 0 {
            metadata.insert("printedBefore".to_owned(), printed.into());
        }
        // A bundle is JSON that has no keys but texts.
        let text = serde_json::to_string(&data).unwrap_or_default();
        let content = Content::of_bundle(&data, text.clone()).0;
        (Entry { role: Role::Output, content, metadata }, text)
    }
}

/// What came of an eval beside what it printed.
pub fn result_text(end: EvalEnd<'_>) -> String {
    Ending::of(end).text
}

/// How a job ended, as its output entry has it: behind what was printed.
struct Ending {
    word: &'static str,
    text: String,
    value_type: Option<String>,
}

impl Ending {
    fn of(end: EvalEnd<'_>) -> Self {
        match end {
            EvalEnd::Completed { result } => Self::completed(result),
            EvalEnd::Failed { failure, result } => Self::failed(failure, result),
            EvalEnd::Cancelled(_) => Self::cut_off("cancelled"),
            EvalEnd::Interrupted => Self::cut_off("interrupted"),
        }
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
            Failure::Raised { error: RaisedError { kind, message, stack, .. } } => {
                push_line(&mut text, &format!("{kind}: {message}"));
                stack.iter().for_each(|stack| push_line(&mut text, stack));
                "raised"
            }
            Failure::WorkerExited { exit } => {
                push_line(&mut text, &exit.of_code());
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
    let Diagnostic { severity, code, message, .. } = diagnostic;
    let (severity, place) = (severity.name(), diagnostic.place());
    push_line(text, &format!("{severity} {code} at {place}: {message}"));
}

/// Adds a line to what stands in lines.
fn push_line(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    // Writing to a text never fails.
    writeln!(text, "{}", line.trim_end()).ok();
}
