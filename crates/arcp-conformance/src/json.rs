//! Short ways to read fields of JSON that may have any shape.

use serde_json::Value;

/// Returns the text at a JSON pointer, or an empty one.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the type of an envelope, or an empty text.
pub(crate) fn kind(envelope: &Value) -> &str {
    text(envelope, "/type")
}

/// Returns the sequence number of an event of dialect B.
pub(crate) fn seq(envelope: &Value) -> Option<i64> {
    envelope.get("event_seq").and_then(Value::as_i64)
}

/// Returns the elements of the array at a JSON pointer, or none.
pub(crate) fn items<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns JSON as one line that is no longer than a report can show.
pub(crate) fn short(value: &Value) -> String {
    clip(&value.to_string(), 300)
}

/// Returns a text, cut at so many characters.
pub(crate) fn clip(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(clip("żółć", 2), "żó…");
        assert_eq!(clip("żółć", 4), "żółć");
    }
}
