//! The messages between daemon and worker. The contract is `docs/worker-protocol.md`.

use std::collections::BTreeMap;

use bytes::Bytes;
use mainstay_model::reload::Description;
use mainstay_model::{
    ApplicationNotice, AskId, Binding, Bundle, CodeMark, Diagnostic, Error, JobId, OutputStream, Question,
    RaisedError, ReachedLines, Reference, References, Swap, TextPosition,
};
use mainstay_runner::query::{Members, Review, Symbols, Tests};
use mainstay_runner::{CodeText, CompletionItem, Upcoming};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::codec::LengthDelimitedCodec;

use crate::startup_context::{HelloProject, WorkerStartup};

/// The version of the protocol spoken here.
pub(crate) const PROTOCOL: u32 = 1;
/// The largest frame either side sends, in bytes.
pub(crate) const MAX_FRAME_BYTES: usize = 64 * 1024 * 1024;
/// Tells the worker where the daemon listens.
pub(crate) const ADDRESS_VARIABLE: &str = "MAINSTAY_WORKER_ADDRESS";
/// Tells the worker the secret it shows.
pub(crate) const TOKEN_VARIABLE: &str = "MAINSTAY_WORKER_TOKEN";

/// What the daemon asks of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum ToWorker {
    /// Start a session of the language.
    Hello {
        id: u64,
        protocol: u32,
        working_directory: String,
        /// What the process's environment lacks, where it was started before it was known for whom.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        variables: BTreeMap<String, String>,
        references: Vec<String>,
        arguments: Vec<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        project: Option<HelloProject>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        profiles: Vec<String>,
    },
    /// Get ready for a session that is not known yet, and is likely to have these arguments.
    StandBy { id: u64, arguments: Vec<String> },
    /// Make an assembly in this folder, as the compiler's program does with these arguments.
    Compile { id: u64, folder: String, arguments: Vec<String> },
    /// Run code in the worker.
    Eval {
        id: u64,
        job: JobId,
        code: String,
        file: Option<String>,
        /// What `fsi.CommandLineArgs` is meanwhile; where it is empty, what it is for the session.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        command_line: Vec<String>,
        is_withheld: bool,
    },
    /// Expect these evals next, in this order.
    Upcoming { id: u64, evals: Vec<Upcoming> },
    /// Say what these do when they run.
    Describe { id: u64, codes: Vec<CodeText> },
    /// Have the project's code run as these files have it now; of a file with a text, as that has it; with `isAll`, as all files have it that are
    /// not as they were built.
    Swap {
        id: u64,
        files: Vec<String>,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        texts: BTreeMap<String, String>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_all: bool,
    },
    /// Check code without running it.
    Check { id: u64, code: String, file: Option<String> },
    /// Complete at a cursor.
    Complete { id: u64, code: String, line: u32, column: u32 },
    /// What a name stands for.
    Explore { id: u64, name: String },
    /// What has a text in its name.
    Search { id: u64, text: String, limit: u32 },
    /// List the values that are bound.
    Values { id: u64 },
    /// Which tests there are.
    Tests { id: u64, pattern: Option<String>, category: Option<String> },
    /// Which tests reach which lines of the project's files.
    Coverage { id: u64, file: Option<String>, name: Option<String>, since: Vec<CodeMark> },
    /// Run the tests one at a time, and tell which lines each ran.
    Measure { id: u64, policies: String, limit_ms: u64, timeout_ms: u64 },
    /// Take what another worker of the session's project has measured.
    TakeMeasured { id: u64, code: CodeMark, measurement: Value },
    /// What could be written more plainly.
    Review { id: u64, code: String },
    /// Ask an eval to stop, whether it runs or has yet to begin.
    Interrupt { id: u64, eval: u64 },
    /// Take the answer to an ask; without a value there is none, and why.
    Answer { id: u64, ask: AskId, value: Option<Value>, refused: Option<String> },
    /// What was shown with this mark is behind all that was printed before it.
    Displayed { id: u64, mark: u64 },
    /// Drop all definitions and start afresh.
    Reset { id: u64 },
}

/// What a worker says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum FromWorker {
    /// First of all: that it is the one that was started.
    Attach { token: String, protocol: u32 },
    /// Something slow is under way: so much of it is done, of so much.
    Progress { phase: String, done: u32, total: u32 },
    /// A fresh session accepts evals.
    Ready {
        id: u64,
        kernel: String,
        version: String,
        runtime: String,
        pid: u32,
        environment: Option<WorkerEnvironment>,
        startup: Option<WorkerStartup>,
    },
    /// It is ready for a session that is not known yet.
    StandsBy { id: u64, pid: u32 },
    /// The answer to a compilation.
    Compiled { id: u64, is_made: bool, diagnostics: Vec<Diagnostic> },
    /// An eval has ended with this result.
    Result(WorkerResult),
    /// The answer to what codes do when they run.
    Descriptions { id: u64, descriptions: Vec<Description> },
    /// The answer to what of changed files runs now.
    Swapped {
        id: u64,
        #[serde(flatten)]
        swap: Swap,
    },
    /// The answer to a check.
    Diagnostics { id: u64, diagnostics: Vec<Diagnostic> },
    /// The answer to a completion.
    Completions { id: u64, items: Vec<CompletionItem>, start: TextPosition },
    /// The answer to an exploration.
    Members {
        id: u64,
        #[serde(flatten)]
        members: Members,
    },
    /// The answer to a search.
    Symbols {
        id: u64,
        #[serde(flatten)]
        symbols: Symbols,
    },
    /// The answer to what is bound.
    Values { id: u64, bindings: Vec<Binding> },
    /// The answer to which tests there are.
    Tests {
        id: u64,
        #[serde(flatten)]
        tests: Tests,
    },
    /// The answer to which tests reach which lines.
    Coverage {
        id: u64,
        #[serde(flatten)]
        lines: ReachedLines,
    },
    /// The answer to a measurement.
    Measured { id: u64, measurement: Value },
    /// Whether a measurement was taken.
    MeasuredTaken { id: u64, is_taken: bool },
    /// The answer to a review.
    Review {
        id: u64,
        #[serde(flatten)]
        review: Review,
    },
    /// Code of a job asks, and waits for the answer.
    Asks {
        ask: AskId,
        job: JobId,
        #[serde(flatten)]
        question: Question,
        timeout_ms: Option<u64>,
    },
    /// Code of another job than the running one prints: one that has ended, and left it running.
    Output { job: JobId, stream: OutputStream, text: String },
    /// Code shows something. With a mark it waits until it is told that this has arrived.
    Display {
        /// Whose code does, where that is not the running job's.
        #[serde(default)]
        job: Option<JobId>,
        mark: Option<u64>,
        name: Option<String>,
        #[serde(default)]
        is_value: bool,
        data: Bundle,
    },
    /// The application of the project runs, or runs no more.
    Application {
        #[serde(flatten)]
        notice: ApplicationNotice,
    },
    /// The interrupt was tried.
    Interrupted { id: u64 },
    /// Code of a job is about to end the process.
    Ending {
        job: JobId,
        reason: Option<String>,
        /// What the compiler said of code that ends the process by itself.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        diagnostics: Vec<Diagnostic>,
    },
    /// A request could not be served.
    Failed { id: Option<u64>, code: FailureCode, message: String },
}

/// What a session's code rests on besides itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkerEnvironment {
    /// All references of the session.
    pub(crate) references: Vec<NamedReference>,
}

/// One thing that code rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NamedReference {
    /// What it is called in this session.
    pub(crate) name: String,
    /// The reference that has the name.
    #[serde(flatten)]
    pub(crate) reference: Reference,
}

impl WorkerEnvironment {
    /// Returns the references by their names.
    pub(crate) fn references(self) -> References {
        self.references.into_iter().map(|NamedReference { name, reference }| (name, reference)).collect()
    }
}

/// Why a worker could not serve a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FailureCode {
    /// The request has no known form.
    BadRequest,
    /// Nothing has the name that was asked for.
    NotFound,
    /// It cannot be done while a job runs.
    Busy,
    /// The worker is at fault.
    Internal,
}

/// What came of an eval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkerResult {
    /// The id of the request that is answered.
    pub(crate) id: u64,
    /// How the eval ended.
    pub(crate) outcome: WorkerOutcome,
    /// The last expression's value, as printed.
    pub(crate) value: Option<String>,
    /// The type of the value, as F# writes it.
    pub(crate) value_type: Option<String>,
    /// What the code defined.
    #[serde(default)]
    pub(crate) bindings: Vec<Binding>,
    /// What the language's prompt would have printed.
    #[serde(default)]
    pub(crate) display: String,
    /// The compiler's warnings and errors.
    #[serde(default)]
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// The exception that escaped.
    pub(crate) error: Option<RaisedError>,
    /// Of interrupted code: how many bytes of it had run to their end, where that changed the session.
    #[serde(default)]
    pub(crate) kept: usize,
    /// Whether it must run again to rebuild the session.
    pub(crate) changes_state: bool,
    /// Whether the code may use the value of the submission before it.
    #[serde(default)]
    pub(crate) uses_last: bool,
    /// What the session's code rests on now, where that is not what was said last.
    pub(crate) environment: Option<WorkerEnvironment>,
    /// The names of what of it the code touched, where that can be told.
    pub(crate) touched: Option<Vec<String>>,
    /// How long it ran, in milliseconds.
    pub(crate) duration_ms: u64,
}

/// How an eval ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum WorkerOutcome {
    /// It ran to its end.
    Completed,
    /// The code has errors.
    Rejected,
    /// The code raised an exception that it did not catch.
    Raised,
    /// It yielded to an interrupt.
    Interrupted,
}

impl FromWorker {
    /// The request it answers, where it answers one.
    pub(crate) fn answers(&self) -> Option<u64> {
        match self {
            Self::Attach { .. }
            | Self::Progress { .. }
            | Self::Asks { .. }
            | Self::Output { .. }
            | Self::Display { .. }
            | Self::Application { .. }
            | Self::Ending { .. } => None,
            Self::Ready { id, .. }
            | Self::StandsBy { id, .. }
            | Self::Compiled { id, .. }
            | Self::Diagnostics { id, .. }
            | Self::Completions { id, .. }
            | Self::Members { id, .. }
            | Self::Symbols { id, .. }
            | Self::Values { id, .. }
            | Self::Tests { id, .. }
            | Self::Coverage { id, .. }
            | Self::Measured { id, .. }
            | Self::MeasuredTaken { id, .. }
            | Self::Review { id, .. }
            | Self::Descriptions { id, .. }
            | Self::Swapped { id, .. }
            | Self::Interrupted { id } => Some(*id),
            Self::Result(result) => Some(result.id),
            Self::Failed { id, .. } => *id,
        }
    }
}

/// Cuts the byte stream into frames: four bytes of length, big-endian, then JSON.
pub(crate) fn frames() -> LengthDelimitedCodec {
    LengthDelimitedCodec::builder().max_frame_length(MAX_FRAME_BYTES).new_codec()
}

/// Writes a message as the body of a frame.
///
/// # Errors
/// [`Error::WorkerFailed`] where it cannot be written as JSON.
pub(crate) fn encode(message: &ToWorker) -> Result<Bytes, Error> {
    serde_json::to_vec(message)
        .map(Bytes::from)
        .map_err(|error| Error::WorkerFailed { reason: format!("a request could not be written: {error}") })
}

/// Reads the body of a frame.
///
/// # Errors
/// [`Error::WorkerFailed`] where it is not a message of the protocol.
pub(crate) fn decode(frame: &[u8]) -> Result<FromWorker, Error> {
    serde_json::from_slice(frame).map_err(|error| Error::WorkerFailed {
        reason: format!("a frame of the worker is not understood: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_read_with_absent_members() {
        let frame = r#"{"type":"result","id":7,"success":true,"outcome":"completed","value":"2","valueType":"int",
            "display":"val it : int = 2\n","changesState":false,"durationMs":3}"#;
        let FromWorker::Result(result) = decode(frame.as_bytes()).unwrap() else { panic!("not a result") };
        assert_eq!((result.id, result.value.as_deref(), result.error), (7, Some("2"), None));
    }

    #[test]
    fn garbage_is_an_error() {
        for garbage in ["", "{}", "[]", r#"{"type":"ready"}"#, "\u{0}"] {
            assert!(decode(garbage.as_bytes()).is_err(), "{garbage:?}");
        }
    }
}
