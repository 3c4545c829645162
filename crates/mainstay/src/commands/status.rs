//! The command `mainstay status`, which describes the daemon.

use std::process::ExitCode;

use clap::Args;
use mainstay_home::Home;
use mainstay_model::{Error, Timestamp};
use mainstay_protocol::operations::GetStatus;
use mainstay_terminal::Paint;
use mainstay_terminal_client::connect::connect_any_version;
use mainstay_terminal_client::status::{limits_text, status_text};

/// Shows the daemon and its sessions.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay status\n  mainstay status --limits\n  mainstay status --json | jq .residentBytes"
)]
pub(super) struct Status {
    /// Show every limit in force, too
    #[arg(long)]
    limits: bool,

    /// Print the status as JSON
    #[arg(long)]
    json: bool,
}

impl Status {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let connection = connect_any_version(home, "cli").await?;
        let status = connection.client.call(GetStatus {}).await?;
        if self.json {
            super::print_json(&status)?;
        } else {
            print!("{}", status_text(&status, Paint::stdout(), Timestamp::now()));
            if self.limits {
                print!("{}", limits_text(&status.limits));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
