//! Folders that come to be whole or not at all: made beside their place under a lock, then renamed.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;
use uuid::Uuid;

/// How often a lock held by another process is tried again.
const RETRY: Duration = Duration::from_millis(50);

/// A file or folder could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("could not {action} {}: {source}", .path.display())]
pub struct FileError {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// Turns the error of an operation on `path` into a [`FileError`]; `action` is a verb such as `write`.
pub fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FileError {
    let path = path.to_owned();
    move |source| FileError { action, path, source }
}

/// The right to change what a lock file stands for. The system takes it back when the process ends, however it ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Waits until no other holds it; `on_wait` is called once if another does.
    ///
    /// # Errors
    /// [`FileError`] when the lock file cannot be made.
    pub async fn acquire(path: &Path, on_wait: impl FnOnce()) -> Result<Self, FileError> {
        let file = File::options().create(true).truncate(false).write(true).open(path);
        let file = file.map_err(failed("open", path))?;
        let mut on_wait = Some(on_wait);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) => {
                    if let Some(on_wait) = on_wait.take() {
                        on_wait();
                    }
                    sleep(RETRY).await;
                }
                Err(TryLockError::Error(source)) => return Err(failed("lock", path)(source)),
            }
        }
    }
}

/// A folder in the making. Whoever makes one holds the lock of its place, so what lies there is left over from a
/// process that was cut off. A program which that process had started may still run and write: so each is made under a name of its own.
#[derive(Debug)]
pub struct Staging {
    place: PathBuf,
    folder: PathBuf,
}

impl Staging {
    /// An empty folder in `place`, which has nothing else.
    ///
    /// # Errors
    /// [`FileError`] when it cannot be made.
    pub fn create(place: &Path) -> Result<Self, FileError> {
        remove(place)?;
        let folder = place.join(Uuid::new_v4().simple().to_string());
        fs::create_dir_all(&folder).map_err(failed("create", &folder))?;
        Ok(Self { place: place.to_owned(), folder })
    }

    /// Returns the path of the staging folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Gives `part`, a folder in the staged one, its final name. What had that name is gone afterwards.
    ///
    /// # Errors
    /// [`FileError`] when it cannot be moved.
    pub async fn publish(self, part: PathBuf, place: PathBuf) -> Result<(), FileError> {
        // Hundreds of megabytes may have to reach the disk.
        let named = place.clone();
        let published = spawn_blocking(move || {
            settle(&part)?;
            replace(&part, &place, &self.place.with_extension("previous"))
        });
        published.await.unwrap_or_else(|cut_off| Err(failed("create", &named)(cut_off.into())))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // Whatever stays is removed by the next one who stages here.
        let _ = fs::remove_dir_all(&self.place);
    }
}

/// How many bytes the files below `folder` hold together.
pub fn size_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size_of(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}

fn replace(part: &Path, place: &Path, previous: &Path) -> Result<(), FileError> {
    remove(previous)?;
    if place.symlink_metadata().is_ok() {
        fs::rename(place, previous).map_err(failed("move aside", place))?;
    }
    fs::rename(part, place).map_err(failed("create", place))?;
    remove(previous)
}

/// Puts what was written on disk, so that after a power failure a folder with its final name is whole.
fn settle(folder: &Path) -> Result<(), FileError> {
    #[cfg(target_os = "linux")]
    {
        let opened = File::open(folder).map_err(failed("open", folder))?;
        rustix::fs::syncfs(&opened).map_err(|error| failed("sync", folder)(error.into()))?;
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = folder;
        rustix::fs::sync();
    }
    Ok(())
}

/// Removes a folder with all that is in it, where it is there.
///
/// # Errors
/// [`FileError`] when it cannot be removed.
pub fn remove(folder: &Path) -> Result<(), FileError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", folder)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// A folder of its own with empty files in it, each named on a line.
    struct Tree(tempfile::TempDir);

    impl Tree {
        fn of(files: &str) -> Self {
            let tree = Self(tempfile::tempdir().unwrap());
            for file in files.lines() {
                let path = tree.path(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
            }
            tree
        }

        fn root(&self) -> PathBuf {
            self.0.path().to_owned()
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }
    }

    #[tokio::test]
    async fn one_holds_a_lock_and_others_wait_for_it() {
        let tree = Tree::of("");
        let path = tree.path("lock");
        let held = Lock::acquire(&path, || unreachable!()).await.unwrap();
        let waited = AtomicBool::new(false);
        let second = Lock::acquire(&path, || waited.store(true, Ordering::SeqCst));
        let release = async {
            sleep(RETRY * 2).await;
            assert!(waited.load(Ordering::SeqCst));
            drop(held);
        };
        assert!(tokio::join!(second, release).0.is_ok());
    }

    #[tokio::test]
    async fn what_is_published_replaces_what_was_there_and_leaves_no_trace() {
        let tree = Tree::of("place/old\nstaging/half-made");
        let staging = Staging::create(&tree.path("staging")).unwrap();
        assert!(!tree.path("staging/half-made").exists());
        let part = staging.folder().join("part");
        fs::create_dir(&part).unwrap();
        fs::write(part.join("new"), "12345").unwrap();
        assert_eq!(size_of(staging.folder()), 5);
        staging.publish(part, tree.path("place")).await.unwrap();
        let entries = |folder: PathBuf| -> Vec<_> {
            fs::read_dir(folder)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect()
        };
        assert_eq!(entries(tree.root()), ["place"]);
        assert_eq!(entries(tree.path("place")), ["new"]);
    }

    #[test]
    fn a_program_that_outlives_the_process_it_worked_for_writes_nowhere() {
        let tree = Tree::of("");
        let cut_off = Staging::create(&tree.path("staging")).unwrap();
        let product = cut_off.folder().join("product");
        // A process that is killed removes nothing.
        std::mem::forget(cut_off);
        let next = Staging::create(&tree.path("staging")).unwrap();
        assert!(fs::write(&product, "half-made").is_err());
        assert_eq!(size_of(next.folder()), 0);
    }

    #[test]
    fn what_is_given_up_disappears() {
        let tree = Tree::of("");
        drop(Staging::create(&tree.path("staging")).unwrap());
        assert!(!tree.path("staging").exists());
    }
}
