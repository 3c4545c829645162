//! What an event says, in words for people and models. This is the only prose about events: the command line, the prompt, the page and MCP
//! all show it.

use super::{CancelEnding, CompletedPart, EventBody, OutputStream, QueuedCommand, Subject, WarmUpReason};
use crate::agent::{QueuedPrompt, WorkEnding};
use crate::ask::AskEnding;
use crate::diagnostic::{Diagnostic, Severity};
use crate::display::Display;
use crate::entry::Origin;
use crate::error::Error;
use crate::eval::{EvalResult, Failure, WorkerExit};
use crate::fingerprint::References;
use crate::grant::{Amounts, LeaseChange};
use crate::id::{AskId, Channel, CommandId, LeaseId};
use crate::replay::{Divergence, Restored};
use crate::screen::settled;
use crate::session::DIVERGENCES_KEPT;
use crate::swap::Swap;
use crate::transcript::total;

/// How an event is to be taken. Each way of showing events has its own colours for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// An ordinary fact, without emphasis.
    Plain,
    /// A detail that most readers pass over.
    Faint,
    /// Something that waits for an answer.
    Question,
    /// Something ended as it should.
    Good,
    /// Something that needs attention.
    Warning,
    /// Something failed and needs attention.
    Error,
}

/// An event in words, in three parts, so that a reader who has only one line shortens the detail and keeps the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// How it is to be taken.
    pub tone: Tone,
    /// What happened, as in `renamed to` or `failed:`. Empty where the detail says it.
    pub lead: String,
    /// To what, or with what text. It can have any number of lines. Empty where the lead says all.
    pub detail: String,
    /// A remark that stands behind the detail, such as `[ask 1a2b3c4d]`. Often empty.
    pub note: String,
    /// How long it took, in milliseconds, where an end says it.
    pub duration_ms: Option<u64>,
    /// Whether the detail is a text of somebody's or of a program's, such as code or output, and not of Mainstay's own.
    pub is_quoted: bool,
}

impl Description {
    fn new(tone: Tone, lead: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            tone,
            lead: lead.into(),
            detail: detail.into(),
            note: String::new(),
            duration_ms: None,
            is_quoted: false,
        }
    }

    fn note(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }

    fn quoted(self) -> Self {
        Self { is_quoted: true, ..self }
    }

    fn took(self, duration_ms: u64) -> Self {
        Self { duration_ms: Some(duration_ms), ..self }
    }

    /// The detail and the note, for a reader who sees the kind of the event beside it.
    pub fn text(&self) -> String {
        joined([&self.detail, &self.note])
    }

    /// All of it but the duration.
    pub fn sentence(&self) -> String {
        joined([&self.lead, &self.detail, &self.note])
    }

    /// All of it in one line, a detail that is quoted shortened by `shorten`.
    pub fn line(&self, shorten: impl Fn(&str) -> String) -> String {
        let duration = self.duration_ms.map(|ms| format!("({ms} ms)")).unwrap_or_default();
        let detail = if self.is_quoted { shorten(&self.detail) } else { self.detail.clone() };
        joined([&self.lead, &detail, &self.note, &duration])
    }
}

fn joined<const N: usize>(parts: [&String; N]) -> String {
    let said: Vec<&str> = parts.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    said.join(" ")
}

impl EventBody {
    /// What it says, in words.
    pub fn describe(&self) -> Description {
        let described = self.described();
        let is_of_others = matches!(
            self.subject(),
            Subject::Ask | Subject::Eval | Subject::Output | Subject::Agent | Subject::Transcript
        );
        if is_of_others { described.quoted() } else { described }
    }

    fn described_ask(&self) -> Description {
        match self {
            Self::AskRaised(ask) => Description::new(Tone::Question, "asks:", &ask.question.prompt)
                .note(format!("[ask {}]", ask.ask.short())),
            Self::AskVoted { ask, value, missing, channel, .. } => {
                let answered = format!("answered {value}; {missing} more must answer the same");
                plain("", answered).note(note_of_answer(*ask, channel.as_ref()))
            }
            Self::AskEnded { ask, ending, channel } => describe_answer(*ask, ending, channel.as_ref()),
            _ => plain("", String::new()),
        }
    }

    fn described(&self) -> Description {
        match self {
            Self::SessionCreated { kind, name, .. } => plain("created", format!("`{name}` ({kind})")),
            Self::SessionForked(point) => {
                plain("forked", format!("off {} with {} of its entries", point.from.short(), point.entries))
            }
            Self::EntriesMerged(point) => {
                let (entries, from) = (entries(total(&point.brought)), point.from.short());
                plain("merged", format!("{entries} of {from} behind the first {}", point.at))
            }
            Self::SessionImported { .. } => plain("read from a file", String::new()),
            Self::SessionRenamed { name } => plain("renamed to", format!("`{name}`")),
            Self::SessionReset => plain("reset:", "definitions are dropped".to_owned()),
            Self::SessionHardReset => plain("hard reset:", "definitions are dropped".to_owned()),
            Self::SessionStopped => plain("stopped", String::new()),
            Self::SessionDeleted => warning("deleted", String::new()),
            Self::SessionUnloaded { alias } => plain("unloaded", quoted(alias.as_ref())),
            Self::SessionLoaded { alias } => plain("loaded", quoted(alias.as_ref())),
            Self::SessionFaulted { message } => Description::new(Tone::Error, "faulted:", message),
            Self::WarmUpStarted { reason } => plain("warms up:", words_of_reason(*reason).to_owned()),
            Self::WarmUpCompleted { diverged, reload: Some(reload), .. } => {
                Description::new(tone_of_rebuilt(diverged), "", reload.line(diverged))
            }
            Self::WarmUpCompleted { kernel, replayed, diverged, restored, duration_ms, .. } => {
                let rebuilt = words_of_rebuilt(restored.as_deref(), diverged);
                let ready = format!("{kernel}, {replayed} replayed{rebuilt}");
                Description::new(tone_of_rebuilt(diverged), "ready:", ready).took(*duration_ms)
            }
            Self::WorkerExited { exit, restart_after_ms, reason, .. } => {
                describe_exit(*exit, reason.as_deref())
                    .note(format!("({})", words_of_restart(*restart_after_ms)))
            }
            Self::CommandQueued(queued) => describe_queued(queued),
            Self::CommandDequeued { command, error, .. } => describe_dequeued(command, error.as_ref()),
            Self::AskRaised(_) | Self::AskVoted { .. } | Self::AskEnded { .. } => self.described_ask(),
            Self::EvalRequested { withheld: true, .. } => plain("eval", "(withheld)".to_owned()),
            Self::EvalRequested { file, code, .. } => plain("eval", words_of_code(file.as_deref(), code)),
            Self::EvalTimedOut { limit_ms, .. } => warning("timed out", format!("after {limit_ms} ms")),
            Self::JobDenied { error, .. } => warning("denied:", error.to_string()),
            Self::JobDelegated { child, agent, .. } => plain("delegates", format!("to {agent}: {child}")),
            Self::DelegationEnded { child, unspent, .. } => describe_end_of_task(child, unspent),
            Self::JobHandedOver { command, to, .. } => plain("handed over", format!("{command} to {to}")),
            Self::LeaseChanged { lease, change, .. } => describe_lease(*lease, change),
            Self::EvalCompleted { result, duration_ms, .. } => {
                Description::new(Tone::Good, "done:", words_of_result(result)).took(*duration_ms)
            }
            Self::EvalFailed { failure, result, duration_ms, .. } => {
                Description::new(Tone::Error, "failed:", words_of_failure(failure, result)).took(*duration_ms)
            }
            Self::EvalCancelled { ending, kept, .. } => warning("", words_of_cancel(*ending, kept.as_ref())),
            Self::EvalInterrupted { .. } => warning("interrupted", String::new()),
            Self::CancelRequested { .. } => plain("cancel", String::new()),
            Self::OutputProduced { stream, text, .. } => describe_output(*stream, text),
            Self::OutputDisplayed { display, .. } => describe_display(display),
            Self::OutputCleared { .. } => faint("took back what it had printed and shown", String::new()),
            Self::CommPublished { message, .. } => faint("comm:", message.to_string()),
            Self::OutputCut { limit, .. } => describe_cut(*limit),
            Self::EnvironmentChanged { references } => plain("refers to", names_of(references)),
            Self::AssembliesChanged { changed, .. } => {
                warning("changed:", changed.join(", ")).note("(what used it may be out of date)")
            }
            Self::SourcesChanged { changed, in_build } => describe_sources(changed, *in_build),
            Self::SourcesSwapped(swap) => describe_swap(swap),
            Self::ApplicationStarted(application) => plain("the application runs:", application.to_string()),
            Self::ApplicationEnded(ended) => warning("the application runs no more:", ended.to_string()),
            Self::JobRequested { work, .. } => plain(&format!("{}:", work.kind().name()), work.to_string()),
            Self::JobEnded { ending, duration_ms, .. } => {
                Description::new(tone_of_ending(ending), "", ending.to_string()).took(*duration_ms)
            }
            Self::MessageStreamed(delta) => faint("says", delta.text.clone()),
            Self::PromptQueued(queued) => plain("", queued.to_string()),
            Self::QueueChanged { queue } => faint("has still to hear", words_of_queue(queue)),
            Self::AgentChanged(state) => faint("", state.to_string()),
            Self::AgentNoted(note) => faint("", note.to_string()),
            Self::MessageAdded(message) => plain("", message.to_string()),
            Self::TranscriptCompacted(compaction) => {
                plain("compacted", format!("{}: {}", entries(total(&compaction.covers)), compaction.summary))
            }
            Self::EntryLabeled { entry, label } => describe_label(*entry, label.as_deref()),
        }
    }
}

fn plain(lead: &str, detail: String) -> Description {
    Description::new(Tone::Plain, lead, detail)
}

fn faint(lead: &str, detail: String) -> Description {
    Description::new(Tone::Faint, lead, detail)
}

fn warning(lead: &str, detail: String) -> Description {
    Description::new(Tone::Warning, lead, detail)
}

fn describe_exit(exit: WorkerExit, reason: Option<&str>) -> Description {
    let why = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    warning("the worker ended with", format!("{exit}{why}"))
}

fn describe_sources(changed: &[String], in_build: bool) -> Description {
    warning("changed:", changed.join(", ")).note(words_of_build(in_build))
}

const fn words_of_build(has_changes: bool) -> &'static str {
    if has_changes { "(the build under way has it)" } else { "(no build has it yet)" }
}

fn describe_dequeued(command: &CommandId, error: Option<&Error>) -> Description {
    match error {
        Some(error) => warning(&format!("{command} did not begin:"), error.to_string()),
        None => faint(&format!("{command} had nothing to do"), String::new()),
    }
}

fn describe_output(stream: OutputStream, text: &str) -> Description {
    let stream = match stream {
        OutputStream::Stdout => "",
        OutputStream::Stderr => "stderr: ",
    };
    faint("printed", format!("{stream}{}", settled(text).trim_start_matches('\n')))
}

fn describe_display(display: &Display) -> Description {
    let what = if display.is_value { "has the value as" } else { "showed" };
    let lead = format!("{what} {}:", display.data.kinds().join(", "));
    faint(&lead, display.data.words().into_owned())
}

fn describe_swap(swap: &Swap) -> Description {
    match swap.is_applied() {
        true => plain("runs as saved:", swap.to_string()),
        false => warning("saved, and not what runs:", swap.to_string()).note(words_of_build(false)),
    }
}

fn describe_label(entry: Origin, label: Option<&str>) -> Description {
    let label = label.map_or_else(|| "no label".to_owned(), |label| format!("`{label}`"));
    plain("labelled", format!("entry {} of {}: {label}", entry.number, entry.session.short()))
}

fn names_of(references: &References) -> String {
    let names: Vec<&str> = references.keys().map(String::as_str).collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

const fn tone_of_ending(ending: &WorkEnding) -> Tone {
    match ending {
        WorkEnding::Done { .. } => Tone::Good,
        WorkEnding::Cancelled { .. } => Tone::Warning,
        WorkEnding::Failed { .. } | WorkEnding::Interrupted => Tone::Error,
    }
}

fn entries(count: u64) -> String {
    if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") }
}

fn quoted(alias: Option<&String>) -> String {
    alias.map(|alias| format!("`{alias}`")).unwrap_or_default()
}

fn tone_of_rebuilt(diverged: &[Divergence]) -> Tone {
    if diverged.iter().any(Divergence::is_told) { Tone::Warning } else { Tone::Good }
}

const fn words_of_reason(reason: WarmUpReason) -> &'static str {
    match reason {
        WarmUpReason::Started => "started",
        WarmUpReason::Reset => "after a reset",
        WarmUpReason::HardReset => "after a hard reset",
        WarmUpReason::Refreshed => "what it refers to has changed",
        WarmUpReason::Cancelled => "the worker was killed to end a cancelled job",
        WarmUpReason::WorkerLost => "the worker was lost",
        WarmUpReason::DaemonLost => "the daemon was lost",
        WarmUpReason::Merged => "with what was merged into its transcript",
    }
}

/// What a rebuilt session has by a snapshot, and where it differs from before.
fn words_of_rebuilt(restored: Option<&Restored>, diverged: &[Divergence]) -> String {
    let restored = restored.map(|restored| format!(", {restored}")).unwrap_or_default();
    format!("{restored}{}", words_of_divergences(diverged))
}

/// Where a rebuilt session differs from before, at most as many places as are kept.
fn words_of_divergences(diverged: &[Divergence]) -> String {
    let diverged: Vec<_> = diverged.iter().filter(|divergence| divergence.is_told()).collect();
    let named = diverged.iter().take(DIVERGENCES_KEPT).map(|divergence| format!("; {divergence}"));
    let more = match diverged.len().saturating_sub(DIVERGENCES_KEPT) {
        0 => String::new(),
        unnamed => format!("; … and {unnamed} more"),
    };
    named.chain([more]).collect()
}

fn words_of_restart(after_ms: Option<u64>) -> String {
    match after_ms {
        None => "not replaced".to_owned(),
        Some(0) => "replaced at once".to_owned(),
        Some(after) => format!("replaced in {} s", after as f64 / 1000.0),
    }
}

fn describe_cut(limit: u64) -> Description {
    warning("output cut", format!("at {limit} bytes, but for its end"))
}

fn describe_queued(queued: &QueuedCommand) -> Description {
    faint(&format!("queued {}:", queued.command), queued.body.action().name().to_owned())
}

fn describe_end_of_task(child: &CommandId, unspent: &Amounts) -> Description {
    let left: Vec<String> = unspent.iter().map(|(currency, left)| format!("{currency}:{left}")).collect();
    let note = if left.is_empty() { String::new() } else { format!("({} is left)", left.join(", ")) };
    plain("task ended:", child.to_string()).note(note)
}

fn describe_lease(lease: LeaseId, change: &LeaseChange) -> Description {
    let described = match change {
        LeaseChange::Granted { terms } => {
            let kind = &terms.asked().kind;
            plain("may", format!("do `{kind}` to `{}` until {}", terms.resource(), terms.expires_at()))
        }
        LeaseChange::Extended { expires_at } => plain("may", format!("do so until {expires_at}")),
        LeaseChange::Revoked { reason } => warning("may no longer:", reason.clone()),
    };
    described.note(format!("[lease {}]", lease.short()))
}

fn describe_answer(ask: AskId, ending: &AskEnding, channel: Option<&Channel>) -> Description {
    let described = match ending {
        AskEnding::Answered { value } => plain("", format!("answered {value}")),
        AskEnding::Withheld => plain("", "answered with a secret, which is not kept".to_owned()),
        AskEnding::Defaulted { value } => warning("", format!("nobody answered; {value} was taken")),
        AskEnding::TimedOut { .. } => warning("", "nobody answered".to_owned()),
        AskEnding::Cancelled => plain("", "no longer asked".to_owned()),
    };
    described.note(note_of_answer(ask, channel))
}

fn note_of_answer(ask: AskId, channel: Option<&Channel>) -> String {
    let by = channel.map(|channel| format!("by {channel} ")).unwrap_or_default();
    format!("{by}[ask {}]", ask.short())
}

/// What code gave, as its language prints it; else its value, else the names that it defined.
fn words_of_code(file: Option<&str>, code: &str) -> String {
    file.map_or_else(|| code.to_owned(), |file| format!("{file}: {code}"))
}

fn words_of_result(result: &EvalResult) -> String {
    match (&result.value, &result.value_type) {
        _ if !result.display.is_empty() => result.display.clone(),
        (Some(value), Some(value_type)) => format!("{value} : {value_type}"),
        (Some(value), None) => value.clone(),
        (None, _) => {
            result.bindings.iter().map(|binding| binding.name.as_str()).collect::<Vec<_>>().join(", ")
        }
    }
}

fn words_of_failure(failure: &Failure, result: &EvalResult) -> String {
    let named = |first: &Diagnostic| format!("{}: {}", first.code, first.message);
    let is_error = |diagnostic: &&Diagnostic| diagnostic.severity == Severity::Error;
    match failure {
        Failure::Rejected => result.diagnostics.iter().find(is_error).map(named).unwrap_or_default(),
        Failure::Raised { error } => format!("{}: {}", error.kind, error.message),
        Failure::WorkerExited { exit } => exit.of_code(),
    }
}

/// How a cancelled eval ended, and what of it still counts.
fn words_of_cancel(ending: CancelEnding, kept: Option<&CompletedPart>) -> String {
    let how = match ending {
        CancelEnding::Yielded => "cancelled",
        CancelEnding::Killed => "cancelled by killing the worker",
    };
    match kept {
        Some(CompletedPart { bytes, .. }) => {
            format!("{how}; the first {bytes} bytes of its code had completed and are kept")
        }
        None => how.to_owned(),
    }
}

fn words_of_queue(queue: &[QueuedPrompt]) -> String {
    if queue.is_empty() {
        return "nothing".to_owned();
    }
    queue.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests;
