//! Who builds a project: one session at a time, since builds of one project write the same files. Sessions have processes of their own, so
//! it is a lock on a file that settles it; the system releases the lock of a process that dies.

use std::collections::HashMap;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use mainstay_home::hash;
use mainstay_model::BuildReport;
use tokio::sync::oneshot;

/// The projects that are built, by any session.
#[derive(Debug)]
pub(crate) struct Builds {
    /// The folder of the locks, a file for each project.
    locks: PathBuf,
    failed: Mutex<HashMap<PathBuf, Failed>>,
}

/// The right to build a project, until it is dropped.
#[derive(Debug)]
pub(crate) struct BuildTurn {
    /// None where the lock could not be had.
    _locked: Option<File>,
}

/// A build at a start that failed.
#[derive(Debug)]
struct Failed {
    /// When the last of the files was written that the project is made of.
    made_of: Option<SystemTime>,
    report: BuildReport,
}

impl Builds {
    /// Those of all processes that have their locks in this folder.
    pub(crate) fn locked_in(locks: PathBuf) -> Self {
        Self { locks, failed: Mutex::default() }
    }

    /// Waits until nobody else builds the project, and says so where it has to. It is the caller's until what this gives is dropped.
    pub(crate) async fn turn(&self, project: &Path, say: &(dyn Fn(String) + Sync)) -> BuildTurn {
        match self.lock(project, say).await {
            Ok(file) => BuildTurn { _locked: Some(file) },
            // A build beside another fails at worst, and says why.
            Err(error) => {
                tracing::warn!(%error, project = %project.display(), "a project is built without a lock");
                BuildTurn { _locked: None }
            }
        }
    }

    async fn lock(&self, project: &Path, say: &(dyn Fn(String) + Sync)) -> io::Result<File> {
        let file = self.lock_file(project)?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::Error(error)) => Err(error),
            Err(TryLockError::WouldBlock) => {
                say("another session builds the project; this build waits for its end".to_owned());
                locked(file).await
            }
        }
    }

    /// Opens the file whose lock is the project's.
    fn lock_file(&self, project: &Path) -> io::Result<File> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.locks)?;
        let name = format!("{:016x}", hash(known_as(project).as_os_str().as_bytes()));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600).open(self.locks.join(name))
    }

    /// What came of the last build at a start, where that failed and nothing was written since: another would fail alike, and each new
    /// worker would wait for it.
    pub(crate) fn failed_before(&self, project: &Path, made_of: Option<SystemTime>) -> Option<BuildReport> {
        let all = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&known_as(project))
            .filter(|failed| failed.made_of == made_of)
            .map(|failed| failed.report.clone())
    }

    /// Notes what came of a build at a start.
    pub(crate) fn ended(&self, project: &Path, made_of: Option<SystemTime>, report: &BuildReport) {
        let mut all = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        match report.built {
            Ok(()) => all.remove(&known_as(project)),
            Err(_) => all.insert(known_as(project), Failed { made_of, report: report.clone() }),
        };
    }
}

/// Waits for the lock on a thread of its own: tokio's would hold up the end of the process. Nobody keeps a lock that came too late.
async fn locked(file: File) -> io::Result<File> {
    let (locked, turn) = oneshot::channel();
    std::thread::Builder::new().name("build lock".to_owned()).spawn(move || {
        let taken = file.lock().map(|()| file);
        locked.send(taken).ok();
    })?;
    turn.await.map_err(io::Error::other)?
}

/// The path under which a project is known. One that is not there fails to build by itself.
fn known_as(project: &Path) -> PathBuf {
    project.canonicalize().unwrap_or_else(|_| project.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What it gives, where that is at once.
    async fn at_once<T>(work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = std::future::ready(()) => None,
        }
    }

    #[test]
    fn a_build_that_failed_is_not_repeated_until_something_is_written() {
        let (builds, project) = (Builds::locked_in(PathBuf::new()), Path::new("/code/Shop.fsproj"));
        let [before, after] =
            [1, 2].map(|s| Some(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(s)));
        let failed = BuildReport {
            built: Err("it has 1 error".to_owned()),
            diagnostics: Vec::new(),
            by_warm_compiler: false,
        };
        builds.ended(project, before, &failed);
        assert_eq!(builds.failed_before(project, before), Some(failed));
        assert_eq!(builds.failed_before(project, after), None);
        builds.ended(
            project,
            before,
            &BuildReport { built: Ok(()), diagnostics: Vec::new(), by_warm_compiler: false },
        );
        assert_eq!(builds.failed_before(project, before), None);
    }

    #[tokio::test]
    async fn a_project_is_built_by_one_at_a_time_and_who_waits_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let (project, link) = (folder.path().join("Shop.fsproj"), folder.path().join("Link.fsproj"));
        std::fs::write(&project, "").unwrap();
        std::os::unix::fs::symlink(&project, &link).unwrap();
        // The second is that of another process.
        let [builds, others] = [0, 1].map(|_| Builds::locked_in(folder.path().join("builds")));
        let said = Mutex::new(Vec::new());
        let say = |line| said.lock().unwrap().push(line);

        let first = builds.turn(&project, &say).await;
        let other = folder.path().join("Other.fsproj");
        assert!(at_once(others.turn(&other, &say)).await.is_some(), "another project is built meanwhile");
        assert_eq!(said.lock().unwrap().len(), 0);
        let mut second = Box::pin(builds.turn(&link, &say));
        assert!(at_once(&mut second).await.is_none());
        let mut third = Box::pin(others.turn(&project, &say));
        assert!(at_once(&mut third).await.is_none());
        assert_eq!(said.lock().unwrap().len(), 2);
        drop(third);
        drop(first);
        drop(second.await);
        others.turn(&project, &|_| {}).await;
    }
}
