//! `mainstay session stats`: what is stored, in numbers.

use std::process::ExitCode;

use clap::Args;
use mainstay_client::Client;
use mainstay_model::{Error, Timestamp};
use mainstay_protocol::operations::{GetSessionStatistics, GetStoreStatistics};
use mainstay_terminal_client::statistics::{session_statistics, store_statistics};

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
                    false => print!("{}", session_statistics(&found, Timestamp::now())),
                }
            }
            None => {
                let found = client.call(GetStoreStatistics {}).await?;
                match self.json {
                    true => super::print_json(&found)?,
                    false => print!("{}", store_statistics(&found)),
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
