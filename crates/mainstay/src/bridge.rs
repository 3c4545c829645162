//! A byte bridge between this process's input and output and a connection to the daemon.

use std::pin::pin;
use std::process::ExitCode;

use mainstay_client::Stream;
use mainstay_model::Error;
use tokio::io::{AsyncWriteExt, copy, stdin, stdout};

/// Carries bytes both ways until the client's input has ended and all is answered.
pub(crate) async fn bridge((mut from_daemon, mut to_daemon): Stream) -> Result<ExitCode, Error> {
    let upward = async {
        copy(&mut stdin(), &mut to_daemon).await?;
        to_daemon.shutdown().await
    };
    let downward = async {
        let mut out = stdout();
        copy(&mut from_daemon, &mut out).await?;
        out.flush().await
    };
    let (mut upward, mut downward) = (pin!(upward), pin!(downward));
    let sent = tokio::select! {
        biased;
        sent = &mut upward => sent,
        // It is the daemon that has gone; the client would never hear of it while its input is waited for.
        _ = &mut downward => return Err(Error::DaemonNotRunning),
    };
    // The daemon closes its side once the client's input has ended and all is answered.
    match (sent, downward.await) {
        (Ok(()), Ok(())) => Ok(ExitCode::SUCCESS),
        _ => Err(Error::DaemonNotRunning),
    }
}
