//! The environments of sessions: what whoever created one has in its own, laid over the daemon's for the session's runner. The values are
//! secrets as a rule: they are in memory and in files that only the user may read, and in no event, log or export.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use mainstay_model::SessionId;
use mainstay_runner::environment::Environment;
use tokio::task::spawn_blocking;

/// How the name of a file ends that is being written.
const STAGED: &str = "new";

/// The environments of all sessions.
#[derive(Debug, Default)]
pub struct Environments {
    /// Where they are kept for the next daemon, a file each; nowhere where there is none.
    folder: Option<PathBuf>,
    /// How much one may be, in bytes; without a limit where there is no folder.
    limit: usize,
    known: Mutex<BTreeMap<SessionId, Environment>>,
    /// How large those were, in bytes, that were too large for sessions which this daemon has created.
    dropped: Mutex<BTreeMap<SessionId, usize>>,
}

impl Environments {
    /// Kept in this folder, which is made where it is not there; each up to so many bytes.
    pub fn in_folder(folder: PathBuf, limit: usize) -> Self {
        Self { folder: Some(folder), limit, ..Self::default() }
    }

    /// That of a session. Its file is read where it stands: once in a daemon's life, one small file, and some who ask cannot wait for it.
    pub(crate) fn of(&self, session: SessionId) -> Environment {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let read = || {
            let text = std::fs::read(self.file(session)?).ok()?;
            let read = serde_json::from_slice::<BTreeMap<String, String>>(&text);
            let read =
                read.inspect_err(|error| tracing::warn!(%session, %error, "its environment cannot be read"));
            Some(read.ok()?.into_iter().collect())
        };
        known.entry(session).or_insert_with(|| read().unwrap_or_default()).clone()
    }

    /// Keeps that of a session which is to be created. One that is too large is dropped, which [`Self::dropped`] says.
    pub(crate) async fn keep(&self, session: SessionId, environment: Environment) {
        if self.folder.is_some() && environment.bytes() > self.limit {
            let (bytes, limit) = (environment.bytes(), self.limit);
            tracing::warn!(%session, bytes, limit, "its creator's environment is too large, and not taken");
            self.dropped.lock().unwrap_or_else(PoisonError::into_inner).insert(session, bytes);
            return;
        }
        if let Some(file) = self.file(session) {
            // It waits for the disk.
            let written = environment.clone();
            let written = spawn_blocking(move || write(&file, &written)).await;
            if let Err(error) = written.map_err(std::io::Error::other).flatten() {
                tracing::warn!(%session, %error, "its environment is not kept for the next daemon");
            }
        }
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(session, environment);
    }

    /// That what a session's creator has in its environment was not taken, in a sentence; nothing where it was.
    pub(crate) fn dropped(&self, session: SessionId) -> Option<String> {
        let dropped = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
        let (bytes, limit) = (dropped.get(&session)?, self.limit);
        Some(format!(
            "the environment of its creator was not taken: it has {bytes} bytes, and `session-environment-bytes` allows {limit}; its code \
             finds that of the daemon"
        ))
    }

    /// Removes that of a session that is gone. To remove a file takes no longer than to hand that over.
    pub(crate) fn forget(&self, session: SessionId) {
        self.dropped.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
        if let Some(file) = self.file(session) {
            // Most sessions have none; what stays behind is found again at the next collection.
            std::fs::remove_file(file.with_extension(STAGED)).ok();
            std::fs::remove_file(file).ok();
        }
    }

    /// The sessions that there are files of.
    pub(crate) fn kept(&self) -> Vec<SessionId> {
        let entries =
            self.folder.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
        // One that was not written to its end has what is secret in it too.
        let session = |name: &str| {
            let (stem, extension) = name.rsplit_once('.')?;
            ["json", STAGED].contains(&extension).then(|| stem.parse().ok())?
        };
        entries.filter_map(|entry| session(entry.file_name().to_str()?)).collect()
    }

    fn file(&self, session: SessionId) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(format!("{session}.json")))
    }
}

/// Writes a file that only the user may read, whole or not at all.
fn write(file: &Path, environment: &Environment) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let staged = file.with_extension(STAGED);
    let mut out = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&staged)?;
    out.write_all(&serde_json::to_vec(environment)?)?;
    out.sync_all()?;
    std::fs::rename(&staged, file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[tokio::test]
    async fn what_is_kept_is_there_for_the_next_daemon_and_for_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Environments::in_folder(folder.path().join("environments"), 64);
        let session: SessionId = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
        open().keep(session, environment(&[("SECRET", "s3cret"), ("A=B", "no"), ("", "no")])).await;
        let next = open();
        assert_eq!(next.of(session), environment(&[("SECRET", "s3cret")]));
        assert!(!format!("{next:?}").contains("s3cret"));
        let file = folder.path().join(format!("environments/{session}.json"));
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(next.kept(), [session]);
        next.forget(session);
        assert_eq!((next.of(session), next.kept()), (Environment::default(), Vec::new()));
    }

    #[tokio::test]
    async fn one_that_is_too_large_is_not_taken_and_said_to_be() {
        let folder = tempfile::tempdir().unwrap();
        let environments = Environments::in_folder(folder.path().to_owned(), 64);
        let session: SessionId = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
        environments.keep(session, environment(&[("LARGE", &"x".repeat(64))])).await;
        assert!(environments.of(session).is_empty());
        let dropped = environments.dropped(session).unwrap();
        assert!(dropped.contains("it has 71 bytes, and `session-environment-bytes` allows 64"), "{dropped}");
        environments.forget(session);
        assert_eq!(environments.dropped(session), None);
    }
}
