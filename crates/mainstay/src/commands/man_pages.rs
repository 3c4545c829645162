//! The command `mainstay man-pages`, which only the build of packages gives.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory};
use mainstay_model::Error;

/// Writes the man page of each command into a folder.
#[derive(Debug, Args)]
pub(super) struct ManPages {
    /// The folder of the pages
    folder: PathBuf,
}

impl ManPages {
    pub(super) fn run(self) -> Result<ExitCode, Error> {
        clap_mangen::generate_to(super::Cli::command(), &self.folder).map_err(|error| {
            Error::InvalidArgument { argument: self.folder.display().to_string(), reason: error.to_string() }
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
