//! `docs/reference/errors.md`, generated from the codes that the program has and their pages.

use mainstay_model::ErrorCode;

use super::{GENERATED, assert_is_page, docs};

#[test]
fn the_reference_of_the_errors_lists_every_code() {
    let mut page = format!("{GENERATED}# Errors\n\n{INTRODUCTION}");
    let mut codes: Vec<&str> = ErrorCode::ALL.iter().map(|code| code.0).collect();
    codes.sort_unstable();
    for code in codes {
        page.push_str(&format!("| [`{code}`](../errors/{code}.md) | {} |\n", summary(code)));
    }
    assert_is_page("reference/errors.md", &page);
}

const INTRODUCTION: &str = "\
Every error has a stable code. The command line shows it in brackets, HTTP in the member `code` of a problem document, JSON-RPC and MCP in the error's data.
`mainstay explain CODE` prints the page of a code in the terminal: what happened, and what to do next. An error that a session's state causes also lists the
actions that are possible instead (`offered`).

| code | what happened |
|---|---|
";

/// The first sentence of a code's page, up to a colon.
fn summary(code: &str) -> String {
    let page = std::fs::read_to_string(docs().join(format!("errors/{code}.md"))).unwrap();
    let (_, text) = page.split_once("## What happened\n").unwrap();
    let paragraph = text.trim_start().split("\n\n").next().unwrap().replace('\n', " ");
    let is_end = |(at, mark): &(usize, &str)| {
        let is_in_code = paragraph[..*at].matches('`').count() % 2 == 1;
        let is_last = matches!(paragraph[at + mark.len()..].chars().next(), None | Some(' '));
        is_last && !is_in_code
    };
    let end = paragraph.match_indices([':', '.']).find(is_end);
    let sentence = end.map_or(paragraph.as_str(), |(at, _)| &paragraph[..at]);
    format!("{sentence}.").replace('|', "\\|")
}
