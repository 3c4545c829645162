//! What is proposed, from lines and from answers.

use mainstay_model::TextPosition;

use super::code::{offset, position};
use super::entries::numbers;
use super::rows::row;
use super::*;
use crate::command::table;

fn at_once(line: &str) -> Option<Proposal> {
    super::at_once(line, PromptLanguage::Fsharp)
}

fn sought(line: &str) -> Option<CompletionTarget<'_>> {
    super::sought(line, PromptLanguage::Fsharp)
}

fn choice(value: &str) -> Choice {
    Choice { value: value.to_owned(), note: "function  int -> int".to_owned(), documentation: None }
}

fn values(proposal: &Proposal) -> Vec<&str> {
    proposal.choices.iter().map(|choice| choice.value.as_str()).collect()
}

#[test]
fn positions_count_utf16_code_units_from_one() {
    assert_eq!(position(""), TextPosition { line: 1, column: 1 });
    assert_eq!(position("a\n🙂é"), TextPosition { line: 2, column: 4 });
}

#[test]
fn an_offset_undoes_a_position() {
    let text = "let é = \"🙂\"\nList.ma";
    for (at, _) in text.char_indices().chain([(text.len(), ' ')]) {
        assert_eq!(offset(text, position(&text[..at])), at);
    }
    assert_eq!(offset("ab", TextPosition { line: 9, column: 9 }), 2);
}

#[test]
fn tab_indents_where_nothing_stands_before_it() {
    assert_eq!(
        at_once("let f x =\n  ").map(|proposal| proposal.choices),
        Some(vec![Choice { value: "    ".to_owned(), note: String::new(), documentation: None }])
    );
    assert_eq!(at_once("let f x = "), None);
}

#[test]
fn commands_are_proposed_by_name() {
    assert_eq!(
        at_once(":re").map(|proposal| values(&proposal).join(",")).as_deref(),
        Some(":rename ,:reset,:rebuild ,:refresh ")
    );
    assert_eq!(
        at_once("/re").map(|proposal| values(&proposal).join(",")).as_deref(),
        Some("/rename ,/reset,/rebuild ,/refresh ")
    );
    assert_eq!(at_once("//comment\nList.ma"), None);
    assert_eq!(
        at_once("").map(|proposal| proposal.choices.len()),
        Some(table(PromptLanguage::Fsharp).count())
    );
}

#[test]
fn what_follows_a_command_first_is_told_from_the_table() {
    for line in [":switch la", "/session la", ":delete-session la", ":stats la"] {
        assert_eq!(sought(line), Some(CompletionTarget::Session { begun: "la" }), "{line}");
    }
    for line in [":merge la 3", "/cherry-pick la 3"] {
        assert_eq!(sought(line), Some(CompletionTarget::EntriesOf { text: "la 3" }), "{line}");
    }
    for line in
        [":fork 3", "/transcript 3", ":merge la 1 --at 3", ":merge la 1 --at=3", ":compact So. --before 3"]
    {
        assert_eq!(sought(line), Some(CompletionTarget::Entry { begun: "3" }), "{line}");
    }
    for line in [":rename 3", ":search so --at 3", ":quit "] {
        assert_eq!(sought(line), Some(CompletionTarget::Nothing), "{line}");
    }
    let file = |line| match sought(line) {
        Some(CompletionTarget::File { path, endings }) => (path, endings.len()),
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(file(":load a b"), ("a b", 3));
    assert_eq!(file(":import a b"), ("a b", 1));
    assert_eq!((file(":export a b"), file("/backup a")), (("a b", 1), ("a", 0)));
    assert_eq!(sought("// fork"), None);
    assert_eq!(sought(":fork"), None);
}

#[test]
fn numbers_begin_with_what_was_typed_and_the_last_ones_come_first() {
    let all = |begun, total| numbers(begun, total, 1000);
    assert_eq!(all("", 0), (vec![], false));
    assert_eq!(all("1", 123), (vec![100..124, 10..20, 1..2], false));
    for none in ["0", "+1", "x", "124", "99999999999999999999"] {
        assert_eq!(all(none, 123), (vec![], false), "{none}");
    }
    assert_eq!(numbers("1", 123, 30), (vec![100..124, 14..20], true));
    assert_eq!(numbers("1", u64::MAX, 1).0.len(), 1);
}

#[test]
fn numbers_are_those_that_begin_so() {
    for (total, most) in [(0, 5), (1, 0), (7, 5), (100, 12), (1234, 40), (1234, 2000)] {
        for begun in ["", "0", "1", "9", "10", "12", "99", "123", "1234", "12345"] {
            let fits = |number: &u64| number.to_string().starts_with(begun);
            let wanted: Vec<u64> = (1..=total).rev().filter(fits).collect();
            let expected: Vec<u64> = wanted.iter().copied().take(most as usize).collect();
            let (runs, is_partial) = numbers(begun, total, most);
            let got: Vec<u64> = runs.into_iter().flat_map(Iterator::rev).collect();
            assert_eq!((got, is_partial), (expected, wanted.len() as u64 > most), "{begun} of {total}");
        }
    }
}

#[test]
fn a_list_of_numbers_is_completed_at_its_last() {
    assert_eq!(["", "3", "3,", "3, 4", "7-1"].map(last_number), ["", "3", "", "4", "1"]);
}

#[test]
fn files_are_proposed_by_path() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.fsx", "ab.txt", ".hidden.fsx"] {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    std::fs::create_dir(folder.path().join("args")).unwrap();
    let line = format!(":load {}/a", folder.path().display());
    let proposal = at_once(&line).unwrap();
    assert_eq!(values(&proposal), ["a.fsx", "args/"]);
    assert_eq!(proposal.start, line.len() - 1);
}

#[test]
fn an_answer_serves_while_the_name_grows() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut completer =
        DaemonCompleter::new(Source::default(), PromptLanguage::Fsharp, runtime.handle().clone());
    let proposal = Proposal::whole(5, vec![choice("map"), choice("Max"), choice("``my``")]);
    completer.answer = Some(Answer { line: "List.m".to_owned(), as_of: Seq(7), proposal });
    let known = |line| completer.known(line, Seq(7)).map(|proposal| values(&proposal).join(","));
    assert_eq!(known("List.m").as_deref(), Some("map,Max,``my``"));
    assert_eq!(known("List.ma").as_deref(), Some("map,Max"));
    assert_eq!(known("List.m."), None);
    assert_eq!(known("List."), None);
    assert_eq!(completer.known("List.m", Seq(8)), None);
}

#[test]
fn choices_are_shown_with_their_types_beside_them() {
    assert_eq!(row(&choice("map"), 6, 80), "map     function  int -> int");
    assert_eq!(row(&choice("longer than that"), 6, 80), "longer than that  function  int -> int");
    assert_eq!(row(&choice("map"), 6, 12), "map     fun…");
}
