//! `check_code` and `get_completions`: looking at code without running it.

use std::fmt::{Display, Formatter};

use mainstay_model::affordance::Reach;
use mainstay_model::{Action, Diagnostic, Error, TextPosition};
use mainstay_protocol::{OperationId, operations};
use mainstay_runner::CompletionItem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::Call;
use super::diagnostic::{DiagnosticLine, is_for_people};
use super::needs::Works;
use super::tool::{Answer, Effect, Tool};

/// The most completions in one answer.
const ITEMS: usize = 100;

/// Checks code without running it.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CheckCode {
    session_id: Option<String>,
    code: String,
}

/// What the compiler says of it.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CheckAnswer {
    session_id: String,
    diagnostics: Vec<DiagnosticLine>,
    /// Why nothing was checked, where nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    unchecked: Option<String>,
}

impl Tool for CheckCode {
    const NAME: &'static str = "check_code";
    const OPERATIONS: &'static [OperationId] = &[OperationId::of::<operations::Check>()];
    const SEED_NAME: Option<&'static str> = Some("check_fsharp_code");
    const DESCRIPTION: &'static str = "Type-check code against a session's definitions; runs nothing.";
    const EFFECT: Effect = Effect::Reads;
    const ACTION: Option<Action> = Some(Action::Check);
    const WORKS: Works = Works::InAny(Action::Check, Reach::Started);
    type Answer = CheckAnswer;

    async fn carry_out(self, call: &Call) -> Result<CheckAnswer, Error> {
        let session = call.workplace(self.session_id.as_deref(), Action::Check).await?;
        call.bring_up(session).await?;
        let diagnostics = call.client().check(session, self.code, None).await?;
        let (unchecked, diagnostics): (Vec<_>, Vec<_>) =
            diagnostics.into_iter().filter(is_for_people).partition(Diagnostic::is_unchecked);
        let diagnostics = diagnostics.into_iter().map(DiagnosticLine::from).collect();
        let unchecked = unchecked.into_iter().next().map(|unchecked| unchecked.message);
        Ok(CheckAnswer { session_id: session.short(), diagnostics, unchecked })
    }
}

impl Answer for CheckAnswer {
    const IS_MARKED: bool = true;
}

impl Display for CheckAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        for diagnostic in &self.diagnostics {
            writeln!(f, "{diagnostic}")?;
        }
        match &self.unchecked {
            Some(unchecked) => write!(f, "{unchecked} [session {}]", self.session_id),
            None => write!(f, "diagnostics: {} [session {}]", self.diagnostics.len(), self.session_id),
        }
    }
}

/// Completes at a cursor.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct GetCompletions {
    session_id: Option<String>,
    code: String,
    /// By default the last.
    line: Option<u32>,
    /// In UTF-16 units; by default the line's end.
    column: Option<u32>,
    /// In place of line and column: how many UTF-16 units stand before the cursor.
    offset: Option<u32>,
}

/// The place in the code that a client names in one way or the other; the code's end where it names none.
fn cursor(
    code: &str,
    line: Option<u32>,
    column: Option<u32>,
    offset: Option<u32>,
) -> Result<TextPosition, Error> {
    match (line, column, offset) {
        (None, None, Some(offset)) => position_at(code, offset),
        (line, column, None) => TextPosition::named(code, line, column),
        (_, _, Some(_)) => {
            Err(invalid_offset("the cursor is either `line` and `column`, or `offset`".to_owned()))
        }
    }
}

/// Where so many UTF-16 units of the code end.
fn position_at(code: &str, offset: u32) -> Result<TextPosition, Error> {
    let (mut units, mut position) = (0, TextPosition { line: 1, column: 1 });
    for c in code.chars() {
        if units >= offset {
            break;
        }
        let width = u32::from(c.len_utf16() > 1) + 1;
        units += width;
        position = match c {
            '\n' => TextPosition { line: position.line + 1, column: 1 },
            _ => TextPosition { column: position.column + width, ..position },
        };
    }
    if units < offset {
        return Err(invalid_offset(format!("it is {offset}, and the code has {units} UTF-16 units")));
    }
    Ok(position)
}

fn invalid_offset(reason: String) -> Error {
    Error::InvalidArgument { argument: "offset".to_owned(), reason }
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

/// One completion of a name.
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
    const OPERATIONS: &'static [OperationId] = &[OperationId::of::<operations::Complete>()];
    const DESCRIPTION: &'static str = "Complete code at a cursor, knowing a session's definitions.";
    const EFFECT: Effect = Effect::Reads;
    const ACTION: Option<Action> = Some(Action::Complete);
    const WORKS: Works = Works::InAny(Action::Complete, Reach::Started);
    type Answer = CompletionAnswer;

    async fn carry_out(self, call: &Call) -> Result<CompletionAnswer, Error> {
        let Self { session_id, code, line, column, offset } = self;
        let cursor = cursor(&code, line, column, offset)?;
        let session = call.workplace(session_id.as_deref(), Action::Complete).await?;
        call.bring_up(session).await?;
        let completions = call.client().complete(session, code, cursor).await?;
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

impl Answer for CompletionAnswer {
    const IS_MARKED: bool = true;
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_a_place() {
        let place = |offset| cursor("a𝄞b\r\nList.", None, None, Some(offset)).map(|at| (at.line, at.column));
        assert_eq!(place(0), Ok((1, 1)));
        assert_eq!(place(3), Ok((1, 4)));
        assert_eq!(place(6), Ok((2, 1)));
        assert_eq!(place(11), Ok((2, 6)));
        assert!(place(12).is_err());
        assert_eq!(cursor("a\nbc", None, None, None), Ok(TextPosition { line: 2, column: 3 }));
        assert!(cursor("a", Some(1), None, Some(0)).is_err());
        assert!(cursor("a", Some(1), Some(1), Some(0)).is_err());
    }
}
