//! `mainstay gc`: removes what deleted sessions have left.

use std::process::ExitCode;

use clap::Args;
use mainstay_home::Home;
use mainstay_model::Error;
use mainstay_terminal_client::connect::connect_or_start;
use mainstay_terminal_client::store::{collect, collected_text};

/// Removes what deleted sessions have left and no other session has.
///
/// It goes in small steps beside whatever the daemon does. Ctrl-C leaves the rest for another time. The room is used for what comes;
/// the database itself gets no smaller.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  mainstay gc\n  mainstay gc --json")]
pub(super) struct Gc {
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Gc {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let connection = connect_or_start(home, "cli").await?;
        let collected = collect(&connection.client).await?;
        if self.json {
            super::print_json(&collected)?;
        } else {
            print!("{}", collected_text(&collected));
        }
        Ok(ExitCode::SUCCESS)
    }
}
