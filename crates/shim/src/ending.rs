//! Ending shims that nobody goes on with: at the start of a daemon, at its stop, and where a session has no use for its shim.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use futures::future::join_all;
use mainstay_model::SessionId;
use rustix::process::Signal;
use tokio::io::AsyncReadExt;
use tokio::time::{sleep, timeout};

use crate::folder::{SOCKET, ShimFolder, ShimRecord, StandbyRecord, is_of_shim};
use crate::proxy::ShimProcess;
use crate::stream::connect;

/// How long a shim that was told to end may take to do so, its worker with it. Then it is killed.
pub(crate) const FAREWELL: Duration = Duration::from_secs(8);

/// How often it is looked whether a process is gone that does not listen any more.
const LOOK: Duration = Duration::from_millis(5);

/// The sessions whose shims live.
pub fn living(shims: &Path) -> HashSet<SessionId> {
    ShimFolder::records(shims).into_iter().filter(lives).map(|record| record.session).collect()
}

/// Whether the shim of a record lives.
pub(crate) fn lives(record: &ShimRecord) -> bool {
    ShimProcess { pid: record.pid, started: record.started }.lives()
}

/// Ends these shims, where they live: nobody goes on with them. What they had to say and nobody has taken is left in their folders. Returns
/// how many there were.
pub async fn end_all(records: Vec<ShimRecord>) -> usize {
    let ended = join_all(records.iter().map(end)).await;
    ended.into_iter().filter(|was_there| *was_there).count()
}

/// The standby of a home, where one lives.
pub fn standby(shims: &Path) -> Option<StandbyRecord> {
    let records = ShimFolder::of_standbys(shims).into_iter().filter_map(|folder| folder.standby_record());
    records.into_iter().find(|record| standby_process(record).lives())
}

/// Ends the standbys of a home, which are nobody's: the daemon that wanted them is gone, or ends. Done when they are gone.
pub async fn end_standbys(shims: &Path) {
    for folder in ShimFolder::of_standbys(shims) {
        if let Some(process) = folder.standby_record().as_ref().map(standby_process) {
            // Its worker is bound to it.
            process.signal(Signal::KILL);
            while process.lives() {
                sleep(LOOK).await;
            }
        }
        folder.remove();
    }
}

fn standby_process(record: &StandbyRecord) -> ShimProcess {
    ShimProcess { pid: record.pid, started: record.started }
}

/// Waits until the shims that were told to end have ended, and ends those that have not in time.
pub async fn see_off_all(shims: &Path) {
    join_all(ShimFolder::records(shims).into_iter().map(|record| async move {
        if timeout(FAREWELL, wait_for_end(&record)).await.is_err() {
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
        if timeout(FAREWELL, wait_for_end(record)).await.is_err() {
            tracing::warn!(session = %record.session, pid = record.pid, "a shim does not end, and is killed");
            process.signal(Signal::KILL);
        }
    }
    remove_sockets(record).await;
    was_there
}

/// Removes what lies among the sockets for a shim that is gone.
pub(crate) async fn remove_sockets(record: &ShimRecord) {
    let is_socket = record.socket.file_name().is_some_and(|name| name == SOCKET);
    if let Some(sockets) = record.socket.parent().filter(|folder| is_socket && is_of_shim(folder)) {
        tokio::fs::remove_dir_all(sockets).await.ok();
    }
}

/// Waits until the process of a shim is gone.
pub(crate) async fn wait_for_end(record: &ShimRecord) {
    while lives(record) {
        // The end of a connection is the end of the shim, or of its listening.
        if let Ok(Some(mut stream)) = connect(&record.socket).await {
            let mut nothing = [0; 64];
            while matches!(stream.read(&mut nothing).await, Ok(1..)) {}
        }
        if lives(record) {
            sleep(LOOK).await;
        }
    }
}
