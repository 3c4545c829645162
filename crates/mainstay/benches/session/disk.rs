//! The bare disk: the least that can be durable.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::Failure;

/// The size of a block, in bytes.
const BLOCK: u64 = 4096;
/// How many blocks the file has, which are written one after the other.
const BLOCKS: u64 = 1024;

/// A file that is written in place.
pub(crate) struct Disk {
    file: File,
    next: u64,
}

impl Disk {
    pub(crate) fn at(path: &Path) -> Result<Self, Failure> {
        let file = File::create(path)?;
        file.set_len(BLOCKS * BLOCK)?;
        file.sync_all()?;
        Ok(Self { file, next: 0 })
    }

    /// Writes a block and has it flushed; returns how long that took.
    pub(crate) fn flush(&mut self) -> Result<Duration, Failure> {
        let began = Instant::now();
        self.file.write_all_at(&[7; BLOCK as usize], self.next % BLOCKS * BLOCK)?;
        self.file.sync_data()?;
        self.next += 1;
        Ok(began.elapsed())
    }
}
