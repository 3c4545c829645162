//! Who watches over the daemon of a home: a lock on a file that holds the supervisor's process id. The kernel gives the lock up
//! with the process. The id of one that was killed may stand in the file until its successor writes its own, so an id counts
//! only where its process has the file open.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::Duration;

use mainstay_home::Home;
use mainstay_model::Error;
use mainstay_os::system::has_open;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::Pid;
use tokio::time::{Instant, sleep};

/// How long a process that has just locked the file, or only looks, is waited for.
const SETTLES: Duration = Duration::from_secs(1);
/// The time between two looks at the file.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
/// A record has this many bytes, whatever the id: one write replaces another's whole.
const RECORD: usize = 20;

/// The lock of the process that watches over the daemon, held as long as this value lives.
pub(crate) struct SupervisorLock {
    file: File,
}

impl SupervisorLock {
    /// Makes this process the supervisor.
    pub(crate) async fn take(home: &Home) -> Result<Self, Error> {
        let path = home.supervisor_file();
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        let until = Instant::now() + SETTLES;
        while let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            match error {
                // Whoever asks for the supervisor holds the lock for a moment.
                Errno::WOULDBLOCK if Instant::now() < until => sleep(BETWEEN_LOOKS).await,
                Errno::WOULDBLOCK => return Err(Error::StoreLocked),
                error => return Err(failed(error.into())),
            }
        }
        let record = format!("{:<RECORD$}", std::process::id());
        file.write_all_at(record.as_bytes(), 0).map_err(failed)?;
        Ok(Self { file })
    }
}

impl Drop for SupervisorLock {
    fn drop(&mut self) {
        // An id that stays behind is recognised as stale.
        self.file.set_len(0).ok();
    }
}

/// The supervisor that runs, if one does.
pub async fn supervisor(home: &Home) -> Result<Option<Pid>, Error> {
    let until = Instant::now() + SETTLES;
    loop {
        match look(home) {
            LockOwner::Nobody => return Ok(None),
            LockOwner::By(pid) => return Ok(Some(pid)),
            LockOwner::Unknown if Instant::now() < until => sleep(BETWEEN_LOOKS).await,
            LockOwner::Unknown => return Err(Error::StoreLocked),
        }
    }
}

/// Who has the lock.
enum LockOwner {
    Nobody,
    By(Pid),
    /// It is just coming or going, or lives where its id means nothing here.
    Unknown,
}

fn look(home: &Home) -> LockOwner {
    let Ok(mut file) = File::open(home.supervisor_file()) else { return LockOwner::Nobody };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => {}
        Ok(()) | Err(_) => return LockOwner::Nobody,
    }
    let mut record = String::new();
    let is_read = file.read_to_string(&mut record).is_ok();
    let pid = record.trim().parse().ok().filter(|_| is_read).and_then(Pid::from_raw);
    pid.filter(|pid| has_open(*pid, &file)).map_or(LockOwner::Unknown, LockOwner::By)
}

fn failed(error: std::io::Error) -> Error {
    Error::DaemonFailed { reason: format!("the supervisor's file: {error}") }
}
