//! `mainstay session stats`: what is stored, in numbers.

use std::process::ExitCode;

use clap::Args;
use mainstay_client::Client;
use mainstay_model::store::{SessionStatistics, StoreStatistics};
use mainstay_model::{Error, Timestamp};
use mainstay_protocol::operations::{GetSessionStatistics, GetStoreStatistics};
use mainstay_protocol::view::StatisticsView;

use super::session_text::tally;
use mainstay_terminal::{ago, bytes, counted, printable};

/// Show what is stored, of one session or of all
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  mainstay session stats\n  mainstay session stats lab --json")]
pub(super) struct Stats {
    /// The session [default: all of them together]
    session: Option<String>,

    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

impl Stats {
    pub(super) async fn run(self, client: &Client) -> Result<ExitCode, Error> {
        match self.session {
            Some(session) => {
                let found = client.call(GetSessionStatistics { session }).await?;
                match self.json {
                    true => super::print_json(&found)?,
                    false => print!("{}", session_text(&found, Timestamp::now())),
                }
            }
            None => {
                let found = client.call(GetStoreStatistics {}).await?;
                match self.json {
                    true => super::print_json(&found)?,
                    false => print!("{}", store_text(&found)),
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What is stored of a session.
pub(crate) fn session_text(found: &StatisticsView, now: Timestamp) -> String {
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
pub(crate) fn store_text(found: &StoreStatistics) -> String {
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
        insta::assert_snapshot!(store_text(&found), @"
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
