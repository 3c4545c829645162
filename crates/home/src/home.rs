//! Mainstay's home folder: where everything it keeps for a user lies.

use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use mainstay_model::Error;
use serde::{Deserialize, Serialize};

use crate::DaemonRecord;

/// Names the folder, if it is not `~/.mainstay`.
pub const HOME_VARIABLE: &str = "MAINSTAY_HOME";
/// The longest path of the folder of sockets, in bytes: a shim's folder in it adds 9 (`mainstay-shim` names it), a socket's own name adds 38,
/// and the whole must fit into the system's address structure, which has 104 at the least.
const LONGEST_RUN_FOLDER: usize = 55;

/// The folder, and what lies where in it. One that a process of this program tells another is taken as it is: it is open already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Home {
    folder: PathBuf,
}

/// Has the token of the principal that a client stands for.
pub const TOKEN_VARIABLE: &str = "MAINSTAY_TOKEN";

/// Whether this client stands for a principal of its own.
pub fn shows_own_token() -> bool {
    std::env::var_os(TOKEN_VARIABLE).is_some_and(|token| !token.is_empty())
}

/// A secret that nobody guesses.
pub fn new_token() -> String {
    format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple())
}

impl Home {
    /// The user's, made if it is not there.
    pub fn open() -> Result<Self, Error> {
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
        close_to_others(&home.folder)?;
        Ok(home)
    }

    /// Returns the path of the home folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The database and its objects.
    pub fn store(&self) -> PathBuf {
        self.folder.join("store")
    }

    /// Sessions that were pruned, as files.
    pub fn archive(&self) -> PathBuf {
        self.folder.join("archive")
    }

    /// Copies of projects' assemblies, as workers have them.
    pub fn copies(&self) -> PathBuf {
        self.folder.join("copies")
    }

    /// Where the values of Python sessions are kept, a folder for each session.
    pub fn snapshots(&self) -> PathBuf {
        self.folder.join("snapshots")
    }

    /// What is remembered of the tools that tool workers offer, a file for each worker.
    pub fn tool_inventories(&self) -> PathBuf {
        self.folder.join("tool-workers")
    }

    /// The locks of projects that are built, a file for each.
    pub fn builds(&self) -> PathBuf {
        self.folder.join("builds")
    }

    /// The F# workers that were built here, one for each SDK.
    pub fn fsharp_workers(&self) -> PathBuf {
        self.folder.join("kernels/fsharp")
    }

    /// The Jupyter kernels that were installed here, each in a folder of its own.
    pub fn jupyter(&self) -> PathBuf {
        self.folder.join("kernels/jupyter")
    }

    /// What the creators of sessions have in their environments.
    pub fn environments(&self) -> PathBuf {
        self.folder.join("environments")
    }

    /// What the daemon and its supervisor write down.
    pub fn logs(&self) -> PathBuf {
        self.folder.join("logs")
    }

    /// Who watches over the daemon.
    pub fn supervisor_file(&self) -> PathBuf {
        self.folder.join("supervisor.lock")
    }

    /// Returns the path of the user's settings.
    pub fn config_file(&self) -> PathBuf {
        self.folder.join("config.toml")
    }

    /// Where earlier versions kept the prompt's history.
    pub fn old_history_file(&self) -> PathBuf {
        self.folder.join("history")
    }

    /// Lines of the prompt that no daemon was there to keep.
    pub fn unsent_history_file(&self) -> PathBuf {
        self.folder.join("history.unsent")
    }

    /// The folder of the sockets, the user's alone. A home with a long path has it among the user's run-time files.
    pub fn run_folder(&self) -> Result<PathBuf, Error> {
        let inside = self.folder.join("run");
        if fits(&inside) {
            make_private(&inside)?;
            return Ok(inside);
        }
        let own = format!("mainstay-{}", rustix::process::geteuid().as_raw());
        let name = format!("{:016x}", hash(self.folder.as_os_str().as_bytes()));
        let within = |shared: &Path| shared.join(&own).join(&name);
        let shared = std::env::var_os("XDG_RUNTIME_DIR")
            .map(PathBuf::from)
            .filter(|shared| shared.is_absolute() && shared.is_dir() && fits(&within(shared)))
            .unwrap_or_else(|| PathBuf::from("/tmp"));
        make_private(&shared.join(&own))?;
        let folder = within(&shared);
        make_private(&folder)?;
        Ok(folder)
    }

    /// The folder of the shims, the user's alone: each has a folder of its own in it, for what must outlive a daemon.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn shims(&self) -> Result<PathBuf, Error> {
        let folder = self.folder.join("shims");
        make_private(&folder)?;
        Ok(folder)
    }

    /// The folder of the sockets, without those of a daemon that was killed. The folders of shims stay: a shim may outlive its daemon. Only
    /// who holds the store may ask for it.
    pub fn empty_run_folder(&self) -> Result<PathBuf, Error> {
        let folder = self.run_folder()?;
        let failed = |error: std::io::Error| unusable(&folder, &error);
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if !entry.file_type().map_err(failed)?.is_dir() {
                std::fs::remove_file(entry.path()).map_err(failed)?;
            }
        }
        Ok(folder)
    }

    /// Leaves no folder of sockets behind among files that are not Mainstay's. Only who holds the store may ask for it.
    pub fn clear_run_folder(&self, folder: &Path) {
        if !folder.starts_with(&self.folder) {
            // One that is not empty holds the socket of a worker that is just ending, or those of a shim; the next daemon clears it.
            std::fs::remove_dir(folder).ok();
        }
    }

    /// The token that clients show: the one in the environment, else the daemon's own.
    pub fn shown_token(&self) -> Option<String> {
        std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty()).or_else(|| self.token())
    }

    /// The secret that clients show, if a daemon has made it.
    pub fn token(&self) -> Option<String> {
        let token = std::fs::read_to_string(self.token_file()).ok()?;
        Some(token.trim().to_owned()).filter(|token| !token.is_empty())
    }

    /// The secret that clients show; made where there is none yet, and closed to others where it was not.
    pub fn ensure_token(&self) -> Result<String, Error> {
        if let Some(token) = self.token() {
            let path = self.token_file();
            if tighten(&path, 0o600)? {
                tracing::warn!(path = %path.display(), "the token could be read by others; now only by you");
            }
            return Ok(token);
        }
        let token = new_token();
        write_atomically(&self.token_file(), token.as_bytes())?;
        Ok(token)
    }

    /// What the daemons of this home are known by: random, no secret, and made where there is none yet.
    ///
    /// # Errors
    /// The folder cannot be written, or the identity cannot be read: another in its place would be taken for another home.
    pub fn ensure_identity(&self) -> Result<String, Error> {
        let path = self.folder.join("identity");
        match std::fs::read_to_string(&path) {
            Ok(identity) if !identity.trim().is_empty() => return Ok(identity.trim().to_owned()),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(unusable(&path, &error)),
        }
        let identity = new_token();
        write_atomically(&path, format!("{identity}\n").as_bytes())?;
        Ok(identity)
    }

    /// The daemon that says it runs. It may be gone; only a connection tells.
    pub fn daemon(&self) -> Option<DaemonRecord> {
        serde_json::from_slice(&std::fs::read(self.daemon_file()).ok()?).ok()
    }

    /// Says which daemon runs.
    pub fn write_daemon(&self, record: &DaemonRecord) -> Result<(), Error> {
        let text = serde_json::to_vec_pretty(record)
            .map_err(|error| Error::DaemonFailed { reason: error.to_string() })?;
        write_atomically(&self.daemon_file(), &text)
    }

    /// Says why the daemon `pid` could not begin anew, to whoever waits for that.
    pub fn tell_failure(&self, pid: u32, error: &Error) {
        if let Some(record) = self.daemon().filter(|record| record.pid == pid && record.begins_anew) {
            // Who waits sees the end of the process too.
            self.write_daemon(&DaemonRecord { failure: Some(error.to_string()), ..record }).ok();
        }
    }

    /// Says that the daemon `pid` runs no more, unless another has taken its place.
    pub fn clear_daemon(&self, pid: u32) {
        if self.daemon().is_some_and(|record| record.pid == pid) {
            // A record that stays behind is recognised as stale.
            std::fs::remove_file(self.daemon_file()).ok();
        }
    }

    /// The file with the secret that clients show.
    pub fn token_file(&self) -> PathBuf {
        self.folder.join("token")
    }

    /// The port that a daemon of this home had when none was asked for.
    pub fn last_port(&self) -> Option<u16> {
        std::fs::read_to_string(self.port_file()).ok()?.trim().parse().ok().filter(|port| *port != 0)
    }

    /// Remembers the port, for the next daemon to take.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn keep_port(&self, port: u16) -> Result<(), Error> {
        write_atomically(&self.port_file(), format!("{port}\n").as_bytes())
    }

    fn port_file(&self) -> PathBuf {
        self.folder.join("port")
    }

    /// The file that says which daemon runs.
    pub fn daemon_file(&self) -> PathBuf {
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

/// Adds to a file that only the user may read.
pub fn append_private(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let append = || {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    append().map_err(|error: std::io::Error| unusable(path, &error))
}

/// Whether sockets can have their addresses in a folder.
fn fits(folder: &Path) -> bool {
    folder.as_os_str().as_bytes().len() <= LONGEST_RUN_FOLDER
}

/// Makes a folder that only the user may enter, or makes it so. A link, or a folder of someone else, will not do.
fn make_private(folder: &Path) -> Result<(), Error> {
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(unusable(folder, &error));
        }
        Ok(()) | Err(_) => {}
    }
    let found = std::fs::symlink_metadata(folder).map_err(|error| unusable(folder, &error))?;
    if !found.is_dir() {
        return Err(unusable(folder, &std::io::Error::other("it is no folder")));
    }
    tighten(folder, 0o700).map(drop)
}

/// Closes a home to others. One of another user will not do, nor one that others may write to: they may have put there what would run as
/// this user, such as settings that name programs, or a token that they know.
fn close_to_others(folder: &Path) -> Result<(), Error> {
    let refused = |reason: &str| Error::InvalidArgument {
        argument: HOME_VARIABLE.to_owned(),
        reason: format!("`{}` {reason}", folder.display()),
    };
    let found = std::fs::metadata(folder).map_err(|error| unusable(folder, &error))?;
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(refused("belongs to another user"));
    }
    if found.mode() & 0o022 != 0 {
        return Err(refused(
            "can be written to by others; see what is in it, then close it with `chmod 700`",
        ));
    }
    tighten(folder, 0o700).map(drop)
}

/// Takes from others what they may do with a file of the user's; says whether they could do anything.
fn tighten(path: &Path, mode: u32) -> Result<bool, Error> {
    let failed = |error: std::io::Error| unusable(path, &error);
    let found = std::fs::metadata(path).map_err(failed)?;
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(failed(std::io::Error::other("it belongs to another user")));
    }
    let was_open = found.mode() & 0o077 != 0;
    if was_open {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).map_err(failed)?;
    }
    Ok(was_open)
}

/// The same number for the same bytes in every version of this program (FNV-1a). What it tells apart is one user's own, so 64
/// bits will do.
pub fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

fn unusable(path: &Path, error: &std::io::Error) -> Error {
    Error::DaemonFailed { reason: format!("`{}` cannot be used: {error}", path.display()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A home in this folder.
    fn home_in(folder: &Path) -> Home {
        Home { folder: folder.to_owned() }
    }

    /// A folder in that of the sockets, as a shim has it.
    fn sockets_of_shim(home: &Home) -> PathBuf {
        let folder = home.run_folder().unwrap().join("0a1b2c3d");
        std::fs::create_dir(&folder).unwrap();
        folder
    }

    fn mode(path: &Path) -> u32 {
        std::fs::symlink_metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn an_identity_is_made_once_for_each_home() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let identity = home_in(one.path()).ensure_identity().unwrap();
        assert_eq!(home_in(one.path()).ensure_identity().unwrap(), identity);
        assert_ne!(home_in(other.path()).ensure_identity().unwrap(), identity);
        assert_ne!(home_in(one.path()).ensure_token().unwrap(), identity);
    }

    #[test]
    fn the_folders_of_shims_are_private_and_outlive_the_sockets_of_a_daemon() {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let home = home_in(folder.path());
        let (shims, sockets) = (home.shims().unwrap(), sockets_of_shim(&home));
        assert_eq!(mode(&shims), 0o700);
        let run = home.run_folder().unwrap();
        assert_eq!((sockets.parent(), shims), (Some(run.as_path()), folder.path().join("shims")));
        let of_daemon = run.join("daemon.sock");
        for file in [&of_daemon, &sockets.join("shim.sock")] {
            std::fs::write(file, "").unwrap();
        }
        assert_eq!(home.empty_run_folder().unwrap(), run);
        assert!(!of_daemon.exists() && sockets.join("shim.sock").exists());
        home.clear_run_folder(&run);
        assert!(sockets.join("shim.sock").exists());
    }

    #[test]
    fn a_run_folder_elsewhere_stays_while_a_shim_has_sockets_in_it() {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let home = home_in(&folder.path().join("a".repeat(LONGEST_RUN_FOLDER)));
        let (run, sockets) = (home.run_folder().unwrap(), sockets_of_shim(&home));
        assert!(!run.starts_with(folder.path()));
        home.clear_run_folder(&run);
        assert!(sockets.is_dir());
        std::fs::remove_dir(&sockets).unwrap();
        home.clear_run_folder(&run);
        assert!(!run.exists());
    }

    #[test]
    fn a_socket_of_a_shim_fits_into_an_address() {
        let longest = LONGEST_RUN_FOLDER + "/0a1b2c3d".len() + 38;
        assert!(longest < 104, "{longest}");
    }
}
