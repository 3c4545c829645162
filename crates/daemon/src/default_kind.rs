//! Which kind of session a folder is for, where nobody says.

use std::path::{Path, PathBuf};

use mainstay_formats::notebook::{Notebook, NotebookFormat};
use mainstay_home::Home;
use mainstay_home::config::Config;
use mainstay_home::search::fsharp_sdks;
use mainstay_kernel::fsharp::choose;
use mainstay_kernel::jupyter::Places;
use mainstay_model::{Error, SessionKind};
use mainstay_runner::Environment;

const FSHARP: &str = "fsharp";
const PYTHON: &str = "python";

/// What tells that a folder's project is of a language: names of files, or how they end.
const SIGNS: [(&str, &[&str]); 3] = [
    (FSHARP, &["*.fsproj", "*.fsx", "*.fs", "*.sln", "*.slnx"]),
    (PYTHON, &["pyproject.toml", "setup.py", "requirements.txt", "uv.lock", "Pipfile", "environment.yml"]),
    ("typescript", &["deno.json", "deno.jsonc", "package.json", "tsconfig.json"]),
];

/// How many notebooks of a folder are looked into for their language.
const NOTEBOOKS: usize = 8;
/// The largest notebook that is looked into, in bytes; of a larger one its name alone counts.
const NOTEBOOK_BYTES: u64 = 4 * 1024 * 1024;

/// The language of the project that a folder is in, where that is plain and there is something to run it with, or to install. Without a
/// project, Python where the folder itself has Python files or notebooks, none of F#, and there is a kernel for them. Else F# where that can
/// run, or what else can. The kernels and SDKs are looked for in this environment, laid over this process's.
///
/// # Errors
/// [`Error::InvalidArgument`] where the configuration cannot be read.
pub(crate) fn default_kind(
    home: &Home,
    folder: &Path,
    environment: &Environment,
) -> Result<SessionKind, Error> {
    let kernelspecs = Places::of_session(environment, &home.jupyter(), Some(folder)).kernelspecs();
    let fsharp = SessionKind::fsharp();
    let python = SessionKind::new(PYTHON)?;
    let runs = |kind: &SessionKind| kernelspecs.choose(kind).is_ok();
    let has_sdk = || {
        Ok::<_, Error>(choose(&fsharp_sdks(home, Config::load(home)?.fsharp).of_session(environment)).is_ok())
    };
    let user = environment.variable("HOME").map(PathBuf::from);
    let user = user.or_else(|| std::env::var_os("HOME").map(PathBuf::from));
    match language_of(folder, user.as_deref()) {
        Some(Sign::Files(language)) if language == PYTHON && (runs(&python) || !has_sdk()?) => Ok(python),
        Some(Sign::Files(_)) => Ok(fsharp),
        Some(Sign::Project(language)) => match SessionKind::new(language)? {
            // What is not there is installed for them.
            kind if kind == fsharp || kind == python || runs(&kind) => Ok(kind),
            _ if !has_sdk()? && runs(&python) => Ok(python),
            _ => Ok(fsharp),
        },
        None if !has_sdk()? && runs(&python) => Ok(python),
        None => Ok(fsharp),
    }
}

/// What tells a folder's language.
#[derive(Debug, PartialEq, Eq)]
enum Sign {
    /// A project's files, in the folder or above it.
    Project(&'static str),
    /// Files of the folder itself that belong to no project.
    Files(&'static str),
}

/// The language that the nearest folder with a sign of a project is of; where there is no project, that of the folder's own files. None where
/// the signs are of several. What lies in a user's own folder belongs to no project.
fn language_of(folder: &Path, user: Option<&Path>) -> Option<Sign> {
    for folder in folder.ancestors().take_while(|folder| Some(*folder) != user) {
        let names = names_in(folder);
        let is_there = |sign: &&&str| {
            let ending = sign.strip_prefix('*');
            names.iter().any(|name| ending.map_or(name == **sign, |ending| name.ends_with(ending)))
        };
        let mut found = SIGNS.iter().filter(|(_, signs)| signs.iter().any(|sign| is_there(&sign)));
        match (found.next(), found.next()) {
            (Some((language, _)), None) => return Some(Sign::Project(language)),
            (Some(_), Some(_)) => return None,
            // What lies above a repository is somebody else's.
            (None, _) if names.iter().any(|name| name == ".git") => break,
            (None, _) => {}
        }
    }
    (Some(folder) != user).then(|| language_of_files(folder)).flatten().map(Sign::Files)
}

/// The language of a folder's Python files and notebooks; none where a notebook is of another.
fn language_of_files(folder: &Path) -> Option<&'static str> {
    let names = names_in(folder);
    let notebooks = names.iter().filter(|name| name.ends_with(".ipynb")).take(NOTEBOOKS);
    let mut languages: Vec<&str> = notebooks.map(|name| language_of_notebook(&folder.join(name))).collect();
    languages.extend(names.iter().any(|name| name.ends_with(".py")).then_some(PYTHON));
    let first = *languages.first()?;
    languages
        .iter()
        .all(|language| *language == first)
        .then_some(first)
        .filter(|language| !language.is_empty())
}

/// The language of a notebook: Python where it does not say, as in Jupyter; empty where it is neither that nor F#.
fn language_of_notebook(file: &Path) -> &'static str {
    // A pipe has no length, and reading one could wait for ever.
    let is_small =
        file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() <= NOTEBOOK_BYTES);
    let text = is_small.then(|| std::fs::read_to_string(file).ok()).flatten();
    let notebook = text.and_then(|text| Notebook::read(NotebookFormat::Ipynb, &text).ok());
    let kinds = notebook.map(|notebook| notebook.kinds()).unwrap_or_default();
    match kinds.as_slice() {
        [] => PYTHON,
        kinds if kinds.iter().any(SessionKind::is_fsharp) => FSHARP,
        kinds if kinds.iter().any(|kind| kind.as_str().contains(PYTHON)) => PYTHON,
        _ => "",
    }
}

/// The names of what lies in a folder, sorted.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
            "script/main.py",
            "script/deep/x",
            "both/main.py",
            "both/Library.fs",
            "shop/tools/main.py",
            "web/tool.py",
        ] {
            std::fs::create_dir_all(at(file).parent().unwrap()).unwrap();
            std::fs::write(at(file), "").unwrap();
        }
        let of = |folder: &str| language_of(&at(folder), None);
        assert_eq!(of("web/src"), Some(Sign::Project("typescript")));
        assert_eq!(of("api"), Some(Sign::Project("python")));
        assert_eq!(of("shop"), Some(Sign::Project("fsharp")));
        assert_eq!(of("mixed/deep"), None);
        assert_eq!(of("plain"), None);
        assert_eq!(language_of(&at("web/src"), Some(&at("web"))), None);
        // Python files of their own say so where no project does.
        assert_eq!(of("script"), Some(Sign::Files("python")));
        assert_eq!(of("script/deep"), None);
        assert_eq!(of("both"), Some(Sign::Project("fsharp")));
        assert_eq!(of("shop/tools"), Some(Sign::Project("fsharp")));
        assert_eq!(of("web"), Some(Sign::Project("typescript")));
        assert_eq!(language_of(&at("script"), Some(&at("script"))), None);
    }

    #[test]
    fn notebooks_say_their_language_themselves() {
        let root = tempfile::tempdir().unwrap();
        let of = |notebooks: &[&str]| {
            let folder = tempfile::tempdir_in(root.path()).unwrap();
            for (number, name) in notebooks.iter().enumerate() {
                let metadata =
                    json!({ "kernelspec": { "name": name, "language": name, "display_name": name } });
                let text = json!({ "cells": [], "metadata": metadata, "nbformat": 4, "nbformat_minor": 5 });
                std::fs::write(folder.path().join(format!("{number}.ipynb")), text.to_string()).unwrap();
            }
            std::fs::create_dir(folder.path().join(".git")).unwrap();
            language_of(folder.path(), None)
        };
        assert_eq!(of(&["python3"]), Some(Sign::Files("python")));
        assert_eq!(of(&[".net-fsharp"]), Some(Sign::Files("fsharp")));
        assert_eq!(of(&["python", "fsharp"]), None);
        assert_eq!(of(&["julia-1.10"]), None);
        std::fs::create_dir(root.path().join("new")).unwrap();
        std::fs::write(root.path().join("new/Untitled.ipynb"), "").unwrap();
        assert_eq!(language_of(&root.path().join("new"), None), Some(Sign::Files("python")));
    }
}
