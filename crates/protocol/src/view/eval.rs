//! Evals as clients see them, with what their jobs put out.

use mainstay_model::outcome::{OutputItem, WithheldResult};
use mainstay_model::{
    Binding, CommandId, Diagnostic, Display, EvalEnding, EvalOutcome, EvalResult, Event, JobId, JobPart,
    OutputStream, Principal, RaisedError, Seq, SessionId, Source, Version,
};
use serde::{Deserialize, Serialize};

/// What came of an eval, with what it printed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvalView {
    /// The session that ran the code.
    pub session: SessionId,
    /// The command that asked for it.
    pub command: CommandId,
    /// The event that ended it: the cursor for what comes later.
    pub seq: Seq,
    /// Whether the code ran to its end.
    pub success: bool,
    /// How it ended: `completed`, `rejected`, `raised`, `cancelled`, `interrupted`, `workerExited`.
    pub ending: String,
    /// The last expression's value as the language's prompt prints it.
    #[serde(default)]
    pub value: Option<String>,
    /// The type of the value, as the language writes it.
    #[serde(default, rename = "type")]
    pub value_type: Option<String>,
    /// What the code defined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bindings: Vec<Binding>,
    /// What the language's own prompt would have printed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub display: String,
    /// What it printed to standard output.
    #[serde(default)]
    pub stdout: String,
    /// What it printed to standard error.
    #[serde(default)]
    pub stderr: String,
    /// What it showed, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub displays: Vec<DisplayView>,
    /// Whether it printed more than is kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub output_cut: bool,
    /// The compiler's warnings and errors.
    #[serde(default)]
    pub diagnostics: Vec<Diagnostic>,
    /// Why it did not run to its end, where the diagnostics do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RaisedError>,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// The session's version once it had ended.
    #[serde(default)]
    pub version: Version,
    /// Whether an earlier submission of the same command had brought this about.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    /// Whether its code, and what it gave and printed, is stored nowhere: who asks again is not told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withheld: bool,
}

/// Something that an eval showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DisplayView {
    /// How many bytes it had printed to standard output before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub printed_before: usize,
    /// The content that was displayed.
    #[serde(flatten)]
    pub display: Display,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(bytes: &usize) -> bool {
    *bytes == 0
}

impl EvalView {
    /// What it printed to standard output, with what it showed on lines of their own as plain text, where it did. Not its value, which it
    /// also has as the language's prompt prints it, unless that stands in its place there.
    pub fn put_out(&self) -> String {
        let (mut text, mut done) = (String::new(), 0);
        for DisplayView { printed_before, display } in
            self.displays.iter().filter(|view| view.display.is_put_out())
        {
            // A view that came over a wire may say anything.
            text.push_str(self.stdout.get(done..*printed_before).unwrap_or_default());
            done = (*printed_before).max(done);
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(display.data.words().trim_end());
            text.push('\n');
        }
        text.push_str(self.stdout.get(done..).unwrap_or_default());
        text
    }
}

impl EvalView {
    /// With the lines of a file that the code is a part of, behind so many others, in place of the code's own. Of an error's frames only
    /// that of the code itself is known to be in this part of the file.
    pub fn in_lines_of(mut self, file: Option<&str>, lines_before: u32) -> Self {
        for diagnostic in self.diagnostics.iter_mut().filter(|diagnostic| diagnostic.file.is_none()) {
            diagnostic.start.line += lines_before;
            diagnostic.end.line += lines_before;
        }
        if let (Some(file), Some(stack)) = (file, self.error.as_mut().and_then(|error| error.stack.as_mut()))
        {
            let own = format!("   at {file}:line ");
            let moved = stack.lines().map(|frame| match frame.strip_prefix(&own).map(str::parse::<u32>) {
                Some(Ok(line)) => format!("{own}{}", line + lines_before),
                Some(Err(_)) | None => frame.to_owned(),
            });
            *stack = moved.collect::<Vec<_>>().join("\n");
        }
        self
    }
}

/// Makes the view of an outcome of what its job put out.
#[derive(Debug)]
pub struct EvalViewBuilder {
    job: JobId,
    stdout: String,
    stderr: String,
    displays: Vec<DisplayView>,
    cut: bool,
    /// Who had it cancelled first.
    cancelled_by: Option<Source>,
}

impl EvalViewBuilder {
    /// For the job of an eval.
    pub const fn new(job: JobId) -> Self {
        Self {
            job,
            stdout: String::new(),
            stderr: String::new(),
            displays: Vec::new(),
            cut: false,
            cancelled_by: None,
        }
    }

    /// The view, once all events of the job were taken in.
    pub fn view(mut self, session: SessionId, command: CommandId, outcome: EvalOutcome) -> EvalView {
        let success = outcome.success();
        let outcome = match outcome.live.clone() {
            Some(live) => self.with_live(*live, outcome),
            None => outcome,
        };
        let EvalOutcome {
            completed,
            ending,
            value,
            value_type,
            bindings,
            display,
            diagnostics,
            duration_ms,
            withheld,
            ..
        } = outcome;
        EvalView {
            session,
            command,
            seq: completed,
            success,
            ending: ending.name().to_owned(),
            value,
            value_type,
            bindings,
            display,
            stdout: self.stdout,
            stderr: self.stderr,
            displays: self.displays,
            output_cut: self.cut,
            diagnostics,
            error: explain(ending, self.cancelled_by.as_ref()),
            duration_ms,
            version: Version::ZERO,
            replayed: false,
            withheld,
        }
    }

    /// The outcome with what is not stored of it.
    fn with_live(&mut self, live: WithheldResult, outcome: EvalOutcome) -> EvalOutcome {
        let WithheldResult { error, result, put_out } = live;
        for one in put_out {
            match one {
                OutputItem::Printed(OutputStream::Stdout, text) => self.stdout.push_str(&text),
                OutputItem::Printed(OutputStream::Stderr, text) => self.stderr.push_str(&text),
                OutputItem::Displayed(display) => self.show(*display),
            }
        }
        let ending = match (error, outcome.ending) {
            (Some(error), _) => EvalEnding::Raised { error },
            (None, ending) => ending,
        };
        let EvalResult { value, value_type, bindings, display, diagnostics, uses_last: _, touched: _ } =
            result;
        EvalOutcome { ending, value, value_type, bindings, display, diagnostics, ..outcome }
    }

    /// It took back what it had put out.
    fn clear(&mut self) {
        self.stdout.clear();
        self.stderr.clear();
        self.displays.clear();
    }

    /// A display under the name of another stands in its place.
    fn show(&mut self, display: Display) {
        let is_same = |other: &&mut DisplayView| display.id.is_some() && other.display.id == display.id;
        match self.displays.iter_mut().find(is_same) {
            Some(place) => place.display = display,
            None => self.displays.push(DisplayView { printed_before: self.stdout.len(), display }),
        }
    }

    /// Takes in the next event of the session. Those of other jobs are passed over.
    pub fn push(&mut self, event: &Event) {
        let Some((of, part)) = event.body.job_part() else { return };
        if of != self.job {
            return;
        }
        match part {
            JobPart::Printed { stream: OutputStream::Stdout, text } => self.stdout.push_str(text),
            JobPart::Printed { stream: OutputStream::Stderr, text } => self.stderr.push_str(text),
            JobPart::Displayed(display) => self.show(display.clone()),
            JobPart::Cleared => self.clear(),
            JobPart::OutputCut => self.cut = true,
            JobPart::CancelRequested => {
                self.cancelled_by.get_or_insert_with(|| event.metadata.source.clone());
            }
            JobPart::Requested { .. } | JobPart::TimedOut | JobPart::Denied(_) | JobPart::Ended(_) => {}
        }
    }
}

/// Why an eval did not run to its end, in words; the diagnostics say it where the code has errors.
fn explain(ending: EvalEnding, cancelled_by: Option<&Source>) -> Option<RaisedError> {
    let plain = |kind: &str, message: String| {
        Some(RaisedError { kind: kind.to_owned(), message, stack: None, coloured_stack: None })
    };
    match ending {
        EvalEnding::Completed | EvalEnding::Rejected => None,
        EvalEnding::Raised { error } => Some(error),
        EvalEnding::Cancelled => plain("Cancelled", cancelled(cancelled_by)),
        EvalEnding::Interrupted => {
            plain("Interrupted", "the eval was cut off: its worker or the daemon was lost".to_owned())
        }
        EvalEnding::WorkerExited { exit } => plain(
            "WorkerExited",
            format!("{}; the session is rebuilt from its earlier definitions", exit.of_code()),
        ),
    }
}

/// That an eval was cancelled, and by whom, where a client had it.
fn cancelled(by: Option<&Source>) -> String {
    match by {
        Some(Source::Client { principal, name }) if *principal == Principal::local() => {
            format!("the eval was cancelled by {name}")
        }
        Some(Source::Client { principal, name }) => {
            format!("the eval was cancelled by {name} of {principal}")
        }
        Some(Source::Worker | Source::System) | None => "the eval was cancelled".to_owned(),
    }
}
