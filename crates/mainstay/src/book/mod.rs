//! Tests of the book in `docs/` and of the README: the generated pages of the reference are what the program says, and every page,
//! link and setting in the text is there. `tests/cli/readme.rs` runs the commands that the pages show.

mod commands;
mod errors;
mod examples;
mod http;
mod links;
mod pages;
mod prompt;
mod settings;

use std::path::{Path, PathBuf};

/// Set, generated pages are written instead of compared.
const UPDATE: &str = "MAINSTAY_UPDATE_SCHEMAS";

/// The root of the repository.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The folder of the book.
fn docs() -> PathBuf {
    repository().join("docs")
}

/// Compares a generated page with the file in `docs/`, or writes it.
fn assert_is_page(name: &str, generated: &str) {
    let path = docs().join(name);
    if std::env::var_os(UPDATE).is_some() {
        // Other tests read the page meanwhile: they find the old one or the new one.
        let written = path.with_extension("new");
        std::fs::write(&written, generated).unwrap();
        std::fs::rename(&written, &path).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == generated,
        "docs/{name} is not what the program says; `{UPDATE}=1 cargo xtask test -- -p mainstay --bin mainstay -E 'test(book)'` writes it"
    );
}

/// The line that opens a generated page.
const GENERATED: &str = "<!-- Generated from the program, see crates/mainstay/src/book. Do not edit. -->\n";

/// Text with the characters escaped that Markdown or HTML would take for markup, outside of `code`.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for (index, part) in text.split('`').enumerate() {
        if index > 0 {
            out.push('`');
        }
        match index % 2 {
            0 => out.push_str(&part.replace('<', "&lt;").replace('*', "\\*").replace('_', "\\_")),
            _ => out.push_str(part),
        }
    }
    out
}
