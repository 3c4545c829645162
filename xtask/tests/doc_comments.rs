//! Every doc comment of the workspace has at least [`FEWEST`] words: one of fewer helps nobody who has not read the code. None has a block of
//! code, which no test would run.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};

/// The fewest words that a doc comment may have.
const FEWEST: usize = 4;

#[test]
fn a_doc_comment_of_three_words_is_found_and_one_of_four_is_not() {
    let source = "//! Too few words.\n\n/// Which.\nstruct A;\n\n/// One, two,\n/// three four.\nstruct B;\n//// no doc\n";
    assert_eq!(short_comments(source), [(1, "Too few words.".to_owned()), (3, "Which.".to_owned())]);
}

#[test]
fn every_doc_comment_has_at_least_four_words() {
    let short = found_in_workspace(short_comments);
    assert!(short.is_empty(), "write a whole sentence in place of:\n{}", short.join("\n"));
}

#[test]
fn no_doc_comment_has_a_block_of_code() {
    assert_eq!(
        blocks("/// Four words and more.\n/// ```\nstruct A;\nlet a = \"```\";\n"),
        [(2, "```".to_owned())]
    );
    let blocks = found_in_workspace(blocks);
    assert!(blocks.is_empty(), "make a test in place of:\n{}", blocks.join("\n"));
}

/// What is found in the sources of the workspace, each with its file and line.
fn found_in_workspace(find: fn(&str) -> Vec<(usize, String)>) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let files = ["crates", "xtask"].into_iter().flat_map(|folder| sources(&root.join(folder)));
    let found = files.flat_map(|file| {
        let name = file.strip_prefix(root).unwrap().display().to_string();
        let found = find(&fs::read_to_string(&file).unwrap());
        found.into_iter().map(move |(line, text)| format!("{name}:{line}: {text}"))
    });
    found.collect()
}

/// Returns the lines of doc comments at which a block of code begins or ends.
fn blocks(source: &str) -> Vec<(usize, String)> {
    let comments =
        source.lines().enumerate().filter_map(|(index, line)| Some((index + 1, doc_comment(line.trim())?.1)));
    comments.filter(|(_, text)| text.starts_with("```")).map(|(line, text)| (line, text.to_owned())).collect()
}

/// Returns the Rust sources below a folder, in order.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let mut found = Vec::new();
    for entry in entries {
        if entry.is_dir() {
            found.extend(sources(&entry));
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            found.push(entry);
        }
    }
    found
}

/// Returns the doc comments of too few words, each with the number of its first line.
fn short_comments(source: &str) -> Vec<(usize, String)> {
    let mut comments: Vec<(usize, &str, String)> = Vec::new();
    let mut is_open = false;
    for (index, line) in source.lines().enumerate() {
        let Some((mark, text)) = doc_comment(line.trim()) else {
            is_open = false;
            continue;
        };
        match comments.last_mut() {
            Some((_, last, whole)) if is_open && *last == mark => {
                whole.push(' ');
                whole.push_str(text);
            }
            _ => comments.push((index + 1, mark, text.to_owned())),
        }
        is_open = true;
    }
    comments.retain(|(_, _, text)| text.split_whitespace().count() < FEWEST);
    comments.into_iter().map(|(line, _, text)| (line, text)).collect()
}

/// Splits a line that is a doc comment into its mark and its text.
fn doc_comment(line: &str) -> Option<(&'static str, &str)> {
    ["///", "//!"].into_iter().find_map(|mark| {
        let text = line.strip_prefix(mark)?;
        (!text.starts_with('/')).then(|| (mark, text.trim()))
    })
}
