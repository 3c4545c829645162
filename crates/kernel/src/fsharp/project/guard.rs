//! What the way of building a project rests on beside its sources: while none of it has changed, msbuild would say the same again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Files of a folder, or of one above it, that msbuild or a restore reads where they are there.
const AMBIENT: [&str; 7] = [
    "Directory.Build.props",
    "Directory.Build.targets",
    "Directory.Packages.props",
    "NuGet.Config",
    "NuGet.config",
    "global.json",
    "nuget.config",
];

/// How many files a project's folder may have to be looked through.
const MOST_FILES: usize = 20_000;

/// A file as it is; none where there is none.
pub(super) type FileState = Option<(u64, SystemTime)>;

/// The state of a file.
pub(super) fn state(path: &Path) -> FileState {
    let about = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some((about.len(), about.modified().ok()?))
}

/// Files as they were, and which files there were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Guard {
    files: BTreeMap<PathBuf, FileState>,
    folders: BTreeMap<PathBuf, Option<blake3::Hash>>,
    /// Whether all files of the folders are meant, or only those that projects take without naming them.
    takes_all: bool,
}

impl Guard {
    /// These files as they are, and which there are in these folders.
    pub(super) fn of(files: impl IntoIterator<Item = PathBuf>, folders: &[PathBuf], takes_all: bool) -> Self {
        let folders = folders.iter().map(|folder| (folder.clone(), names_in(folder, takes_all))).collect();
        Self {
            files: files.into_iter().map(|path| (path.clone(), state(&path))).collect(),
            folders,
            takes_all,
        }
    }

    /// Adds files as they are.
    pub(super) fn add(&mut self, files: impl IntoIterator<Item = PathBuf>) {
        self.files.extend(files.into_iter().map(|path| (path.clone(), state(&path))));
    }

    /// What has changed of it, or cannot be told; none where all is as it was.
    pub(super) fn changed(&self) -> Option<String> {
        if let Some((path, _)) = self.files.iter().find(|(path, before)| state(path) != **before) {
            return Some(format!("{} has changed", path.display()));
        }
        let is_other = |(folder, before): &(&PathBuf, &Option<blake3::Hash>)| {
            before.is_none() || names_in(folder, self.takes_all) != **before
        };
        let folder = self.folders.iter().find(is_other)?.0;
        Some(format!("{} has other files", folder.display()))
    }
}

/// The files beside and above a project that its evaluation may read.
pub(super) fn ambient(project: &Path) -> Vec<PathBuf> {
    let own = [project.to_owned(), PathBuf::from(format!("{}.user", project.display()))];
    let above = project.ancestors().skip(1).flat_map(|folder| AMBIENT.map(|name| folder.join(name)));
    own.into_iter().chain(above).collect()
}

/// What says which commit a folder is at, which a build writes into assemblies, and which of its files are of no commit, which go into symbols.
pub(super) fn commit_files(folder: &Path) -> Vec<PathBuf> {
    let Some(git) = folder.ancestors().map(|folder| folder.join(".git")).find(|path| path.exists()) else {
        return Vec::new();
    };
    let root = git.parent().unwrap_or(Path::new("/"));
    let within = folder.ancestors().take_while(|folder| folder.starts_with(root));
    let mut files: Vec<PathBuf> = within.map(|folder| folder.join(".gitignore")).collect();
    let own = match fs::read_to_string(&git) {
        Ok(text) => match text.trim().strip_prefix("gitdir:") {
            Some(path) => root.join(path.trim()),
            None => {
                files.push(git);
                return files;
            }
        },
        Err(_) => git.clone(),
    };
    let common = fs::read_to_string(own.join("commondir")).map(|path| own.join(path.trim()));
    let common = common.unwrap_or_else(|_| own.clone());
    let head = fs::read_to_string(own.join("HEAD")).unwrap_or_default();
    files.extend(["packed-refs", "reftable/tables.list", "info/exclude"].map(|name| common.join(name)));
    files.push(own.join("HEAD"));
    files.extend(head.trim().strip_prefix("ref: ").map(|name| common.join(name)));
    files
}

/// A hash of the names of a folder's files; none where those are too many. Without `takes_all` only resources count.
fn names_in(folder: &Path, takes_all: bool) -> Option<blake3::Hash> {
    let mut names = Vec::new();
    let mut seen = 0;
    let mut waiting = vec![folder.to_owned()];
    while let Some(next) = waiting.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MOST_FILES {
                return None;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder && !name.starts_with('.') && !matches!(&*name, "bin" | "obj" | "node_modules") {
                waiting.push(entry.path());
            } else if !is_folder && (takes_all && !is_editors(&name) || name.ends_with(".resx")) {
                names.push(entry.path());
            }
        }
    }
    names.sort();
    let mut hasher = blake3::Hasher::new();
    for name in names {
        hasher.update(name.as_os_str().as_encoded_bytes()).update(&[0]);
    }
    Some(hasher.finalize())
}

/// Whether a file has the name of one that an editor keeps for a moment.
fn is_editors(name: &str) -> bool {
    name.starts_with(['.', '#']) || name.ends_with(['~', '#']) || name == "4913"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fsharp::testing::Tree;

    #[test]
    fn what_comes_goes_or_changes_is_noticed() {
        let tree = Tree::of("a/A.fsproj\na/bin/x.resx");
        let project = tree.path("a/A.fsproj");
        let folder = [tree.path("a")];
        let guard = |takes_all| Guard::of(ambient(&project), &folder, takes_all);
        let before = guard(false);
        assert_eq!(before.changed(), None);
        tree.write("a/new.json", "");
        assert_eq!(before.changed(), None, "it takes none that it does not name");
        let all = guard(true);
        tree.write("a/.A.fs.swp", "");
        assert_eq!(all.changed(), None);
        tree.write("a/other.json", "");
        assert!(all.changed().unwrap().ends_with("a has other files"));
        tree.write("a/R.resx", "");
        assert!(before.changed().unwrap().ends_with("a has other files"));
        let before = guard(false);
        tree.write("Directory.Build.props", "<Project />");
        assert!(before.changed().unwrap().ends_with("Directory.Build.props has changed"));
        let before = guard(false);
        tree.write("a/A.fsproj", "<Project />");
        assert!(before.changed().unwrap().ends_with("A.fsproj has changed"));
    }

    #[test]
    fn another_commit_is_noticed() {
        let tree = Tree::of(".git/HEAD\n.git/refs/heads/main\na/A.fsproj");
        tree.write(".git/HEAD", "ref: refs/heads/main\n");
        let before = Guard::of(commit_files(&tree.path("a")), &[], false);
        assert_eq!(before.changed(), None);
        tree.write(".git/refs/heads/main", "0123");
        assert!(before.changed().is_some());
        let before = Guard::of(commit_files(&tree.path("a")), &[], false);
        tree.write(".gitignore", "*.fs");
        assert!(before.changed().unwrap().ends_with(".gitignore has changed"));
    }
}
