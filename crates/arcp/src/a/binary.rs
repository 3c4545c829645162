//! What a job shows as bytes, as streams of the kind `binary`: one for each form of a display that is no text. Source: draft-arcp-01, 11.1 and 11.3.

use mainstay_arcp_protocol::a::Message;
use mainstay_arcp_protocol::a::stream::{StreamChunk, StreamClose, StreamKind, StreamOpen};
use mainstay_model::{Base64, Display, Form};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::news::stream_prefix;
use super::translator::{ATranslator, JobMessage, emitted, no_chunk};
use crate::message_fold::JobView;

/// How many bytes a piece has at most, so that a client can slow a stream down. It never changes: the ids of the messages behind them count the pieces.
const PIECE: usize = 48 * 1024;

/// What is said of a display: the event, and its bytes as streams, where the client has those.
pub(super) fn displayed(translator: &ATranslator, view: &JobView<'_>, display: &Display) -> Vec<JobMessage> {
    let mut event = json!(display);
    if !translator.binary {
        return vec![emitted("display", event)];
    }
    let mut streams = Vec::new();
    let mut told = Vec::new();
    for (content_type, data) in bytes_of(display) {
        let stream = stream_of(view, streams.len());
        let bytes = data.bytes();
        streams.push(json!({
            "stream_id": stream,
            "content_type": content_type,
            "size": bytes.len(),
            "sha256": hash(&bytes),
        }));
        told.extend(stream_messages(content_type, &bytes).map(|message| message.in_stream(stream.clone())));
        if let Some(forms) = event["data"].as_object_mut() {
            forms.remove(content_type);
        }
    }
    if let (false, Some(fields)) = (streams.is_empty(), event.as_object_mut()) {
        fields.insert("streams".to_owned(), Value::Array(streams));
    }
    std::iter::once(emitted("display", event)).chain(told).collect()
}

/// The forms of a display that are bytes, with their types.
fn bytes_of(display: &Display) -> impl Iterator<Item = (&str, &Base64)> {
    display.data.forms().filter_map(|(kind, form)| match form {
        Form::Binary(data) => Some((kind.as_str(), data)),
        Form::Text(_) | Form::Json(_) => None,
    })
}

/// The name of a stream with bytes of a display.
fn stream_of(view: &JobView<'_>, number: usize) -> String {
    format!("{}{}_{number}", stream_prefix(view.job), view.event.seq.0)
}

fn stream_messages(content_type: &str, bytes: &[u8]) -> impl Iterator<Item = JobMessage> {
    let opened = Message::StreamOpen(StreamOpen {
        kind: StreamKind::Binary,
        content_type: Some(content_type.to_owned()),
        encoding: None,
    });
    let pieces = bytes.chunks(PIECE).zip(0_u64..).map(|(piece, sequence)| {
        let chunk = StreamChunk {
            sequence: Some(sequence),
            content_type: Some(content_type.to_owned()),
            size: Some(piece.len() as u64),
            sha256: Some(hash(piece)),
            ..no_chunk()
        };
        JobMessage::from(Message::StreamChunk(chunk)).with_bytes(piece.to_vec())
    });
    let count = bytes.len().div_ceil(PIECE) as u64;
    let closed = Message::StreamClose(StreamClose {
        reason: Some("all of it was told".to_owned()),
        chunks: Some(count),
    });
    std::iter::once(opened.into()).chain(pieces).chain([closed.into()])
}

/// A SHA-256 in hexadecimal digits.
pub(super) fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
