//! The command `mainstay completions`, for shells.

use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Prints a completion script for a shell.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  mainstay completions bash > ~/.local/share/bash-completion/completions/mainstay"
)]
pub(super) struct Completions {
    /// The shell to complete for
    shell: Shell,
}

impl Completions {
    pub(super) fn run(self) -> ExitCode {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut super::Cli::command(), "mainstay", &mut script);
        print!("{}", String::from_utf8_lossy(&script));
        ExitCode::SUCCESS
    }
}
