//! Entries that a merge names, and what came of them.

use std::ops::Range;

use mainstay_protocol::entries::numbered;
use mainstay_protocol::view::{BroughtView, MergeView};
use mainstay_terminal::{Paint, Tone, counted, eval_summary, next_step, note, printable, printed};

/// Where entries were put.
pub fn inserted_text(entries: u64, at: u64, asked: Option<u64>) -> String {
    let moved =
        asked.map_or_else(String::new, |asked| format!(", not {asked}: what belongs together stays so"));
    format!("{} put behind the first {at}{moved}", counted(entries, "entry"))
}

/// Shows what came of a merge: each cell's output, then what did not run.
pub fn show_merged(merged: &MergeView) {
    for BroughtView { index, eval } in &merged.ran {
        note(&format!("entry {}:", index + 1));
        print!("{}", printed(&eval.put_out(), Paint::stdout()));
        eprint!("{}", printed(&eval.stderr, Paint::stderr()));
        if !eval.display.trim().is_empty() {
            println!("{}", printable(eval.display.trim_end()));
        }
        eprint!("{}", eval_summary(eval, None, "", Paint::stderr()));
    }
    let told = not_run_text(merged);
    if !told.is_empty() {
        eprint!("{}", Paint::stderr().tone(Tone::Error, &told));
    }
}

/// What of a merge did not run to its end; nothing where all of it did.
fn not_run_text(merged: &MergeView) -> String {
    let MergeView { success, ran, refused, not_run } = merged;
    if *success {
        return String::new();
    }
    let mut text = String::new();
    let stopped = match (refused, ran.last()) {
        (Some(refused), _) => {
            text.push_str(&format!("entry {} was not run: {}\n", refused.index + 1, refused.error.message));
            text.push_str(&format!("  {}\n", next_step(&refused.error.error)));
            ran.len()
        }
        (None, Some(last)) => {
            text.push_str(&format!("entry {} did not run to its end\n", last.index + 1));
            ran.len() - 1
        }
        (None, None) => 0,
    };
    let numbers: Vec<String> = not_run.iter().map(|index| (index + 1).to_string()).collect();
    if !numbers.is_empty() {
        text.push_str(&format!("not run: {}\n", numbers.join(", ")));
    }
    text.push_str(&format!(
        "{stopped} of {} were applied\n",
        ran.len() + usize::from(refused.is_some()) + not_run.len()
    ));
    text
}

/// Entries as a person names them, by their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entries(pub Vec<Range<u64>>);

/// Parses numbers of entries such as `3,4,7-9`.
pub fn entries(text: &str) -> Result<Entries, String> {
    numbered(text).map(Entries)
}

#[cfg(test)]
mod tests {
    use mainstay_model::Error;

    use super::*;

    #[test]
    fn what_was_not_applied_is_said() {
        let merged = MergeView { success: true, ran: Vec::new(), refused: None, not_run: Vec::new() };
        assert_eq!(not_run_text(&merged), "");
        let error = Error::StoreLocked.into();
        let refused = Some(mainstay_protocol::view::RefusedView { index: 4, error });
        let merged = MergeView { success: false, refused, not_run: vec![6, 8], ..merged };
        insta::assert_snapshot!(not_run_text(&merged), @"
        entry 5 was not run: another daemon has the store open
          Use the daemon that runs, or stop it with `mainstay stop`.
        not run: 7, 9
        0 of 3 were applied
        ");
    }
}
