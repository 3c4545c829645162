//! The files that sessions rest on, and what is to be done where some of them change.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use mainstay_model::{Session, SessionId};

/// The files that matter, by session.
#[derive(Default, PartialEq, Eq, Debug)]
pub(super) struct Files(BTreeMap<SessionId, FilesOf>);

/// Those of one session.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct FilesOf {
    /// What its worker has of them.
    loaded: BTreeSet<PathBuf>,
    /// What its project is made of.
    sources: BTreeSet<PathBuf>,
}

/// What is to be done for a session.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct DueWork {
    /// What its worker has may be another.
    pub(super) look: bool,
    /// What its project is made of and was written.
    pub(super) written: BTreeSet<String>,
}

impl FilesOf {
    fn new(session: &Session) -> Self {
        let paths = session.surroundings.iter().flat_map(|known| known.present.values());
        let project = session.startup.as_ref().and_then(|startup| startup.project.as_ref());
        Self {
            loaded: paths.filter_map(|reference| reference.path.as_ref().map(PathBuf::from)).collect(),
            sources: project.iter().flat_map(|project| &project.sources).map(PathBuf::from).collect(),
        }
    }

    fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.loaded.iter().chain(&self.sources)
    }
}

impl Files {
    /// Those of these sessions.
    pub(super) fn of<'a>(sessions: impl Iterator<Item = &'a Session>) -> Self {
        Self(sessions.map(|session| (session.id, FilesOf::new(session))).collect())
    }

    /// What the project of each session is made of.
    pub(super) fn sources(&self) -> impl Iterator<Item = (SessionId, impl Iterator<Item = String>)> {
        self.0.iter().map(|(session, files)| {
            (*session, files.sources.iter().map(|path| path.to_string_lossy().into_owned()))
        })
    }

    /// Whether a project is made of this file.
    pub(super) fn is_source(&self, path: &Path) -> bool {
        self.0.values().any(|files| files.sources.contains(path))
    }

    /// Returns the folders that hold the files.
    pub(super) fn folders(&self) -> BTreeSet<PathBuf> {
        self.all().filter_map(|file| file.parent().map(Path::to_owned)).collect()
    }

    /// Those in a folder.
    pub(super) fn within<'a>(&'a self, folder: &'a Path) -> impl Iterator<Item = &'a PathBuf> {
        self.all().filter(move |file| file.parent() == Some(folder))
    }

    /// What is to be done once these have changed.
    pub(super) fn due(&self, changed: &HashSet<PathBuf>) -> Vec<(SessionId, DueWork)> {
        let has_changed = |files: &BTreeSet<PathBuf>| files.iter().any(|file| changed.contains(file));
        let written = |files: &FilesOf| -> BTreeSet<String> {
            let written = files.sources.iter().filter(|file| changed.contains(*file));
            written.map(|file| file.to_string_lossy().into_owned()).collect()
        };
        let due = |files: &FilesOf| DueWork { look: has_changed(&files.loaded), written: written(files) };
        let all = self.0.iter().map(|(session, files)| (*session, due(files)));
        all.filter(|(_, due)| !due.is_nothing()).collect()
    }

    fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.0.values().flat_map(FilesOf::all)
    }
}

impl DueWork {
    /// Whether nothing is to be done.
    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(loaded: &[&str], sources: &[&str]) -> FilesOf {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect();
        FilesOf { loaded: paths(loaded), sources: paths(sources) }
    }

    #[test]
    fn what_is_due_is_told_by_session() {
        let session = |number: u128| SessionId::from_uuid(uuid::Uuid::from_u128(number));
        let all = Files(BTreeMap::from([
            (session(1), files(&["/p/bin/a.dll"], &["/p/a.fs"])),
            (session(2), files(&["/p/bin/a.dll", "/q/b.fsx"], &[])),
            (session(3), files(&[], &[])),
        ]));
        let due = |changed: &[&str]| all.due(&changed.iter().map(PathBuf::from).collect());
        let look = DueWork { look: true, written: BTreeSet::new() };
        let written = DueWork { look: false, written: BTreeSet::from(["/p/a.fs".to_owned()]) };
        assert_eq!(due(&["/p/bin/a.dll"]), [(session(1), look.clone()), (session(2), look)]);
        assert_eq!(due(&["/p/a.fs", "/p/other.fs"]), [(session(1), written)]);
        assert_eq!(due(&["/q"]), []);
        let folders: Vec<_> = all.folders().into_iter().collect();
        assert_eq!(folders, ["/p", "/p/bin", "/q"].map(PathBuf::from));
        assert_eq!(all.within(Path::new("/q")).collect::<Vec<_>>(), [Path::new("/q/b.fsx")]);
    }
}
