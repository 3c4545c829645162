//! The lock that keeps a store to one log at a time, or to those that share it: a lock on a file, which the kernel gives up
//! with the process.

use std::fs::File;
use std::path::Path;

use mainstay_model::Error;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::failure::failed;
use super::files;
use super::options::Sharing;

/// The file in a store's folder that whoever has the store open has open, and locked.
pub const LOCK_FILE: &str = "store.lock";

/// Held as long as it lives.
pub(super) struct StoreLock {
    _file: File,
}

impl StoreLock {
    /// Takes the lock of the store in a folder, alone or with others that share it, or fails at once with [`Error::StoreLocked`].
    pub(super) fn take(folder: &Path, sharing: &Sharing) -> Result<Self, Error> {
        let file = files::create_file(&folder.join(LOCK_FILE))?;
        let operation = match sharing {
            Sharing::Alone => FlockOperation::NonBlockingLockExclusive,
            Sharing::Shared { .. } => FlockOperation::NonBlockingLockShared,
        };
        match flock(&file, operation) {
            Ok(()) => Ok(Self { _file: file }),
            Err(Errno::WOULDBLOCK) => Err(Error::StoreLocked),
            Err(error) => Err(failed(error)),
        }
    }
}
