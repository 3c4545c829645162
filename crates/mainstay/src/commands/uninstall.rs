//! The command `mainstay uninstall`: what of Mainstay is where on this machine, and what takes it away.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use mainstay_home::{Home, Installation, program_file};
use mainstay_kernel::jupyter::Places;
use mainstay_model::Error;
use mainstay_terminal::{bytes, note};
use serde::Serialize;

use super::mcp::configured;
use crate::jupyter::registered;

/// Says what of Mainstay is on this machine, and what takes it away. Removes nothing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  mainstay uninstall\n  mainstay uninstall --json")]
pub(super) struct Uninstall {
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
}

/// Something that is there, in the order in which it is best removed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Remains {
    what: String,
    place: String,
    /// The command that takes it away, or what to do.
    removal: String,
}

impl Uninstall {
    pub(super) fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let all = remains(home)?;
        if self.json {
            super::print_json(&all)?;
            return Ok(ExitCode::SUCCESS);
        }
        for Remains { what, place, removal } in &all {
            println!("{what}: {place}\n  {removal}");
        }
        note("nothing was removed");
        Ok(ExitCode::SUCCESS)
    }
}

fn remains(home: &Home) -> Result<Vec<Remains>, Error> {
    let one = |what: &str, place: String, removal: &str| Remains {
        what: what.to_owned(),
        place,
        removal: removal.to_owned(),
    };
    let mut all = Vec::new();
    if let Some(record) = home.daemon().filter(|record| record.is_alive()) {
        all.push(one("the daemon", format!("pid {}", record.pid), "mainstay stop"));
    }
    for agent in configured()? {
        all.push(one(agent.title, agent.file.display().to_string(), &agent.removal));
    }
    for folder in Places::of_user().iter().flat_map(|kernels| registered(kernels)) {
        all.push(one("a kernel of Jupyter", folder.display().to_string(), "mainstay kernel unregister"));
    }
    let stored = format!("{} ({})", home.folder().display(), bytes(size(home.folder())));
    let removal = format!(
        "rm -r {}, once `mainstay backup FOLDER` has kept what you want to keep",
        home.folder().display()
    );
    all.push(one("what is stored", stored, &removal));
    let program = program_file().unwrap_or_else(|_| PathBuf::from("mainstay"));
    let installation =
        Installation::own().map_err(|error| Error::DaemonFailed { reason: error.to_string() })?;
    let by = installation.by.map(|by| format!(" ({by})")).unwrap_or_default();
    all.push(one("the program", format!("{}{by}", program.display()), &installation.uninstall));
    Ok(all)
}

/// The bytes of all files in a folder; what cannot be read counts as nothing.
fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => size(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}
