//! What a page shows of a session's past: its events folded to cells, and what each event changes of them. Pure: events and live pieces
//! in, changes out. [`cell_state`](super::cell_state) is one cell, [`notices`](super::notices) what is none; [`cell`](super::cell) makes HTML of it,
//! [`stream`](super::stream) sends that. [`LiveView`] tells each piece of a message once.

use std::collections::{BTreeMap, BTreeSet};

use mainstay_model::live::{LiveView, ViewChange};
use mainstay_model::message::output_text;
use mainstay_model::screen::settled;
use mainstay_model::{
    AskEnding, Display, Event, EventBody, JobId, Live, Message, Note, OutputStream, PartRole, Seq, WorkEnding,
};
use serde_json::Value;

use super::cell_state::{
    Body, Cell, CellChanges, CellEnd, CellPart, Ending, ReturnedValue, Tone, ToolState, name_of,
};
use super::notices::{happened, tone_of};

/// The cells of a session, as far as its events were read.
#[derive(Debug, Default)]
pub(super) struct Page {
    view: LiveView,
    cells: BTreeMap<Seq, Cell>,
    /// The jobs that have not ended, by their cells.
    open: BTreeMap<JobId, Seq>,
    /// Those that have ended, as far as their cells are here: code that they left running may print.
    ended: BTreeMap<JobId, Seq>,
    /// The cells of asks that wait, by the ask.
    asks: BTreeMap<mainstay_model::AskId, Seq>,
    /// The cells of messages outside any turn, by the calls in them that have no result yet.
    calls: BTreeMap<String, Seq>,
    changes: BTreeMap<Seq, Change>,
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

    /// The cells that may change: whose jobs go on, or that wait for an answer or a result.
    pub(super) fn open_cells(&self) -> impl Iterator<Item = &Cell> {
        self.open_seqs().into_iter().filter_map(|seq| self.cells.get(&seq))
    }

    fn open_seqs(&self) -> BTreeSet<Seq> {
        self.open.values().chain(self.asks.values()).chain(self.calls.values()).copied().collect()
    }

    /// What has changed since this was asked last.
    pub(super) fn take_changes(&mut self) -> BTreeMap<Seq, Change> {
        std::mem::take(&mut self.changes)
    }

    /// Forgets the cells that cannot change any more: so a page that follows a session for long does not grow.
    pub(super) fn forget_ended(&mut self) {
        let open = self.open_seqs();
        self.cells.retain(|seq, _| open.contains(seq));
        self.ended.retain(|_, seq| self.cells.contains_key(seq));
    }

    /// Leaves the cells that began before this event.
    pub(super) fn keep_before(&mut self, first: Seq) {
        self.cells.retain(|seq, _| *seq < first);
        self.ended.retain(|_, seq| *seq < first);
    }

    /// Takes in an event of the session, each once, in order.
    pub(super) fn take(&mut self, event: &Event) {
        self.view.event(event).into_iter().for_each(|change| self.take_change(change));
    }

    /// Takes in a piece of what is going on.
    pub(super) fn hear(&mut self, live: &Live) {
        self.view.live(live).into_iter().for_each(|change| self.take_change(change));
    }

    fn take_change(&mut self, change: ViewChange<'_>) {
        match change {
            ViewChange::JobBegan { event, job, spec } => {
                let body = Body::Work { work: spec.clone(), has_messages: false };
                self.begin(event, body, Some(job));
            }
            ViewChange::PartBegan { job, part, role, call } => {
                self.with_open(job, |cell| cell.begin_part(part, role, call));
            }
            ViewChange::PartGrew { job, part, text, .. } => {
                self.with_open(job, |cell| cell.grow_part(part, &text));
            }
            // The message that follows says so, and has the results of its tools.
            ViewChange::PartEnded { .. } | ViewChange::ToolAnswered { .. } => {}
            ViewChange::MessageAdded { job, message, .. } => self.with_open(job, |cell| cell.add(message)),
            ViewChange::ToolBegan { job, call, .. } => self.with_open(job, |cell| {
                cell.answer(&call.call, &|state| {
                    if *state == ToolState::Said {
                        *state = ToolState::Runs(String::new());
                    }
                })
            }),
            ViewChange::ToolProgressed { job, call, output } => {
                let text = output_text(&output);
                self.with_open(job, |cell| {
                    cell.answer(&call.call, &|state| *state = ToolState::Runs(text.clone()))
                });
            }
            ViewChange::JobEnded { job, ending, duration_ms, .. } => {
                self.work_ended(job, ending, duration_ms);
            }
            ViewChange::Event(event) => self.happened(event),
        }
    }

    /// Takes in an event that has no live pieces.
    fn happened(&mut self, event: &Event) {
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
            EventBody::OutputProduced { job: Some(job), text, .. } if self.is_late(event, *job) => {
                self.note(
                    event,
                    Tone::Plain,
                    format!("printed by code that an earlier cell left running: {}", settled(text)),
                );
            }
            EventBody::OutputProduced { job: Some(job), stream, text } => self.printed(*job, *stream, text),
            EventBody::OutputProduced { job: None, text, .. } => {
                self.note(event, Tone::Plain, format!("printed between jobs: {}", settled(text)));
            }
            EventBody::OutputDisplayed { job, display } => self.displayed(event, *job, display),
            EventBody::OutputCleared { job, .. } => self.with_open(*job, Cell::clear),
            // What needs a program of a front end's to be shown is its text here, which is displayed.
            EventBody::CommPublished { .. } => {}
            EventBody::OutputCut { job, .. } => self.cut(*job),
            EventBody::CancelRequested { job, .. } => self.with_open(*job, |cell| {
                cell.cancelled_by = Some(event.metadata.source.clone());
                CellChanges::frame()
            }),
            EventBody::EvalTimedOut { job, limit_ms } => {
                let text = format!("its command took longer than {limit_ms} ms, and was answered");
                self.part(*job, CellPart::Noted { tone: Tone::Warning, text });
            }
            EventBody::JobDenied { job, error } => {
                let text = format!("it was stopped: {error}");
                self.part(*job, CellPart::Noted { tone: Tone::Warning, text });
            }
            EventBody::LeaseChanged { job, .. }
            | EventBody::JobDelegated { job, .. }
            | EventBody::DelegationEnded { job, .. } => {
                let text = event.body.describe().sentence();
                self.part(*job, CellPart::Noted { tone: Tone::Plain, text });
            }
            EventBody::EvalCompleted { job, result, duration_ms, .. } => {
                self.end(*job, Ending::Completed, Some(*duration_ms), ReturnedValue::of(result));
            }
            EventBody::EvalFailed { job, failure, result, duration_ms, .. } => {
                self.end(*job, Ending::of(failure), Some(*duration_ms), ReturnedValue::of(result));
            }
            EventBody::EvalCancelled { job, .. } => {
                self.end(*job, Ending::Cancelled, None, ReturnedValue::default())
            }
            EventBody::EvalInterrupted { job } => {
                self.end(*job, Ending::Interrupted, None, ReturnedValue::default())
            }
            EventBody::MessageAdded(message) => self.imported(event, message),
            EventBody::AgentNoted(note) => self.noted(note),
            EventBody::AskRaised(ask) => {
                self.note(event, Tone::Plain, format!("asks: {}", ask.question.prompt));
                self.asks.insert(ask.ask, event.seq);
            }
            EventBody::AskVoted { .. } => {
                self.note(event, Tone::Plain, event.body.describe().sentence());
            }
            EventBody::AskEnded { ask, ending, channel } => {
                let by = name_of(&event.metadata.source);
                let by = channel.as_ref().map_or_else(|| by.clone(), |channel| format!("{by} · {channel}"));
                self.ask_ended(*ask, ending, &by);
            }
            EventBody::SessionForked(point) => {
                let body = Body::Brought { from: point.from, entries: point.entries, is_fork: true };
                self.begin(event, body, None);
            }
            EventBody::PromptQueued(queued) => self.note(event, Tone::Plain, queued.to_string()),
            _ => {
                if let Some((tone, text)) = happened(&event.body) {
                    self.note(event, tone, text);
                }
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
            open_parts: BTreeMap::new(),
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

    /// Whether an event is of a job that had ended and whose cell is not here. Of one that runs it names the command.
    fn is_late(&self, event: &Event, job: JobId) -> bool {
        let is_here = self.open.contains_key(&job) || self.ended.contains_key(&job);
        event.metadata.correlation.is_none() && !is_here
    }

    /// Changes the cell of a job; one whose beginning was not read is not shown.
    fn with_open(&mut self, job: JobId, change: impl FnOnce(&mut Cell) -> CellChanges) {
        let Some(seq) = self.open.get(&job).or_else(|| self.ended.get(&job)).copied() else { return };
        let Some(cell) = self.cells.get_mut(&seq) else { return };
        let touched = change(cell);
        self.mark(seq, touched);
    }

    fn mark(&mut self, seq: Seq, touched: CellChanges) {
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
        self.with_open(job, |cell| cell.print(stream, text));
    }

    fn displayed(&mut self, event: &Event, job: Option<JobId>, display: &Display) {
        let part = CellPart::Displayed { seq: event.seq, display: Box::new(display.clone()) };
        match job {
            Some(job) if !self.is_late(event, job) => self.with_open(job, |cell| cell.show(part)),
            Some(_) | None => {
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

    fn end(&mut self, job: JobId, how: Ending, duration_ms: Option<u64>, result: ReturnedValue) {
        self.with_open(job, |cell| {
            cell.end = Some(CellEnd { how, duration_ms, result });
            CellChanges::frame()
        });
        if let Some(seq) = self.open.remove(&job) {
            self.ended.insert(job, seq);
        }
    }

    fn work_ended(&mut self, job: JobId, ending: &WorkEnding, duration_ms: u64) {
        self.with_open(job, Cell::close);
        let (how, words) = match ending {
            WorkEnding::Done { value, .. } => {
                (Ending::Completed, value["output"].as_str().map(str::to_owned))
            }
            WorkEnding::Failed { message, .. } => (Ending::Failed(message.clone()), None),
            WorkEnding::Cancelled { .. } => (Ending::Cancelled, None),
            WorkEnding::Interrupted => (Ending::Interrupted, None),
        };
        self.end(job, how, Some(duration_ms), ReturnedValue { words, ..ReturnedValue::default() });
    }

    /// A message outside any turn, as those of an imported conversation are: a cell of its own. The results in it stand with their calls.
    fn imported(&mut self, event: &Event, message: &Message) {
        let mut parts = Vec::new();
        for part in &message.parts {
            let is_result = part.role == PartRole::ToolResult;
            let called =
                if is_result { part.call_id().and_then(|call| self.calls.remove(call)) } else { None };
            match called.and_then(|seq| Some((seq, self.cells.get_mut(&seq)?))) {
                Some((seq, cell)) => {
                    let touched = cell.result(part);
                    self.mark(seq, touched);
                }
                None => parts.push(part),
            }
        }
        let Some(first) = parts.first() else { return };
        if parts.iter().any(|part| part.role == PartRole::User) {
            // What was called before a person speaks has no result any more.
            self.calls.clear();
        }
        let model = message.metadata.get("model").and_then(Value::as_str).map(str::to_owned);
        self.begin(event, Body::Message { role: first.role, model }, None);
        let Some(cell) = self.cells.get_mut(&event.seq) else { return };
        parts.iter().for_each(|part| cell.take_in(part));
        let calls = parts.iter().filter(|part| part.role == PartRole::ToolCall);
        self.calls.extend(calls.filter_map(|part| Some((part.call_id()?.to_owned(), event.seq))));
    }

    fn noted(&mut self, note: &Note) {
        match note {
            // The result of a tool says that the tool has ended, as the model's answer does of its retries.
            Note::ToolStarted { .. } | Note::ToolEnded { .. } | Note::RetryEnded { success: true, .. } => {}
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

    fn ask_ended(&mut self, ask: mainstay_model::AskId, ending: &AskEnding, by: &str) {
        let Some(seq) = self.asks.remove(&ask) else { return };
        let Some(cell) = self.cells.get_mut(&seq) else { return };
        let said = match ending {
            AskEnding::Answered { value } => format!("{by} answers: {}", plain(value)),
            AskEnding::Withheld => format!("{by} answers with a secret, which is not kept"),
            AskEnding::Defaulted { value } => format!("nobody answered: {} was taken", plain(value)),
            AskEnding::TimedOut { .. } => "nobody answered in time".to_owned(),
            AskEnding::Cancelled => "taken back".to_owned(),
        };
        let touched = cell.push(CellPart::Noted { tone: Tone::Plain, text: said });
        self.mark(seq, touched);
    }
}

/// A value as people read it, as far as that is looked at: the answer to code that reads all of its input may be long.
fn plain(value: &Value) -> String {
    const SHOWN: usize = 1_000;
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match text.floor_char_boundary(SHOWN) {
        end if end == text.len() => text,
        end => format!("{}… ({} bytes)", &text[..end], text.len()),
    }
}
