//! `mainstay session lineage`: which sessions were forked off which, as a picture.

use std::process::ExitCode;

use clap::Args;
use mainstay_client::Client;
use mainstay_model::{Error, Timestamp};
use mainstay_protocol::operations::GetLineage;
use mainstay_terminal::Paint;
use mainstay_terminal_client::lineage::lineage_text;

use super::arguments::named;

/// Shows which sessions were forked off which.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  mainstay session lineage\n  mainstay session lineage lab --json")]
pub(super) struct Lineage {
    /// Any session of the lineage [default: the most recently active one of this folder]
    session: Option<String>,

    /// Print the sessions as JSON
    #[arg(long)]
    json: bool,
}

impl Lineage {
    pub(super) async fn run(self, client: &Client) -> Result<ExitCode, Error> {
        let session = named(client, self.session).await?.session;
        let relatives = client.call(GetLineage { session: session.to_string() }).await?;
        if self.json {
            super::print_json(&relatives)?;
        } else {
            print!("{}", lineage_text(&relatives, session, Paint::stdout(), Timestamp::now()));
        }
        Ok(ExitCode::SUCCESS)
    }
}
