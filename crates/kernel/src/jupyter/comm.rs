//! Comm messages as Jupyter has them, and as the session has them.

use std::borrow::Cow;

use bytes::Bytes;
use mainstay_model::{Base64, CommId, CommMessage, CommStep};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::wire::{Header, Malformed, Message};

/// The content of `comm_open`, `comm_msg` and `comm_close`.
#[derive(Debug, Deserialize)]
struct Content {
    comm_id: String,
    #[serde(default)]
    target_name: String,
    #[serde(default)]
    target_module: Option<String>,
    #[serde(default)]
    data: Value,
}

/// What a message of Jupyter's says of a comm; none where it is about something else.
///
/// # Errors
/// [`Malformed`] where it says something else than its type.
pub fn read(message: &Message) -> Result<Option<CommMessage>, Malformed> {
    let kind = message.header.msg_type.as_str();
    if !["comm_open", "comm_msg", "comm_close"].contains(&kind) {
        return Ok(None);
    }
    let malformed = |part, reason| Malformed::Part { part, reason };
    let Content { comm_id, target_name, target_module, data } = message.read()?;
    let step = match kind {
        "comm_open" => CommStep::Open { target: target_name, module: target_module },
        "comm_msg" => CommStep::Say,
        _ => CommStep::Close,
    };
    let comm = CommId::new(comm_id).map_err(|error| malformed("comm_id", error.to_string()))?;
    let metadata: Value = serde_json::from_slice(&message.metadata)
        .map_err(|error| malformed("metadata", error.to_string()))?;
    let metadata = if metadata == Value::Object(Map::new()) { Value::Null } else { metadata };
    let buffers = message.buffers.iter().map(|bytes| Base64::of(bytes)).collect();
    Ok(Some(CommMessage { comm, step, data, metadata, buffers }))
}

/// A message of Jupyter's under this header, which is given its type.
pub fn written(header: Header, message: &CommMessage) -> Message {
    let CommMessage { comm, step, data, metadata, buffers } = message;
    let (kind, content) = match step {
        CommStep::Open { target, module } => {
            let content = json!({ "comm_id": comm, "target_name": target, "data": object(data) });
            ("comm_open", with_module(content, module.as_deref()))
        }
        CommStep::Say => ("comm_msg", json!({ "comm_id": comm, "data": object(data) })),
        CommStep::Close => ("comm_close", json!({ "comm_id": comm, "data": object(data) })),
    };
    Message {
        metadata: Bytes::from(object(metadata).to_string()),
        buffers: buffers.iter().map(|buffer| Bytes::from(buffer.bytes())).collect(),
        ..Message::new(Header { msg_type: kind.to_owned(), ..header }, &content)
    }
}

fn with_module(mut content: Value, module: Option<&str>) -> Value {
    if let Some(module) = module {
        content["target_module"] = json!(module);
    }
    content
}

/// What Jupyter wants an object for.
fn object(value: &Value) -> Cow<'_, Value> {
    match value {
        Value::Null => Cow::Owned(json!({})),
        value => Cow::Borrowed(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(step: CommStep) -> CommMessage {
        CommMessage {
            comm: CommId::new("c1").unwrap(),
            step,
            data: json!({ "state": { "value": 3 } }),
            metadata: json!({ "version": "2.1.0" }),
            buffers: vec![Base64::of(&[0, 255, 7])],
        }
    }

    #[test]
    fn what_is_written_reads_the_same() {
        let target = || "jupyter.widget".to_owned();
        let steps = [
            CommStep::Open { target: target(), module: None },
            CommStep::Open { target: target(), module: Some("m".to_owned()) },
            CommStep::Say,
            CommStep::Close,
        ];
        for step in steps {
            let message = message(step);
            let written = written(Header::new("", "s"), &message);
            assert_eq!(read(&written), Ok(Some(message.clone())), "{}", written.header.msg_type);
            let bare = CommMessage { data: json!({}), metadata: Value::Null, buffers: Vec::new(), ..message };
            assert_eq!(read(&super::written(Header::new("", "s"), &bare)), Ok(Some(bare)));
        }
    }

    #[test]
    fn what_is_none_is_none_or_an_error_and_no_panic() {
        let of = |kind: &str, content: Value| read(&Message::new(Header::new(kind, "s"), &content));
        assert_eq!(of("status", json!({})), Ok(None));
        assert!(of("comm_msg", json!({})).is_err());
        assert!(of("comm_msg", json!({ "comm_id": "" })).is_err());
        assert!(of("comm_msg", json!([1])).is_err());
    }
}
