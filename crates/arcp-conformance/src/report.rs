//! What the scenarios found, as a table for people and as JSON for scripts.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use crate::json::clip;
use crate::scenario::{Frame, Outcome, Scenario, Word};

/// The most frames of a failure that the table shows.
const FRAMES: usize = 10;

/// Whether the table is coloured, which is for terminals alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Colours by escape sequences.
    On,
    /// Plain text without colours.
    Off,
}

/// How one scenario ended.
pub struct Finding {
    /// The scenario that was run.
    pub scenario: Scenario,
    /// How the scenario ended.
    pub outcome: Outcome,
    /// How long the scenario took.
    pub took: Duration,
}

impl Finding {
    /// Whether the runtime failed something that it must do.
    pub fn breaks_must(&self) -> bool {
        self.scenario.word == Word::Must && matches!(self.outcome, Outcome::Failed { .. })
    }

    fn name(&self) -> (&'static str, &'static str) {
        match (&self.outcome, self.scenario.word) {
            (Outcome::Passed, _) => ("passed", "32"),
            (Outcome::Failed { .. }, Word::Must) => ("FAILED", "31"),
            (Outcome::Failed { .. }, _) => ("failed", "33"),
            (Outcome::Skipped(_), _) => ("skipped", "2"),
            (Outcome::NotApplicable(_), _) => ("not applicable", "2"),
        }
    }

    /// The rows of the table for this finding: one, and below it what a failure saw.
    pub fn rows(&self, colour: Colour) -> String {
        let (name, code) = self.name();
        let padded = format!("{name:<14}");
        let shown = match colour {
            Colour::On => format!("\u{1b}[{code}m{padded}\u{1b}[0m"),
            Colour::Off => padded,
        };
        let Scenario { id, word, requirement, .. } = self.scenario;
        let mut rows = format!("{shown} {:<6} {id:<40} {requirement}\n", word.name());
        match &self.outcome {
            Outcome::Passed => {}
            Outcome::Skipped(why) | Outcome::NotApplicable(why) => {
                let _ = writeln!(rows, "{:15}{why}", "");
            }
            Outcome::Failed { expected, got, frames } => {
                let _ = writeln!(rows, "{:15}expected: {expected}\n{:15}got:      {got}", "", "");
                let left = frames.len().saturating_sub(FRAMES);
                if left > 0 {
                    let _ = writeln!(rows, "{:15}({left} earlier frames; --json has them)", "");
                }
                for frame in frames.iter().skip(left) {
                    let _ = writeln!(rows, "{:15}{}", "", line(frame));
                }
            }
        }
        rows
    }

    fn json(&self) -> Value {
        let scenario = &self.scenario;
        let mut value = json!({
            "id": scenario.id,
            "section": scenario.section(),
            "word": scenario.word.name(),
            "requirement": scenario.requirement,
            "outcome": self.name().0.to_lowercase().replace(' ', "_"),
            "took_ms": u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX),
        });
        match &self.outcome {
            Outcome::Passed => {}
            Outcome::Skipped(why) | Outcome::NotApplicable(why) => value["why"] = json!(why),
            Outcome::Failed { expected, got, frames } => {
                value["expected"] = json!(expected);
                value["got"] = json!(got);
                let frame = |frame: &Frame| {
                    let Frame { connection, kind, text } = frame;
                    json!({ "connection": connection, "kind": kind.name(), "text": text })
                };
                value["frames"] = frames.iter().map(frame).collect();
            }
        }
        value
    }
}

fn line(frame: &Frame) -> String {
    format!("{} {:<8} {}", frame.connection, frame.kind.name(), clip(&frame.text, 400))
}

/// How all scenarios ended.
pub struct Report {
    /// One finding for each scenario, in the order of the run.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether the runtime did all that it must, as far as it was tried.
    pub fn conforms(&self) -> bool {
        !self.findings.iter().any(Finding::breaks_must)
    }

    /// One line with the number of each outcome.
    pub fn summary(&self) -> String {
        let count = |wanted: fn(&Finding) -> bool| self.findings.iter().filter(|each| wanted(each)).count();
        format!(
            "{} passed, {} failed ({} of them MUST), {} skipped, {} not applicable",
            count(|each| each.outcome == Outcome::Passed),
            count(|each| matches!(each.outcome, Outcome::Failed { .. })),
            count(Finding::breaks_must),
            count(|each| matches!(each.outcome, Outcome::Skipped(_))),
            count(|each| matches!(each.outcome, Outcome::NotApplicable(_))),
        )
    }

    /// The whole report as one JSON object.
    pub fn json(&self) -> Value {
        json!({
            "conforms": self.conforms(),
            "summary": self.summary(),
            "scenarios": self.findings.iter().map(Finding::json).collect::<Vec<_>>(),
        })
    }
}
