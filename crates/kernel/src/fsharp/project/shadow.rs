//! Copies of assemblies for a session, so that a build never replaces a file that a worker has loaded. Copies, never links: a worker
//! that has mapped a file which is then written would crash.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::mem;
use std::path::{Component, Path, PathBuf};

use mainstay_model::Error;
use tokio::task::spawn_blocking;

use super::toolchain::unavailable;
use super::{Content, Resolved};

/// How many digits of the hash a folder's name has.
const DIGITS: usize = 16;
/// What the name of a folder begins with that is to be removed.
const OLD: &str = "old-";
/// How many bytes of contents are copied at most.
const CONTENT_BYTES: u64 = 64 * 1024 * 1024;
/// What is copied beside an assembly, where it is there.
const COMPANIONS: [&str; 3] = ["pdb", "xml", "deps.json"];

/// Copies the assemblies of `resolved` into a folder below `into`, which is named by what they hold, and tells where the copies are. Where
/// that folder is there already nothing is written. Other copies below `into` are removed once this one is whole.
///
/// # Errors
/// [`Error::KernelUnavailable`] when a file cannot be read or written.
pub async fn shadow(resolved: &Resolved, into: &Path) -> Result<Resolved, Error> {
    let (resolved, into) = (resolved.clone(), into.to_owned());
    let copied = spawn_blocking(move || copied(resolved, &into, &|old| fs::remove_dir_all(old))).await;
    copied.map_err(unavailable)?
}

/// Removes a folder with all that is in it.
type Remove<'a> = &'a dyn Fn(&Path) -> io::Result<()>;

fn copied(mut resolved: Resolved, into: &Path, remove: Remove<'_>) -> Result<Resolved, Error> {
    let failed =
        |error: io::Error| unavailable(format!("assemblies cannot be copied to {}: {error}", into.display()));
    let mut names = HashSet::new();
    let mut kept = |path: &PathBuf| path.file_name().is_some_and(|name| names.insert(name.to_owned()));
    resolved.assemblies.retain(&mut kept);
    resolved.references.retain(&mut kept);
    fs::create_dir_all(into).map_err(failed)?;
    // Its name has no hash's digits, so it is never taken for a finished one.
    let staging = tempfile::Builder::new().prefix("new-").tempdir_in(into).map_err(failed)?;
    let mut hasher = blake3::Hasher::new();
    for path in resolved.assemblies.iter().chain(&resolved.references) {
        copy_with_companions(path, staging.path(), &mut hasher).map_err(failed)?;
    }
    if !resolved.assemblies.is_empty() {
        copy_contents(&mut resolved, staging.path(), &mut hasher).map_err(failed)?;
    }
    let name = hasher.finalize().to_hex()[..DIGITS].to_owned();
    let place = into.join(&name);
    if !place.is_dir() {
        fs::rename(staging.path(), &place).map_err(failed)?;
    }
    drop(staging);
    remove_others(into, &name, remove);
    for path in resolved.assemblies.iter_mut().chain(&mut resolved.references) {
        *path = place.join(path.file_name().unwrap_or_default());
    }
    resolved.folder = Some(place).filter(|_| !resolved.assemblies.is_empty());
    Ok(resolved)
}

fn copy_with_companions(path: &Path, folder: &Path, hasher: &mut blake3::Hasher) -> io::Result<()> {
    copy(path, folder, hasher)?;
    for extension in COMPANIONS {
        match copy(&path.with_extension(extension), folder, hasher) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Copies what a build puts beside the assemblies. What would lie outside of the folder is left out, and so is what is larger than all
/// of it may be.
fn copy_contents(resolved: &mut Resolved, folder: &Path, hasher: &mut blake3::Hasher) -> io::Result<()> {
    let mut left = CONTENT_BYTES;
    for Content { origin, place } in mem::take(&mut resolved.contents) {
        let is_inside = place.components().all(|part| matches!(part, Component::Normal(_)));
        let Ok(about) = fs::metadata(&origin) else { continue };
        let target = folder.join(&place);
        if !is_inside || !about.is_file() || target.exists() {
            continue;
        }
        if about.len() > left {
            resolved.notes.push(format!(
                "{} is not copied: contents have {CONTENT_BYTES} bytes at most",
                origin.display()
            ));
            continue;
        }
        left -= about.len();
        let bytes = fs::read(&origin)?;
        fs::create_dir_all(target.parent().unwrap_or(folder))?;
        hasher
            .update(place.as_os_str().as_encoded_bytes())
            .update(&(bytes.len() as u64).to_le_bytes())
            .update(&bytes);
        fs::write(target, bytes)?;
    }
    Ok(())
}

/// What is hashed is what was copied, also where the file changes meanwhile.
fn copy(path: &Path, folder: &Path, hasher: &mut blake3::Hasher) -> io::Result<()> {
    let bytes = fs::read(path)?;
    let name: OsString = path.file_name().unwrap_or_default().to_owned();
    hasher.update(name.as_encoded_bytes()).update(&(bytes.len() as u64).to_le_bytes()).update(&bytes);
    fs::write(folder.join(name), bytes)
}

/// A worker that still has an old copy goes on with it: its files are gone only once nothing has them open.
fn remove_others(into: &Path, name: &str, remove: Remove<'_>) {
    for entry in fs::read_dir(into).into_iter().flatten().flatten() {
        if entry.file_name() == name {
            continue;
        }
        // What is removed in part must not be taken for a finished one.
        let old = entry.file_name().to_string_lossy().into_owned();
        let aside = if old.starts_with(OLD) { entry.path() } else { into.join(format!("{OLD}{old}")) };
        // Whatever stays is removed by the next copy.
        if aside == entry.path() || fs::rename(entry.path(), &aside).is_ok() {
            let _ = remove(&aside);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fsharp::project::Road;
    use crate::fsharp::testing::Tree;

    fn resolved(tree: &Tree) -> Resolved {
        Resolved {
            assemblies: vec![tree.path("bin/A.dll")],
            references: vec![tree.path("packages/P.dll"), tree.path("old/A.dll")],
            ..Resolved::empty(Road::Fallback)
        }
    }

    fn tree() -> Tree {
        let tree = Tree::of("bin/A.deps.json\npackages/P.dll\nold/A.dll");
        tree.write("bin/A.dll", "one");
        tree.write("bin/A.pdb", "symbols");
        tree
    }

    fn entries(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[tokio::test]
    async fn assemblies_are_copied_with_what_lies_beside_them() {
        let tree = tree();
        let copy = shadow(&resolved(&tree), &tree.path("shadow")).await.unwrap();
        let folder = copy.assemblies[0].parent().unwrap();
        assert_eq!(copy.references, [folder.join("P.dll")], "one file of a name, the project's own first");
        assert_eq!(entries(folder), ["A.deps.json", "A.dll", "A.pdb", "P.dll"]);
        tree.write("bin/A.dll", "two");
        assert_eq!(fs::read_to_string(&copy.assemblies[0]).unwrap(), "one");
    }

    #[tokio::test]
    async fn contents_lie_beside_the_copies_and_nowhere_else() {
        let tree = tree();
        tree.write("data/settings.json", "{}");
        let content = |place: &str| Content { origin: tree.path("data/settings.json"), place: place.into() };
        let mut resolved = resolved(&tree);
        resolved.contents = vec![content("data/settings.json"), content("../outside.json"), content("A.dll")];
        let copy = shadow(&resolved, &tree.path("shadow")).await.unwrap();
        let folder = copy.folder.unwrap();
        assert_eq!(fs::read_to_string(folder.join("data/settings.json")).unwrap(), "{}");
        assert_eq!(fs::read_to_string(folder.join("A.dll")).unwrap(), "one");
        assert!(!tree.path("shadow/outside.json").exists());
    }

    #[tokio::test]
    async fn the_same_content_has_the_same_place_and_a_newer_one_replaces_it() {
        let tree = tree();
        let into = tree.path("shadow");
        let first = shadow(&resolved(&tree), &into).await.unwrap();
        let written = fs::metadata(&first.assemblies[0]).unwrap().modified().unwrap();
        assert_eq!(shadow(&resolved(&tree), &into).await.unwrap(), first);
        assert_eq!(fs::metadata(&first.assemblies[0]).unwrap().modified().unwrap(), written);
        tree.write("bin/A.dll", "two");
        let second = shadow(&resolved(&tree), &into).await.unwrap();
        assert_ne!(first.assemblies, second.assemblies);
        assert_eq!(entries(&into).len(), 1, "the older one is gone, and nothing half made is left");
    }

    #[test]
    fn a_copy_that_was_removed_in_part_is_made_anew() {
        let tree = tree();
        let into = tree.path("shadow");
        let ends_early = |old: &Path| fs::remove_file(old.join("P.dll"));
        let first = copied(resolved(&tree), &into, &ends_early).unwrap();
        tree.write("bin/A.dll", "two");
        copied(resolved(&tree), &into, &ends_early).unwrap();
        tree.write("bin/A.dll", "one");
        let again = copied(resolved(&tree), &into, &|old| fs::remove_dir_all(old)).unwrap();
        assert_eq!(again, first);
        assert!(again.references[0].is_file(), "it is whole");
        assert_eq!(entries(&into).len(), 1, "and what was left of the others is gone");
    }

    #[tokio::test]
    async fn a_file_that_is_not_there_leaves_the_older_copy() {
        let tree = tree();
        let into = tree.path("shadow");
        let first = shadow(&resolved(&tree), &into).await.unwrap();
        tree.remove("packages/P.dll");
        let error = shadow(&resolved(&tree), &into).await.unwrap_err();
        assert!(matches!(error, Error::KernelUnavailable { .. }), "{error}");
        assert!(first.assemblies[0].is_file());
        assert_eq!(entries(&into).len(), 1);
    }
}
