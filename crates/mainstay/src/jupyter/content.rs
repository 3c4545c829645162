//! What front ends ask, and some of what they are told, as JSON.

use std::collections::BTreeMap;

use mainstay_kernel::jupyter::places;
use mainstay_model::Bundle;
use mainstay_model::display::METADATA;
use mainstay_runner::Completions;
use mainstay_runner::query::Completeness;
use serde::Deserialize;
use serde_json::{Value, json};

/// The content of an `execute_request` message.
#[derive(Debug, Deserialize)]
pub(super) struct ExecuteRequest {
    pub(super) code: String,
    #[serde(default)]
    pub(super) silent: bool,
    #[serde(default = "yes")]
    pub(super) store_history: bool,
    #[serde(default)]
    pub(super) user_expressions: BTreeMap<String, String>,
    #[serde(default = "yes")]
    pub(super) allow_stdin: bool,
    #[serde(default = "yes")]
    pub(super) stop_on_error: bool,
}

const fn yes() -> bool {
    true
}

/// The content of `complete_request` and `inspect_request`.
#[derive(Debug, Deserialize)]
pub(super) struct CodeAt {
    pub(super) code: String,
    pub(super) cursor_pos: usize,
    #[serde(default)]
    pub(super) detail_level: u8,
}

/// The content of an `is_complete_request` message.
#[derive(Debug, Deserialize)]
pub(super) struct IsCompleteRequest {
    pub(super) code: String,
}

/// The content of a `comm_info_request` message.
#[derive(Debug, Deserialize)]
pub(super) struct CommInfoRequest {
    #[serde(default)]
    pub(super) target_name: Option<String>,
}

/// The content of a `history_request` message.
#[derive(Debug, Deserialize)]
pub(super) struct HistoryRequest {
    #[serde(default)]
    pub(super) hist_access_type: String,
    #[serde(default)]
    pub(super) n: Option<usize>,
    #[serde(default)]
    pub(super) pattern: Option<String>,
    #[serde(default)]
    pub(super) start: Option<usize>,
    #[serde(default)]
    pub(super) stop: Option<usize>,
    #[serde(default)]
    pub(super) unique: bool,
    #[serde(default)]
    pub(super) output: bool,
}

/// Code that ran, and what it gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HistoryEntry {
    pub(super) input: String,
    pub(super) output: Option<String>,
}

/// The content of a `shutdown_request` message.
#[derive(Debug, Deserialize)]
pub(super) struct ShutdownRequest {
    #[serde(default)]
    pub(super) restart: bool,
}

/// The content of an `input_reply` message.
#[derive(Debug, Deserialize)]
pub(super) struct InputReply {
    pub(super) value: String,
}

/// What is displayed, and what is said of its forms.
pub(super) fn shown(bundle: &Bundle) -> Value {
    let mut data = BTreeMap::from(bundle.clone());
    data.remove(METADATA);
    json!({ "data": data, "metadata": bundle.metadata() })
}

/// Writes the content of a `complete_reply`.
pub(super) fn complete_reply(asked: &CodeAt, completions: Completions) -> Value {
    let CodeAt { code, cursor_pos, .. } = asked;
    let start = completions.start.map_or(*cursor_pos, |start| places::offset(code, start));
    let types: Vec<Value> = completions
        .items
        .iter()
        .map(|item| {
            json!({
                "text": item.label, "type": item.kind, "start": start, "end": cursor_pos,
                "signature": item.detail.as_deref().unwrap_or_default(),
            })
        })
        .collect();
    let matches: Vec<String> = completions.items.into_iter().map(|item| item.label).collect();
    json!({
        "status": "ok", "matches": matches, "cursor_start": start, "cursor_end": cursor_pos,
        "metadata": { "_jupyter_types_experimental": types },
    })
}

/// Writes the content of an `inspect_reply`.
pub(super) fn inspect_reply(told: Option<&Bundle>) -> Value {
    json!({
        "status": "ok", "found": told.is_some(), "metadata": {},
        "data": told.map_or_else(|| json!({}), |told| shown(told)["data"].take()),
    })
}

/// Writes the content of an `is_complete_reply`.
pub(super) fn is_complete_reply(completeness: Completeness) -> Value {
    match completeness {
        Completeness::Complete => json!({ "status": "complete" }),
        Completeness::Incomplete { indent } => json!({ "status": "incomplete", "indent": indent }),
        Completeness::Invalid => json!({ "status": "invalid" }),
        Completeness::Unknown => json!({ "status": "unknown" }),
    }
}

/// `history_reply`: of the inputs of a session, the oldest first, those that are asked for. Each is numbered from one on, in the session
/// that has the number nought, which is the present one.
pub(super) fn history_reply(asked: &HistoryRequest, past: Vec<HistoryEntry>) -> Value {
    let numbered = (1..).zip(past);
    let mut chosen: Vec<(usize, HistoryEntry)> = match asked.hist_access_type.as_str() {
        "range" => {
            let (start, stop) = (asked.start.unwrap_or(0), asked.stop.unwrap_or(usize::MAX));
            numbered.filter(|(number, _)| (start..stop).contains(number)).collect()
        }
        "search" => {
            let pattern = asked.pattern.as_deref().unwrap_or("*");
            numbered.filter(|(_, past)| fits(pattern, &past.input)).collect()
        }
        _ => numbered.collect(),
    };
    if asked.unique {
        let mut seen = std::collections::HashSet::new();
        chosen.reverse();
        chosen.retain(|(_, past)| seen.insert(past.input.clone()));
        chosen.reverse();
    }
    if let Some(count) = asked.n {
        chosen.drain(..chosen.len().saturating_sub(count));
    }
    let told = |past: HistoryEntry| match asked.output {
        true => json!([past.input, past.output]),
        false => json!(past.input),
    };
    let history: Vec<Value> =
        chosen.into_iter().map(|(number, past)| json!([0, number, told(past)])).collect();
    json!({ "status": "ok", "history": history })
}

/// Whether a text is of a pattern with `*` for any characters and `?` for one.
fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    // Of each beginning of the text, whether what was read of the pattern fits it.
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    for sign in pattern {
        let mut next = vec![false; text.len() + 1];
        for at in 0..=text.len() {
            next[at] = match sign {
                '*' => reached[at] || (at > 0 && next[at - 1]),
                '?' => at > 0 && reached[at - 1],
                sign => at > 0 && reached[at - 1] && text[at - 1] == sign,
            };
        }
        reached = next;
    }
    reached[text.len()]
}

#[cfg(test)]
mod tests {
    use mainstay_model::TextPosition;
    use mainstay_runner::CompletionItem;

    use super::*;

    #[test]
    fn completions_replace_what_has_begun_counted_in_code_points() {
        let asked = CodeAt { code: "x = \"🙂\"\nos.ge".to_owned(), cursor_pos: 13, detail_level: 0 };
        let item = |label: &str| CompletionItem {
            label: label.to_owned(),
            kind: "function".to_owned(),
            detail: None,
            documentation: None,
        };
        let start = Some(TextPosition { line: 2, column: 4 });
        let reply = complete_reply(&asked, Completions { items: vec![item("getcwd")], start });
        assert_eq!((&reply["cursor_start"], &reply["cursor_end"]), (&json!(11), &json!(13)));
        assert_eq!(reply["matches"], json!(["getcwd"]));
    }

    #[test]
    fn history_is_the_last_a_range_or_what_fits_a_pattern() {
        let told = |asked: Value| {
            let asked: HistoryRequest = serde_json::from_value(asked).unwrap();
            let past = |input: &str| HistoryEntry { input: input.to_owned(), output: Some("2".to_owned()) };
            let all = ["let a = 1", "a + 1", "let b = 2", "a + 1"].map(past).to_vec();
            history_reply(&asked, all)["history"].to_string()
        };
        assert_eq!(told(json!({ "hist_access_type": "tail", "n": 1 })), r#"[[0,4,"a + 1"]]"#);
        assert_eq!(
            told(json!({ "hist_access_type": "range", "start": 1, "stop": 2 })),
            r#"[[0,1,"let a = 1"]]"#
        );
        let search = json!({ "hist_access_type": "search", "pattern": "let*", "n": 9 });
        assert_eq!(told(search), r#"[[0,1,"let a = 1"],[0,3,"let b = 2"]]"#);
        let once = json!({ "hist_access_type": "search", "pattern": "*1", "unique": true });
        assert_eq!(told(once), r#"[[0,1,"let a = 1"],[0,4,"a + 1"]]"#);
    }

    #[test]
    fn a_pattern_stands_for_texts() {
        for (pattern, text, is_fit) in [
            ("*", "", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*b*", "abc", true),
            ("b", "abc", false),
        ] {
            assert_eq!(fits(pattern, text), is_fit, "{pattern} {text}");
        }
    }
}
