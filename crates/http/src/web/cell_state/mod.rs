//! A cell as it is: a head, parts that are only ever added or replaced, and an end. [`output`] has what code puts out, [`messages`] what is
//! said in the turns of an agent.

mod messages;
mod output;

use std::collections::BTreeMap;

use mainstay_model::screen::Screen;
use mainstay_model::{
    Binding, Diagnostic, Display, Failure, JobSpec, PartRole, RaisedError, Seq, SessionId, Source, Timestamp,
};

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
    /// Where the parts of the message that is being said stand, by their numbers in it.
    pub(super) open_parts: BTreeMap<u32, usize>,
    pub(super) end: Option<CellEnd>,
    /// Who asked for its end.
    pub(super) cancelled_by: Option<Source>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// A cell that runs code.
    Eval { code: String, file: Option<String>, is_withheld: bool, is_brought: bool },
    /// Something for an agent to do; and whether a message of it was added.
    Work { work: JobSpec, has_messages: bool },
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
}

impl CellPart {
    fn is_gone(&self) -> bool {
        matches!(self, Self::Gone)
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
