//! `mainstay backup`: all that is stored, in a folder.

use std::path::{Path, PathBuf, absolute};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use mainstay_gateway::rpc::api::BackUp;
use mainstay_log::Manifest;
use mainstay_model::Error;
use tokio::time::{Instant, interval_at};

use crate::connect::connect_or_start;
use crate::home::Home;
use crate::terminal::{bytes, counted, note};

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

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Backup {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let folder = absolute(&self.folder).map_err(|error| Error::InvalidArgument {
            argument: "folder".to_owned(),
            reason: format!("`{}`: {error}", self.folder.display()),
        })?;
        let client = connect_or_start(home, "cli").await?.client;
        let back_up = client.call(BackUp { folder: folder.display().to_string() });
        tokio::pin!(back_up);
        let mut looks = interval_at(Instant::now() + TOLD_EVERY, TOLD_EVERY);
        let made = loop {
            tokio::select! {
                made = &mut back_up => break made?,
                _ = looks.tick() => note(&format!("{} written …", bytes(written(&folder)))),
            }
        };
        if self.json {
            super::print_json(&made)?;
        } else {
            let Manifest { sessions, files, bytes: count, .. } = made;
            println!(
                "{} and {} of objects, {}, are in {}",
                counted(sessions, "session"),
                counted(files, "file"),
                bytes(count),
                folder.display()
            );
        }
        Ok(ExitCode::SUCCESS)
    }
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
