//! Which project a folder is for. As with `dotnet run` and `dotnet test` only what lies in the folder itself counts, not what lies above
//! or below it.

use std::fs;
use std::path::{Path, PathBuf};

use mainstay_model::Error;

use super::document::not_found;
use super::solution::{self, Form, is_fsharp};

/// What a folder has of projects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InFolder {
    /// The folder has no project and no solution that names F# projects.
    Nothing,
    /// This one: the only F# project, else the only solution that names F# projects.
    One(PathBuf),
    /// These, by name, and nothing says which of them is meant.
    Several(Vec<PathBuf>),
}

impl InFolder {
    /// What lies in `folder`. A solution that cannot be read is one all the same: whoever loads it says what is wrong with it.
    pub fn of(folder: &Path) -> Self {
        let mut files: Vec<PathBuf> = fs::read_dir(folder)
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.is_file())
            .collect();
        files.sort();
        let projects: Vec<_> = files.iter().filter(|path| is_fsharp(path)).cloned().collect();
        let solutions: Vec<_> = files.into_iter().filter(|path| names_fsharp(path)).collect();
        match (projects.as_slice(), solutions.as_slice()) {
            ([], []) => Self::Nothing,
            ([project], _) => Self::One(project.clone()),
            ([], [solution]) => Self::One(solution.clone()),
            _ => Self::Several([projects, solutions].concat()),
        }
    }
}

fn names_fsharp(path: &Path) -> bool {
    Form::of(path).is_some_and(|form| solution::names_fsharp(path, form))
}

/// The project that a path names: the file itself, or that of the folder it is.
///
/// # Errors
/// [`Error::ProjectNotFound`] and [`Error::ProjectAmbiguous`] where a folder does not have one project.
pub fn named(path: &Path) -> Result<PathBuf, Error> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    match InFolder::of(path) {
        InFolder::One(project) => Ok(project),
        InFolder::Nothing => Err(not_found(path)),
        InFolder::Several(projects) => {
            let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let projects = projects.iter().map(name).collect();
            Err(Error::ProjectAmbiguous { folder: path.display().to_string(), projects })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fsharp::testing::Tree;

    const FSHARP: &str = r#"<Solution><Project Path="src/Shop.fsproj" /></Solution>"#;
    const OTHERS: &str = r#"<Solution><Project Path="src/Old.csproj" /></Solution>"#;

    /// What a folder with these files has, by name.
    fn found(files: &[(&str, &str)]) -> Result<Option<String>, Vec<String>> {
        let tree = Tree::of("");
        tree.write("deeper/Other.fsproj", "");
        files.iter().for_each(|(name, text)| tree.write(name, text));
        let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        match InFolder::of(&tree.root()) {
            InFolder::Nothing => Ok(None),
            InFolder::One(project) => Ok(Some(name(project))),
            InFolder::Several(projects) => Err(projects.into_iter().map(name).collect()),
        }
    }

    #[test]
    fn a_folder_is_for_its_only_project_else_for_its_only_solution_of_fsharp() {
        let one = |name: &str| Ok(Some(name.to_owned()));
        assert_eq!(found(&[]), Ok(None));
        assert_eq!(found(&[("Shop.fsproj", ""), ("Old.csproj", "")]), one("Shop.fsproj"));
        assert_eq!(found(&[("Shop.fsproj", ""), ("All.slnx", FSHARP)]), one("Shop.fsproj"));
        assert_eq!(found(&[("All.slnx", FSHARP), ("Old.slnx", OTHERS)]), one("All.slnx"));
        assert_eq!(found(&[("Old.slnx", OTHERS)]), Ok(None));
        assert_eq!(found(&[("Broken.slnx", "<Sol")]), one("Broken.slnx"));
    }

    #[test]
    fn of_several_projects_none_is_taken() {
        let names = |names: &[&str]| Err(names.iter().map(|name| (*name).to_owned()).collect());
        let files = [("B.fsproj", ""), ("A.fsproj", ""), ("All.slnx", FSHARP)];
        assert_eq!(found(&files), names(&["A.fsproj", "B.fsproj", "All.slnx"]));
        assert_eq!(found(&[("A.slnx", FSHARP), ("B.slnx", FSHARP)]), names(&["A.slnx", "B.slnx"]));
        let tree = Tree::of("");
        files.iter().for_each(|(name, text)| tree.write(name, text));
        assert!(matches!(named(&tree.root()), Err(Error::ProjectAmbiguous { .. })));
        assert_eq!(named(&tree.path("A.fsproj")), Ok(tree.path("A.fsproj")));
    }
}
