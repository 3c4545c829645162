//! The files that the program carries besides its code. They are in the program itself where it is built for release; a build for development
//! reads them from the source tree, so that a change of one is tried by starting the program again.
//!
//! Only the daemon, its clients and the program depend on this crate, and give what is here to the crates that need it: so few crates are
//! compiled again for a changed file. What the page loads is read in the same way, by the crate that serves it.

use std::borrow::Cow;

use rust_embed::{Embed, EmbeddedFile};

/// The folder `kernels`: the sources of the F# worker, and what Python and Deno kernels are given.
#[derive(Embed)]
#[folder = "../../kernels"]
struct Kernels;

/// What a release adds to the folder `kernels`: F# workers that were compiled before, by their paths in it. See `build.rs`.
static PREBUILT: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/prebuilt.rs"));

/// The folder of the manual's pages on errors.
#[derive(Embed)]
#[folder = "../../docs/errors"]
struct Errors;

/// The manual's page on the review of F# code: what stands before the first rule, and a section for each.
const REVIEW: &str = include_str!("../../../docs/fsharp-review.md");

/// Returns a file in the folder `kernels`, by its path there, or one that a release adds to it.
pub fn kernel_file(path: &str) -> Option<Cow<'static, [u8]>> {
    let prebuilt = || PREBUILT.iter().find(|(name, _)| *name == path).map(|(_, bytes)| Cow::Borrowed(*bytes));
    Kernels::get(path).map(|file| file.data).or_else(prebuilt)
}

/// Returns the manual's page on an error, by the code of the error.
pub fn error_page(code: &str) -> Option<Cow<'static, str>> {
    // The code may be a user's word, and in development a path is looked for in the file system.
    let is_code = code.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if !is_code {
        return None;
    }
    Errors::get(&format!("{code}.md")).and_then(text)
}

/// Returns what the manual says of each rule of the review of F# code, with the rule's code, such as `FSR001`, in the manual's order.
pub fn review_rules() -> impl Iterator<Item = (&'static str, &'static str)> {
    let sections = REVIEW.split("\n## ").skip(1);
    sections.filter_map(|section| Some((section.split_once(':')?.0, section)))
}

fn text(file: EmbeddedFile) -> Option<Cow<'static, str>> {
    match file.data {
        Cow::Borrowed(bytes) => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
        Cow::Owned(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_each_folder_is_found_and_no_other() {
        let source = kernel_file("fsharp/display/Mainstay.fs").unwrap();
        assert!(String::from_utf8_lossy(&source).contains("Mainstay"));
        assert!(error_page("session_not_found").is_some());
        assert_eq!(kernel_file("fsharp/Nowhere.fs"), None);
        assert_eq!(kernel_file("../Cargo.toml"), None);
        assert_eq!(error_page("../errors/session_not_found"), None);
    }

    #[test]
    fn rules_of_the_review_have_their_sections() {
        let (code, section) = review_rules().next().unwrap();
        assert_eq!(code, "FSR001");
        assert!(section.contains("Instead:") && !section.contains("FSR002"), "{section}");
        assert!(review_rules().all(|(code, _)| code.starts_with("FSR")));
    }
}
