//! `get_recent_events`: what happened in a session, each event one short line, from a cursor on.

use std::fmt::{Display, Formatter};

use mainstay_model::affordance::Reach;
use mainstay_model::event::CancelEnding;
use mainstay_model::screen::settled;
use mainstay_model::transcript::total;
use mainstay_model::{
    Action, AskEnding, Diagnostic, Error, EvalResult, Event, EventBody, Failure, ForkPoint, OutputStream,
    QueuedPrompt, Seq, Severity, Source, Validity, WarmUpReason,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::Within;
use super::call::Call;
use super::offer::Works;
use super::text::beginning;
use super::tool::{Answer, Effect, Tool};

/// How many events an answer has where the client does not say it.
const USUAL: u32 = 20;
/// The most events in one answer.
const MOST: u32 = 200;
/// How much of an event's text is shown, in bytes.
const TEXT_BYTES: usize = 240;

/// Asks for events.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct GetRecentEvents {
    pub(super) session_id: Option<String>,
    /// Only those after this cursor; without it, the newest.
    pub(super) since: Option<u64>,
    /// 20 by default.
    pub(super) count: Option<Within<1, MOST>>,
}

/// Events, oldest first.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventsAnswer {
    session_id: String,
    /// Where to go on from.
    cursor: u64,
    events: Vec<EventLine>,
    /// Whether there are more after the cursor.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
}

/// One event.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct EventLine {
    seq: u64,
    kind: &'static str,
    /// Which client caused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// How far it still holds, where not surely.
    #[serde(skip_serializing_if = "Option::is_none")]
    validity: Option<&'static str>,
}

impl Tool for GetRecentEvents {
    const NAME: &'static str = "get_recent_events";
    const SEED_NAME: Option<&'static str> = Some("get_recent_fsi_events");
    const DESCRIPTION: &'static str =
        "What happened in a session, also by others: the events after a cursor.";
    const EFFECT: Effect = Effect::Reads;
    const ACTION: Option<Action> = Some(Action::Events);
    const WORKS: Works = Works::In(Action::Events, Reach::AtOnce);
    type Answer = EventsAnswer;

    async fn carry_out(self, call: &Call) -> Result<EventsAnswer, Error> {
        let session = call.existing(self.session_id.as_deref(), Action::Events).await?;
        let newest = call.client().status(session).await?.session.last_seq;
        let count = Within::given(self.count, "count", USUAL)? as usize;
        let after = match self.since {
            Some(since) => newest.min(Seq(since)),
            None => Seq(newest.0.saturating_sub(count as u64)),
        };
        let events = call.client().events(session, after, count).await?;
        let seqs: Vec<Seq> = events.iter().map(|event| event.seq).collect();
        let validities = call.client().validities(session, &seqs).await?;
        let cursor = events.last().map_or(after, |event| event.seq);
        Ok(EventsAnswer {
            session_id: session.short(),
            cursor: cursor.0,
            events: events.into_iter().zip(validities).map(EventLine::new).collect(),
            more: cursor < newest,
        })
    }
}

impl EventLine {
    fn new((event, validity): (Event, Option<Validity>)) -> Self {
        let text = beginning(&summary(&event.body), TEXT_BYTES);
        let by = match event.metadata.source {
            Source::Client { name, .. } => Some(name),
            Source::Worker | Source::System => None,
        };
        Self {
            seq: event.seq.0,
            kind: event.body.kind(),
            by,
            text: (!text.is_empty()).then_some(text),
            validity: validity.filter(|validity| !validity.is_valid()).map(Validity::name),
        }
    }
}

/// What an event says beside its kind; empty where the kind says it all.
pub(super) fn summary(body: &EventBody) -> String {
    match body {
        EventBody::SessionCreated { kind, working_directory, .. } => format!("{kind} in {working_directory}"),
        EventBody::EntriesMerged(point) => format!(
            "{} entries of {} behind the first {}",
            total(&point.brought),
            point.from.short(),
            point.at
        ),
        EventBody::SessionForked(ForkPoint { from, entries, .. }) => {
            format!("off {} with {entries} of its entries", from.short())
        }
        EventBody::SessionImported { hash } => hash.to_string(),
        EventBody::SessionRenamed { name } => name.clone(),
        EventBody::WarmUpStarted { reason } => reason_name(*reason).to_owned(),
        EventBody::WarmUpCompleted { diverged, reload: Some(reload), .. } => reload.line(diverged),
        EventBody::WarmUpCompleted { kernel, replayed, diverged, .. } => {
            let replayed = (*replayed > 0).then(|| format!("{replayed} replayed"));
            let diverged = diverged.iter().map(ToString::to_string);
            let parts = [kernel.clone()].into_iter().chain(replayed).chain(diverged);
            parts.collect::<Vec<_>>().join("; ")
        }
        EventBody::SessionFaulted { message } => message.clone(),
        EventBody::WorkerExited { exit, reason: None, .. } => exit.to_string(),
        EventBody::WorkerExited { exit, reason: Some(reason), .. } => format!("{exit}: {reason}"),
        EventBody::CommandQueued(queued) => queued.body.action().name().to_owned(),
        EventBody::CommandLeft { error: Some(error), .. } => error.to_string(),
        EventBody::CommandLeft { error: None, .. } => String::new(),
        EventBody::AskRaised(ask) => format!("{} [ask {}]", ask.question.prompt, ask.ask.short()),
        EventBody::AskEnded { ask, ending } => {
            let how = match ending {
                AskEnding::Answered { value } => format!("answered {value}"),
                AskEnding::Withheld => "answered with a secret, which is not kept".to_owned(),
                AskEnding::Defaulted { value } => format!("nobody answered, {value} was taken"),
                AskEnding::TimedOut { .. } => "nobody answered".to_owned(),
                AskEnding::Cancelled => "no longer asked".to_owned(),
            };
            format!("{how} [ask {}]", ask.short())
        }
        EventBody::EvalTimedOut { limit_ms, .. } => format!("after {limit_ms} ms"),
        EventBody::EvalRequested { withheld: true, .. } => "(withheld)".to_owned(),
        EventBody::EvalRequested { file: Some(file), code, .. } => format!("{file}: {code}"),
        EventBody::EvalRequested { file: None, code, .. } => code.clone(),
        EventBody::OutputProduced { stream: OutputStream::Stdout, text, .. } => settled(text).into_owned(),
        EventBody::OutputProduced { stream: OutputStream::Stderr, text, .. } => {
            format!("stderr: {}", settled(text))
        }
        EventBody::OutputDisplayed { display, .. } => display.data.words().into_owned(),
        EventBody::OutputCleared { .. } => "what it had put out is taken back".to_owned(),
        EventBody::CommPublished { message, .. } => message.to_string(),
        EventBody::OutputCut { limit, .. } => format!("after {limit} bytes"),
        EventBody::EvalCompleted { result, .. } => given(result),
        EventBody::EvalFailed { failure: Failure::Rejected, result, .. } => first_error(&result.diagnostics),
        EventBody::EvalFailed { failure: Failure::Raised { error }, .. } => {
            format!("{}: {}", error.kind, error.message)
        }
        EventBody::EvalFailed { failure: Failure::WorkerExited { exit }, .. } => {
            format!("the worker ended: {exit}")
        }
        EventBody::EvalCancelled { ending: CancelEnding::Yielded, .. } => "yielded".to_owned(),
        EventBody::EvalCancelled { ending: CancelEnding::Killed, .. } => "killed".to_owned(),
        EventBody::EnvironmentChanged { references } => {
            references.keys().cloned().collect::<Vec<_>>().join(", ")
        }
        EventBody::AssembliesChanged { changed, .. } | EventBody::SourcesChanged { changed } => {
            changed.join(", ")
        }
        EventBody::JobRequested { work, .. } => work.to_string(),
        EventBody::JobEnded { ending, .. } => ending.to_string(),
        EventBody::MessageStreamed(delta) => delta.text.clone(),
        EventBody::PromptQueued(queued) => queued.to_string(),
        EventBody::QueueChanged { queue } => queued_words(queue),
        EventBody::AgentChanged(state) => state.to_string(),
        EventBody::AgentNoted(note) => note.to_string(),
        EventBody::MessageAdded(message) => message.to_string(),
        EventBody::TranscriptCompacted(compaction) => {
            format!("{} entries: {}", total(&compaction.covers), compaction.summary)
        }
        EventBody::EntryLabeled { entry, label: Some(label) } => {
            format!("entry {} of {}: {label}", entry.number, entry.session.short())
        }
        EventBody::EntryLabeled { entry, label: None } => {
            format!("entry {} of {}: taken off", entry.number, entry.session.short())
        }
        EventBody::SessionUnloaded { alias } | EventBody::SessionLoaded { alias } => {
            alias.clone().unwrap_or_default()
        }
        EventBody::SessionReset
        | EventBody::SessionHardReset
        | EventBody::SessionStopped
        | EventBody::SessionDeleted
        | EventBody::CancelRequested { .. }
        | EventBody::EvalInterrupted { .. } => String::new(),
    }
}

fn queued_words(queue: &[QueuedPrompt]) -> String {
    queue.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

const fn reason_name(reason: WarmUpReason) -> &'static str {
    match reason {
        WarmUpReason::Started => "started",
        WarmUpReason::Reset => "reset",
        WarmUpReason::HardReset => "hard reset",
        WarmUpReason::Refreshed => "refreshed",
        WarmUpReason::Cancelled => "the cancelled code did not yield",
        WarmUpReason::WorkerLost => "the worker was lost",
        WarmUpReason::DaemonLost => "the daemon was lost",
        WarmUpReason::Merged => "entries were put into its transcript",
    }
}

fn given(result: &EvalResult) -> String {
    match (&result.value, &result.value_type) {
        (Some(value), Some(value_type)) => format!("{value} : {value_type}"),
        (Some(value), None) => value.clone(),
        (None, _) => {
            result.bindings.iter().map(|binding| binding.name.as_str()).collect::<Vec<_>>().join(", ")
        }
    }
}

fn first_error(diagnostics: &[Diagnostic]) -> String {
    let first = diagnostics.iter().find(|diagnostic| diagnostic.severity == Severity::Error);
    first.map(|diagnostic| format!("{}: {}", diagnostic.code, diagnostic.message)).unwrap_or_default()
}

impl Answer for EventsAnswer {}

impl Display for EventsAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        for EventLine { seq, kind, by, text, validity } in &self.events {
            write!(f, "{seq} {kind}")?;
            if let Some(validity) = validity {
                write!(f, " ({validity})")?;
            }
            if let Some(by) = by {
                write!(f, " by {by}")?;
            }
            match text {
                Some(text) => writeln!(f, ": {text}")?,
                None => writeln!(f)?,
            }
        }
        let more = if self.more { ", more follow" } else { "" };
        write!(f, "[session {}, cursor {}{more}]", self.session_id, self.cursor)
    }
}
