//! The folders that are watched. One that is gone is waited for: its parent, or who stands for that, tells when it comes back. Of one that a
//! process works in the system does not tell that it is gone, so for some seconds after something was removed the folders are looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::time::{Instant, sleep_until};

/// How often folders are looked at in which something was removed.
const LOOK: Duration = Duration::from_millis(250);
/// For how long after that.
const SUSPECT: Duration = Duration::from_secs(10);

/// What tells a folder from another one with its name.
type Identity = (u64, u64);

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
    watched: BTreeMap<PathBuf, Identity>,
    /// When it is looked next whether folders were removed without a word, and until when.
    looks: Option<(Instant, Instant)>,
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
            watched: BTreeMap::new(),
            looks: None,
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
            if *are_gone && self.watched.remove(path).is_some() {
                // What is gone has taken its watch with it, what was renamed has not.
                self.watcher.unwatch(path).ok();
                is_other = true;
            }
            is_other |= self.awaited().any(|wanted| wanted.starts_with(path));
        }
        if *are_gone {
            let now = Instant::now();
            let next = self.looks.map_or(now + LOOK, |(next, _)| next);
            self.looks = Some((next, now + SUSPECT));
        }
        if is_other { self.renewed() } else { Vec::new() }
    }

    /// Waits until the folders are to be looked at; for ever where none may have been removed without a word.
    pub(super) async fn suspected(&self) {
        match self.looks {
            Some((next, _)) => sleep_until(next).await,
            None => std::future::pending().await,
        }
    }

    /// Looks whether the folders are those that are watched. Gives those that are watched anew, as [`hear`](Self::hear) does.
    pub(super) fn look(&mut self) -> Vec<PathBuf> {
        let next = Instant::now() + LOOK;
        self.looks = self.looks.filter(|(_, until)| next < *until).map(|(_, until)| (next, until));
        if self.watched.iter().all(|(folder, known)| identity(folder) == Some(*known)) {
            return Vec::new();
        }
        self.forget_replaced();
        self.renewed()
    }

    /// Watches what is wanted and not watched; gives what of it is watched now.
    fn renewed(&mut self) -> Vec<PathBuf> {
        let awaited: Vec<PathBuf> = self.awaited().cloned().collect();
        self.renew();
        awaited.into_iter().filter(|folder| self.watched.contains_key(folder)).collect()
    }

    /// Those that are wanted and not watched.
    fn awaited(&self) -> impl Iterator<Item = &PathBuf> {
        self.wanted.iter().filter(|folder| !self.watched.contains_key(*folder))
    }

    /// Lets go of those whose names others have now, or none.
    fn forget_replaced(&mut self) {
        let Self { watcher, watched, .. } = self;
        watched.retain(|folder, known| {
            let is_there = identity(folder) == Some(*known);
            if !is_there {
                watcher.unwatch(folder).ok();
            }
            is_there
        });
    }

    fn renew(&mut self) {
        self.forget_replaced();
        let mut watched = BTreeMap::new();
        for folder in self.wanted.clone() {
            // A folder may come while the one above it begins to be watched, which then says nothing of it.
            while let Some(there) = there(&folder) {
                let is_watched = self.watch(there);
                if self::there(&folder) == Some(there) {
                    watched.extend(is_watched.map(|known| (there.to_owned(), known)));
                    break;
                }
            }
        }
        for unwanted in self.watched.keys().filter(|folder| !watched.contains_key(*folder)) {
            self.watcher.unwatch(unwanted).ok();
        }
        self.watched = watched;
    }

    /// Watches a folder; none where that cannot be.
    fn watch(&mut self, folder: &Path) -> Option<Identity> {
        if let Some(known) = self.watched.get(folder) {
            return Some(*known);
        }
        // What takes its place from here on is another one than is known.
        let identity = identity(folder)?;
        match self.watcher.watch(folder, RecursiveMode::NonRecursive) {
            Ok(()) => {
                self.watched.insert(folder.to_owned(), identity);
                Some(identity)
            }
            Err(error) => {
                if folder.is_dir() && !self.is_failure_told {
                    self.is_failure_told = true;
                    tracing::warn!(folder = %folder.display(), %error, "a folder cannot be watched; what changes in it is seen at the next look");
                }
                None
            }
        }
    }
}

/// None where there is no folder.
fn identity(folder: &Path) -> Option<Identity> {
    folder.metadata().ok().filter(std::fs::Metadata::is_dir).map(|about| (about.dev(), about.ino()))
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

        fn watched(&self) -> Vec<PathBuf> {
            self.folders.watched.keys().cloned().collect()
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
        world.hear_until(|folders, _, _| folders.watched.contains_key(&root));
        fs::create_dir_all(&folder).unwrap();
        world.hear_until(|_, _, anew| anew.contains(&folder));
        assert_eq!(world.watched(), [folder]);
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
    fn a_folder_that_a_process_works_in_is_watched_when_it_is_made_again() {
        let mut world = World::watching("a");
        let (folder, file) = (world.path("a"), world.path("a/x.fsx"));
        fs::write(&file, "old").unwrap();
        let _held = fs::File::open(&folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        fs::create_dir(&folder).unwrap();
        world.hear_until(|folders, told, _| told.are_gone && folders.looks.is_some());
        // The system may have told of it after all: then it is watched already.
        let anew = world.folders.look();
        assert!(anew.is_empty() || anew == [folder.clone()]);
        assert_eq!(world.folders.watched.get(&folder).copied(), identity(&folder));
        world.hears_of("a/x.fsx");
    }

    #[test]
    fn no_more_folders_are_watched_than_allowed() {
        let mut world = World::watching("a");
        fs::create_dir(world.path("b")).unwrap();
        world.folders.most = 1;
        world.folders.set(BTreeSet::from([world.path("a"), world.path("b")]));
        assert_eq!(world.watched(), [world.path("a")]);
        assert!(world.folders.is_limit_told);
    }
}
