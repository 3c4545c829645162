//! Who watches over the daemon of a home: a lock on a file that holds the supervisor's process id. The kernel gives the lock up
//! with the process, so an id under a lock is never that of a stranger.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use mainstay_model::Error;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::Pid;

use crate::home::Home;

/// Held as long as it lives.
pub(super) struct Watch {
    _file: File,
}

impl Watch {
    /// Makes this process the supervisor.
    pub(super) fn take(home: &Home) -> Result<Self, Error> {
        let path = home.supervisor_file();
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(Error::StoreLocked),
            Err(error) => return Err(failed(error.into())),
        }
        file.set_len(0).map_err(failed)?;
        write!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(Self { _file: file })
    }
}

/// The supervisor that runs, if one does.
pub(crate) fn supervisor(home: &Home) -> Option<Pid> {
    let path = home.supervisor_file();
    let file = File::open(&path).ok()?;
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => Pid::from_raw(std::fs::read_to_string(&path).ok()?.parse().ok()?),
        Ok(()) | Err(_) => None,
    }
}

fn failed(error: std::io::Error) -> Error {
    Error::DaemonFailed { reason: format!("the supervisor's file: {error}") }
}
