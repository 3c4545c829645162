//! Messages and summaries as Markdown.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;

use super::ExportedEvent;
use super::documents::push_fenced;
use mainstay_model::entry::{Entry, Role};
use mainstay_model::event::EventBody;
use mainstay_model::message::IS_ERROR;
use mainstay_model::transcript::total;

/// Writes what was said, one message after the other.
#[derive(Debug, Default)]
pub(super) struct MarkdownMessages {
    /// The tools that were called, by the ids of the calls.
    tools: BTreeMap<String, String>,
    /// Whose heading the text before stands under.
    under: Option<&'static str>,
}

impl MarkdownMessages {
    /// A message or a summary, behind those before it.
    pub(super) fn message(&mut self, ExportedEvent { body, .. }: &ExportedEvent) -> String {
        let mut told = String::new();
        if let EventBody::MessageAdded(message) = body {
            message.entries().iter().for_each(|(entry, text)| self.part(&mut told, entry, text));
        } else if let EventBody::TranscriptCompacted(compaction) = body {
            self.under = None;
            let covered = total(&compaction.covers);
            let summary = compaction.summary.trim_end();
            // Writing to a text never fails.
            write!(told, "\n## Summary\n\n*of {covered} entries before*\n\n{summary}\n").ok();
        }
        told
    }

    /// Anything else was told: the next message has a heading again.
    pub(super) const fn interrupted(&mut self) {
        self.under = None;
    }

    fn part(&mut self, told: &mut String, entry: &Entry, text: &str) {
        let shown = entry.shown(text);
        match entry.role {
            Role::System | Role::User | Role::Assistant | Role::Summary | Role::Input | Role::Output => {
                self.heading(told, heading(entry));
                write!(told, "\n{}\n", shown.trim_end()).ok();
            }
            Role::Thinking => {
                self.heading(told, heading(entry));
                told.push('\n');
                let thoughts = shown.trim_end();
                let thoughts = if thoughts.is_empty() { "(not shown)" } else { thoughts };
                thoughts.lines().for_each(|line| {
                    writeln!(told, "> {line}").ok();
                });
            }
            Role::ToolCall => {
                self.heading(told, heading(entry));
                let tool = entry.tool().unwrap_or("a tool");
                if let Some(call) = entry.bond().call {
                    self.tools.insert(call.to_owned(), tool.to_owned());
                }
                write!(told, "\nCalls `{tool}`:\n").ok();
                let pretty = serde_json::from_str::<Value>(text).map(|arguments| format!("{arguments:#}"));
                push_fenced(told, "json", pretty.as_deref().unwrap_or(text));
            }
            Role::ToolResult => {
                self.under = None;
                let called = entry.bond().call.and_then(|call| self.tools.get(call)).map(String::as_str);
                let tool = entry.tool().or(called).unwrap_or("a tool");
                let failed = entry.metadata.get(IS_ERROR) == Some(&Value::Bool(true));
                let how = if failed { "failed" } else { "answered" };
                write!(told, "\n`{tool}` {how}:\n").ok();
                push_fenced(told, "text", &shown);
            }
        }
    }

    fn heading(&mut self, told: &mut String, heading: &'static str) {
        if self.under != Some(heading) {
            write!(told, "\n## {heading}\n").ok();
            self.under = Some(heading);
        }
    }
}

/// Under which what an entry says stands.
fn heading(entry: &Entry) -> &'static str {
    match entry.role {
        Role::User if entry.is_shell_run() => "Shell",
        Role::System => "System",
        Role::User => "User",
        Role::Assistant | Role::Thinking | Role::ToolCall => "Assistant",
        Role::ToolResult => "Tool",
        Role::Summary => "Summary",
        Role::Input => "Input",
        Role::Output => "Output",
    }
}
