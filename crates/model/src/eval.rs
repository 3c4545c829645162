//! What comes of running code: the worker's result, as the log keeps it.

use serde::{Deserialize, Serialize};

use crate::diagnostic::Diagnostic;

/// A name the code defined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Binding {
    /// The name that is bound.
    pub name: String,
    /// Its type as written in the language.
    pub value_type: String,
    /// Its value as the language's prompt prints it, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// What an eval that ran to its end gave.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvalResult {
    /// The last expression's value as the language's prompt prints it; absent for unit and for declarations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Its type as written in the language.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_type: Option<String>,
    /// What the code defined, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bindings: Vec<Binding>,
    /// What the language's own prompt would have printed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub display: String,
    /// The compiler's warnings and errors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
    /// Whether the code may use the value of the submission before it (`it`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uses_last: bool,
    /// The names of the references that the code touched, by itself or through what it used; none where that cannot be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub touched: Option<Vec<String>>,
}

impl EvalResult {
    /// The result with every text in it kept up to `limit` bytes, and no more items than anyone reads.
    #[must_use]
    pub fn cut(mut self, limit: usize) -> Self {
        self.texts_mut().for_each(|text| cut(text, limit));
        self.diagnostics.truncate(ITEMS_KEPT);
        self.bindings.truncate(ITEMS_KEPT);
        self
    }

    /// Every text in it, but for names.
    pub(crate) fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let values = self
            .bindings
            .iter_mut()
            .flat_map(|binding| binding.value.as_mut().into_iter().chain([&mut binding.value_type]));
        let messages = self.diagnostics.iter_mut().map(|diagnostic| &mut diagnostic.message);
        let own = self.value.as_mut().into_iter().chain(self.value_type.as_mut()).chain([&mut self.display]);
        values.chain(messages).chain(own)
    }
}

/// Diagnostics, and bindings, kept of one eval.
const ITEMS_KEPT: usize = 1000;

/// Shortens a text to `limit` bytes, and marks that it was.
fn cut(text: &mut String, limit: usize) {
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit));
        text.push_str(" … (cut)");
    }
}

/// An exception that escaped the code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RaisedError {
    /// The type of the exception.
    pub kind: String,
    /// The message of the exception.
    pub message: String,
    /// Its stack trace, without the worker's own frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// The stack trace with the escapes that colour it on a terminal (SGR), where the kernel colours it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coloured_stack: Option<String>,
}

impl RaisedError {
    /// The error with every text in it kept up to `limit` bytes.
    #[must_use]
    pub fn cut(mut self, limit: usize) -> Self {
        [&mut self.kind, &mut self.message]
            .into_iter()
            .chain(self.stack.as_mut())
            .for_each(|text| cut(text, limit));
        self.coloured_stack = self.coloured_stack.filter(|coloured| coloured.len() <= limit);
        self
    }
}

/// How a worker process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WorkerExit {
    /// By itself, with this exit code.
    Code(i32),
    /// A signal of this number ended the process.
    Signal(i32),
    /// It is gone, and how is not known.
    Unknown,
}

impl WorkerExit {
    /// Whether it was told to end from outside: by a person, a service manager, or the kernel out of memory. A runtime that
    /// heeds such a signal ends with 128 and its number.
    pub const fn is_from_outside(self) -> bool {
        const SIGHUP: i32 = 1;
        const SIGINT: i32 = 2;
        const SIGKILL: i32 = 9;
        const SIGTERM: i32 = 15;
        let signal = match self {
            Self::Signal(signal) => signal,
            Self::Code(code) => code.saturating_sub(128),
            Self::Unknown => return false,
        };
        matches!(signal, SIGHUP | SIGINT | SIGKILL | SIGTERM)
    }
}

impl WorkerExit {
    /// What code did that ended its worker so, for people.
    pub fn of_code(self) -> String {
        match self {
            Self::Code(code) => format!("the code ended with exit code {code}"),
            Self::Signal(_) | Self::Unknown => format!("the code ended its worker with {self}"),
        }
    }
}

impl std::fmt::Display for WorkerExit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::Unknown => f.write_str("an unknown cause"),
        }
    }
}

/// Why an eval failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "cause", rename_all = "camelCase")]
pub enum Failure {
    /// The code has errors; see the diagnostics.
    Rejected,
    /// The code raised an exception that it did not catch.
    Raised {
        /// The exception that was raised.
        error: RaisedError,
    },
    /// The worker ended while the code ran (`exit`, a crash, a kill).
    WorkerExited {
        /// How the worker's process ended.
        exit: WorkerExit,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_that_others_send_are_told_from_ends_that_code_brings_about() {
        for exit in [9, 15, 2, 1].map(WorkerExit::Signal) {
            assert!(exit.is_from_outside(), "{exit}");
        }
        for exit in [137, 143, 130, 129].map(WorkerExit::Code) {
            assert!(exit.is_from_outside(), "{exit}");
        }
        let own = [WorkerExit::Code(0), WorkerExit::Code(3), WorkerExit::Signal(6), WorkerExit::Unknown];
        for exit in own {
            assert!(!exit.is_from_outside(), "{exit}");
        }
        assert!(!WorkerExit::Code(i32::MIN).is_from_outside());
    }

    #[test]
    fn a_long_value_is_cut_at_a_character_and_marked() {
        let result =
            EvalResult { value: Some("aéé".to_owned()), display: "ab".to_owned(), ..EvalResult::default() };
        let cut = result.cut(2);
        assert_eq!((cut.value.as_deref(), cut.display.as_str()), (Some("a … (cut)"), "ab"));
    }
}
