//! Proposals as the editor shows them: one choice a row.

use mainstay_terminal::printable;
use reedline::{CompletionResult, Span, Suggestion};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::proposal::{Choice, Proposal};

/// Names up to this width are aligned.
const ALIGNED: usize = 24;
/// A choice takes so many columns at most, and never more than the terminal has: the menu would wrap it.
const ROW_COLUMNS: usize = 84;

/// The answer as the editor takes it: each choice on a line, with its type beside it.
pub(super) fn fresh(proposal: &Proposal, cursor: usize) -> CompletionResult {
    let width =
        proposal.choices.iter().map(|choice| choice.value.width()).filter(|width| *width <= ALIGNED).max();
    let columns = crossterm::terminal::size()
        .map_or(ROW_COLUMNS, |(columns, _)| usize::from(columns).saturating_sub(2));
    let columns = columns.min(ROW_COLUMNS);
    let span = Span { start: proposal.start.min(cursor), end: cursor };
    let suggestions: Vec<_> = proposal
        .choices
        .iter()
        .map(|choice| Suggestion {
            value: choice.value.clone(),
            display_override: Some(row(choice, width.unwrap_or(0), columns)),
            description: choice.documentation.as_deref().map(|text| printable(text).into_owned()),
            span,
            ..Suggestion::default()
        })
        .collect();
    CompletionResult::fresh(suggestions)
}

/// A choice with its type beside it, in so many columns at most.
pub(super) fn row(choice: &Choice, width: usize, columns: usize) -> String {
    let padding = " ".repeat(width.saturating_sub(choice.value.width()));
    let row = format!("{}{padding}  {}", choice.value, choice.note.replace('\n', " "));
    let row = printable(row.trim_end());
    if row.width() <= columns {
        return row.into_owned();
    }
    let mut used = 1;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= columns
    };
    row.chars().take_while(fits).chain(['…']).collect()
}
