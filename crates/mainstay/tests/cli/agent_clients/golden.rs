//! What a model did and was shown, as a golden has it: without what differs from run to run, and cut where it is long.

use std::fmt::Write;

use serde_json::Value;

use crate::agent_clients::wire::{Part, Shown};
use crate::support::World;

/// From how many characters on a text is cut in the middle.
const LONG: usize = 1000;

/// How much of its beginning and of its end stays.
const KEPT: usize = 150;

/// The record of a story.
pub(crate) struct Golden {
    text: String,
    /// What stands in texts, and what stands there instead.
    hidden: Vec<(String, &'static str)>,
}

impl Golden {
    pub(crate) fn new(world: &World) -> Self {
        let home = world.home();
        let root = home.parent().unwrap();
        let name = root.file_name().unwrap().to_string_lossy().into_owned();
        Self { text: String::new(), hidden: vec![(root.display().to_string(), "$WORLD"), (name, "WORLD")] }
    }

    /// Notes something that the test says.
    pub(crate) fn note(&mut self, text: &str) {
        writeln!(self.text, "· {text}").unwrap();
    }

    /// Records a call of a tool.
    pub(crate) fn called(&mut self, tool: &str, arguments: &Value) {
        let arguments = self.cleaned(&arguments.to_string());
        writeln!(self.text, "› {tool} {arguments}").unwrap();
    }

    /// Notes what the model is shown of its result.
    pub(crate) fn shown(&mut self, shown: &Shown) {
        let mark = if shown.is_error == Some(true) { '✗' } else { '‹' };
        for part in &shown.parts {
            let text = match part {
                Part::Text(text) => cut(&self.cleaned(text)),
                Part::Picture(kind, _) => format!("[picture {kind}]"),
            };
            writeln!(self.text, "{mark} {}", text.replace('\n', "\n  ")).unwrap();
        }
    }

    /// The whole of it.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    fn cleaned(&self, text: &str) -> String {
        let text = self.hidden.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
        without_numbers_of_the_run(&text)
    }
}

/// Cuts a long text in the middle, saying how long about it was.
fn cut(text: &str) -> String {
    let length = text.chars().count();
    if length <= LONG {
        return text.to_owned();
    }
    let head: String = text.chars().take(KEPT).collect();
    let tail: String = text.chars().skip(length - KEPT).collect();
    format!("{head}\n[… about {} thousand characters …]\n{tail}", length.div_ceil(1000))
}

/// Puts `ID` for what is an id, `T` for a time, `N` for the number of an event.
fn without_numbers_of_the_run(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = rest.find(|c: char| !is_of_word(c)).unwrap_or(rest.len());
        if length == 0 {
            cleaned.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (word, behind) = rest.split_at(length);
        cleaned.push_str(instead(&cleaned, word, behind).unwrap_or(word));
        rest = behind;
    }
    cleaned
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_')
}

/// What stands for a word, where it is of the run.
fn instead(before: &str, word: &str, behind: &str) -> Option<&'static str> {
    let hex = word.chars().filter(|c| *c != '-').count() >= 8
        && word.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    let has_digit = word.contains(|c: char| c.is_ascii_digit());
    let number = word.trim_end_matches('.');
    let is_number = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let is_time = [" s", " ms", " second", " min"].iter().any(|unit| behind.starts_with(unit));
    let is_event = ["seq ", "seq\":", "seq\\\":"].iter().any(|name| before.ends_with(name));
    let is_id = before.ends_with("session ") || before.ends_with("mainstay/sessions/");
    match () {
        () if hex && (has_digit || is_id) => Some("ID"),
        () if has_time(word) => Some("ID"),
        () if is_number && is_time => Some("T"),
        () if is_number && is_event => Some("N"),
        () => None,
    }
}

/// Whether a word has a time in milliseconds in it, as names have that agents give calls and files.
fn has_time(word: &str) -> bool {
    word.split(|c: char| !c.is_ascii_digit()).any(|digits| digits.len() >= 12)
}

#[test]
fn numbers_of_the_run_are_hidden_and_others_stay() {
    let text = "Wall time: 0.0046 seconds\nok [session 8d9a70ff, seq 5] 21 of 1000000 in 1.5 s, 01a213df-7976-7b73-a007-d250c728a66a, call_1795629777337_0";
    let cleaned = "Wall time: T seconds\nok [session ID, seq N] 21 of 1000000 in T s, ID, ID";
    assert_eq!(without_numbers_of_the_run(text), cleaned);
}

#[test]
fn a_long_text_is_cut_in_the_middle() {
    let cleaned = cut(&"x".repeat(3001));
    assert!(cleaned.contains("[… about 4 thousand characters …]") && cleaned.len() < 400, "{cleaned}");
    assert_eq!(cut("short"), "short");
}
