//! Mainstay's home folder: where everything it keeps for a user lies.

use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use mainstay_model::{Error, Timestamp};
use serde::{Deserialize, Serialize};

/// Names the folder, if it is not `~/.mainstay`.
pub(crate) const HOME_VARIABLE: &str = "MAINSTAY_HOME";
/// A local socket's path must fit into the system's address structure.
const LONGEST_SOCKET_PATH: usize = 100;

/// The folder, and what lies where in it.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    folder: PathBuf,
}

/// The daemon that runs, as `daemon.json` says. Source: seed 000, "Daemon State File".
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DaemonRecord {
    /// Its process id.
    pub(crate) pid: u32,
    /// The loopback port it listens on.
    pub(crate) port: u16,
    /// Its version.
    pub(crate) version: String,
    /// Since when it runs.
    pub(crate) started_at: Timestamp,
    /// The local socket it listens on.
    pub(crate) socket: PathBuf,
}

impl Home {
    /// The user's, made if it is not there.
    pub(crate) fn open() -> Result<Self, Error> {
        let folder = match (std::env::var_os(HOME_VARIABLE), std::env::var_os("HOME")) {
            (Some(folder), _) if !folder.is_empty() => PathBuf::from(folder),
            (_, Some(user)) => Path::new(&user).join(".mainstay"),
            (_, None) => {
                return Err(Error::InvalidArgument {
                    argument: HOME_VARIABLE.to_owned(),
                    reason: "neither it nor HOME is set".to_owned(),
                });
            }
        };
        let folder = std::path::absolute(&folder).map_err(|error| unusable(&folder, &error))?;
        let home = Self { folder };
        for folder in [home.folder.clone(), home.logs()] {
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&folder)
                .map_err(|error| unusable(&folder, &error))?;
        }
        Ok(home)
    }

    /// The folder itself.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The database and its objects.
    pub(crate) fn store(&self) -> PathBuf {
        self.folder.join("store")
    }

    /// What the daemon and its supervisor write down.
    pub(crate) fn logs(&self) -> PathBuf {
        self.folder.join("logs")
    }

    /// The user's settings.
    pub(crate) fn config_file(&self) -> PathBuf {
        self.folder.join("config.toml")
    }

    /// The prompt's history.
    pub(crate) fn history_file(&self) -> PathBuf {
        self.folder.join("history")
    }

    /// Where the daemon listens. A home with a long path has its socket in the folder for temporary files.
    pub(crate) fn socket(&self) -> PathBuf {
        let beside = self.folder.join("daemon.sock");
        if beside.as_os_str().as_bytes().len() <= LONGEST_SOCKET_PATH {
            return beside;
        }
        let user = rustix::process::getuid().as_raw();
        let name = uuid::Uuid::new_v4().simple().to_string();
        std::env::temp_dir().join(format!("mainstay-{user}-{}.sock", &name[..12]))
    }

    /// The secret that clients show, if a daemon has made it.
    pub(crate) fn token(&self) -> Option<String> {
        let token = std::fs::read_to_string(self.token_file()).ok()?;
        Some(token.trim().to_owned()).filter(|token| !token.is_empty())
    }

    /// The secret that clients show; made where there is none yet.
    pub(crate) fn ensure_token(&self) -> Result<String, Error> {
        if let Some(token) = self.token() {
            return Ok(token);
        }
        let token = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
        write_atomically(&self.token_file(), token.as_bytes())?;
        Ok(token)
    }

    /// The daemon that says it runs. It may be gone; only a connection tells.
    pub(crate) fn daemon(&self) -> Option<DaemonRecord> {
        serde_json::from_slice(&std::fs::read(self.daemon_file()).ok()?).ok()
    }

    /// Says which daemon runs.
    pub(crate) fn write_daemon(&self, record: &DaemonRecord) -> Result<(), Error> {
        let text = serde_json::to_vec_pretty(record)
            .map_err(|error| Error::DaemonFailed { reason: error.to_string() })?;
        write_atomically(&self.daemon_file(), &text)
    }

    /// Says that the daemon `pid` runs no more, unless another has taken its place.
    pub(crate) fn clear_daemon(&self, pid: u32) {
        if self.daemon().is_some_and(|record| record.pid == pid) {
            // A record that stays behind is recognised as stale.
            std::fs::remove_file(self.daemon_file()).ok();
        }
    }

    fn token_file(&self) -> PathBuf {
        self.folder.join("token")
    }

    fn daemon_file(&self) -> PathBuf {
        self.folder.join("daemon.json")
    }
}

/// Writes a file that only the user may read, whole or not at all.
fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let staged = path.with_extension(format!("{}.new", std::process::id()));
    let write = || {
        let mut file =
            std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&staged)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&staged, path)
    };
    write().map_err(|error: std::io::Error| unusable(path, &error))
}

fn unusable(path: &Path, error: &std::io::Error) -> Error {
    Error::DaemonFailed { reason: format!("`{}` cannot be used: {error}", path.display()) }
}
