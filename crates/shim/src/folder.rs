//! What lies on disk for a shim: in the home, a folder for each session with a record of its shim; among the sockets, a folder with
//! those of the shim and of its worker.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use mainstay_model::{Epoch, Error, SessionId, SessionKind};
use serde::{Deserialize, Serialize};

use crate::ending::lives;

/// The name of a shim's socket in its folder.
pub(crate) const SOCKET: &str = "shim.sock";

/// How the names of standbys' folders begin. No session's name does.
const STANDBY_PREFIX: &str = "standby-";

/// The file in which a standby is recorded.
const STANDBY: &str = "standby.json";

/// How many characters the name of a folder of sockets has: an address in it must fit into the system's 108 bytes.
const NAME: usize = 8;

/// A shim, as the home has it. It is written by the shim when it begins; whether the shim lives only a connection tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShimRecord {
    /// The session that the shim is for.
    pub session: SessionId,
    /// The kind of the session.
    pub kind: SessionKind,
    /// The process of the shim.
    pub pid: u32,
    /// When the process was started, in the system's own terms: a process of the same number that was started at another time is
    /// another. None where the system does not tell.
    pub started: Option<u64>,
    /// The folder of the record.
    pub folder: PathBuf,
    /// The socket on which it is spoken to.
    pub socket: PathBuf,
    /// The secret that whoever connects must show.
    pub token: String,
    /// The newest epoch of those who had the session: whoever owns it in an older one has no business with the shim.
    pub epoch: Epoch,
    /// The newest version of the runner protocol that it speaks.
    pub protocol: u32,
    /// The version of Mainstay that it is of.
    pub version: String,
}

/// A process that was started ahead and waits for its session, as the home has it. It is written by the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StandbyRecord {
    /// The kind of session that it is for.
    pub kind: SessionKind,
    /// The process of the shim.
    pub pid: u32,
    /// When the shim's process was started, as in [`ShimRecord`].
    pub started: Option<u64>,
    /// The process that waits.
    pub worker_pid: u32,
}

/// The folder in the home of one session's shim.
#[derive(Clone, Debug)]
pub struct ShimFolder {
    folder: PathBuf,
}

impl ShimFolder {
    /// The folder of a session's shim, in the folder of all.
    pub fn of(shims: &Path, session: SessionId) -> Self {
        Self { folder: shims.join(session.to_string()) }
    }

    /// The folder at this place.
    pub fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The shims of a home that have a record, in no order.
    pub fn records(shims: &Path) -> Vec<ShimRecord> {
        let Ok(entries) = std::fs::read_dir(shims) else { return Vec::new() };
        entries.flatten().filter_map(|entry| Self::at(entry.path()).record()).collect()
    }

    /// The sessions that have a folder here.
    pub(crate) fn sessions(shims: &Path) -> Vec<SessionId> {
        let Ok(entries) = std::fs::read_dir(shims) else { return Vec::new() };
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    }

    /// A new folder in that of all, for the shim of a standby.
    pub(crate) fn of_standby(shims: &Path) -> Self {
        Self { folder: shims.join(format!("{STANDBY_PREFIX}{}", short_name())) }
    }

    /// Whether this folder was made for a standby: nothing but that one's shim ever has it.
    pub(crate) fn is_of_standby(&self) -> bool {
        self.folder.file_name().is_some_and(is_of_standby)
    }

    /// The folders here of standbys, whether their shims live or not.
    pub(crate) fn of_standbys(shims: &Path) -> Vec<Self> {
        let Ok(entries) = std::fs::read_dir(shims) else { return Vec::new() };
        entries
            .flatten()
            .filter(|entry| is_of_standby(&entry.file_name()))
            .map(|entry| Self::at(entry.path()))
            .collect()
    }

    /// The record of the standby whose folder this is; none where it is not ready, or there is none.
    pub(crate) fn standby_record(&self) -> Option<StandbyRecord> {
        serde_json::from_slice(&std::fs::read(self.folder.join(STANDBY)).ok()?).ok()
    }

    /// Writes the record of a standby.
    pub(crate) fn write_standby_record(&self, record: &StandbyRecord) -> std::io::Result<()> {
        self.write(STANDBY, &serde_json::to_vec_pretty(record)?)
    }

    /// Becomes the folder of a session's shim, with all in it but the record of the standby. What an earlier shim of the session left is
    /// removed.
    pub(crate) fn given_to(&self, session: SessionId) -> std::io::Result<Self> {
        let given = Self { folder: self.folder.with_file_name(session.to_string()) };
        match std::fs::remove_file(self.folder.join(STANDBY)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        given.remove();
        std::fs::rename(&self.folder, &given.folder)?;
        Ok(given)
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// The record of the shim; none where there was none, or it is not whole.
    pub fn record(&self) -> Option<ShimRecord> {
        let record: ShimRecord =
            serde_json::from_slice(&std::fs::read(self.folder.join("shim.json")).ok()?).ok()?;
        // A copy of a home has no business with the shims of the original.
        (record.folder == self.folder).then_some(record)
    }

    /// Writes the record of a shim, unless that of another is there which lives.
    pub(crate) fn write_record(&self, record: &ShimRecord) -> std::io::Result<()> {
        match self.record().is_some_and(|known| known.token != record.token && lives(&known)) {
            true => Err(std::io::ErrorKind::AlreadyExists.into()),
            false => self.write("shim.json", &serde_json::to_vec_pretty(record)?),
        }
    }

    /// Removes the folder with all in it, where it is that of this shim: another of the session's may have moved in.
    pub(crate) fn remove_of(&self, token: &str) {
        if self.record().is_some_and(|known| known.token == token) {
            self.remove();
        }
    }

    /// Writes a small file whole or not at all.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> std::io::Result<()> {
        let (staged, path) = (self.folder.join(format!("{name}.new")), self.folder.join(name));
        let mut file =
            std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&staged)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&staged, &path)
    }

    /// The file of notices that do not fit into the shim's memory.
    pub(crate) fn overflow(&self) -> PathBuf {
        self.folder.join("overflow")
    }

    /// What a shim has left that ended without a daemon: which runner it was.
    pub(crate) fn leftover(&self) -> PathBuf {
        self.folder.join("left.json")
    }

    /// The notices that such a shim has left.
    pub(crate) fn left_notices(&self) -> PathBuf {
        self.folder.join("left.notices")
    }

    /// The shim's own log.
    pub fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Makes the folder, without what an earlier shim left in it.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`].
    pub(crate) fn make(&self) -> Result<(), Error> {
        self.remove();
        make_private(&self.folder)
    }

    /// Removes the folder and all in it. It goes with its record, at one moment: whoever finds no record may make the folder anew, and
    /// nothing of that is removed by a shim that is still ending.
    pub(crate) fn remove(&self) {
        // A session's name has no dot.
        let aside = self.folder.with_extension("gone");
        // What stays behind is removed when the session is brought up the next time.
        std::fs::remove_dir_all(&aside).ok();
        if std::fs::rename(&self.folder, &aside).is_ok() {
            std::fs::remove_dir_all(&aside).ok();
        }
    }
}

/// A new folder for the sockets of one shim, within the folder of sockets.
///
/// # Errors
/// [`Error::WorkerFailed`].
pub(crate) fn make_sockets(run: &Path) -> Result<PathBuf, Error> {
    let folder = run.join(short_name());
    make_private(&folder)?;
    Ok(folder)
}

fn short_name() -> String {
    uuid::Uuid::new_v4().simple().to_string().chars().take(NAME).collect()
}

fn is_of_standby(name: &std::ffi::OsStr) -> bool {
    name.as_encoded_bytes().starts_with(STANDBY_PREFIX.as_bytes())
}

/// Whether a folder has the name of one for the sockets of a shim.
pub(crate) fn is_of_shim(sockets: &Path) -> bool {
    let name = sockets.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.len() == NAME && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The shim's socket in the folder of its sockets.
pub(crate) fn socket_in(sockets: &Path) -> PathBuf {
    sockets.join(SOCKET)
}

fn make_private(folder: &Path) -> Result<(), Error> {
    std::fs::DirBuilder::new().mode(0o700).recursive(true).create(folder).map_err(|error| {
        Error::WorkerFailed { reason: format!("the folder `{}` cannot be made: {error}", folder.display()) }
    })
}

#[cfg(test)]
mod tests {
    use mainstay_model::SessionKind;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_folder_without_a_record_is_not_one_that_is_just_being_removed() {
        let shims = tempfile::tempdir().unwrap();
        let session = SessionId::from_uuid(Uuid::from_u128(1));
        let folder = ShimFolder::of(shims.path(), session);
        for _ in 0..20 {
            folder.make().unwrap();
            for file in 0..100 {
                std::fs::write(folder.path().join(format!("file-{file}")), "").unwrap();
            }
            let record = ShimRecord {
                session,
                kind: SessionKind::fsharp(),
                pid: 1,
                started: None,
                folder: folder.path().to_owned(),
                socket: PathBuf::new(),
                token: "own".to_owned(),
                epoch: Epoch(1),
                protocol: 1,
                version: String::new(),
            };
            folder.write_record(&record).unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| folder.remove_of("own"));
                while folder.record().is_some() {}
                assert!(!folder.path().exists(), "the shim of another could have moved in");
            });
        }
        assert_eq!(std::fs::read_dir(shims.path()).unwrap().count(), 0);
    }
}
