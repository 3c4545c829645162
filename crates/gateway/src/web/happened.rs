//! What happened between jobs, in words.

use mainstay_model::{EventBody, Note};

use super::growing::Tone;

pub(super) fn tone_of(note: &Note) -> Tone {
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

/// What happened between jobs, where people want to know of it.
pub(super) fn happened(body: &EventBody) -> Option<(Tone, String)> {
    let plain = |text: String| Some((Tone::Plain, text));
    match body {
        EventBody::WarmUpCompleted { diverged, reload: Some(reload), .. } => {
            let tone = if diverged.is_empty() { Tone::Plain } else { Tone::Warning };
            Some((tone, reload.line(diverged)))
        }
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
        EventBody::SessionUnloaded { .. } => plain("unloaded over the pi protocol".to_owned()),
        EventBody::SessionLoaded { .. } => plain("loaded over the pi protocol".to_owned()),
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
        EventBody::SourcesChanged { changed } => {
            Some((Tone::Warning, format!("changed and not built: {}", changed.join(", "))))
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
        | EventBody::OutputCleared { .. }
        | EventBody::CommPublished { .. }
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
