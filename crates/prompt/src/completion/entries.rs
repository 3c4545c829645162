//! The completion of numbers of entries.

use std::ops::Range;

use mainstay_model::{Error, SessionId};
use mainstay_protocol::operations::GetLineage;
use mainstay_protocol::view::EntryView;
use mainstay_terminal_client::transcript::{EntrySelection, for_each_entry, role_mark};

use super::CompletionContext;
use super::proposal::{Choice, Proposal};

/// So many entries are proposed; a number that has begun gets others.
const ENTRIES: u64 = 50;

/// What is typed of the last number in a list of them.
pub(super) fn last_number(numbers: &str) -> &str {
    numbers.rsplit([',', '-', ' ']).next().unwrap_or_default()
}

/// The numbers of a session's entries that begin with `begun`, the last ones first.
pub(super) async fn entries(
    asked: &CompletionContext,
    session: SessionId,
    begun: &str,
    end: usize,
    is_wanted: fn(&EntryView) -> bool,
) -> Result<Proposal, Error> {
    let relatives = asked.client.call(GetLineage { session: session.to_string() }).await?;
    let found = relatives.iter().find(|relative| relative.session.session == session);
    let (runs, is_partial) = numbers(begun, found.map_or(0, |relative| relative.entries), ENTRIES);
    let mut choices = Vec::new();
    for Range { start, end } in runs {
        let wanted = EntrySelection { from: start - 1, count: Some(end - start), full: false };
        let mut run = Vec::new();
        for_each_entry(&asked.client, session, wanted, |number, entry| {
            if is_wanted(entry) {
                run.push(Choice { value: number.to_string(), note: entry_note(entry), documentation: None });
            }
            Ok(())
        })
        .await?;
        choices.extend(run.into_iter().rev());
    }
    Ok(Proposal { start: end - begun.len(), choices, is_partial })
}

/// Which of the numbers from 1 to `total` begin with these digits: runs of them, the last numbers first, and whether there are
/// more than so many.
pub(super) fn numbers(begun: &str, total: u64, most: u64) -> (Vec<Range<u64>>, bool) {
    let all = 1..total.saturating_add(1);
    let of_length = |digits: u32, prefix: u64| {
        let unit = 10_u64.checked_pow(digits)?;
        let (start, end) = (prefix.checked_mul(unit)?, (prefix + 1).checked_mul(unit)?);
        Some(start..end.min(total.saturating_add(1)))
    };
    let runs = match begun.parse::<u64>() {
        _ if begun.is_empty() => Some(all).into_iter().filter(|all| !all.is_empty()).collect(),
        Ok(prefix) if !begun.starts_with(['0', '+']) => {
            let runs = (0..).map_while(|digits| of_length(digits, prefix));
            let mut runs: Vec<_> = runs.take_while(|run| !run.is_empty()).collect();
            runs.reverse();
            runs
        }
        Ok(_) | Err(_) => Vec::new(),
    };
    let (mut kept, mut room) = (Vec::new(), most);
    let count = |run: &Range<u64>| run.end - run.start;
    let is_partial = runs.iter().map(count).sum::<u64>() > most;
    for run in runs {
        let taken = count(&run).min(room);
        room -= taken;
        if taken > 0 {
            kept.push(run.end - taken..run.end);
        }
    }
    (kept, is_partial)
}

/// How an entry begins.
fn entry_note(view: &EntryView) -> String {
    let entry = &view.placed.entry;
    let shown = entry.shown(entry.content.beginning());
    let line = shown.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim_end();
    let label = view.label.as_ref().map(|label| format!("  [{label}]")).unwrap_or_default();
    format!("{} {line}{label}", role_mark(entry.role))
}
