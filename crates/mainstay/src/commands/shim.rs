//! The command `mainstay shim`, which only the daemon gives: the process that hosts the runner of one session.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use mainstay_daemon::shims;
use mainstay_model::Error;

/// Hosts the runner of one session for the daemon, which connects to the socket on standard input.
#[derive(Debug, Args)]
pub(super) struct Shim {
    /// The session's folder among those of shims
    folder: PathBuf,
}

impl Shim {
    pub(super) fn run(self) -> Result<ExitCode, Error> {
        shims::run(self.folder)
    }
}
