//! Who builds a project: one session at a time, since builds of one project write the same files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use mainstay_model::BuildReport;
use tokio::sync::OwnedMutexGuard;

/// The projects that are built, by any session.
#[derive(Debug, Default)]
pub(crate) struct Builds {
    turns: Mutex<HashMap<PathBuf, Arc<tokio::sync::Mutex<()>>>>,
    failed: Mutex<HashMap<PathBuf, Failed>>,
}

/// A build at a start that failed.
#[derive(Debug)]
struct Failed {
    /// When the last of the files was written that the project is made of.
    made_of: Option<SystemTime>,
    report: BuildReport,
}

impl Builds {
    /// Waits until nobody else builds the project, and says so where it has to. It is the caller's until what this gives is dropped.
    pub(crate) async fn turn(&self, project: &Path, say: &(dyn Fn(String) + Sync)) -> OwnedMutexGuard<()> {
        let turns = self.turns_of(project);
        match Arc::clone(&turns).try_lock_owned() {
            Ok(turn) => turn,
            Err(_) => {
                say("another session builds the project; this build waits for its end".to_owned());
                turns.lock_owned().await
            }
        }
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

    fn turns_of(&self, project: &Path) -> Arc<tokio::sync::Mutex<()>> {
        let mut all = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(known_as(project)).or_default())
    }
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
        let (builds, project) = (Builds::default(), Path::new("/code/Shop.fsproj"));
        let [before, after] =
            [1, 2].map(|s| Some(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(s)));
        let failed = BuildReport { built: Err("it has 1 error".to_owned()), diagnostics: Vec::new() };
        builds.ended(project, before, &failed);
        assert_eq!(builds.failed_before(project, before), Some(failed));
        assert_eq!(builds.failed_before(project, after), None);
        builds.ended(project, before, &BuildReport { built: Ok(()), diagnostics: Vec::new() });
        assert_eq!(builds.failed_before(project, before), None);
    }

    #[tokio::test]
    async fn a_project_is_built_by_one_at_a_time_and_who_waits_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let (project, link) = (folder.path().join("Shop.fsproj"), folder.path().join("Link.fsproj"));
        std::fs::write(&project, "").unwrap();
        std::os::unix::fs::symlink(&project, &link).unwrap();
        let builds = Builds::default();
        let said = Mutex::new(Vec::new());
        let say = |line| said.lock().unwrap().push(line);

        let first = builds.turn(&project, &say).await;
        let other = folder.path().join("Other.fsproj");
        assert!(at_once(builds.turn(&other, &say)).await.is_some(), "another project is built meanwhile");
        assert_eq!(said.lock().unwrap().len(), 0);
        let mut second = Box::pin(builds.turn(&link, &say));
        assert!(at_once(&mut second).await.is_none());
        assert_eq!(said.lock().unwrap().len(), 1);
        drop(first);
        assert!(at_once(second).await.is_some());
    }
}
