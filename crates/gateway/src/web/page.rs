//! What a page shows of a session's past: its events folded to cells, and what each event changes of them. Pure: events and live pieces
//! in, changes out. [`cell`](super::cell) makes HTML of it, [`stream`](super::stream) sends that.
//!
//! A cell has a head, parts that are only ever added or replaced, and a foot. What was said live is said again by an event; each piece
//! has an offset, so whatever comes first is shown, once.

use std::collections::{BTreeMap, BTreeSet};

use mainstay_engine::Live;
use mainstay_model::agent::ToolCall;
use mainstay_model::message::{BLOCK, CALL, IS_ERROR, TOOL};
use mainstay_model::{
    AskEnding, Binding, Delta, Diagnostic, Display, DisplayId, Event, EventBody, Failure, JobId, Message,
    Note, OutputStream, Part, PartRole, RaisedError, Seq, SessionId, Source, Timestamp, Work, WorkEnding,
};
use serde_json::Value;

/// How many bytes of a job's output are shown.
const SHOWN_BYTES: usize = 128 * 1024;

/// The cells of a session, as far as its events were read.
#[derive(Debug, Default)]
pub(super) struct Page {
    cells: BTreeMap<Seq, Cell>,
    /// The jobs that have not ended, by their cells.
    open: BTreeMap<JobId, Seq>,
    /// The cells of asks that wait, by the ask.
    asks: BTreeMap<mainstay_model::AskId, Seq>,
    changes: BTreeMap<Seq, Change>,
}

/// A cell: what one job did, or one thing that happened between jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) session: SessionId,
    /// The event that began it.
    pub(super) seq: Seq,
    pub(super) at: Timestamp,
    pub(super) source: Source,
    pub(super) body: Body,
    pub(super) parts: Vec<CellPart>,
    pub(super) end: Option<End>,
    /// Who asked for its end.
    pub(super) cancelled_by: Option<Source>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// Code.
    Eval { code: String, file: Option<String>, is_withheld: bool, is_brought: bool },
    /// Something for an agent to do; and how many messages it has added.
    Work { work: Work, added: u32 },
    /// What happened, in words.
    Note { tone: Tone, text: String },
    /// A session that this one begins with, or had entries put in from.
    Brought { from: SessionId, entries: u64, is_fork: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Warning,
    Error,
}

/// What a job does while it runs, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CellPart {
    /// It prints.
    Printed { stream: OutputStream, text: String },
    /// It shows something, in an event of its own.
    Displayed { seq: Seq, display: Box<Display> },
    /// It has printed more than is shown.
    Cut,
    /// A model says something, as far as it has.
    Said { role: PartRole, text: String, is_open: bool },
    /// A tool is called; with what came of it.
    Called { id: String, tool: String, arguments: String, state: Called },
    /// Something happens.
    Noted { tone: Tone, text: String },
}

/// How far a tool has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Called {
    /// The call is being said.
    Said,
    /// It runs; what it has given last.
    Runs(String),
    /// It has answered.
    Answered { text: String, is_error: bool },
    /// Its turn has ended without an answer.
    Unanswered,
}

/// How a cell ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) how: Ending,
    pub(super) duration_ms: Option<u64>,
    pub(super) result: Given,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Completed,
    Rejected,
    Raised(RaisedError),
    WorkerExited(String),
    Cancelled,
    Interrupted,
    Failed(String),
}

/// What code gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) value: Option<String>,
    pub(super) value_type: Option<String>,
    pub(super) bindings: Vec<Binding>,
    pub(super) diagnostics: Vec<Diagnostic>,
    pub(super) words: Option<String>,
}

/// What is new of a cell since it was last asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// Whether the cell itself is new.
    pub(super) is_new: bool,
    /// Whether its head and foot are others.
    pub(super) is_reframed: bool,
    /// The first part that was added.
    pub(super) added_from: Option<usize>,
    /// The parts before it that are others.
    pub(super) replaced: BTreeSet<usize>,
}

impl Page {
    /// The cells, in order.
    pub(super) fn cells(&self) -> impl DoubleEndedIterator<Item = &Cell> {
        self.cells.values()
    }

    pub(super) fn cell(&self, seq: Seq) -> Option<&Cell> {
        self.cells.get(&seq)
    }

    /// The cells whose jobs go on.
    pub(super) fn open_cells(&self) -> impl Iterator<Item = &Cell> {
        self.open
            .values()
            .chain(self.asks.values())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .filter_map(|seq| self.cells.get(seq))
    }

    /// What has changed since this was asked last.
    pub(super) fn take_changes(&mut self) -> BTreeMap<Seq, Change> {
        std::mem::take(&mut self.changes)
    }

    /// Forgets the cells that cannot change any more: so a page that follows a session for long does not grow.
    pub(super) fn forget_ended(&mut self) {
        let open: BTreeSet<Seq> = self.open.values().chain(self.asks.values()).copied().collect();
        self.cells.retain(|seq, _| open.contains(seq));
    }

    /// Leaves the cells that began before this event.
    pub(super) fn keep_before(&mut self, first: Seq) {
        self.cells.retain(|seq, _| *seq < first);
    }

    /// Takes in an event of the session, each once, in order.
    pub(super) fn take(&mut self, event: &Event) {
        match &event.body {
            EventBody::EvalRequested { job, code, file, origin, withheld, .. } => {
                let body = Body::Eval {
                    code: code.clone(),
                    file: file.clone(),
                    is_withheld: *withheld,
                    is_brought: origin.is_some(),
                };
                self.begin(event, body, Some(*job));
            }
            EventBody::JobRequested { job, work, .. } => {
                self.begin(event, Body::Work { work: work.clone(), added: 0 }, Some(*job));
            }
            EventBody::OutputProduced { job: Some(job), stream, text } => self.printed(*job, *stream, text),
            EventBody::OutputProduced { job: None, text, .. } => {
                self.note(event, Tone::Plain, format!("printed between jobs: {text}"));
            }
            EventBody::OutputDisplayed { job, display } => self.displayed(event, *job, display),
            EventBody::OutputCut { job, .. } => self.cut(*job),
            EventBody::CancelRequested { job } => self.with_open(*job, |cell| {
                cell.cancelled_by = Some(event.metadata.source.clone());
                Touched::frame()
            }),
            EventBody::EvalTimedOut { job, limit_ms } => {
                let text = format!("its command took longer than {limit_ms} ms, and was answered");
                self.part(*job, CellPart::Noted { tone: Tone::Warning, text });
            }
            EventBody::EvalCompleted { job, result, duration_ms, .. } => {
                self.end(*job, Ending::Completed, Some(*duration_ms), Given::of(result));
            }
            EventBody::EvalFailed { job, failure, result, duration_ms, .. } => {
                self.end(*job, Ending::of(failure), Some(*duration_ms), Given::of(result));
            }
            EventBody::EvalCancelled { job, .. } => self.end(*job, Ending::Cancelled, None, Given::default()),
            EventBody::EvalInterrupted { job } => self.end(*job, Ending::Interrupted, None, Given::default()),
            EventBody::JobEnded { job, ending, duration_ms } => self.work_ended(*job, ending, *duration_ms),
            EventBody::MessageStreamed(delta) => self.said(delta, false),
            EventBody::MessageAdded(message) => self.added(event, message),
            EventBody::AgentNoted(note) => self.noted(note),
            EventBody::AskRaised(ask) => {
                self.note(event, Tone::Plain, format!("asks: {}", ask.question.prompt));
                self.asks.insert(ask.ask, event.seq);
            }
            EventBody::AskEnded { ask, ending } => self.ask_ended(*ask, ending, &event.metadata.source),
            EventBody::SessionForked(point) => {
                let body = Body::Brought { from: point.from, entries: point.entries, is_fork: true };
                self.begin(event, body, None);
            }
            EventBody::PromptQueued(queued) => self.note(event, Tone::Plain, queued.to_string()),
            EventBody::TranscriptCompacted(_)
            | EventBody::EntriesMerged(_)
            | EventBody::SessionImported { .. }
            | EventBody::SessionRenamed { .. }
            | EventBody::SessionCreated { .. }
            | EventBody::WarmUpStarted { .. }
            | EventBody::WarmUpCompleted { .. }
            | EventBody::SessionFaulted { .. }
            | EventBody::SessionReset
            | EventBody::SessionHardReset
            | EventBody::SessionStopped
            | EventBody::SessionDeleted
            | EventBody::WorkerExited { .. }
            | EventBody::CommandQueued(_)
            | EventBody::CommandLeft { .. }
            | EventBody::EnvironmentChanged { .. }
            | EventBody::AssembliesChanged { .. }
            | EventBody::QueueChanged { .. }
            | EventBody::AgentChanged(_)
            | EventBody::EntryLabeled { .. } => {
                if let Some((tone, text)) = happened(&event.body) {
                    self.note(event, tone, text);
                }
            }
        }
    }

    /// Takes in a piece of what is going on.
    pub(super) fn hear(&mut self, live: &Live) {
        match live {
            Live::Said(delta) => self.said(delta, true),
            Live::ToolOutput { call, output } => {
                let text = text_of(output);
                self.with_call(&call.call, |state| match state {
                    Called::Said | Called::Runs(_) => *state = Called::Runs(text.clone()),
                    Called::Answered { .. } | Called::Unanswered => {}
                });
            }
        }
    }

    fn begin(&mut self, event: &Event, body: Body, job: Option<JobId>) {
        let (at, source) = (event.at, event.metadata.source.clone());
        let cell = Cell {
            session: event.session,
            seq: event.seq,
            at,
            source,
            body,
            parts: Vec::new(),
            end: None,
            cancelled_by: None,
        };
        self.cells.insert(event.seq, cell);
        self.change(event.seq).is_new = true;
        if let Some(job) = job {
            self.open.insert(job, event.seq);
        }
    }

    fn note(&mut self, event: &Event, tone: Tone, text: String) {
        self.begin(event, Body::Note { tone, text }, None);
    }

    fn change(&mut self, seq: Seq) -> &mut Change {
        self.changes.entry(seq).or_default()
    }

    /// Changes the cell of a job that goes on; one whose beginning was not read is not shown.
    fn with_open(&mut self, job: JobId, change: impl FnOnce(&mut Cell) -> Touched) {
        let Some(seq) = self.open.get(&job).copied() else { return };
        let Some(cell) = self.cells.get_mut(&seq) else { return };
        let touched = change(cell);
        self.mark(seq, touched);
    }

    fn mark(&mut self, seq: Seq, touched: Touched) {
        let change = self.change(seq);
        change.is_reframed |= touched.frame;
        for (index, is_new) in touched.parts {
            if is_new {
                change.added_from.get_or_insert(index);
            } else if change.added_from.is_none_or(|from| index < from) {
                change.replaced.insert(index);
            }
        }
        if *change == Change::default() {
            self.changes.remove(&seq);
        }
    }

    fn part(&mut self, job: JobId, part: CellPart) {
        self.with_open(job, |cell| cell.push(part));
    }

    fn printed(&mut self, job: JobId, stream: OutputStream, text: &str) {
        self.with_open(job, |cell| {
            let left = SHOWN_BYTES.saturating_sub(cell.printed_bytes());
            if left == 0 {
                return cell.cut();
            }
            let shown = &text[..text.floor_char_boundary(left)];
            let touched = cell.push(CellPart::Printed { stream, text: shown.to_owned() });
            if shown.len() == text.len() { touched } else { touched.and(cell.cut()) }
        });
    }

    fn displayed(&mut self, event: &Event, job: Option<JobId>, display: &Display) {
        let part = CellPart::Displayed { seq: event.seq, display: Box::new(display.clone()) };
        match job {
            Some(job) => self.with_open(job, |cell| cell.show(part)),
            None => {
                self.note(event, Tone::Plain, "shown between jobs".to_owned());
                if let Some(cell) = self.cells.get_mut(&event.seq) {
                    cell.show(part);
                }
            }
        }
    }

    fn cut(&mut self, job: JobId) {
        self.with_open(job, Cell::cut);
    }

    fn end(&mut self, job: JobId, how: Ending, duration_ms: Option<u64>, result: Given) {
        self.with_open(job, |cell| {
            cell.end = Some(End { how, duration_ms, result });
            Touched::frame()
        });
        self.open.remove(&job);
    }

    fn work_ended(&mut self, job: JobId, ending: &WorkEnding, duration_ms: u64) {
        self.with_open(job, Cell::close);
        let (how, words) = match ending {
            WorkEnding::Done { value, .. } => {
                (Ending::Completed, value["output"].as_str().map(str::to_owned))
            }
            WorkEnding::Failed { message } => (Ending::Failed(message.clone()), None),
            WorkEnding::Cancelled { .. } => (Ending::Cancelled, None),
            WorkEnding::Interrupted => (Ending::Interrupted, None),
        };
        self.end(job, how, Some(duration_ms), Given { words, ..Given::default() });
    }

    /// A piece of a message. A live one behind what was missed waits for the event that has it all.
    fn said(&mut self, delta: &Delta, is_live: bool) {
        self.with_open(delta.job, |cell| cell.say(delta, is_live));
    }

    fn added(&mut self, event: &Event, message: &Message) {
        // Messages are added in turns, of which one goes on at a time.
        let turn = self
            .open
            .iter()
            .find(|(_, seq)| self.cells.get(seq).is_some_and(|cell| matches!(cell.body, Body::Work { .. })));
        let Some((job, _)) = turn else {
            for part in &message.parts {
                self.note(event, Tone::Plain, part.text.clone());
            }
            return;
        };
        self.with_open(*job, |cell| cell.add(message));
    }

    fn noted(&mut self, note: &Note) {
        match note {
            Note::ToolStarted { call: ToolCall { call, .. }, .. } => self.with_call(call, |state| {
                if *state == Called::Said {
                    *state = Called::Runs(String::new());
                }
            }),
            // Its result says so, as its answer does.
            Note::ToolEnded { .. } | Note::RetryEnded { success: true, .. } => {}
            Note::CompactionStarted { .. }
            | Note::CompactionFailed { .. }
            | Note::RetryStarted { .. }
            | Note::RetryEnded { success: false, .. }
            | Note::Told { .. } => {
                let part = CellPart::Noted { tone: tone_of(note), text: note.to_string() };
                if let Some(job) = self.open.keys().next().copied() {
                    self.part(job, part);
                }
            }
        }
    }

    fn with_call(&mut self, id: &str, change: impl Fn(&mut Called)) {
        for seq in self.open.values().copied().collect::<Vec<_>>() {
            let Some(cell) = self.cells.get_mut(&seq) else { continue };
            let touched = cell.answer(id, &change);
            self.mark(seq, touched);
        }
    }

    fn ask_ended(&mut self, ask: mainstay_model::AskId, ending: &AskEnding, by: &Source) {
        let Some(seq) = self.asks.remove(&ask) else { return };
        let Some(cell) = self.cells.get_mut(&seq) else { return };
        let said = match ending {
            AskEnding::Answered { value } => format!("{} answers: {}", name_of(by), plain(value)),
            AskEnding::Defaulted { value } => format!("nobody answered: {} was taken", plain(value)),
            AskEnding::TimedOut { .. } => "nobody answered in time".to_owned(),
            AskEnding::Cancelled => "taken back".to_owned(),
        };
        let touched = cell.push(CellPart::Noted { tone: Tone::Plain, text: said });
        self.mark(seq, touched);
    }
}

/// What was changed of a cell.
#[derive(Default)]
struct Touched {
    /// Its head and foot.
    frame: bool,
    /// Which parts, and whether each is new.
    parts: Vec<(usize, bool)>,
}

impl Touched {
    fn frame() -> Self {
        Self { frame: true, parts: Vec::new() }
    }

    fn part(index: usize, is_new: bool) -> Self {
        Self { frame: false, parts: vec![(index, is_new)] }
    }

    fn and(mut self, other: Self) -> Self {
        self.frame |= other.frame;
        self.parts.extend(other.parts);
        self
    }
}

impl Cell {
    fn push(&mut self, part: CellPart) -> Touched {
        self.parts.push(part);
        Touched::part(self.parts.len() - 1, true)
    }

    /// What has the name of something that it has shown stands for that.
    fn show(&mut self, part: CellPart) -> Touched {
        let name = part.name().cloned();
        let before = name.and_then(|name| self.parts.iter().position(|before| before.name() == Some(&name)));
        match before.and_then(|index| Some((index, self.parts.get_mut(index)?))) {
            Some((index, before)) => {
                *before = part;
                Touched::part(index, false)
            }
            None => self.push(part),
        }
    }

    fn cut(&mut self) -> Touched {
        match self.parts.last() {
            Some(CellPart::Cut) => Touched::default(),
            Some(_) | None => self.push(CellPart::Cut),
        }
    }

    fn printed_bytes(&self) -> usize {
        let bytes = |part: &CellPart| match part {
            CellPart::Printed { text, .. } => text.len(),
            CellPart::Displayed { .. }
            | CellPart::Cut
            | CellPart::Said { .. }
            | CellPart::Called { .. }
            | CellPart::Noted { .. } => 0,
        };
        self.parts.iter().map(bytes).sum()
    }

    /// Where the message that is being said begins.
    fn open_from(&self) -> usize {
        self.parts.iter().rposition(|part| !part.is_open()).map_or(0, |last| last + 1)
    }

    fn say(&mut self, delta: &Delta, is_live: bool) -> Touched {
        let Body::Work { added, .. } = &self.body else { return Touched::default() };
        if delta.message != *added {
            return Touched::default();
        }
        let index = self.open_from() + delta.part as usize;
        let is_new = index >= self.parts.len();
        if is_new && (index > self.parts.len() || (is_live && delta.offset > 0)) {
            return Touched::default();
        }
        if is_new {
            self.parts.push(opened(delta));
        }
        let text = match self.parts.get_mut(index) {
            Some(CellPart::Said { text, .. }) => text,
            Some(CellPart::Called { arguments, .. }) => arguments,
            Some(
                CellPart::Printed { .. }
                | CellPart::Displayed { .. }
                | CellPart::Cut
                | CellPart::Noted { .. },
            )
            | None => {
                return Touched::default();
            }
        };
        let news = (text.len() as u64).checked_sub(delta.offset);
        let news = news.and_then(|known| delta.text.get(usize::try_from(known).ok()?..));
        match news {
            Some(news) if !news.is_empty() => text.push_str(news),
            Some(_) | None if !is_new => return Touched::default(),
            Some(_) | None => {}
        }
        Touched::part(index, is_new)
    }

    /// A message that is whole takes the place of what was heard of it.
    fn add(&mut self, message: &Message) -> Touched {
        let Body::Work { added, .. } = &mut self.body else { return Touched::default() };
        let is_first = *added == 0;
        *added += 1;
        let from = self.open_from();
        let before = self.parts.len();
        self.parts.truncate(from);
        let mut touched = Touched::default();
        for part in &message.parts {
            match part.role {
                // The prompt stands above.
                PartRole::User if is_first => {}
                PartRole::ToolResult => touched = touched.and(self.result(part)),
                PartRole::System
                | PartRole::User
                | PartRole::Assistant
                | PartRole::Thinking
                | PartRole::ToolCall => {
                    let index = self.parts.len();
                    self.parts.push(whole(part));
                    touched = touched.and(Touched::part(index, index >= before));
                }
            }
        }
        // A part that was heard and is in no message stays as an empty one, so that no later part takes its name.
        while self.parts.len() < before {
            let index = self.parts.len();
            self.parts.push(CellPart::Said {
                role: PartRole::Assistant,
                text: String::new(),
                is_open: false,
            });
            touched = touched.and(Touched::part(index, false));
        }
        touched
    }

    fn result(&mut self, part: &Part) -> Touched {
        let named = |name: &str| part.metadata.get(name).and_then(Value::as_str).unwrap_or_default();
        let is_error = part.metadata.get(IS_ERROR).and_then(Value::as_bool).unwrap_or_default();
        let (call, text) = (named(CALL).to_owned(), words_of(part));
        let known = self.parts.iter().any(|known| known.is_call(&call));
        if !known {
            let state = Called::Answered { text, is_error };
            let (tool, arguments) = (named(TOOL).to_owned(), String::new());
            return self.push(CellPart::Called { id: call, tool, arguments, state });
        }
        self.answer(&call, &|state| *state = Called::Answered { text: text.clone(), is_error })
    }

    fn answer(&mut self, call: &str, change: &impl Fn(&mut Called)) -> Touched {
        let Some(index) = self.parts.iter().rposition(|part| part.is_call(call)) else {
            return Touched::default();
        };
        if let Some(CellPart::Called { state, .. }) = self.parts.get_mut(index) {
            change(state);
        }
        Touched::part(index, false)
    }

    /// Its turn is over: nothing is being said any more.
    fn close(&mut self) -> Touched {
        let mut touched = Vec::new();
        for (index, part) in self.parts.iter_mut().enumerate() {
            let has_changed = match part {
                CellPart::Said { is_open, .. } => std::mem::replace(is_open, false),
                CellPart::Called { state, .. } => match state {
                    Called::Said | Called::Runs(_) => {
                        *state = Called::Unanswered;
                        true
                    }
                    Called::Answered { .. } | Called::Unanswered => false,
                },
                CellPart::Printed { .. }
                | CellPart::Displayed { .. }
                | CellPart::Cut
                | CellPart::Noted { .. } => false,
            };
            if has_changed {
                touched.push((index, false));
            }
        }
        Touched { frame: false, parts: touched }
    }
}

impl CellPart {
    fn is_open(&self) -> bool {
        match self {
            Self::Said { is_open, .. } => *is_open,
            Self::Called { state, .. } => *state == Called::Said,
            Self::Printed { .. } | Self::Displayed { .. } | Self::Cut | Self::Noted { .. } => false,
        }
    }

    /// What code calls what it shows.
    fn name(&self) -> Option<&DisplayId> {
        match self {
            Self::Displayed { display, .. } => display.id.as_ref(),
            Self::Printed { .. }
            | Self::Cut
            | Self::Said { .. }
            | Self::Called { .. }
            | Self::Noted { .. } => None,
        }
    }

    fn is_call(&self, call: &str) -> bool {
        matches!(self, Self::Called { id, .. } if id == call)
    }
}

/// A part that begins to be said.
fn opened(delta: &Delta) -> CellPart {
    match (&delta.tool, delta.role) {
        (Some(ToolCall { call, tool }), _) => CellPart::Called {
            id: call.clone(),
            tool: tool.clone(),
            arguments: String::new(),
            state: Called::Said,
        },
        (None, role) => CellPart::Said { role, text: String::new(), is_open: true },
    }
}

/// A part of a whole message.
fn whole(part: &Part) -> CellPart {
    let named = |name: &str| part.metadata.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    match part.role {
        PartRole::ToolCall => CellPart::Called {
            id: named(CALL),
            tool: named(TOOL),
            arguments: part.text.clone(),
            state: Called::Runs(String::new()),
        },
        PartRole::System
        | PartRole::User
        | PartRole::Assistant
        | PartRole::Thinking
        | PartRole::ToolResult => CellPart::Said { role: part.role, text: words_of(part), is_open: false },
    }
}

/// What a part says in words.
fn words_of(part: &Part) -> String {
    match part.metadata.get(BLOCK).and_then(Value::as_str) {
        None => part.text.clone(),
        Some("content") => {
            let blocks: Value = serde_json::from_str(&part.text).unwrap_or_default();
            text_of(&blocks)
        }
        Some(kind) => format!("({kind})"),
    }
}

/// What is text in an answer: itself, or its text blocks.
fn text_of(output: &Value) -> String {
    match output {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().map(text_of).collect::<Vec<_>>().join("\n"),
        Value::Object(fields) => {
            let inner = ["text", "output", "content"].iter().find_map(|name| fields.get(*name));
            inner.map(text_of).unwrap_or_default()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

impl Ending {
    fn of(failure: &Failure) -> Self {
        match failure {
            Failure::Rejected => Self::Rejected,
            Failure::Raised { error } => Self::Raised(error.clone()),
            Failure::WorkerExited { exit } => Self::WorkerExited(exit.to_string()),
        }
    }
}

impl Given {
    fn of(result: &mainstay_model::EvalResult) -> Self {
        Self {
            value: result.value.clone(),
            value_type: result.value_type.clone(),
            bindings: result.bindings.clone(),
            diagnostics: result.diagnostics.clone(),
            words: None,
        }
    }
}

fn tone_of(note: &Note) -> Tone {
    match note {
        Note::ToolStarted { .. }
        | Note::ToolEnded { .. }
        | Note::CompactionStarted { .. }
        | Note::RetryEnded { success: true, .. } => Tone::Plain,
        Note::CompactionFailed { .. } | Note::RetryStarted { .. } => Tone::Warning,
        Note::RetryEnded { success: false, .. } => Tone::Error,
        Note::Told { level, .. } => match level.as_str() {
            "error" => Tone::Error,
            "warning" => Tone::Warning,
            _ => Tone::Plain,
        },
    }
}

/// Who did something, in a word or two.
pub(super) fn name_of(source: &Source) -> String {
    match source {
        Source::Client { principal, name } => format!("{principal} · {name}"),
        Source::Worker => "worker".to_owned(),
        Source::System => "mainstay".to_owned(),
    }
}

/// A value as people read it.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// What happened between jobs, where people want to know of it.
fn happened(body: &EventBody) -> Option<(Tone, String)> {
    let plain = |text: String| Some((Tone::Plain, text));
    match body {
        EventBody::WarmUpCompleted { kernel, runtime, replayed, diverged, .. } => {
            let ran = if *replayed == 0 { String::new() } else { format!("; {replayed} ran again") };
            let ready = format!("{kernel} on {runtime} is ready{ran}");
            if diverged.is_empty() {
                return plain(ready);
            }
            let differs: Vec<String> = diverged.iter().map(ToString::to_string).collect();
            Some((Tone::Warning, format!("{ready}. Not quite as before: {}", differs.join("; "))))
        }
        EventBody::SessionFaulted { message } => {
            Some((Tone::Error, format!("broken until it is reset: {message}")))
        }
        EventBody::SessionReset => plain("reset: definitions are dropped".to_owned()),
        EventBody::SessionHardReset => plain("reset with a new worker: definitions are dropped".to_owned()),
        EventBody::SessionStopped => plain("put to rest".to_owned()),
        EventBody::SessionDeleted => Some((Tone::Warning, "deleted".to_owned())),
        EventBody::SessionRenamed { name } => plain(format!("named {name}")),
        EventBody::SessionImported { .. } => plain("read from a file".to_owned()),
        EventBody::EntriesMerged(_) => plain("entries of another session were put in".to_owned()),
        EventBody::WorkerExited { exit, reason, .. } => {
            let why = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            Some((Tone::Warning, format!("the worker ended with {exit}{why}")))
        }
        EventBody::CommandLeft { error: Some(error), .. } => {
            Some((Tone::Warning, format!("a command did not begin: {error}")))
        }
        EventBody::AssembliesChanged { changed, .. } => {
            Some((Tone::Warning, format!("changed on disk: {}", changed.join(", "))))
        }
        EventBody::TranscriptCompacted(compaction) => plain(format!("summary: {}", compaction.summary)),
        EventBody::EntryLabeled { label: Some(label), .. } => plain(format!("labelled {label}")),
        EventBody::EntryLabeled { label: None, .. }
        | EventBody::SessionCreated { .. }
        | EventBody::SessionForked(_)
        | EventBody::WarmUpStarted { .. }
        | EventBody::CommandQueued(_)
        | EventBody::CommandLeft { error: None, .. }
        | EventBody::AskRaised(_)
        | EventBody::AskEnded { .. }
        | EventBody::EvalRequested { .. }
        | EventBody::OutputProduced { .. }
        | EventBody::OutputDisplayed { .. }
        | EventBody::OutputCut { .. }
        | EventBody::CancelRequested { .. }
        | EventBody::EvalTimedOut { .. }
        | EventBody::EvalCompleted { .. }
        | EventBody::EvalFailed { .. }
        | EventBody::EvalCancelled { .. }
        | EventBody::EvalInterrupted { .. }
        | EventBody::EnvironmentChanged { .. }
        | EventBody::JobRequested { .. }
        | EventBody::JobEnded { .. }
        | EventBody::MessageStreamed(_)
        | EventBody::PromptQueued(_)
        | EventBody::QueueChanged { .. }
        // The head says how it goes on.
        | EventBody::AgentChanged(_)
        | EventBody::AgentNoted(_)
        | EventBody::MessageAdded(_) => None,
    }
}
