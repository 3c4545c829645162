//! What is stored of a session and of all, in numbers.

use mainstay_model::Timestamp;
use mainstay_model::store::{SessionStatistics, StoreStatistics};
use mainstay_protocol::view::StatisticsView;
use mainstay_terminal::{ago, bytes, counted, printable};

use crate::session_text::tally;

/// What is stored of a session.
pub fn session_statistics(found: &StatisticsView, now: Timestamp) -> String {
    let StatisticsView { session, transcript, stored } = found;
    let SessionStatistics { events, event_bytes, entries, entry_bytes, holders } = stored;
    let inherited = transcript.saturating_sub(*entries);
    let (noun, failed) = tally(session);
    let counts = format!("{noun}s");
    let mut rows = vec![
        ("created", ago(session.created_at, now)),
        ("used", ago(session.last_activity, now)),
        ("events", format!("{events}, {}", bytes(*event_bytes))),
        ("entries", format!("{entries} of its own, {}", bytes(*entry_bytes))),
    ];
    if inherited > 0 {
        rows.push(("", format!("{inherited} of sessions it comes from, which take no room")));
    }
    rows.push((&counts, format!("{}, {failed}", session.evals)));
    if *holders > 0 {
        rows.push(("held by", counted(*holders, "other session")));
    }
    format!("{}  {}\n{}", session.short_id, printable(&session.name), table(&rows))
}

/// What is stored of all sessions.
pub fn store_statistics(found: &StoreStatistics) -> String {
    let StoreStatistics {
        sessions,
        deleted,
        events,
        outcomes,
        entries,
        places,
        objects,
        object_bytes,
        database_bytes,
        free_bytes,
        file_bytes,
    } = found;
    let gone = match deleted {
        0 => String::new(),
        deleted => format!(", {deleted} deleted"),
    };
    table(&[
        ("sessions", format!("{sessions}{gone}")),
        ("events", events.to_string()),
        ("outcomes", outcomes.to_string()),
        ("entries", format!("{entries}, in {}", counted(*places, "place"))),
        ("objects", format!("{objects}, {}", bytes(*object_bytes))),
        ("database", format!("{}, {} of it free for what comes", bytes(*database_bytes), bytes(*free_bytes))),
        ("files", bytes(*file_bytes)),
    ])
}

fn table(rows: &[(&str, String)]) -> String {
    rows.iter().map(|(name, value)| format!("  {name:<9} {value}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_told_in_numbers() {
        let found = StoreStatistics {
            sessions: 3,
            deleted: 1,
            events: 120,
            outcomes: 20,
            entries: 30,
            places: 34,
            objects: 1,
            object_bytes: 100_000,
            database_bytes: 1_000_000,
            free_bytes: 4096,
            file_bytes: 100_000,
        };
        insta::assert_snapshot!(store_statistics(&found), @"
        sessions  3, 1 deleted
        events    120
        outcomes  20
        entries   30, in 34 places
        objects   1, 100.0 kB
        database  1.0 MB, 4.1 kB of it free for what comes
        files     100.0 kB
        ");
    }
}
