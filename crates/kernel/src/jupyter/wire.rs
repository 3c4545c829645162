//! A message of Jupyter's as it travels: identities, a signature, four parts of JSON, and whatever bytes come with them. What a message
//! says stays as it came until somebody reads it, so what nobody reads costs nothing, and what only passes through is not changed. That is why it is ours: `jupyter-protocol` reads each message into
//! its own types.

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use mainstay_model::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::Sha256;
use uuid::Uuid;
use zeromq::ZmqMessage;

/// Stands between the identities and the message.
const DELIMITER: &[u8] = b"<IDS|MSG>";
/// Whom the other side is told that it speaks to.
const USER: &str = "mainstay";
/// The version of the messaging protocol that is spoken here.
pub const PROTOCOL: &str = "5.4";

/// What both sides sign their messages with. An empty one signs nothing.
#[derive(Clone)]
pub struct Key(Option<Hmac<Sha256>>);

impl Key {
    /// Of a connection file's `key`.
    pub fn new(key: &str) -> Self {
        // A key of any length is one.
        Self(
            Some(key).filter(|key| !key.is_empty()).and_then(|key| Hmac::new_from_slice(key.as_bytes()).ok()),
        )
    }

    fn over(&self, parts: &[Bytes]) -> Option<Hmac<Sha256>> {
        let mut mac = self.0.clone()?;
        parts.iter().take(4).for_each(|part| mac.update(part));
        Some(mac)
    }

    fn sign(&self, parts: &[Bytes]) -> String {
        let Some(mac) = self.over(parts) else { return String::new() };
        mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn verify(&self, parts: &[Bytes], signature: &[u8]) -> bool {
        let Some(mac) = self.over(parts) else { return true };
        unhex(signature).is_some_and(|signature| mac.verify_slice(&signature).is_ok())
    }
}

fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    text.chunks(2).map(byte).collect()
}

/// Which message it is, and of whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Names it; what answers it bears this in its parent.
    pub msg_id: String,
    /// The type of the message.
    pub msg_type: String,
    /// Of which client or kernel.
    #[serde(default)]
    pub session: String,
    /// The user that sent the message.
    #[serde(default)]
    pub username: String,
    /// When it was made, in ISO 8601.
    #[serde(default)]
    pub date: String,
    /// The version of the protocol.
    #[serde(default)]
    pub version: String,
    /// Which part of the kernel is to answer while others are busy. Source: JEP 91.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subshell_id: Option<String>,
}

impl Header {
    /// Of a new message of a client or kernel.
    pub fn new(msg_type: &str, session: &str) -> Self {
        Self {
            msg_id: Uuid::new_v4().simple().to_string(),
            msg_type: msg_type.to_owned(),
            session: session.to_owned(),
            username: USER.to_owned(),
            date: Timestamp::now().to_string(),
            version: PROTOCOL.to_owned(),
            subshell_id: None,
        }
    }
}

/// One message of Jupyter's wire protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Where it comes from or goes to; on a channel that is published, its topic.
    pub identities: Vec<Bytes>,
    /// The header of the message.
    pub header: Header,
    /// What it answers, as it came; `{}` where it answers nothing.
    pub parent: Bytes,
    /// What is said about it, as it came.
    pub metadata: Bytes,
    /// What it says, as it came.
    pub content: Bytes,
    /// Bytes that belong to it.
    pub buffers: Vec<Bytes>,
}

/// Why something is no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The message has too few parts.
    #[error("it has too few parts")]
    TooFewParts,
    /// The signature is not that of the key.
    #[error("its signature is wrong")]
    Signature,
    /// A part is not what it should be.
    #[error("its {part} is not what it should be: {reason}")]
    Part {
        /// The part that is malformed.
        part: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

#[derive(Deserialize)]
struct OnlyId {
    msg_id: Option<String>,
}

impl Message {
    /// One with this content, in answer to nothing.
    pub fn new(header: Header, content: &Value) -> Self {
        let empty = Bytes::from_static(b"{}");
        Self {
            identities: Vec::new(),
            header,
            parent: empty.clone(),
            metadata: empty,
            content: Bytes::from(content.to_string()),
            buffers: Vec::new(),
        }
    }

    /// The message that it answers.
    pub fn parent_id(&self) -> Option<String> {
        serde_json::from_slice::<OnlyId>(&self.parent).ok()?.msg_id
    }

    /// What it says.
    ///
    /// # Errors
    /// [`Malformed::Part`] where it says something else.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Malformed> {
        part("content", &self.content)
    }

    /// Reads the frames of a message.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(frames: ZmqMessage, key: &Key) -> Result<Self, Malformed> {
        let frames = frames.into_vec();
        let delimiter = frames.iter().position(|frame| frame == DELIMITER).ok_or(Malformed::TooFewParts)?;
        let (identities, rest) = frames.split_at(delimiter);
        let [_, signature, parts @ ..] = rest else { return Err(Malformed::TooFewParts) };
        let [header, parent, metadata, content, buffers @ ..] = parts else {
            return Err(Malformed::TooFewParts);
        };
        if !key.verify(parts, signature) {
            return Err(Malformed::Signature);
        }
        Ok(Self {
            identities: identities.to_vec(),
            header: part("header", header)?,
            parent: parent.clone(),
            metadata: metadata.clone(),
            content: content.clone(),
            buffers: buffers.to_vec(),
        })
    }

    /// Writes it as frames.
    pub fn encode(self, key: &Key) -> ZmqMessage {
        let Self { identities, header, parent, metadata, content, buffers } = self;
        // A header is text alone, so it can be written.
        let header = Bytes::from(serde_json::to_vec(&header).unwrap_or_default());
        let parts = [header, parent, metadata, content];
        let signature = Bytes::from(key.sign(&parts));
        let frames = identities.into_iter().chain([Bytes::from_static(DELIMITER), signature]);
        let frames: Vec<Bytes> = frames.chain(parts).chain(buffers).collect();
        // There are frames, which is all that is asked of them.
        ZmqMessage::try_from(frames).unwrap_or_else(|_| ZmqMessage::from(Bytes::new()))
    }
}

fn part<T: DeserializeOwned>(name: &'static str, bytes: &[u8]) -> Result<T, Malformed> {
    serde_json::from_slice(bytes).map_err(|error| Malformed::Part { part: name, reason: error.to_string() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn header(msg_type: &str) -> Header {
        Header {
            msg_id: "1".to_owned(),
            msg_type: msg_type.to_owned(),
            session: "s".to_owned(),
            username: "u".to_owned(),
            date: "2026-01-01T00:00:00Z".to_owned(),
            version: PROTOCOL.to_owned(),
            subshell_id: None,
        }
    }

    /// Of Python's `hmac.new(b"key", b'{"a":1}{}{}{}', "sha256").hexdigest()`.
    const SIGNED: &str = "f1128388193e4dd1aa760827bd756a1b40b627676b5efe22c0e8297919bfa218";

    #[test]
    fn a_signature_is_that_of_other_programs() {
        let parts = [br#"{"a":1}"#.as_slice(), b"{}", b"{}", b"{}", b"buffers are not signed"];
        let parts = parts.map(Bytes::copy_from_slice);
        assert_eq!(Key::new("key").sign(&parts), SIGNED);
        assert_eq!(Key::new("").sign(&parts), "");
    }

    #[test]
    fn what_is_not_signed_with_the_key_is_refused() {
        let message = Message::new(header("status"), &json!({ "execution_state": "idle" }));
        let frames = message.clone().encode(&Key::new("one"));
        assert_eq!(Message::decode(frames.clone(), &Key::new("one")), Ok(message.clone()));
        assert_eq!(Message::decode(frames.clone(), &Key::new("")), Ok(message.clone()));
        assert_eq!(Message::decode(frames, &Key::new("two")), Err(Malformed::Signature));
        let unsigned = message.encode(&Key::new(""));
        assert_eq!(Message::decode(unsigned, &Key::new("one")), Err(Malformed::Signature));
    }

    #[test]
    fn a_parent_is_known_by_its_id() {
        let mut message = Message::new(header("stream"), &json!({}));
        assert_eq!(message.parent_id(), None);
        message.parent = Bytes::from_static(br#"{"msg_id":"7","msg_type":"execute_request"}"#);
        assert_eq!(message.parent_id().as_deref(), Some("7"));
    }

    fn any_bytes() -> impl Strategy<Value = Bytes> {
        proptest::collection::vec(any::<u8>(), 0..20).prop_map(Bytes::from)
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_again(
            // An identity that is the delimiter would end the identities.
            identities in proptest::collection::vec(any_bytes(), 0..3),
            buffers in proptest::collection::vec(any_bytes(), 0..3),
            content in any_bytes(),
            key in ".{0,80}",
        ) {
            let message = Message { identities, buffers, content, ..Message::new(header("comm_msg"), &json!({})) };
            let frames = message.clone().encode(&Key::new(&key));
            prop_assert_eq!(Message::decode(frames, &Key::new(&key)), Ok(message));
        }

        #[test]
        fn any_frames_are_a_message_or_an_error(frames in proptest::collection::vec(
            prop_oneof![any_bytes(), Just(Bytes::from_static(DELIMITER)), Just(Bytes::from_static(b"{}"))], 1..9,
        )) {
            let frames = ZmqMessage::try_from(frames).unwrap();
            // Whatever it is, it does not panic.
            Message::decode(frames, &Key::new("key")).ok();
        }
    }
}
