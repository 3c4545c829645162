//! The folders that are watched. One that is gone is waited for: its parent, or who stands for that, tells when it comes back.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

/// What the system told of some paths.
#[derive(Debug)]
pub(super) struct PathChange {
    pub(super) paths: Vec<PathBuf>,
    /// Whether they are not there any more, under their names.
    pub(super) are_gone: bool,
}

/// The folders that are watched.
pub(super) struct Folders {
    watcher: RecommendedWatcher,
    /// How many of those that are wanted are watched at most.
    most: usize,
    wanted: BTreeSet<PathBuf>,
    /// Those that are there, and for each of the others the next above it that is.
    watched: BTreeSet<PathBuf>,
    /// Whether it was said that some cannot be watched.
    is_failure_told: bool,
    /// Whether it was said that some are left out.
    is_limit_told: bool,
}

impl PathChange {
    pub(super) fn of(event: notify::Event) -> Self {
        use notify::EventKind;
        use notify::event::ModifyKind;
        let are_gone = matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)));
        Self { paths: event.paths, are_gone }
    }
}

impl Folders {
    pub(super) fn new(watcher: RecommendedWatcher, most: usize) -> Self {
        Self {
            watcher,
            most,
            wanted: BTreeSet::new(),
            watched: BTreeSet::new(),
            is_failure_told: false,
            is_limit_told: false,
        }
    }

    /// Watches these, and no others.
    pub(super) fn set(&mut self, wanted: BTreeSet<PathBuf>) {
        let left_out = wanted.len().saturating_sub(self.most);
        if left_out > 0 && !self.is_limit_told {
            self.is_limit_told = true;
            tracing::warn!(left_out, "more folders matter than `watch-folders` allows; some are not watched");
        }
        self.wanted = wanted.into_iter().take(self.most).collect();
        self.renew();
    }

    /// Takes in what was told of paths. Gives the folders that are watched anew: of what happened in them meanwhile nothing is known.
    pub(super) fn hear(&mut self, told: &PathChange) -> Vec<PathBuf> {
        let PathChange { paths, are_gone } = told;
        let mut is_other = false;
        for path in paths {
            if *are_gone && self.watched.remove(path) {
                // What is gone has taken its watch with it, what was renamed has not.
                self.watcher.unwatch(path).ok();
                is_other = true;
            }
            is_other |= self.awaited().any(|wanted| wanted.starts_with(path));
        }
        if !is_other {
            return Vec::new();
        }
        let awaited: Vec<PathBuf> = self.awaited().cloned().collect();
        self.renew();
        awaited.into_iter().filter(|folder| self.watched.contains(folder)).collect()
    }

    /// Those that are wanted and not watched.
    fn awaited(&self) -> impl Iterator<Item = &PathBuf> {
        self.wanted.difference(&self.watched)
    }

    fn renew(&mut self) {
        let mut watched = BTreeSet::new();
        for folder in self.wanted.clone() {
            // A folder may come while the one above it begins to be watched, which then says nothing of it.
            while let Some(there) = there(&folder) {
                let is_watched = self.watch(there);
                if self::there(&folder) == Some(there) {
                    watched.extend(is_watched.then(|| there.to_owned()));
                    break;
                }
            }
        }
        for unwanted in self.watched.difference(&watched) {
            self.watcher.unwatch(unwanted).ok();
        }
        self.watched = watched;
    }

    fn watch(&mut self, folder: &Path) -> bool {
        if self.watched.contains(folder) {
            return true;
        }
        match self.watcher.watch(folder, RecursiveMode::NonRecursive) {
            Ok(()) => {
                self.watched.insert(folder.to_owned());
                true
            }
            Err(error) => {
                if folder.is_dir() && !self.is_failure_told {
                    self.is_failure_told = true;
                    tracing::warn!(folder = %folder.display(), %error, "a folder cannot be watched; what changes in it is seen at the next look");
                }
                false
            }
        }
    }
}

/// The folder, or the next above it that is there.
fn there(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| folder.is_dir())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// Longer than any of this takes.
    const LONG: Duration = Duration::from_secs(20);

    struct World {
        root: tempfile::TempDir,
        folders: Folders,
        told: mpsc::Receiver<PathChange>,
    }

    impl World {
        fn watching(folder: &str) -> Self {
            let root = tempfile::tempdir().unwrap();
            fs::create_dir_all(root.path().join(folder)).unwrap();
            let (told_in, told) = mpsc::channel();
            let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
                told_in.send(PathChange::of(event.unwrap())).ok();
            });
            let mut folders = Folders::new(watcher.unwrap(), 10);
            folders.set(BTreeSet::from([root.path().join(folder)]));
            Self { root, folders, told }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.root.path().join(name)
        }

        /// Hears what is told until this is so.
        fn hear_until(&mut self, mut is_so: impl FnMut(&Folders, &PathChange, &[PathBuf]) -> bool) {
            loop {
                let told = self.told.recv_timeout(LONG).unwrap();
                let anew = self.folders.hear(&told);
                if is_so(&self.folders, &told, &anew) {
                    return;
                }
            }
        }

        fn hears_of(&mut self, name: &str) {
            let file = self.path(name);
            fs::write(&file, "new").unwrap();
            self.hear_until(|_, told, _| told.paths.contains(&file));
        }
    }

    #[test]
    fn a_folder_that_is_made_again_is_watched_again() {
        let mut world = World::watching("a/b");
        let (above, folder) = (world.path("a"), world.path("a/b"));
        fs::remove_dir_all(&above).unwrap();
        let root = world.root.path().to_owned();
        world.hear_until(|folders, _, _| folders.watched.contains(&root));
        fs::create_dir_all(&folder).unwrap();
        world.hear_until(|_, _, anew| anew.contains(&folder));
        assert_eq!(world.folders.watched, BTreeSet::from([folder]));
        world.hears_of("a/b/x.fsx");
    }

    #[test]
    fn another_folder_in_the_place_of_one_that_was_renamed_is_watched() {
        let mut world = World::watching("a");
        let folder = world.path("a");
        fs::rename(&folder, world.path("old")).unwrap();
        fs::create_dir(&folder).unwrap();
        world.hear_until(|_, _, anew| anew.contains(&folder));
        world.hears_of("a/x.fsx");
    }

    #[test]
    fn no_more_folders_are_watched_than_allowed() {
        let mut world = World::watching("a");
        fs::create_dir(world.path("b")).unwrap();
        world.folders.most = 1;
        world.folders.set(BTreeSet::from([world.path("a"), world.path("b")]));
        assert_eq!(world.folders.watched, BTreeSet::from([world.path("a")]));
        assert!(world.folders.is_limit_told);
    }
}
