//! `mainstay arcp`: ARCP over stdio, and a client of it for scripts.

mod stdio;

use std::process::ExitCode;

use clap::Args;
use mainstay_home::Home;
use mainstay_model::Error;

/// Serves ARCP over stdio, one envelope a line.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  echo '{\"arcp\": \"1.1\", \"id\": \"1\", \"type\": \"session.hello\", \"payload\": {\"client\": {\"name\": \"sh\", \"version\": \"1\"}}}' | mainstay arcp | jq .\n\nOver WebSocket the same is at /arcp of the daemon's port, where the first envelope shows the token."
)]
pub(super) struct Arcp {}

impl Arcp {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        stdio::serve(home).await
    }
}
