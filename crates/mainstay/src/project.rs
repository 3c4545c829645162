//! Which project a folder belongs to: the nearest folder from it upwards that has what projects have at their root.

use std::path::Path;

/// Names of files and folders that stand at the root of a project.
const MARKERS: [&str; 7] = [".git", ".hg", ".jj", "Cargo.toml", "go.mod", "package.json", "pyproject.toml"];
/// How the names of others end.
const MARKER_ENDS: [&str; 5] = [".sln", ".slnx", ".fsproj", ".csproj", ".vbproj"];

/// The root of the project that a folder belongs to; the folder itself, where it belongs to none.
pub(crate) fn root_of(folder: &Path) -> &Path {
    root_by(folder, |folder| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    })
}

/// The same, where the names of what is in a folder are these.
fn root_by(folder: &Path, names: impl Fn(&Path) -> Vec<String>) -> &Path {
    let is_root = |folder: &&Path| names(folder).iter().any(|name| is_marker(name));
    folder.ancestors().find(is_root).unwrap_or(folder)
}

fn is_marker(name: &str) -> bool {
    MARKERS.contains(&name) || MARKER_ENDS.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The root of a folder's project, where these files and folders are.
    fn root(folder: &str, files: &[&str]) -> String {
        let names = |folder: &Path| {
            let here = files.iter().map(Path::new).filter(|file| file.parent() == Some(folder));
            here.filter_map(|file| file.file_name()?.to_str()).map(str::to_owned).collect()
        };
        root_by(Path::new(folder), names).display().to_string()
    }

    #[test]
    fn the_nearest_folder_with_a_marker_is_the_root() {
        let files = ["/home/ada/lab/.git", "/home/ada/lab/src/plots/Plots.fsproj", "/home/ada/lab/src/a.fsx"];
        assert_eq!(root("/home/ada/lab", &files), "/home/ada/lab");
        assert_eq!(root("/home/ada/lab/src", &files), "/home/ada/lab");
        assert_eq!(root("/home/ada/lab/src/plots/data/raw", &files), "/home/ada/lab/src/plots");
    }

    #[test]
    fn a_folder_without_a_project_stands_for_itself() {
        assert_eq!(
            root("/home/ada/notes", &["/home/ada/lab/.git", "/home/ada/notes/a.txt"]),
            "/home/ada/notes"
        );
        assert_eq!(root("/", &[]), "/");
    }

    #[test]
    fn projects_of_many_kinds_are_known_by_their_files() {
        for file in
            ["All.sln", "A.fsproj", "A.csproj", "package.json", "pyproject.toml", "Cargo.toml", "go.mod"]
        {
            assert!(is_marker(file), "{file}");
        }
        for file in ["git", "sln", "a.fsx", "package.json.bak", ".gitignore"] {
            assert!(!is_marker(file), "{file}");
        }
    }
}
