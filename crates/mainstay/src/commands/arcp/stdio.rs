//! `mainstay arcp`: a byte bridge from stdio to the daemon's ARCP.

use std::process::ExitCode;

use mainstay_arcp::AttachArcp;
use mainstay_client::attach;
use mainstay_home::Home;
use mainstay_home::environment::client_environment;
use mainstay_model::Error;
use mainstay_terminal_client::connect::{answered, connect_or_start};
use mainstay_terminal_client::paths::working_directory;

use crate::bridge::bridge;

/// Serves ARCP over stdio, one envelope a line, until the input ends.
pub(super) async fn serve(home: &Home) -> Result<ExitCode, Error> {
    drop(connect_or_start(home, "arcp").await?);
    let record = home.daemon().ok_or(Error::DaemonNotRunning)?;
    let token = home.shown_token().ok_or(Error::Unauthorized)?;
    let folder = working_directory()?.display().to_string();
    let attached = AttachArcp { token, working_directory: Some(folder), environment: client_environment() };
    let (stream, _) = answered(home, record.pid, attach(&record.socket, attached)).await?;
    bridge(stream).await
}
