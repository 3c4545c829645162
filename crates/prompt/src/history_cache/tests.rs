//! Lines of the history: typed, sent, taken over and kept back.

use mainstay_model::LineNumber;

use super::*;

fn texts(history: &HistoryCache) -> Vec<String> {
    let known = history.shared.lock();
    known.lines.values().map(|line| line.content.beginning().to_owned()).collect()
}

fn session() -> SessionId {
    SessionId::from_uuid(Uuid::nil())
}

#[test]
fn one_line_that_begins_with_a_blank_is_secret_and_a_block_is_not() {
    assert!([" x", "  let x = 1", " x\n"].iter().all(|text| is_secret(text)));
    assert!(!["x", "", "    let x = 1\n    x", "x\n y"].iter().any(|text| is_secret(text)));
}

#[test]
fn a_line_is_there_at_once_and_once_under_its_number() {
    let history = HistoryCache::of("/here", Vec::new());
    history.add("1", session());
    history.add("2", session());
    assert_eq!(texts(&history), ["1", "2"]);
    history.shared.lock().sent(&[LineNumber(7)]);
    assert_eq!(texts(&history), ["1", "2"]);
    assert_eq!(history.shared.lock().unsent.len(), 1);
}

#[test]
fn another_folder_has_its_own_lines_behind_those_of_the_others() {
    let history = HistoryCache::of("/here", Vec::new());
    history.add("1", session());
    history.go_on("/there", None);
    history.add("2", session());
    assert_eq!(texts(&history), ["1", "2"]);
    history.go_on("/here", None);
    assert_eq!(texts(&history), ["2", "1"]);
}

#[test]
fn lines_that_no_daemon_took_are_sent_by_the_next_client() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("unsent");
    let history = HistoryCache::empty(file.clone());
    history.go_on("/here", None);
    history.add("let x =\n    1", session());
    history.shared.write_unsent().unwrap();
    let next = HistoryCache::empty(file.clone());
    next.take_over(&file, unsent_lines);
    assert_eq!(texts(&next), ["let x =\n    1"]);
    next.shared.write_unsent().unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 1, "they are in the file once");
}

#[test]
fn lines_of_the_former_file_keep_their_names_and_line_ends_and_secrets_are_left_out() {
    let text = "1 + 1\nlet x =<\\n>    1\n\n hidden\n1 + 1\n";
    let lines = old_lines(text);
    let texts: Vec<_> = lines.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(texts, ["1 + 1", "let x =\n    1", "1 + 1"]);
    let ids = |lines: &[NewLine]| lines.iter().map(|line| line.id).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(ids(&lines).len(), 3);
    assert_eq!(ids(&old_lines(text)), ids(&lines));
}
