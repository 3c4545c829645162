//! `mainstay environment`: what a login shell is asked to run.

use std::process::ExitCode;

use clap::Args;
use mainstay_model::Error;

use crate::environment;

/// Prints this process's environment between marks.
#[derive(Debug, Args)]
pub(super) struct Environment {
    /// What is printed before and behind it
    #[arg(long)]
    mark: String,
}

impl Environment {
    pub(super) fn run(self) -> Result<ExitCode, Error> {
        let printed = environment::print(&self.mark);
        printed.map_err(|error| Error::DaemonFailed { reason: error.to_string() })?;
        Ok(ExitCode::SUCCESS)
    }
}
