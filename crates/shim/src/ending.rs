//! Ending shims that nobody goes on with: at the start of a daemon, at its stop, and where a session has no use for its shim.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use futures::future::join_all;
use mainstay_model::SessionId;
use rustix::process::Signal;
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use crate::folder::{ShimFolder, ShimRecord};
use crate::proxy::ShimProcess;
use crate::stream::connect;

/// How long a shim that was told to end may take to do so, its worker with it. Then it is killed.
const FAREWELL: Duration = Duration::from_secs(8);

/// The sessions whose shims live.
pub fn living(shims: &Path) -> HashSet<SessionId> {
    ShimFolder::records(shims).into_iter().filter(lives).map(|record| record.session).collect()
}

/// Whether the shim of a record lives.
pub(crate) fn lives(record: &ShimRecord) -> bool {
    ShimProcess { pid: record.pid, started: record.started }.lives()
}

/// Ends the shims of all sessions but these. For a daemon that has its store alone and has adopted what it goes on with, or for who knows that
/// no daemon runs. What they had to say and nobody has taken is left in their folders. Returns how many there were.
pub async fn end_all_but(shims: &Path, kept: &HashSet<SessionId>) -> usize {
    let others = ShimFolder::records(shims).into_iter().filter(|record| !kept.contains(&record.session));
    let ended = join_all(others.map(|record| async move { end(&record).await })).await;
    ended.into_iter().filter(|was_there| *was_there).count()
}

/// Waits until the shims that were told to end have ended, and ends those that have not in time.
pub async fn see_off_all(shims: &Path) {
    join_all(ShimFolder::records(shims).into_iter().map(|record| async move {
        if timeout(FAREWELL, has_ended(&record)).await.is_err() {
            end(&record).await;
        }
    }))
    .await;
}

/// Ends the shim of a record by signals, where it lives: its daemon is gone, or it does not obey. Returns whether it lived.
pub(crate) async fn end(record: &ShimRecord) -> bool {
    let process = ShimProcess { pid: record.pid, started: record.started };
    let was_there = process.signal(Signal::TERM);
    if was_there {
        tracing::info!(session = %record.session, pid = record.pid, "a shim that nobody goes on with is ended");
        if timeout(FAREWELL, has_ended(record)).await.is_err() {
            tracing::warn!(session = %record.session, pid = record.pid, "a shim does not end, and is killed");
            process.signal(Signal::KILL);
        }
    }
    remove_sockets(record).await;
    was_there
}

/// Removes what lies among the sockets for a shim that is gone.
pub(crate) async fn remove_sockets(record: &ShimRecord) {
    if let Some(sockets) = record.socket.parent() {
        tokio::fs::remove_dir_all(sockets).await.ok();
    }
}

/// Waits for the end of a connection to a shim, which is the end of the shim.
async fn has_ended(record: &ShimRecord) {
    while let Ok(Some(mut stream)) = connect(&record.socket).await {
        let mut nothing = [0; 64];
        while matches!(stream.read(&mut nothing).await, Ok(1..)) {}
    }
}
