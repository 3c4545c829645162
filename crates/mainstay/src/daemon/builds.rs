//! Who builds a project: one session at a time, since builds of one project write the same files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;

/// The projects that are built, by any session.
#[derive(Debug, Default)]
pub(super) struct Builds(Mutex<HashMap<PathBuf, Arc<tokio::sync::Mutex<()>>>>);

impl Builds {
    /// Waits until nobody else builds the project, and says so where it has to. It is the caller's until what this gives is dropped.
    pub(super) async fn turn(&self, project: &Path, say: &(dyn Fn(String) + Sync)) -> OwnedMutexGuard<()> {
        let turns = self.turns_of(project);
        match Arc::clone(&turns).try_lock_owned() {
            Ok(turn) => turn,
            Err(_) => {
                say("another session builds the project; this build waits for its end".to_owned());
                turns.lock_owned().await
            }
        }
    }

    fn turns_of(&self, project: &Path) -> Arc<tokio::sync::Mutex<()>> {
        // One that is not there fails to build by itself.
        let project = project.canonicalize().unwrap_or_else(|_| project.to_owned());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(project).or_default())
    }
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
