//! The completion of names in code, asked of the session's worker.

use mainstay_model::{Error, TextPosition};
use mainstay_protocol::operations::Complete;

use super::CompletionContext;
use super::proposal::{Choice, Proposal};

/// The worker describes so many choices; a narrower question gets the rest described.
const DESCRIBED: usize = 100;

/// The names that could stand at the end of `line`, the code before the cursor.
pub(super) async fn names(asked: &CompletionContext, line: &str, code: String) -> Result<Proposal, Error> {
    let cursor = position(line);
    let found = asked.client.call(Complete { session: asked.session.to_string(), code, cursor }).await?;
    let start = found.start.map_or(line.len(), |start| offset(line, start));
    let choices = found.items.into_iter().map(|item| {
        let note = match &item.detail {
            Some(detail) => format!("{}  {detail}", item.kind),
            None => item.kind,
        };
        Choice { value: item.label, note, documentation: item.documentation }
    });
    let choices: Vec<_> = choices.collect();
    let is_partial = choices.len() > DESCRIBED;
    Ok(Proposal { start, choices, is_partial })
}

/// Where the end of `text` is: line and column from 1, the column in UTF-16 code units.
pub(super) fn position(text: &str) -> TextPosition {
    let line = text.matches('\n').count() + 1;
    let column = text.rsplit('\n').next().unwrap_or_default().encode_utf16().count() + 1;
    let counted = |count| u32::try_from(count).unwrap_or(u32::MAX);
    TextPosition { line: counted(line), column: counted(column) }
}

/// Where in `text` a position is, in bytes; its end where the position is beyond it.
pub(super) fn offset(text: &str, position: TextPosition) -> usize {
    let lines_before = (position.line as usize).saturating_sub(1);
    let line_start: usize = text.split_inclusive('\n').take(lines_before).map(str::len).sum();
    let mut units = 1;
    for (at, c) in text[line_start..].char_indices() {
        if units >= position.column as usize {
            return line_start + at;
        }
        units += c.len_utf16();
    }
    text.len()
}
