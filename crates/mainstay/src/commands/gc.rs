//! `mainstay gc`: removes what deleted sessions have left.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use mainstay_client::Client;
use mainstay_home::Home;
use mainstay_model::Error;
use mainstay_model::store::{Collected, Collection};
use mainstay_protocol::operations::{Collect, CollectedPart};
use mainstay_terminal::{bytes, counted, note};
use tokio::time::Instant;

use crate::connect::connect_or_start;

/// How often a long collection says how far it is.
const TOLD_EVERY: Duration = Duration::from_secs(1);

/// Removes what deleted sessions have left and no other session has.
///
/// It goes in small steps beside whatever the daemon does. Ctrl-C leaves the rest for another time. The room is used for what comes;
/// the database itself gets no smaller.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  mainstay gc\n  mainstay gc --json")]
pub(super) struct Gc {
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Gc {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let connection = connect_or_start(home, "cli").await?;
        let collected = collect(&connection.client).await?;
        if self.json {
            super::print_json(&collected)?;
        } else {
            print!("{}", collected_text(&collected));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Collects all there is, and says every second how far it is.
pub(crate) async fn collect(client: &Client) -> Result<Collected, Error> {
    let (mut all, mut next) = (Collected::default(), Some(Collection::default()));
    let mut due = Instant::now() + TOLD_EVERY;
    while let Some(from) = next {
        let CollectedPart { collected, next: further } = client.call(Collect { from }).await?;
        all += collected;
        next = further;
        if Instant::now() >= due {
            due += TOLD_EVERY;
            note(&format!(
                "collecting: {}, {} …",
                counted(all.events, "event"),
                counted(all.entries, "entry")
            ));
        }
    }
    Ok(all)
}

/// What was removed, on one line.
pub(crate) fn collected_text(collected: &Collected) -> String {
    if collected.is_empty() {
        return "there was nothing to collect\n".to_owned();
    }
    let Collected { events, entries, objects, outcomes, bytes: count } = collected;
    let removed = [
        counted(*events, "event"),
        counted(*entries, "entry"),
        counted(*objects, "object"),
        counted(*outcomes, "outcome"),
    ];
    format!("collected {}: {}\n", removed.join(", "), bytes(*count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_removed_is_counted() {
        assert_eq!(collected_text(&Collected::default()), "there was nothing to collect\n");
        let collected = Collected { events: 12, entries: 4, objects: 1, outcomes: 3, bytes: 123_456 };
        insta::assert_snapshot!(collected_text(&collected), @"collected 12 events, 4 entries, 1 object, 3 outcomes: 123.5 kB");
    }
}
