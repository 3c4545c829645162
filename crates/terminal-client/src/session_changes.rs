//! What changes of a session mean, in words, before they are made and after.

use mainstay_model::{SessionState, Timestamp};
use mainstay_protocol::operations::{Compacted, Forked, Refreshed};
use mainstay_protocol::view::StatisticsView;
use mainstay_terminal::{ago, counted, printable};

use crate::session_text::validity_words;

/// What was compacted, and whether the cut is where it was asked for.
pub fn compacted_text(Compacted { session, entries, asked }: &Compacted) -> String {
    let told = format!("the summary stands for {} of {}", counted(*entries, "entry"), session.name);
    match asked {
        Some(asked) => format!("{told}, not {asked}: a call stays with its result"),
        None => told,
    }
}

/// Whether to delete it, with what that means.
pub fn delete_question(found: &StatisticsView, now: Timestamp) -> String {
    let StatisticsView { session, transcript, stored } = found;
    let mut facts = vec![counted(*transcript, "entry"), format!("used {}", ago(session.last_activity, now))];
    if session.state != SessionState::Uninitialized.name() {
        facts.push(format!("it is {}", session.state));
    }
    match stored.holders {
        0 => {}
        1 => facts.push("1 session was forked off it and keeps what it has".to_owned()),
        holders => facts.push(format!("{holders} sessions come from it and keep what they have")),
    }
    format!("Delete {} ({}: {})?", printable(&session.name), session.short_id, facts.join(", "))
}

/// That the cut is not where it was asked for.
pub fn moved_text(forked: &Forked) -> Option<String> {
    let asked = forked.asked?;
    let entries = forked.entries;
    let why = match forked.session.is_agent() {
        true => "a call stays with its result",
        false => "an output stays with its input",
    };
    Some(format!("it begins with {entries} entries, not {asked}: {why}"))
}

/// Why the definitions run again, or why not; `all` of them where that is wanted.
pub fn refresh_reason(refreshed: &Refreshed, all: bool) -> String {
    let Refreshed { session, changed, gone, is_due, .. } = refreshed;
    let words = match (gone.as_slice(), changed.as_slice(), is_due) {
        ([_, ..], _, _) => {
            let (gone, verb) = (gone.join(", "), if gone.len() == 1 { "is" } else { "are" });
            format!("{gone} {verb} gone; once it is there again, this runs the definitions again")
        }
        ([], [_, ..], _) => format!("{} changed", changed.join(", ")),
        ([], [], true) => validity_words(session).unwrap_or_else(|| "something is out of date".to_owned()),
        ([], [], false) if all => "nothing is out of date; all runs again".to_owned(),
        ([], [], false) => "nothing is out of date".to_owned(),
    };
    printable(&words).into_owned()
}
