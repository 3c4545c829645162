//! `mainstay completions`

use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Prints a completion script for a shell.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  mainstay completions bash > ~/.local/share/bash-completion/completions/mainstay"
)]
pub(super) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(super) fn run(self) -> ExitCode {
        clap_complete::generate(self.shell, &mut super::Cli::command(), "mainstay", &mut std::io::stdout());
        ExitCode::SUCCESS
    }
}
