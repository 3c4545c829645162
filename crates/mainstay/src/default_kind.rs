//! Which kind of session a folder is for, where nobody says.

use std::path::{Path, PathBuf};

use mainstay_kernel::fsharp::choose;
use mainstay_model::{Error, SessionKind};

use crate::config::Config;
use crate::home::Home;
use crate::kernels::{places, search};

/// What tells that a folder's project is of a language: names of files, or how they end.
const SIGNS: [(&str, &[&str]); 3] = [
    ("fsharp", &["*.fsproj", "*.fsx", "*.sln", "*.slnx"]),
    ("python", &["pyproject.toml", "setup.py", "requirements.txt", "uv.lock", "Pipfile", "environment.yml"]),
    ("typescript", &["deno.json", "deno.jsonc", "package.json", "tsconfig.json"]),
];

/// The language of the project that a folder is in, where that is plain and there is something to run it with, or to install; else
/// F# where that can run, or what else can.
///
/// # Errors
/// [`Error::InvalidArgument`] where the configuration cannot be read.
pub(crate) fn default_kind(home: &Home, folder: &Path) -> Result<SessionKind, Error> {
    let kernelspecs = places(home, Some(folder)).kernelspecs();
    let fsharp = SessionKind::fsharp();
    let python = SessionKind::new("python")?;
    let runs = |kind: &SessionKind| kernelspecs.choose(kind).is_ok();
    let has_sdk = || Ok::<_, Error>(choose(&search(home, Config::load(home)?.fsharp)).is_ok());
    let user = std::env::var_os("HOME").map(PathBuf::from);
    match language_of(folder, user.as_deref()).map(SessionKind::new).transpose()? {
        // What is not there is installed for them.
        Some(kind) if kind == fsharp || kind == python || runs(&kind) => Ok(kind),
        Some(_) | None if !has_sdk()? && runs(&python) => Ok(python),
        Some(_) | None => Ok(fsharp),
    }
}

/// The language that the nearest folder with a sign of one is of; none where it has signs of several. What lies in a user's own folder
/// belongs to no project.
fn language_of(folder: &Path, user: Option<&Path>) -> Option<&'static str> {
    for folder in folder.ancestors().take_while(|folder| Some(*folder) != user) {
        let names: Vec<String> = std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        let is_there = |sign: &&&str| {
            let ending = sign.strip_prefix('*');
            names.iter().any(|name| ending.map_or(name == **sign, |ending| name.ends_with(ending)))
        };
        let mut found = SIGNS.iter().filter(|(_, signs)| signs.iter().any(|sign| is_there(&sign)));
        match (found.next(), found.next()) {
            (Some((language, _)), None) => return Some(language),
            (Some(_), Some(_)) => return None,
            // What lies above a repository is somebody else's.
            (None, _) if names.iter().any(|name| name == ".git") => return None,
            (None, _) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_of_the_language_that_its_project_plainly_is() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for file in [
            ".git/HEAD",
            "web/package.json",
            "web/src/a.txt",
            "api/pyproject.toml",
            "shop/Shop.fsproj",
            "mixed/setup.py",
            "mixed/package.json",
            "mixed/deep/x",
            "plain/x",
        ] {
            std::fs::create_dir_all(at(file).parent().unwrap()).unwrap();
            std::fs::write(at(file), "").unwrap();
        }
        let told: Vec<_> = ["web/src", "api", "shop", "mixed/deep", "plain"]
            .map(|folder| language_of(&at(folder), None).unwrap_or("none"))
            .to_vec();
        assert_eq!(told, ["typescript", "python", "fsharp", "none", "none"]);
        assert_eq!(language_of(&at("web/src"), Some(&at("web"))), None);
    }
}
