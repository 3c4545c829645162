//! The command `mainstay status`, which describes the daemon.

use std::process::ExitCode;

use clap::Args;
use mainstay_home::Home;
use mainstay_model::{Error, Timestamp};
use mainstay_protocol::operations::{DaemonStatus, GetStatus};
use mainstay_terminal::Paint;
use mainstay_terminal_client::compilers::{CompilerView, compilers, compilers_text};
use mainstay_terminal_client::connect::connect_any_version;
use mainstay_terminal_client::shims::{ShimView, StandbyView, shims, shims_text, standby, standby_text};
use mainstay_terminal_client::status::{limits_text, status_text};
use serde::Serialize;

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
        let connection = match connect_any_version(home, "cli").await {
            Err(Error::DaemonNotRunning) => {
                eprint!("{}", shims_text(&shims(home)?, false, Paint::stderr()));
                return Err(Error::DaemonNotRunning);
            }
            connected => connected?,
        };
        let status = connection.client.call(GetStatus {}).await?;
        let (shims, standby, compilers) = (shims(home)?, standby(home)?, compilers(home)?);
        if self.json {
            super::print_json(&StatusView { status, shims, standby, compilers })?;
        } else {
            let paint = Paint::stdout();
            print!("{}{}", status_text(&status, paint, Timestamp::now()), shims_text(&shims, true, paint));
            print!("{}{}", standby_text(standby.as_ref()), compilers_text(&compilers));
            if self.limits {
                print!("{}", limits_text(&status.limits));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The status for scripts: what the daemon says, and the shims that the home has.
#[derive(Serialize)]
struct StatusView {
    #[serde(flatten)]
    status: DaemonStatus,
    shims: Vec<ShimView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    standby: Option<StandbyView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    compilers: Vec<CompilerView>,
}
