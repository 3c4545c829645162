//! Agents as the command line deals with them: what is there, and getting pi with progress in view.

use mainstay_agent::pi::{FoundPi, Search, install};
use mainstay_model::Error;
use mainstay_os::download::Progress;
use mainstay_terminal::{self as terminal, ProgressLine, bytes};

/// Installs pi under Mainstay's home.
pub(crate) async fn install_pi(search: &Search) -> Result<(), Error> {
    let line = ProgressLine::default();
    let installed = install(search, &|progress| line.show(&shown(&progress))).await;
    line.clear();
    let FoundPi { program, version, .. } =
        installed.map_err(|error| Error::KernelUnavailable { reason: error.to_string() })?;
    terminal::note(&format!("pi {} is installed: {}", version.unwrap_or_default(), program.display()));
    Ok(())
}

fn shown(progress: &Progress) -> String {
    match progress {
        Progress::Waiting => "waiting for another process that installs pi".to_owned(),
        Progress::Installing { elapsed, bytes: count } => {
            format!("installing pi from npm: {}, {} s", bytes(*count), elapsed.as_secs())
        }
    }
}
