//! A line as a message of JSON-RPC: what the bridge has to know of it. What it does not change goes on as it came, byte for byte.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// The members of an object, as they were written.
pub(super) type Members = BTreeMap<String, Box<RawValue>>;

/// What a line is.
#[derive(Debug)]
pub(super) enum Message {
    /// It wants an answer.
    Request {
        /// What its answer will name.
        id: Value,
        /// The method that is called.
        method: String,
        /// All members of the message.
        members: Members,
    },
    /// A message that wants no answer.
    Notification {
        /// What it is about.
        method: String,
        /// All members of the message.
        members: Members,
    },
    /// It answers a request.
    Answer {
        /// The id of the request that is answered.
        id: Value,
        /// All members of the message.
        members: Members,
    },
    /// Something else, which is for the other side to judge.
    Other,
}

impl Message {
    /// Reads a message from a line.
    pub(super) fn read(line: &str) -> Self {
        let line = line.trim_start_matches('\u{feff}');
        let Ok(members) = serde_json::from_str::<Members>(line) else { return Self::Other };
        let id = match value(&members, "id") {
            Some(id @ (Value::String(_) | Value::Number(_))) => Some(id),
            None => None,
            Some(_) => return Self::Other,
        };
        match (value(&members, "method"), id) {
            (Some(Value::String(method)), Some(id)) => Self::Request { id, method, members },
            (Some(Value::String(method)), None) => Self::Notification { method, members },
            (None, Some(id)) if members.contains_key("result") || members.contains_key("error") => {
                Self::Answer { id, members }
            }
            _ => Self::Other,
        }
    }
}

/// A member that is small; of another its reading would be a waste.
pub(super) fn value(members: &Members, name: &str) -> Option<Value> {
    serde_json::from_str(members.get(name)?.get()).ok()
}

/// The members of a member that is an object.
pub(super) fn object(members: &Members, name: &str) -> Option<Members> {
    serde_json::from_str(members.get(name)?.get()).ok()
}

/// Gives a member another value.
pub(super) fn put(members: &mut Members, name: &str, value: &impl serde::Serialize) {
    // It fails only for what is no JSON, such as a map whose keys are no text.
    if let Ok(raw) = to_raw_value(value) {
        members.insert(name.to_owned(), raw);
    }
}

/// The line of a message.
pub(super) fn line(members: &Members) -> String {
    serde_json::to_string(members).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_told_by_its_members() {
        let kind = |line: &str| match Message::read(line) {
            Message::Request { id, method, .. } => format!("request {method} {id}"),
            Message::Notification { method, .. } => format!("notification {method}"),
            Message::Answer { id, .. } => format!("answer {id}"),
            Message::Other => "other".to_owned(),
        };
        for (line, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "request ping 1"),
            ("\u{feff}{\"id\":\"a\",\"method\":\"ping\"}", "request ping \"a\""),
            (r#"{"method":"notifications/initialized"}"#, "notification notifications/initialized"),
            (r#"{"id":1,"result":{}}"#, "answer 1"),
            (r#"{"id":1,"error":{"code":1}}"#, "answer 1"),
            (r#"{"id":null,"error":{"code":1}}"#, "other"),
            (r#"{"id":[1],"method":"ping"}"#, "other"),
            (r#"{"id":1}"#, "other"),
            (r#"[{"id":1,"method":"ping"}]"#, "other"),
            ("{nonsense", "other"),
            ("", "other"),
        ] {
            assert_eq!(kind(line), expected, "{line}");
        }
    }

    #[test]
    fn what_is_not_changed_stays_as_it_was_written() {
        let Message::Request { mut members, .. } =
            Message::read(r#"{"id":1,"method":"m","params":{"n":1.50,"big":123456789012345678901}}"#)
        else {
            panic!("no request")
        };
        put(&mut members, "id", &7);
        let written = r#"{"id":7,"method":"m","params":{"n":1.50,"big":123456789012345678901}}"#;
        assert_eq!(line(&members), written);
    }
}
