//! `mainstay restore`: a backup in the place of what is stored.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use mainstay_home::Home;
use mainstay_log::{manifest, restore};
use mainstay_model::store::Manifest;
use mainstay_model::{Error, Timestamp};
use mainstay_terminal::{Enter, ago, agrees, bytes, counted, note};

/// Puts a backup in the place of what is stored. The daemon must be stopped.
///
/// The backup is checked and copied first. What was stored is set aside, in a folder beside the store, and is removed by nobody but
/// you.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  mainstay stop\n  mainstay restore ~/backups/monday")]
pub(super) struct Restore {
    /// The folder of the backup
    folder: PathBuf,

    /// Restore without asking first
    #[arg(short, long)]
    yes: bool,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Restore {
    pub(super) fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let Self { folder, yes, json } = self;
        let store = home.store();
        let Some(backup) = manifest(&folder)? else {
            let reason =
                format!("`{}` is no whole backup: it has no manifest that can be read", folder.display());
            return Err(Error::InvalidArgument { argument: "folder".to_owned(), reason });
        };
        let now = Timestamp::now();
        if store.exists() && !yes && !agrees(&question(&backup, now), Enter::No)? {
            note("nothing was restored");
            return Ok(ExitCode::FAILURE);
        }
        let aside = restore(&folder, &store, now)?;
        if json {
            super::print_json(&serde_json::json!({ "backup": backup, "setAside": aside }))?;
            return Ok(ExitCode::SUCCESS);
        }
        println!("{} as of {}", counted(backup.sessions, "session"), ago(backup.made_at, now));
        if let Some(aside) = aside {
            note(&format!("what was stored is in {}; remove it once you need it no more", aside.display()));
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn question(backup: &Manifest, now: Timestamp) -> String {
    let Manifest { made_at, sessions, bytes: count, .. } = backup;
    format!(
        "Set aside what is stored, and take the backup of {} ({}, {})?",
        ago(*made_at, now),
        counted(*sessions, "session"),
        bytes(*count)
    )
}
