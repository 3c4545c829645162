//! Telling what an agent does: [`TurnRenderer`] turns the events of a job, and the pieces of what is said meanwhile, into what people see;
//! [`screen`] shows it, with [`stream`] for what is said, and [`outcome`] for what came of tools' calls ([`tool`], [`change`]).
//!
//! A piece is heard at once, an event comes later and is sure. Whatever came first is told once: what is said of a part is told from
//! where it was last heard, and what a whole message has beyond that with the message.

mod change;
mod outcome;
mod screen;
mod stream;
mod tool;

use std::collections::BTreeMap;

use mainstay_gateway::view::SessionView;
use mainstay_model::agent::Note;
use mainstay_model::transcript::total;
use mainstay_model::{
    AgentState, Delta, Diagnostic, Event, EventBody, JobId, JobKind, Live, Message, Part, PartRole, Severity,
    ThinkingLevel, TokenUsage, WorkEnding, YieldReason,
};
use serde_json::Value;

pub(crate) use self::outcome::whole_text;
pub(crate) use self::screen::Screen;
pub(crate) use self::tool::Call;
use self::tool::{Outcome, last_line};
use crate::terminal::{Tone, counted};

/// Something to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RenderItem {
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
    pub(crate) fn missed(text: &str, error: Option<&str>) -> Vec<Self> {
        let text = (!text.is_empty()).then(|| Self::Answer(text.to_owned()));
        let error = error.map(|error| Self::Line(Tone::Error, error.to_owned()));
        text.into_iter().chain([Self::Break]).chain(error).collect()
    }
}

/// What is known of one job of an agent.
#[derive(Debug, Default)]
pub(crate) struct TurnRenderer {
    /// Which, and what kind; none before it has begun.
    job: Option<(JobId, JobKind)>,
    /// Whether what it is to answer was said in the conversation.
    has_heard_prompt: bool,
    /// How many messages it has added.
    added: u32,
    /// What was told of the next one.
    said: BTreeMap<u32, RenderedPart>,
    /// The part that was told last.
    at: Option<u32>,
    /// Pieces that came before what they follow.
    held: Vec<Delta>,
    /// Calls without a result.
    calls: Vec<Call>,
    usage: TokenUsage,
    /// What the session's messages took before.
    before: TokenUsage,
    state: Option<AgentState>,
}

/// What was told of a part.
#[derive(Debug)]
struct RenderedPart {
    role: PartRole,
    text: String,
}

impl TurnRenderer {
    /// Of an agent that goes on so, as far as is known, in a session whose messages have taken so much.
    pub(crate) fn new(state: Option<AgentState>, before: TokenUsage) -> Self {
        Self { state, before, ..Self::default() }
    }

    /// Of the agent of this session.
    pub(crate) fn of(session: &SessionView) -> Self {
        Self::new(session.agent.as_ref().and_then(|agent| agent.state.clone()), session.usage)
    }

    /// Whether the job has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.job.is_some()
    }

    /// Whether it is a turn that has begun.
    pub(crate) fn is_turn(&self) -> bool {
        self.job.is_some_and(|(_, kind)| kind == JobKind::Turn)
    }

    /// Takes in an event of the job's command.
    pub(crate) fn event(&mut self, event: &Event) -> Vec<RenderItem> {
        if let EventBody::JobRequested { job, work, .. } = &event.body {
            self.job = Some((*job, work.kind()));
            return self.release();
        }
        let Some((_, kind)) = self.job else { return Vec::new() };
        if let (JobKind::Build | JobKind::Rebuild, EventBody::OutputProduced { text, .. }) =
            (kind, &event.body)
        {
            return vec![RenderItem::Output(text.clone())];
        }
        if let EventBody::MessageStreamed(delta) = &event.body {
            return self.said(delta);
        }
        if let EventBody::MessageAdded(message) = &event.body {
            return self.added(message);
        }
        if let EventBody::AgentNoted(note) = &event.body {
            return self.noted(note);
        }
        if let EventBody::AgentChanged(state) = &event.body {
            self.state = Some((**state).clone());
        }
        if let EventBody::TranscriptCompacted(compaction) = &event.body {
            let entries = counted(total(&compaction.covers), "entry");
            return vec![RenderItem::Line(
                Tone::Faint,
                format!("a summary stands for {entries} from here on"),
            )];
        }
        if let EventBody::JobEnded { ending, .. } = &event.body {
            return self.ended(kind, ending);
        }
        Vec::new()
    }

    /// Takes in a piece of what is going on in the session.
    pub(crate) fn live(&mut self, live: &Live) -> Vec<RenderItem> {
        match live {
            Live::Delta(delta) => self.said(delta),
            Live::ToolOutput { call, output } => {
                let running = self.calls.iter().find(|running| running.id == call.call);
                let line = running.zip(last_line(output));
                line.map(|(running, line)| RenderItem::Passing(format!("{running}: {line}")))
                    .into_iter()
                    .collect()
            }
        }
    }

    /// A piece that comes too early is held, one whose beginning was missed is left to the event that has it.
    fn said(&mut self, delta: &Delta) -> Vec<RenderItem> {
        match self.job {
            Some((job, _)) if job != delta.job || delta.message < self.added => return Vec::new(),
            Some(_) if delta.message == self.added => {}
            Some(_) | None => {
                self.held.push(delta.clone());
                return Vec::new();
            }
        }
        let said = self.said.entry(delta.part);
        let said = said.or_insert_with(|| RenderedPart { role: delta.role, text: String::new() });
        let known = (said.text.len() as u64).checked_sub(delta.offset);
        let news = known.and_then(|known| delta.text.get(usize::try_from(known).ok()?..));
        let Some(news) = news.filter(|news| !news.is_empty()) else { return Vec::new() };
        said.text.push_str(news);
        match delta.role {
            PartRole::Assistant | PartRole::Thinking => self.tell(delta.part, delta.role, news),
            PartRole::ToolCall => {
                let tool = delta.tool.as_ref();
                tool.map(|call| RenderItem::Passing(format!("{} …", call.tool))).into_iter().collect()
            }
            PartRole::System | PartRole::User | PartRole::ToolResult => Vec::new(),
        }
    }

    /// Each part begins on a line of its own.
    fn tell(&mut self, part: u32, role: PartRole, text: &str) -> Vec<RenderItem> {
        let is_new = self.at.replace(part) != Some(part);
        let piece = match role {
            PartRole::Thinking => RenderItem::Thinking(text.to_owned()),
            PartRole::Assistant
            | PartRole::System
            | PartRole::User
            | PartRole::ToolCall
            | PartRole::ToolResult => RenderItem::Answer(text.to_owned()),
        };
        is_new.then_some(RenderItem::Break).into_iter().chain([piece]).collect()
    }

    fn added(&mut self, message: &Message) -> Vec<RenderItem> {
        self.usage = self.usage.plus(message.usage.unwrap_or_default());
        let mut told = Vec::new();
        for (part, index) in message.parts.iter().zip(0..) {
            match part.role {
                PartRole::Assistant | PartRole::Thinking => {
                    let (at, rest) = self.rest_of(part, index);
                    if !rest.is_empty() {
                        told.extend(self.tell(at, part.role, &rest));
                    }
                }
                PartRole::ToolCall => self.calls.push(Call::of(part)),
                PartRole::ToolResult => told.push(self.answered(part)),
                PartRole::User => told.extend(self.heard(part)),
                PartRole::System => {}
            }
        }
        self.added += 1;
        self.said.clear();
        self.at = None;
        told.push(RenderItem::Break);
        told.extend(self.release());
        told
    }

    /// What was not told of a part, and which part that goes on with. What was told is found by what it says: an agent may leave parts
    /// out of a whole message that it had begun to say.
    fn rest_of(&mut self, part: &Part, index: u32) -> (u32, String) {
        let is_it = |said: &RenderedPart| {
            said.role == part.role && (part.text.starts_with(&said.text) || said.text.starts_with(&part.text))
        };
        let found = self.said.iter().find(|(_, said)| !said.text.is_empty() && is_it(said));
        match found.map(|(at, _)| *at) {
            Some(at) => {
                let told = self.said.remove(&at).map_or(0, |said| said.text.len());
                (at, part.text.get(told..).unwrap_or_default().to_owned())
            }
            None => (index, part.text.clone()),
        }
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

    fn answered(&mut self, result: &Part) -> RenderItem {
        let call = tool::id_of(result);
        let running = self.calls.iter().position(|running| Some(running.id.as_str()) == call);
        let running = running.map_or_else(|| Call::of(result), |at| self.calls.remove(at));
        running.answered(result)
    }

    fn noted(&self, note: &Note) -> Vec<RenderItem> {
        let line = |tone| vec![RenderItem::Line(tone, note.to_string())];
        match note {
            Note::ToolStarted { call, arguments } => {
                vec![RenderItem::Passing(format!("{} …", Call::new(&call.call, &call.tool, arguments)))]
            }
            Note::ToolEnded { .. } | Note::RetryEnded { success: true, .. } => Vec::new(),
            Note::CompactionStarted { .. } => line(Tone::Faint),
            Note::CompactionFailed { .. } | Note::RetryStarted { .. } => line(Tone::Warning),
            Note::RetryEnded { success: false, .. } => line(Tone::Error),
            Note::Told { level, .. } => line(match level.as_str() {
                "error" => Tone::Error,
                "warning" => Tone::Warning,
                _ => Tone::Faint,
            }),
        }
    }

    fn ended(&mut self, kind: JobKind, ending: &WorkEnding) -> Vec<RenderItem> {
        let mut told = vec![RenderItem::Break];
        let unanswered = |call: Call| RenderItem::Line(Tone::Warning, format!("… {call}: no result"));
        told.extend(self.calls.drain(..).map(unanswered));
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

    /// What was held and follows now.
    fn release(&mut self) -> Vec<RenderItem> {
        let held = std::mem::take(&mut self.held);
        held.iter().flat_map(|delta| self.said(delta)).collect()
    }
}

/// With which model an agent goes on, how hard that thinks, and how full its context is.
pub(crate) fn state_words(state: &AgentState) -> String {
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
pub(crate) fn so_far(usage: &TokenUsage) -> String {
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
