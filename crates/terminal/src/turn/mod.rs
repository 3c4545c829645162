//! Telling what an agent does: [`TurnRenderer`] turns the events of a job, and the pieces of what is said meanwhile, into what people see;
//! [`screen`] shows it, with [`stream`] for what is said, and [`outcome`] for what came of tools' calls ([`tool`], [`change`]).
//! [`LiveView`] tells the renderer each piece once.

mod change;
mod outcome;
mod screen;
mod stream;
mod tool;

use mainstay_model::agent::Note;
use mainstay_model::live::{LiveView, OpenCall, ViewChange};
use mainstay_model::transcript::total;
use mainstay_model::{
    AgentState, Diagnostic, Event, EventBody, JobId, JobKind, Live, Message, Part, PartRole, Severity,
    ThinkingLevel, TokenUsage, WorkEnding, YieldReason,
};
use mainstay_protocol::view::SessionView;
use serde_json::Value;

pub use self::outcome::whole_text;
pub use self::screen::Screen;
pub use self::tool::Call;
use self::tool::{Outcome, last_line};
use crate::{Tone, counted};

/// Something to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RenderItem {
    /// A piece of what the agent says, in Markdown.
    Answer(String),
    /// What a program printed for it.
    Output(String),
    /// A piece of what it thinks.
    Thinking(String),
    /// What follows begins on a line of its own.
    Break,
    /// What came of a tool's call.
    Tool(Outcome),
    /// What happens, on a line of its own.
    Line(Tone, String),
    /// What goes on just now; gone with what comes next.
    Passing(String),
}

impl RenderItem {
    /// What came of a job that was not seen: what was said last, and why it was not done.
    pub fn missed(text: &str, error: Option<&str>) -> Vec<Self> {
        let text = (!text.is_empty()).then(|| Self::Answer(text.to_owned()));
        let error = error.map(|error| Self::Line(Tone::Error, error.to_owned()));
        text.into_iter().chain([Self::Break]).chain(error).collect()
    }
}

/// What is known of one job of an agent.
#[derive(Debug, Default)]
pub struct TurnRenderer {
    view: LiveView,
    /// Which, and what kind; none before it has begun.
    job: Option<(JobId, JobKind)>,
    /// Whether what it is to answer was said in the conversation.
    has_heard_prompt: bool,
    /// The part that was told last.
    at: Option<u32>,
    usage: TokenUsage,
    /// What the session's messages took before.
    before: TokenUsage,
    state: Option<AgentState>,
}

impl TurnRenderer {
    /// Of an agent that goes on so, as far as is known, in a session whose messages have taken so much.
    pub fn new(state: Option<AgentState>, before: TokenUsage) -> Self {
        Self { state, before, ..Self::default() }
    }

    /// Of the agent of this session.
    pub fn of(session: &SessionView) -> Self {
        Self::new(session.agent.as_ref().and_then(|agent| agent.state.clone()), session.usage)
    }

    /// Whether the job has begun.
    pub fn has_begun(&self) -> bool {
        self.job.is_some()
    }

    /// Whether it is a turn that has begun.
    pub fn is_turn(&self) -> bool {
        self.job.is_some_and(|(_, kind)| kind == JobKind::Turn)
    }

    /// Takes in an event of the job's command.
    pub fn event(&mut self, event: &Event) -> Vec<RenderItem> {
        let is_whole = matches!(event.body, EventBody::MessageAdded(_));
        let changes = self.view.event(event).into_iter();
        // A call that comes with a whole message runs at once, and is told then.
        let is_told = |change: &ViewChange<'_>| !is_whole || !matches!(change, ViewChange::PartBegan { .. });
        changes.filter(is_told).flat_map(|change| self.change(change)).collect()
    }

    /// Takes in a piece of what is going on in the session.
    pub fn live(&mut self, live: &Live) -> Vec<RenderItem> {
        let changes = self.view.live(live);
        changes.into_iter().flat_map(|change| self.change(change)).collect()
    }

    fn change(&mut self, change: ViewChange<'_>) -> Vec<RenderItem> {
        match change {
            ViewChange::JobBegan { job, spec, .. } => {
                self.job = Some((job, spec.kind()));
                Vec::new()
            }
            ViewChange::PartBegan { call, .. } => {
                call.map(|call| RenderItem::Passing(format!("{} …", call.tool))).into_iter().collect()
            }
            ViewChange::PartGrew { part, role, text, .. } => self.grew(part, role, text),
            ViewChange::PartEnded { .. } => Vec::new(),
            ViewChange::MessageAdded { message, .. } => self.added(message),
            ViewChange::ToolBegan { call, arguments, .. } => {
                vec![RenderItem::Passing(format!("{} …", Call::new(call, arguments)))]
            }
            ViewChange::ToolProgressed { call, output, .. } => {
                let running = self.view.open_call(&call.call).map(Call::from);
                let line = running.zip(last_line(&output));
                line.map(|(running, line)| RenderItem::Passing(format!("{running}: {line}")))
                    .into_iter()
                    .collect()
            }
            ViewChange::ToolAnswered { call, result, .. } => {
                let call = call.as_ref().map_or_else(|| Call::of(result), Call::from);
                vec![RenderItem::Tool(call.outcome(result))]
            }
            ViewChange::JobEnded { ending, unanswered, .. } => self.ended(ending, &unanswered),
            ViewChange::Event(event) => self.happened(event),
        }
    }

    fn happened(&mut self, event: &Event) -> Vec<RenderItem> {
        let Some((_, kind)) = self.job else { return Vec::new() };
        match &event.body {
            EventBody::OutputProduced { text, .. } if matches!(kind, JobKind::Build | JobKind::Rebuild) => {
                vec![RenderItem::Output(text.clone())]
            }
            EventBody::AgentNoted(note) => noted(note).into_iter().collect(),
            EventBody::AgentChanged(state) => {
                self.state = Some((**state).clone());
                Vec::new()
            }
            EventBody::TranscriptCompacted(compaction) => {
                let entries = counted(total(&compaction.covers), "entry");
                let words = format!("a summary stands for {entries} from here on");
                vec![RenderItem::Line(Tone::Faint, words)]
            }
            _ => Vec::new(),
        }
    }

    /// More of a part. Each part begins on a line of its own.
    fn grew(&mut self, part: u32, role: PartRole, text: String) -> Vec<RenderItem> {
        let piece = match role {
            PartRole::Thinking => RenderItem::Thinking(text),
            PartRole::Assistant => RenderItem::Answer(text),
            PartRole::System | PartRole::User | PartRole::ToolCall | PartRole::ToolResult => {
                return Vec::new();
            }
        };
        let is_new = self.at.replace(part) != Some(part);
        is_new.then_some(RenderItem::Break).into_iter().chain([piece]).collect()
    }

    fn added(&mut self, message: &Message) -> Vec<RenderItem> {
        self.usage = self.usage.plus(message.usage.unwrap_or_default());
        self.at = None;
        let said = message.parts.iter().filter(|part| part.role == PartRole::User);
        let mut told: Vec<RenderItem> = said.filter_map(|part| self.heard(part)).collect();
        told.push(RenderItem::Break);
        told
    }

    /// What someone said. What the job is to answer was typed by who sees this.
    fn heard(&mut self, part: &Part) -> Option<RenderItem> {
        let is_typed = self.job.is_some_and(|(_, kind)| kind == JobKind::Turn) && !self.has_heard_prompt;
        self.has_heard_prompt = true;
        let is_words = !part.metadata.contains_key(mainstay_model::message::BLOCK);
        let is_of_shell = self.job.is_some_and(|(_, kind)| kind == JobKind::Shell);
        let is_told = is_words && !is_typed && !is_of_shell;
        is_told.then(|| RenderItem::Line(Tone::Faint, format!("› {}", part.text.trim_end())))
    }

    fn ended(&mut self, ending: &WorkEnding, unanswered: &[OpenCall]) -> Vec<RenderItem> {
        let Some((_, kind)) = self.job else { return Vec::new() };
        let mut told = vec![RenderItem::Break];
        let line = |call| RenderItem::Line(Tone::Warning, format!("… {}: no result", Call::from(call)));
        told.extend(unanswered.iter().map(line));
        match ending {
            WorkEnding::Done { reason, value } => {
                if *reason == YieldReason::MaxTokens {
                    told.push(RenderItem::Line(Tone::Warning, ending.to_string()));
                }
                told.extend(self.done(kind, value));
            }
            WorkEnding::Cancelled { .. } => told.push(RenderItem::Line(Tone::Warning, ending.to_string())),
            WorkEnding::Failed { diagnostics, .. } => {
                told.extend(diagnostics.iter().filter_map(remark));
                told.push(RenderItem::Line(Tone::Error, ending.to_string()));
            }
            WorkEnding::Interrupted => {
                told.push(RenderItem::Line(Tone::Error, ending.to_string()));
            }
        }
        told
    }

    /// What came of it beside messages.
    fn done(&self, kind: JobKind, value: &Value) -> Vec<RenderItem> {
        match kind {
            JobKind::Turn | JobKind::Compaction => self.cost().into_iter().collect(),
            JobKind::Shell => shell_told(value),
            JobKind::Setting => {
                let state =
                    self.state.as_ref().map(|state| RenderItem::Line(Tone::Faint, state_words(state)));
                state.into_iter().collect()
            }
            JobKind::Eval | JobKind::Build | JobKind::Rebuild | JobKind::Comm => Vec::new(),
        }
    }

    /// Which model it was, what the job's messages took, and the session's so far, and how full the context is.
    fn cost(&self) -> Option<RenderItem> {
        if self.usage.is_zero() {
            return None;
        }
        let usage = self.usage.to_string();
        let so_far = (!self.before.is_zero()).then(|| so_far(&self.before.plus(self.usage)));
        let model = self.state.as_ref().and_then(model_words);
        let context = self.state.as_ref().and_then(fullness);
        let words: Vec<String> = model.into_iter().chain([usage]).chain(so_far).chain(context).collect();
        Some(RenderItem::Line(Tone::Faint, words.join(" • ")))
    }
}

/// What a note tells people.
fn noted(note: &Note) -> Option<RenderItem> {
    let tone = match note {
        Note::ToolStarted { .. } | Note::ToolEnded { .. } | Note::RetryEnded { success: true, .. } => {
            return None;
        }
        Note::CompactionStarted { .. } => Tone::Faint,
        Note::CompactionFailed { .. } | Note::RetryStarted { .. } => Tone::Warning,
        Note::RetryEnded { success: false, .. } => Tone::Error,
        Note::Told { level, .. } => match level.as_str() {
            "error" => Tone::Error,
            "warning" => Tone::Warning,
            _ => Tone::Faint,
        },
    };
    Some(RenderItem::Line(tone, note.to_string()))
}

/// With which model an agent goes on, how hard that thinks, and how full its context is.
pub fn state_words(state: &AgentState) -> String {
    let plain = AgentState { context_tokens: None, ..state.clone() };
    let words = [Some(plain.to_string()), context_words(state)];
    words.into_iter().flatten().collect::<Vec<_>>().join(" • ")
}

/// The model and how hard it thinks, in few words.
fn model_words(state: &AgentState) -> Option<String> {
    let id = &state.model.as_ref()?.id;
    Some(match state.thinking {
        ThinkingLevel::Off => id.clone(),
        level => format!("{id} {}", level.name()),
    })
}

/// What a session's messages took so far.
pub fn so_far(usage: &TokenUsage) -> String {
    let cost = if usage.cost.is_zero() { String::new() } else { format!(", {}", usage.cost) };
    format!("session: {} tokens{cost}", usage.tokens())
}

fn fullness(state: &AgentState) -> Option<String> {
    let window = state.model.as_ref()?.context_window.filter(|window| *window > 0)?;
    Some(format!("context {} %", state.context_tokens? * 100 / window))
}

fn context_words(state: &AgentState) -> Option<String> {
    let tokens = state.context_tokens?;
    Some(match state.model.as_ref().and_then(|model| model.context_window).filter(|window| *window > 0) {
        Some(window) => format!("context {tokens} of {window} tokens ({} %)", tokens * 100 / window),
        None => format!("context {tokens} tokens"),
    })
}

/// What a line of a shell printed, and how it ended where that was not well.
fn shell_told(value: &Value) -> Vec<RenderItem> {
    let output = value["output"].as_str().filter(|output| !output.is_empty());
    let output = output.map(|output| RenderItem::Output(output.to_owned()));
    let code = value["exitCode"].as_i64().filter(|code| *code != 0);
    let code = code.map(|code| RenderItem::Line(Tone::Warning, format!("exit code {code}")));
    output.into_iter().chain([RenderItem::Break]).chain(code).collect()
}

/// What a compiler says of a file, for people.
fn remark(diagnostic: &Diagnostic) -> Option<RenderItem> {
    let tone = match diagnostic.severity {
        Severity::Error => Tone::Error,
        Severity::Warning => Tone::Warning,
        Severity::Info | Severity::Hidden => return None,
    };
    let Diagnostic { severity, code, message, .. } = diagnostic;
    Some(RenderItem::Line(tone, format!("{}: {} {code}: {message}", diagnostic.place(), severity.name())))
}

#[cfg(test)]
mod tests;
