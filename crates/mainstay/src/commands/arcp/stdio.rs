//! `mainstay arcp` without a command: a byte bridge from stdio to the daemon's ARCP.

use std::process::ExitCode;

use mainstay_arcp::Purpose;
use mainstay_home::Home;
use mainstay_model::Error;
use mainstay_terminal_client::connect::connect_or_start;

use super::client::attached;
use crate::bridge::bridge;

/// Serves ARCP over stdio, until the input ends.
pub(super) async fn serve(home: &Home) -> Result<ExitCode, Error> {
    drop(connect_or_start(home, "arcp").await?);
    bridge(attached(home, Purpose::Serve).await?).await
}
