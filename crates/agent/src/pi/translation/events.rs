//! What pi says by itself.

use std::time::Duration;

use mainstay_formats::exchange::pi_message;
use mainstay_model::agent::ToolCall;
use mainstay_model::{AgentNotice, Delivery, Delta, Note, PartRole};
use serde_json::{Map, Value};

use super::job::Turn;
use super::{Output, PendingRequest, Translation};
use crate::pi::rpc::{Closing, Command, CompactionEnd, FromPi, Piece, PieceKind, RetryEnd, RetryStart};

impl Translation {
    /// Takes in what pi says.
    pub(crate) fn hear(&mut self, said: FromPi, now: Duration) {
        if let FromPi::Response(response) = said {
            return self.answered(response, now);
        }
        if let Some(job) = &mut self.job {
            job.heard_at = now;
        }
        match said {
            FromPi::Response(_) | FromPi::Other => {}
            FromPi::AgentStart => self.begins(),
            FromPi::AgentEnd { messages } => self.ends(messages),
            FromPi::Piece(piece) => self.says(piece),
            FromPi::CallBegins { part, call } => {
                if let Some((job, call)) = self.job.as_mut().zip(call) {
                    job.parts.calls.insert(part, call);
                }
            }
            FromPi::PartEnds { part } => {
                let call = self.job.as_mut().and_then(|job| job.parts.calls.remove(&part));
                if call.is_some() {
                    self.stream(part, PartRole::ToolCall, String::new(), call);
                }
            }
            FromPi::Message(message) => self.said(&message),
            FromPi::ToolStart { call, arguments } => {
                self.change_turn(|turn| turn.tools += 1);
                self.note(Note::ToolStarted { call, arguments });
            }
            FromPi::ToolUpdate { call, output } => self.agent(AgentNotice::ToolOutput { call, output }),
            FromPi::ToolEnd { call, is_error } => {
                self.change_turn(|turn| turn.tools = turn.tools.saturating_sub(1));
                self.note(Note::ToolEnded { call, is_error });
            }
            FromPi::Queue { steering, follow_up } => {
                self.words_wait(steering.len());
                let queue: Vec<(Delivery, String)> = steering
                    .into_iter()
                    .map(|text| (Delivery::Steer, text))
                    .chain(follow_up.into_iter().map(|text| (Delivery::FollowUp, text)))
                    .collect();
                self.queued = queue.len();
                self.agent(AgentNotice::Queue(queue));
            }
            FromPi::CompactionStart { reason } => {
                self.change_turn(|turn| turn.compacts = true);
                self.note(Note::CompactionStarted { reason });
            }
            FromPi::CompactionEnd(end) => self.compacted(end),
            FromPi::RetryStart(retry) => {
                let RetryStart { attempt, max_attempts: attempts, delay_ms, error_message: message } = retry;
                self.change_turn(|turn| turn.retries = Some(Duration::from_millis(delay_ms)));
                self.note(Note::RetryStarted { attempt, attempts, delay_ms, message });
            }
            FromPi::RetryEnd(RetryEnd { success, attempt, final_error: message }) => {
                self.change_turn(|turn| turn.retries = None);
                self.note(Note::RetryEnded { success, attempt, message });
                self.settle();
            }
            FromPi::ThinkingLevel { level } => self.goes_on(|state| state.thinking = level),
            FromPi::ExtensionError { path, event, error } => {
                self.told("error", format!("the extension {path} failed at {event}: {error}"));
            }
            FromPi::Extension(request) => self.extension(request),
        }
    }

    /// Asks whether anything is under way, where nothing is as far as events tell.
    pub(super) fn settle(&mut self) {
        let Some(job) = &mut self.job else { return };
        let id = job.id;
        if job.turn().is_some_and(|turn| turn.is_over()) {
            self.send(&Command::GetState, PendingRequest::Settled(id));
        }
    }

    fn change_turn(&mut self, change: impl FnOnce(&mut Turn)) {
        if let Some(turn) = self.job.as_mut().and_then(super::Job::turn) {
            change(turn);
        }
    }

    fn begins(&mut self) {
        self.change_turn(|turn| {
            turn.runs = true;
            turn.goes_on = false;
            turn.retries = None;
        });
        // It was told to stop while no run was there that could.
        if self.job.as_ref().is_some_and(|job| job.is_interrupted || job.silent_since.is_some()) {
            self.send(&Command::Abort, PendingRequest::Stopped);
        }
    }

    fn ends(&mut self, messages: Vec<Closing>) {
        let last = messages.into_iter().rfind(|message| message.role == "assistant");
        self.change_turn(|turn| {
            turn.runs = false;
            turn.tools = 0;
            if last.is_some() {
                turn.closing = last;
            }
        });
        self.settle();
    }

    fn says(&mut self, Piece { part, kind, text }: Piece) {
        let role = match kind {
            PieceKind::Text => PartRole::Assistant,
            PieceKind::Thinking => PartRole::Thinking,
            PieceKind::Call => PartRole::ToolCall,
        };
        let call = self.job.as_mut().and_then(|job| job.parts.calls.remove(&part));
        if !text.is_empty() || call.is_some() {
            self.stream(part, role, text, call);
        }
    }

    fn stream(&mut self, part: u32, role: PartRole, text: String, tool: Option<ToolCall>) {
        let Some(job) = &mut self.job else { return };
        let said = job.parts.said.entry(part).or_default();
        let delta = Delta { job: job.id, message: job.messages, part, role, offset: *said, text, tool };
        *said += delta.text.len() as u64;
        self.agent(AgentNotice::Said(delta));
    }

    fn said(&mut self, message: &Map<String, Value>) {
        let said = pi_message(message);
        if said.parts.is_empty() {
            return;
        }
        if let Some(job) = &mut self.job {
            job.messages += 1;
            job.parts = super::job::PartProgress::default();
        }
        self.agent(AgentNotice::Message(said));
        if message.get("role").and_then(Value::as_str) == Some("assistant") {
            let closing: Option<Closing> = serde_json::from_value(Value::Object(message.clone())).ok();
            self.change_turn(|turn| turn.closing = closing);
            if let Some(tokens) = tokens_of(message) {
                self.goes_on(|state| state.context_tokens = Some(tokens));
            }
        }
    }

    fn compacted(&mut self, end: CompactionEnd) {
        let CompactionEnd { reason, result, aborted, will_retry, error_message } = end;
        let kicks = result.is_some() && reason != "manual" && self.queued > 0;
        self.change_turn(|turn| {
            turn.compacts = false;
            // pi begins another run a moment later.
            turn.goes_on = will_retry || kicks;
        });
        match result {
            Some(result) => {
                let about = [
                    ("reason", Value::String(reason)),
                    ("willRetry", if will_retry { true.into() } else { Value::Null }),
                    ("tokensBefore", result.tokens_before),
                    ("details", result.details),
                ];
                let about = about.into_iter().filter(|(_, value)| !value.is_null());
                let metadata = about.map(|(name, value)| (name.to_owned(), value)).collect();
                let first_kept = result.first_kept_entry_id;
                self.out.push_back(Output::Compacted { summary: result.summary, first_kept, metadata });
                self.goes_on(|state| state.context_tokens = None);
            }
            None => {
                let otherwise = if aborted { "it was cancelled" } else { "there is nothing to shorten" };
                let message = error_message.unwrap_or_else(|| otherwise.to_owned());
                self.note(Note::CompactionFailed { reason, message, was_cancelled: aborted });
            }
        }
        self.settle();
    }
}

/// How many tokens a model had taken when it had said this; none where it was cut off.
fn tokens_of(message: &Map<String, Value>) -> Option<u64> {
    if matches!(message.get("stopReason").and_then(Value::as_str), Some("error" | "aborted")) {
        return None;
    }
    let usage = message.get("usage")?;
    let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or_default();
    let parts = || ["input", "output", "cacheRead", "cacheWrite"].map(count).iter().sum();
    Some(match count("totalTokens") {
        0 => parts(),
        total => total,
    })
    .filter(|tokens| *tokens > 0)
}
