//! `check_fsharp_code` and `get_completions`: looking at code without running it.

use std::fmt::{Display, Formatter};

use mainstay_engine::runner::CompletionItem;
use mainstay_model::{Action, Error, TextPosition};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::Call;
use super::diagnostic::{DiagnosticLine, is_for_people};
use super::names::Plain;
use super::tool::{Answer, Effect, Tool};

/// The most completions in one answer.
const ITEMS: usize = 100;

/// Checks code.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CheckFsharpCode {
    session_id: Option<String>,
    code: String,
}

/// What the compiler says of it.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CheckAnswer {
    session_id: String,
    diagnostics: Vec<DiagnosticLine>,
}

impl Tool for CheckFsharpCode {
    const NAME: &'static str = "check_fsharp_code";
    const DESCRIPTION: &'static str =
        "Type-check F# code against a session's definitions without running it.";
    const EFFECT: Effect = Effect::Reads;
    const ACTION: Option<Action> = Some(Action::Check);
    const PLAIN: Option<Plain> = Some(Plain {
        name: "check_code",
        description: "Check code against a session's definitions without running it.",
    });
    type Answer = CheckAnswer;

    async fn carry_out(self, call: &Call<'_>) -> Result<CheckAnswer, Error> {
        let session = call.workplace(self.session_id.as_deref(), Action::Check).await?;
        call.bring_up(session).await?;
        let diagnostics = call.client().check(session, self.code, None).await?;
        let diagnostics = diagnostics.into_iter().filter(is_for_people).map(DiagnosticLine::from).collect();
        Ok(CheckAnswer { session_id: session.short(), diagnostics })
    }
}

impl Answer for CheckAnswer {}

impl Display for CheckAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        for diagnostic in &self.diagnostics {
            writeln!(f, "{diagnostic}")?;
        }
        write!(f, "diagnostics: {} [session {}]", self.diagnostics.len(), self.session_id)
    }
}

/// Completes at a cursor.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct GetCompletions {
    session_id: Option<String>,
    code: String,
    line: u32,
    /// In UTF-16 units.
    column: u32,
}

/// What could stand there.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CompletionAnswer {
    session_id: String,
    items: Vec<ItemLine>,
    /// Where the text begins that a choice replaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<Cursor>,
    /// How many more there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<usize>,
}

/// One choice.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct ItemLine {
    label: String,
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

/// A place in the code.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct Cursor {
    line: u32,
    column: u32,
}

impl Tool for GetCompletions {
    const NAME: &'static str = "get_completions";
    const DESCRIPTION: &'static str = "Complete code at a cursor, knowing a session's definitions.";
    const EFFECT: Effect = Effect::Reads;
    const ACTION: Option<Action> = Some(Action::Complete);
    type Answer = CompletionAnswer;

    async fn carry_out(self, call: &Call<'_>) -> Result<CompletionAnswer, Error> {
        let session = call.workplace(self.session_id.as_deref(), Action::Complete).await?;
        call.bring_up(session).await?;
        let cursor = TextPosition { line: self.line, column: self.column };
        let completions = call.client().complete(session, self.code, cursor).await?;
        let left_out = completions.items.len().checked_sub(ITEMS).filter(|count| *count > 0);
        Ok(CompletionAnswer {
            session_id: session.short(),
            items: completions.items.into_iter().take(ITEMS).map(ItemLine::from).collect(),
            start: completions.start.map(|TextPosition { line, column }| Cursor { line, column }),
            left_out,
        })
    }
}

impl From<CompletionItem> for ItemLine {
    fn from(item: CompletionItem) -> Self {
        let CompletionItem { label, kind, detail, documentation: _ } = item;
        Self { label, kind, detail }
    }
}

impl Answer for CompletionAnswer {}

impl Display for CompletionAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        for ItemLine { label, kind, detail } in &self.items {
            match detail {
                Some(detail) => writeln!(f, "{label} : {detail} ({kind})")?,
                None => writeln!(f, "{label} ({kind})")?,
            }
        }
        if let Some(count) = self.left_out {
            writeln!(f, "… {count} more")?;
        }
        write!(f, "completions: {} [session {}]", self.items.len(), self.session_id)
    }
}
