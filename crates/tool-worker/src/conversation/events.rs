//! What happens while a tool works, as notices. Source: draft-arcp-1.1, 8.2.

use std::collections::BTreeMap;
use std::time::Duration;

use mainstay_arcp_protocol::b::EventKind;
use mainstay_model::tool_call::{PROGRESS, Progress};
use mainstay_model::{Bundle, Display, DisplayId, OutputStream, RunnerNotice};
use serde_json::{Value, json};

use super::{Conversation, Output, PROGRESS_INTERVAL};

impl Conversation {
    /// Tells of something that happened to the call under way.
    pub(super) fn happened(&mut self, event: EventKind, now: Duration) {
        match event {
            EventKind::Log { level, message } => {
                let is_trouble = ["warn", "warning", "error", "critical", "fatal"].contains(&level.as_str());
                let stream = if is_trouble { OutputStream::Stderr } else { OutputStream::Stdout };
                self.print(stream, format!("{message}\n"));
            }
            EventKind::Thought { text } => self.print(OutputStream::Stdout, format!("{text}\n")),
            EventKind::Status { phase, message: Some(message) } => {
                self.print(OutputStream::Stdout, format!("{phase}: {message}\n"));
            }
            EventKind::Metric { name, value, unit, .. } => {
                let unit = unit.map(|unit| format!(" {unit}")).unwrap_or_default();
                self.print(OutputStream::Stdout, format!("{name}: {value}{unit}\n"));
            }
            EventKind::ArtifactRef { uri, content_type, .. } => {
                self.print(OutputStream::Stdout, format!("{uri} ({content_type})\n"));
            }
            EventKind::Progress { current, total, units, message } => {
                self.progressed(Progress { current, total, units, message }, now);
            }
            EventKind::ResultChunk(chunk) => {
                let limit = self.value_bytes;
                if let Some(running) = &mut self.running {
                    running.chunks.get_or_insert_default().take(&chunk, limit);
                }
            }
            EventKind::Vendor { kind, .. } if kind == "result_chunk" => {
                if let Some(running) = &mut self.running {
                    running.chunks.get_or_insert_default().spoil();
                }
            }
            // What is of no kind of its own has a body that cannot be read.
            EventKind::Vendor { kind, body } if kind.starts_with("x-") => {
                self.show(&format!("{kind}: {body}"), "application/json", body)
            }
            // That it runs is known; what it has done by others is told by what comes of it.
            EventKind::Vendor { .. }
            | EventKind::Status { message: None, .. }
            | EventKind::ToolCall { .. }
            | EventKind::ToolResult { .. }
            | EventKind::Delegate(_) => {}
        }
    }

    /// Takes in how much is done. It is shown from time to time: a tool may say so at each of many steps, and all that is shown is stored.
    fn progressed(&mut self, progress: Progress, now: Duration) {
        let Some(running) = &mut self.running else { return };
        running.progress = Some(progress);
        if running.progress_shown.is_none_or(|shown| now.saturating_sub(shown) >= PROGRESS_INTERVAL) {
            self.show_progress(now);
        }
    }

    /// Shows how much is done, in the place where that was shown before.
    pub(super) fn show_progress(&mut self, now: Duration) {
        let Some(running) = &mut self.running else { return };
        let Some(progress) = running.progress.take() else { return };
        let Ok(id) = DisplayId::new(format!("progress-{}", running.job)) else { return };
        let is_update = running.progress_shown.replace(now).is_some();
        let data = bundle(&progress.to_string(), PROGRESS, json!(progress));
        self.display(Display { id: Some(id), is_value: false, is_update, is_in_place: false, data });
    }

    fn show(&mut self, text: &str, kind: &str, value: Value) {
        let data = bundle(text, kind, value);
        self.display(Display { id: None, is_value: false, is_update: false, is_in_place: false, data });
    }

    fn display(&mut self, display: Display) {
        let job = self.job();
        self.outputs.push(Output::Tell(RunnerNotice::Display { job, display: Box::new(display) }));
    }
}

fn bundle(text: &str, kind: &str, value: Value) -> Bundle {
    let forms = [("text/plain", Value::String(text.to_owned())), (kind, value)];
    Bundle::from(forms.map(|(kind, value)| (kind.to_owned(), value)).into_iter().collect::<BTreeMap<_, _>>())
}
