//! What happened between jobs, in words.

use mainstay_model::event::{self, Subject};
use mainstay_model::{EventBody, Note};

use super::cell_state::Tone;

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
    let is_wanted = match body {
        EventBody::SessionCreated { .. }
        | EventBody::WarmUpStarted { .. }
        | EventBody::CommandDequeued { error: None, .. }
        | EventBody::EntryLabeled { label: None, .. } => false,
        EventBody::CommandDequeued { error: Some(_), .. }
        | EventBody::AssembliesChanged { .. }
        | EventBody::SourcesChanged { .. }
        | EventBody::SourcesSwapped(_)
        | EventBody::ApplicationStarted(_)
        | EventBody::ApplicationEnded(_) => true,
        body => matches!(body.subject(), Subject::Session | Subject::Worker | Subject::Transcript),
    };
    let described = is_wanted.then(|| body.describe())?;
    let tone = match described.tone {
        event::Tone::Warning => Tone::Warning,
        event::Tone::Error => Tone::Error,
        event::Tone::Plain | event::Tone::Faint | event::Tone::Question | event::Tone::Good => Tone::Plain,
    };
    Some((tone, described.sentence()))
}
