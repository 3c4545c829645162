//! The README is short, every page of `docs/` is in the book, and what pages refer to is there.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use mainstay_home::config::Config;

use super::links::links;
use super::{docs, repository};

/// The number of lines that the README may have.
const README_LINES: usize = 200;

#[test]
fn the_readme_is_short() {
    let lines = read(&repository().join("README.md")).lines().count();
    assert!(lines <= README_LINES, "the README has {lines} lines: what is more belongs into a page of docs/");
}

#[test]
fn every_page_is_in_the_summary_of_the_book() {
    let summary = links(&read(&docs().join("SUMMARY.md")));
    let listed: BTreeSet<PathBuf> = summary.targets.iter().map(|page| docs().join(page)).collect();
    assert_eq!(listed.len(), summary.targets.len(), "a page is listed twice");
    let there: BTreeSet<PathBuf> = pages().into_iter().filter(|page| !page.ends_with("SUMMARY.md")).collect();
    let missing: Vec<_> = there.difference(&listed).collect();
    assert!(missing.is_empty(), "not in docs/SUMMARY.md: {missing:?}");
    let gone: Vec<_> = listed.difference(&there).collect();
    assert!(gone.is_empty(), "in docs/SUMMARY.md and not there: {gone:?}");
}

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    for page in pages().into_iter().chain([repository().join("README.md")]) {
        for target in links(&read(&page)).targets {
            if let Err(reason) = follow(&page, &target) {
                let page = page.strip_prefix(repository()).unwrap();
                broken.push(format!("{}: {target}: {reason}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Follows a link from a page. Addresses elsewhere are not asked.
fn follow(page: &Path, target: &str) -> Result<(), String> {
    if ["https://", "http://", "mailto:"].iter().any(|scheme| target.starts_with(scheme)) {
        return Ok(());
    }
    let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let path = match file {
        "" => page.to_owned(),
        file => normal(&page.parent().unwrap().join(file)),
    };
    if page.starts_with(docs()) && !path.starts_with(docs()) {
        return Err("a page of the book links only into the book".to_owned());
    }
    if !path.is_file() && !path.is_dir() {
        return Err("there is no such file".to_owned());
    }
    match anchor {
        Some(anchor) if !links(&read(&path)).anchors.iter().any(|there| there == anchor) => {
            Err("there is no such heading".to_owned())
        }
        _ => Ok(()),
    }
}

#[test]
fn every_example_of_settings_is_taken() {
    for (page, text) in all_pages() {
        for example in text.split("```toml\n").skip(1) {
            let example = example.split("```").next().unwrap();
            let unindented: String = example.lines().map(|line| format!("{}\n", line.trim_start())).collect();
            let unindented = unindented.replace('…', &"ab".repeat(32));
            if let Err(error) = toml::from_str::<Config>(&unindented) {
                panic!("{page}: {error}\n{unindented}");
            }
        }
    }
}

/// Every page of the book and the README, by name and text.
pub(super) fn all_pages() -> Vec<(String, String)> {
    let paths = pages().into_iter().chain([repository().join("README.md")]);
    paths.map(|path| (path.strip_prefix(repository()).unwrap().display().to_string(), read(&path))).collect()
}

/// Every page of the book, its summary included.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    let mut folders = vec![docs()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|extension| extension == "md") => pages.push(path),
                false => {}
            }
        }
    }
    pages.sort();
    pages
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut normal, component| {
        match component {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            other => normal.push(other),
        }
        normal
    })
}
