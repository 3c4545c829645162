//! `mainstay backup`: all that is stored, in a folder.

use std::path::{Path, PathBuf, absolute};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use mainstay_client::Client;
use mainstay_home::Home;
use mainstay_model::Error;
use mainstay_model::store::Manifest;
use mainstay_protocol::operations::BackUp;
use mainstay_terminal::{bytes, counted, note};
use tokio::time::{Instant, interval_at};

use crate::connect::connect_or_start;

/// How often a long backup says how far it is.
const TOLD_EVERY: Duration = Duration::from_secs(1);

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
            println!("{}", made_text(&made, &folder));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes a backup, and says every second how far it is; gives what it holds, and the folder's whole path.
pub(crate) async fn back_up(client: &Client, folder: &Path) -> Result<(Manifest, PathBuf), Error> {
    let folder = absolute(folder).map_err(|error| Error::InvalidArgument {
        argument: "folder".to_owned(),
        reason: format!("`{}`: {error}", folder.display()),
    })?;
    let back_up = client.call(BackUp { folder: folder.display().to_string() });
    tokio::pin!(back_up);
    let mut looks = interval_at(Instant::now() + TOLD_EVERY, TOLD_EVERY);
    loop {
        tokio::select! {
            made = &mut back_up => return Ok((made?, folder)),
            _ = looks.tick() => note(&format!("{} written …", bytes(written(&folder)))),
        }
    }
}

/// What a backup holds, and where it is.
pub(crate) fn made_text(made: &Manifest, folder: &Path) -> String {
    let Manifest { sessions, files, bytes: count, .. } = made;
    format!(
        "{} and {} of objects, {}, are in {}",
        counted(*sessions, "session"),
        counted(*files, "file"),
        bytes(*count),
        folder.display()
    )
}

/// How large the files in a folder are by now.
fn written(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => written(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    });
    sizes.sum()
}
