//! No source file of the workspace is longer than [`MOST`] lines.
//!
//! The integration tests of a crate (its folder `tests`) may be longer; the unit tests in its `src` may not.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};

/// The most lines that a source file may have.
const MOST: usize = 500;

/// Files that are one table of one kind of thing, and the most lines that they may have.
const TABLES: [(&str, usize); 1] = [("crates/model/src/error/mod.rs", 600)];

#[test]
fn a_file_of_too_many_lines_is_refused() {
    let files = [("a.rs", MOST), ("b.rs", MOST + 1)];
    assert_eq!(complaints(&files), ["b.rs has 501 lines: split it by subject"]);
}

#[test]
fn no_source_file_has_more_than_500_lines() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for package in packages(root) {
        for folder in ["src", "benches", "examples"] {
            measure(root, &package.join(folder), &mut files);
        }
        measure(root, &package.join("build.rs"), &mut files);
    }
    assert!(files.len() > 100, "only {} source files were found", files.len());
    files.sort();
    let files: Vec<_> = files.iter().map(|(name, lines)| (name.as_str(), *lines)).collect();
    let complaints = complaints(&files);
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// Returns the folders of the workspace's packages.
fn packages(root: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<_> =
        fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.push(root.join("xtask"));
    folders.sort();
    folders
}

/// Adds the name and the number of lines of a Rust source, or of each below a folder. A path that is absent adds none.
fn measure(root: &Path, path: &Path, files: &mut Vec<(String, usize)>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            measure(root, &entry.unwrap().path(), files);
        }
    } else if path.is_file() && path.extension().is_some_and(|extension| extension == "rs") {
        let name = path.strip_prefix(root).unwrap().display().to_string();
        files.push((name, fs::read_to_string(path).unwrap().lines().count()));
    }
}

/// Returns what is wrong with files of so many lines.
fn complaints(files: &[(&str, usize)]) -> Vec<String> {
    let most = |name: &str| TABLES.iter().find(|(table, _)| *table == name).map_or(MOST, |(_, most)| *most);
    let long = files.iter().filter(|(name, lines)| *lines > most(name));
    long.map(|(name, lines)| format!("{name} has {lines} lines: split it by subject")).collect()
}
