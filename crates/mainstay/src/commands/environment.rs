//! `mainstay environment`: what a login shell is asked to run.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use mainstay_home::environment;
use mainstay_model::Error;

/// Prints this process's environment between marks.
#[derive(Debug, Args)]
pub(super) struct Environment {
    /// What is printed before and behind it
    #[arg(long, required_unless_present = "check")]
    mark: Option<String>,

    /// Ask the login shell, for so many milliseconds at most, and print why it does not say what is in its environment
    #[arg(long, value_name = "MS")]
    check: Option<u64>,
}

impl Environment {
    pub(super) fn run(self) -> Result<ExitCode, Error> {
        if let Some(limit) = self.check {
            // A shell that is interactive stops where it is not in front of the terminal that it has.
            rustix::process::setsid().ok();
            return Ok(match environment::login_shell_environment(Duration::from_millis(limit)) {
                Ok(_) => ExitCode::SUCCESS,
                Err(reason) => {
                    println!("{reason}");
                    ExitCode::FAILURE
                }
            });
        }
        let printed = environment::print_between(&self.mark.unwrap_or_default());
        printed.map_err(|error| Error::DaemonFailed { reason: error.to_string() })?;
        Ok(ExitCode::SUCCESS)
    }
}
