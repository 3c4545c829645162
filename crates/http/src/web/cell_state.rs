//! A cell as it is, and how it grows: parts that are only ever added or replaced, and its end.

use mainstay_model::agent::ToolCall;
use mainstay_model::message::{BLOCK, CALL, IS_ERROR, TOOL};
use mainstay_model::screen::Screen;
use mainstay_model::{
    Binding, Delta, Diagnostic, Display, DisplayId, Failure, JobSpec, Message, OutputStream, Part, PartRole,
    RaisedError, Seq, SessionId, Source, Timestamp,
};
use serde_json::Value;

/// How many bytes of what a cell prints are shown from its beginning.
const SHOWN_BYTES: usize = 128 * 1024;
/// And how many of the end of what it prints beyond.
const END_BYTES: usize = 32 * 1024;
/// From how many bytes on what is settled is a part of its own.
const PART_BYTES: usize = 4 * 1024;

/// A cell: what one job did, or one thing that happened between jobs.
#[derive(Debug)]
pub(super) struct Cell {
    pub(super) session: SessionId,
    /// The event that began it.
    pub(super) seq: Seq,
    pub(super) at: Timestamp,
    pub(super) source: Source,
    pub(super) body: Body,
    pub(super) parts: Vec<CellPart>,
    pub(super) end: Option<CellEnd>,
    /// Who asked for its end.
    pub(super) cancelled_by: Option<Source>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// A cell that runs code.
    Eval { code: String, file: Option<String>, is_withheld: bool, is_brought: bool },
    /// Something for an agent to do; and how many messages it has added.
    Work { work: JobSpec, added: u32 },
    /// A message outside any turn; and who says it, as its first part tells.
    Message { role: PartRole, model: Option<String> },
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
#[derive(Debug)]
pub(super) enum CellPart {
    /// It prints; what stands on its screen since something else was put out, or since what could be written over has left it.
    Printed(Screen),
    /// It shows something, in an event of its own.
    Displayed { seq: Seq, display: Box<Display> },
    /// What was put out here is taken back.
    Gone,
    /// It prints more than is shown: of what follows only the end is.
    Cut {
        /// How many bytes of it are not shown.
        left_out: usize,
        /// Whether more than is kept was printed.
        is_over_limit: bool,
    },
    /// A model says something, as far as it has.
    Said { role: PartRole, text: String, is_open: bool },
    /// A tool is called; with what came of it.
    Called { id: String, tool: String, arguments: String, state: ToolState },
    /// A notice for people.
    Noted { tone: Tone, text: String },
}

/// How far a tool has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ToolState {
    /// The call is being said.
    Said,
    /// It runs; what it has given last.
    Runs(String),
    /// The tool has returned its result.
    Answered { text: String, is_error: bool },
    /// Its turn has ended without an answer.
    Unanswered,
}

/// How a cell ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CellEnd {
    pub(super) how: Ending,
    pub(super) duration_ms: Option<u64>,
    pub(super) result: ReturnedValue,
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

/// The value that code returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ReturnedValue {
    pub(super) value: Option<String>,
    pub(super) value_type: Option<String>,
    pub(super) bindings: Vec<Binding>,
    pub(super) diagnostics: Vec<Diagnostic>,
    pub(super) words: Option<String>,
}

/// What was changed of a cell.
#[derive(Default)]
pub(super) struct CellChanges {
    /// Its head and foot.
    pub(super) frame: bool,
    /// Which parts, and whether each is new.
    pub(super) parts: Vec<(usize, bool)>,
}

impl CellChanges {
    pub(super) fn frame() -> Self {
        Self { frame: true, parts: Vec::new() }
    }

    pub(super) fn part(index: usize, is_new: bool) -> Self {
        Self { frame: false, parts: vec![(index, is_new)] }
    }

    pub(super) fn and(mut self, other: Self) -> Self {
        self.frame |= other.frame;
        self.parts.extend(other.parts);
        self
    }
}

impl Cell {
    pub(super) fn push(&mut self, part: CellPart) -> CellChanges {
        // What was taken back leaves its place to what follows.
        let index = self.parts.iter().rposition(|part| !part.is_gone()).map_or(0, |last| last + 1);
        match self.parts.get_mut(index) {
            Some(gone) => {
                *gone = part;
                CellChanges::part(index, false)
            }
            None => {
                self.parts.push(part);
                CellChanges::part(index, true)
            }
        }
    }

    /// What was put out so far is taken back.
    pub(super) fn clear(&mut self) -> CellChanges {
        self.parts.iter_mut().for_each(|part| *part = CellPart::Gone);
        CellChanges { frame: false, parts: (0..self.parts.len()).map(|index| (index, false)).collect() }
    }

    /// What has the name of something that it has shown stands for that.
    pub(super) fn show(&mut self, part: CellPart) -> CellChanges {
        let name = part.name().cloned();
        let before = name.and_then(|name| self.parts.iter().position(|before| before.name() == Some(&name)));
        match before.and_then(|index| Some((index, self.parts.get_mut(index)?))) {
            Some((index, before)) => {
                *before = part;
                CellChanges::part(index, false)
            }
            None => self.push(part),
        }
    }

    /// It has printed more than is kept: of what follows there is only the end.
    pub(super) fn cut(&mut self) -> CellChanges {
        let place = self.parts.iter().position(CellPart::is_cut);
        match place.and_then(|index| Some((index, self.parts.get_mut(index)?))) {
            Some((index, CellPart::Cut { is_over_limit, .. })) => {
                *is_over_limit = true;
                CellChanges::part(index, false)
            }
            Some(_) | None => self.push(CellPart::Cut { left_out: 0, is_over_limit: true }),
        }
    }

    /// It prints. The beginning is shown as it comes, and of what is too much only the end.
    pub(super) fn print(&mut self, stream: OutputStream, text: &str) -> CellChanges {
        if self.parts.iter().any(CellPart::is_cut) {
            return self.print_end(stream, text);
        }
        let room = SHOWN_BYTES.saturating_sub(self.printed_bytes());
        if text.len() <= room {
            return self.print_beginning(stream, text);
        }
        let end = text.floor_char_boundary(room);
        let (shown, rest) = text.split_at(text[..end].rfind('\n').map_or(end, |line_end| line_end + 1));
        let touched =
            if shown.is_empty() { CellChanges::default() } else { self.print_beginning(stream, shown) };
        let touched = touched.and(self.push(CellPart::Cut { left_out: 0, is_over_limit: false }));
        touched.and(self.print_end(stream, rest))
    }

    /// What cannot be written over any more becomes a part of its own, so that only what may change is sent again.
    fn print_beginning(&mut self, stream: OutputStream, text: &str) -> CellChanges {
        let (index, touched) = self.print_to_last(stream, text);
        match self.parts.get_mut(index) {
            Some(CellPart::Printed(screen)) if screen.settled_bytes() >= PART_BYTES => {
                let settled = screen.split_settled();
                let rest = std::mem::replace(screen, settled);
                touched.and(self.push(CellPart::Printed(rest)))
            }
            Some(_) | None => touched,
        }
    }

    fn print_end(&mut self, stream: OutputStream, text: &str) -> CellChanges {
        let (_, mut touched) = self.print_to_last(stream, text);
        let Some(cut) = self.parts.iter().position(CellPart::is_cut) else { return touched };
        let (before, end) = self.parts.split_at_mut(cut + 1);
        let mut over = end.iter().map(CellPart::printed_bytes).sum::<usize>().saturating_sub(END_BYTES);
        let mut forgotten = 0;
        for (index, part) in end.iter_mut().enumerate() {
            let CellPart::Printed(screen) = part else { continue };
            let bytes = screen.bytes();
            if over == 0 || bytes == 0 {
                continue;
            }
            screen.keep_end(bytes.saturating_sub(over));
            let less = bytes - screen.bytes();
            over = over.saturating_sub(less);
            forgotten += less;
            touched = touched.and(CellChanges::part(cut + 1 + index, false));
        }
        if let Some(CellPart::Cut { left_out, .. }) = before.last_mut()
            && forgotten > 0
        {
            *left_out += forgotten;
            touched = touched.and(CellChanges::part(cut, false));
        }
        touched
    }

    /// Prints to the last part, if that is a screen, or to a new one; gives its place.
    fn print_to_last(&mut self, stream: OutputStream, text: &str) -> (usize, CellChanges) {
        let last = self.parts.iter().rposition(|part| !part.is_gone());
        match last.and_then(|index| Some((index, self.parts.get_mut(index)?))) {
            Some((index, CellPart::Printed(screen))) => {
                screen.print(stream, text);
                (index, CellChanges::part(index, false))
            }
            Some(_) | None => {
                let mut screen = Screen::default();
                screen.print(stream, text);
                (last.map_or(0, |last| last + 1), self.push(CellPart::Printed(screen)))
            }
        }
    }

    fn printed_bytes(&self) -> usize {
        self.parts.iter().map(CellPart::printed_bytes).sum()
    }

    /// Where the message that is being said begins.
    fn open_from(&self) -> usize {
        self.parts.iter().rposition(|part| !part.is_open()).map_or(0, |last| last + 1)
    }

    pub(super) fn say(&mut self, delta: &Delta, is_live: bool) -> CellChanges {
        let Body::Work { added, .. } = &self.body else { return CellChanges::default() };
        if delta.message != *added {
            return CellChanges::default();
        }
        let index = self.open_from() + delta.part as usize;
        let is_new = index >= self.parts.len();
        if is_new && (index > self.parts.len() || (is_live && delta.offset > 0)) {
            return CellChanges::default();
        }
        if is_new {
            self.parts.push(opened(delta));
        }
        let text = match self.parts.get_mut(index) {
            Some(CellPart::Said { text, .. }) => text,
            Some(CellPart::Called { arguments, .. }) => arguments,
            Some(
                CellPart::Printed(_)
                | CellPart::Displayed { .. }
                | CellPart::Gone
                | CellPart::Cut { .. }
                | CellPart::Noted { .. },
            )
            | None => {
                return CellChanges::default();
            }
        };
        let news = (text.len() as u64).checked_sub(delta.offset);
        let news = news.and_then(|known| delta.text.get(usize::try_from(known).ok()?..));
        match news {
            Some(news) if !news.is_empty() => text.push_str(news),
            Some(_) | None if !is_new => return CellChanges::default(),
            Some(_) | None => {}
        }
        CellChanges::part(index, is_new)
    }

    /// A message that is whole takes the place of what was heard of it.
    pub(super) fn add(&mut self, message: &Message) -> CellChanges {
        let Body::Work { added, .. } = &mut self.body else { return CellChanges::default() };
        let is_first = *added == 0;
        *added += 1;
        let from = self.open_from();
        let before = self.parts.len();
        self.parts.truncate(from);
        let mut touched = CellChanges::default();
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
                    touched = touched.and(CellChanges::part(index, index >= before));
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
            touched = touched.and(CellChanges::part(index, false));
        }
        touched
    }

    /// A part of a message that nothing was heard of before.
    pub(super) fn take_in(&mut self, part: &Part) {
        match part.role {
            PartRole::ToolResult => drop(self.result(part)),
            PartRole::System
            | PartRole::User
            | PartRole::Assistant
            | PartRole::Thinking
            | PartRole::ToolCall => self.parts.push(whole(part)),
        }
        // Nothing of it goes on.
        self.close();
    }

    pub(super) fn result(&mut self, part: &Part) -> CellChanges {
        let named = |name: &str| part.metadata.get(name).and_then(Value::as_str).unwrap_or_default();
        let is_error = part.metadata.get(IS_ERROR).and_then(Value::as_bool).unwrap_or_default();
        let (call, text) = (named(CALL).to_owned(), words_of(part));
        let known = self.parts.iter().any(|known| known.is_call(&call));
        if !known {
            let state = ToolState::Answered { text, is_error };
            let (tool, arguments) = (named(TOOL).to_owned(), String::new());
            return self.push(CellPart::Called { id: call, tool, arguments, state });
        }
        self.answer(&call, &|state| *state = ToolState::Answered { text: text.clone(), is_error })
    }

    pub(super) fn answer(&mut self, call: &str, change: &impl Fn(&mut ToolState)) -> CellChanges {
        let Some(index) = self.parts.iter().rposition(|part| part.is_call(call)) else {
            return CellChanges::default();
        };
        if let Some(CellPart::Called { state, .. }) = self.parts.get_mut(index) {
            change(state);
        }
        CellChanges::part(index, false)
    }

    /// Its turn is over: nothing is being said any more.
    pub(super) fn close(&mut self) -> CellChanges {
        let mut touched = Vec::new();
        for (index, part) in self.parts.iter_mut().enumerate() {
            let has_changed = match part {
                CellPart::Said { is_open, .. } => std::mem::replace(is_open, false),
                CellPart::Called { state, .. } => match state {
                    ToolState::Said | ToolState::Runs(_) => {
                        *state = ToolState::Unanswered;
                        true
                    }
                    ToolState::Answered { .. } | ToolState::Unanswered => false,
                },
                CellPart::Printed(_)
                | CellPart::Displayed { .. }
                | CellPart::Gone
                | CellPart::Cut { .. }
                | CellPart::Noted { .. } => false,
            };
            if has_changed {
                touched.push((index, false));
            }
        }
        CellChanges { frame: false, parts: touched }
    }
}

impl CellPart {
    fn is_gone(&self) -> bool {
        matches!(self, Self::Gone)
    }

    fn is_cut(&self) -> bool {
        matches!(self, Self::Cut { .. })
    }

    fn printed_bytes(&self) -> usize {
        match self {
            Self::Printed(screen) => screen.bytes(),
            Self::Displayed { .. }
            | Self::Gone
            | Self::Cut { .. }
            | Self::Said { .. }
            | Self::Called { .. }
            | Self::Noted { .. } => 0,
        }
    }

    fn is_open(&self) -> bool {
        match self {
            Self::Said { is_open, .. } => *is_open,
            Self::Called { state, .. } => *state == ToolState::Said,
            Self::Printed(_)
            | Self::Displayed { .. }
            | Self::Gone
            | Self::Cut { .. }
            | Self::Noted { .. } => false,
        }
    }

    /// What code calls what it shows.
    fn name(&self) -> Option<&DisplayId> {
        match self {
            Self::Displayed { display, .. } => display.id.as_ref(),
            Self::Printed(_)
            | Self::Gone
            | Self::Cut { .. }
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
            state: ToolState::Said,
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
            state: ToolState::Runs(String::new()),
        },
        PartRole::System
        | PartRole::User
        | PartRole::Assistant
        | PartRole::Thinking
        | PartRole::ToolResult => CellPart::Said { role: part.role, text: words_of(part), is_open: false },
    }
}

/// Which call a part is, or is the result of.
pub(super) fn call_of(part: &Part) -> &str {
    part.metadata.get(CALL).and_then(Value::as_str).unwrap_or_default()
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
pub(super) fn text_of(output: &Value) -> String {
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
    pub(super) fn of(failure: &Failure) -> Self {
        match failure {
            Failure::Rejected => Self::Rejected,
            Failure::Raised { error } => Self::Raised(error.clone()),
            Failure::WorkerExited { exit } => Self::WorkerExited(exit.to_string()),
        }
    }
}

impl ReturnedValue {
    pub(super) fn of(result: &mainstay_model::EvalResult) -> Self {
        // What Python imports whole its code says itself.
        let is_shown = |binding: &&Binding| binding.value_type != "module";
        Self {
            value: result.value.clone(),
            value_type: result.value_type.clone(),
            bindings: result.bindings.iter().filter(is_shown).cloned().collect(),
            diagnostics: result.diagnostics.clone(),
            words: None,
        }
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
