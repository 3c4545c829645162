//! `mainstay session transcript`: what was said in a session, numbered.

use std::process::ExitCode;

use clap::Args;
use mainstay_client::Client;
use mainstay_model::Error;
use mainstay_terminal::{Paint, note};
use mainstay_terminal_client::transcript::{
    EntrySelection, Pages, SHOWN_LINES, entry_text, nothing_shown, show_picture,
};

use super::arguments::named;

/// Shows what was said in a session: each input, and what came of it; or each message of a conversation with an agent.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay session transcript\n  mainstay session transcript lab --from 11 --count 10\n  mainstay session transcript lab --json | jq -r 'select(.entry.role == \"input\").entry.content'"
)]
pub(super) struct Transcript {
    /// The session [default: the most recently active one of this folder]
    session: Option<String>,

    /// From the entry with this number on
    #[arg(long, default_value_t = 1, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    from: u64,

    /// At most so many entries [default: all]
    #[arg(long, value_name = "ENTRIES")]
    count: Option<u64>,

    /// Print long entries in full
    #[arg(long)]
    full: bool,

    /// Print JSON, an entry a line
    #[arg(long)]
    json: bool,
}

impl Transcript {
    pub(super) async fn run(self, client: &Client) -> Result<ExitCode, Error> {
        let session = named(client, self.session.clone()).await?;
        let paint = Paint::stdout();
        let lines = if self.full { usize::MAX } else { SHOWN_LINES };
        let mut shown = 0;
        let wanted = EntrySelection { from: self.from - 1, count: self.count, full: self.full };
        let mut pages = Pages::of(session.session, wanted);
        while let Some(page) = pages.next(client).await? {
            for (number, entry) in &page {
                shown += 1;
                if self.json {
                    super::print_json_line(entry)?;
                } else {
                    print!("{}", entry_text(*number, entry, lines, paint));
                    show_picture(client, session.session, *number, entry).await?;
                }
            }
        }
        if shown == 0 && !self.json {
            note(nothing_shown(self.from));
        }
        Ok(ExitCode::SUCCESS)
    }
}
