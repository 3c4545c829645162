//! `mainstay backup`: all that is stored, in a folder.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use mainstay_home::Home;
use mainstay_model::Error;
use mainstay_terminal_client::connect::connect_or_start;
use mainstay_terminal_client::store::{back_up, backup_text};

/// Writes a backup of all sessions into a folder, while everything goes on.
///
/// It holds one moment: all events, outcomes, transcripts and objects that were stored then. Tokens and settings are not in it. A
/// backup is whole once this has ended well; `mainstay restore` checks it by its hashes.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay backup ~/backups/monday\n  mainstay backup /mnt/usb/mainstay --json"
)]
pub(super) struct Backup {
    /// A folder that is empty or not there
    folder: PathBuf,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Backup {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let client = connect_or_start(home, "cli").await?.client;
        let (made, folder) = back_up(&client, &self.folder).await?;
        if self.json {
            super::print_json(&made)?;
        } else {
            println!("{}", backup_text(&made, &folder));
        }
        Ok(ExitCode::SUCCESS)
    }
}
