//! Whose the files are, who may use them, and whether there is room for more.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Access, access, statvfs};

use super::super::open::WRITE_AHEAD_LOG_BYTES;
use super::Examiner;
use crate::examination::Stage;
use crate::finding::Finding;

impl Examiner<'_> {
    pub(super) fn files(&mut self, folder: &Path) {
        self.progress(Stage::Files, 0);
        let Ok(owner) = fs::metadata(folder).map(|found| found.uid()) else { return };
        self.writable(folder);
        for name in ["", "mainstay.db", "mainstay.db-wal", "mainstay.db-shm", "store.lock", "objects"] {
            let path = if name.is_empty() { folder.to_owned() } else { folder.join(name) };
            if let Ok(found) = fs::metadata(&path) {
                self.private(&path, &found, owner);
            }
        }
        let database = folder.join("mainstay.db");
        if let Ok(found) = fs::metadata(&database) {
            self.report.database_bytes = found.len();
            self.writable(&database);
        }
        if let Ok(disk) = statvfs(folder) {
            self.report.free_bytes = disk.f_bavail.saturating_mul(disk.f_frsize);
            let (free, wanted) = (self.report.free_bytes, WRITE_AHEAD_LOG_BYTES);
            if free < wanted {
                self.found(Finding::LittleRoom { free, wanted });
            }
        }
    }

    pub(super) fn private(&mut self, path: &Path, found: &Metadata, owner: u32) {
        let path = path.display().to_string();
        if found.mode() & 0o077 != 0 {
            self.found(Finding::Open { path: path.clone(), mode: format!("{:03o}", found.mode() & 0o777) });
        }
        if found.uid() != owner {
            self.found(Finding::OtherOwner { path });
        }
    }

    fn writable(&mut self, path: &Path) {
        if let Err(error) = access(path, Access::WRITE_OK) {
            self.found(Finding::NotWritable { path: path.display().to_string(), reason: error.to_string() });
        }
    }
}
