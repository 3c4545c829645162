//! Entries: the immutable, content-addressed items of a transcript. Source: seed 004, "StoredMessage".
//!
//! An entry is what was said, and nothing of where or when: the same input in two sessions is one entry. Where it stands
//! is its place ([`TranscriptEntry`]), and what people call it is kept apart.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Timestamp;
use crate::display::Bundle;
use crate::fingerprint::canonical;
use crate::id::{Seq, SessionId};
use crate::message::{BLOCK, CALL, COVERS, TOOL};
use crate::object::ObjectHash;
use crate::screen::settled;
use crate::transcript::{Bond, Segment};

/// An immutable item of a transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// What part it plays.
    pub role: Role,
    /// The content of the entry.
    pub content: Content,
    /// What else belongs to it for ever, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, Value>,
}

/// What part an entry plays.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// Code that was given to a kernel.
    Input,
    /// What came of the input before it: what it printed, and what it gave. What it showed are outputs too, each a bundle
    /// ([`FORMS`]), before that one.
    Output,
    /// What a model is told before anyone speaks, or by the program it runs in.
    System,
    /// What a person says to a model.
    User,
    /// What a model says.
    Assistant,
    /// What a model thinks before it speaks.
    Thinking,
    /// A tool that a model calls.
    ToolCall,
    /// What a tool answered.
    ToolResult,
    /// What earlier entries said, in short.
    Summary,
}

impl Role {
    /// Every role there is.
    pub const ALL: [Self; 9] = [
        Self::Input,
        Self::Output,
        Self::System,
        Self::User,
        Self::Assistant,
        Self::Thinking,
        Self::ToolCall,
        Self::ToolResult,
        Self::Summary,
    ];

    /// Its name, as written in a store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Thinking => "thinking",
            Self::ToolCall => "toolCall",
            Self::ToolResult => "toolResult",
            Self::Summary => "summary",
        }
    }

    /// Whether it is a call of a tool, or what came of one.
    pub const fn is_of_a_tool(self) -> bool {
        matches!(self, Self::ToolCall | Self::ToolResult)
    }

    /// Whether a model says it, in whatever way.
    pub const fn is_a_models(self) -> bool {
        match self {
            Self::Assistant | Self::Thinking | Self::ToolCall => true,
            Self::Input | Self::Output | Self::System | Self::User | Self::ToolResult | Self::Summary => {
                false
            }
        }
    }
}

/// What an entry says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Content {
    /// The whole content, as text.
    Text(String),
    /// An object, and how it begins.
    #[serde(rename_all = "camelCase")]
    Object {
        /// The object with all of it.
        object: ObjectHash,
        /// How many bytes it has.
        bytes: u64,
        /// The beginning of the text.
        preview: String,
    },
}

/// Content of more bytes than this is an object.
pub const INLINE_BYTES: usize = 10 * 1024;

/// How many bytes of an object a preview has at most.
pub const PREVIEW_BYTES: usize = 1024;

/// The metadata of a display: the types of its forms. Its content is the bundle.
pub const FORMS: &str = "forms";

impl Content {
    /// The content of this bundle, whose beginning is that of its plain text; the bytes of its object where it is too large.
    pub fn of_bundle(bundle: &Bundle, json: String) -> (Self, Option<Vec<u8>>) {
        let (mut content, bytes) = Self::of(json);
        if let Self::Object { preview, .. } = &mut content {
            let text = bundle.text();
            text[..text.floor_char_boundary(PREVIEW_BYTES)].clone_into(preview);
        }
        (content, bytes)
    }

    /// The content of this text; the bytes of its object where that is too large to be kept with the entry.
    pub fn of(text: String) -> (Self, Option<Vec<u8>>) {
        if text.len() <= INLINE_BYTES {
            return (Self::Text(text), None);
        }
        let preview = text[..text.floor_char_boundary(PREVIEW_BYTES)].to_owned();
        let content =
            Self::Object { object: ObjectHash::of(text.as_bytes()), bytes: text.len() as u64, preview };
        (content, Some(text.into_bytes()))
    }

    /// The text, or how it begins.
    pub fn beginning(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Object { preview, .. } => preview,
        }
    }

    fn hash(&self) -> ObjectHash {
        match self {
            Self::Text(text) => ObjectHash::of(text.as_bytes()),
            Self::Object { object, .. } => object.clone(),
        }
    }
}

impl Entry {
    /// Names it: over its role, its content and its metadata. Where its content is kept does not matter.
    pub fn hash(&self) -> EntryHash {
        let said = json!([self.role, self.content.hash(), self.metadata]);
        EntryHash(blake3::hash(canonical(&said).as_bytes()).into())
    }

    /// What binds it to other entries of its transcript.
    pub fn bond(&self) -> Bond<'_> {
        let call = self.role.is_of_a_tool().then(|| self.metadata.get(CALL)).flatten();
        Bond { role: self.role, call: call.and_then(Value::as_str) }
    }

    /// The tool that it calls, or is the result of, where that is known.
    pub fn tool(&self) -> Option<&str> {
        self.metadata.get(TOOL).and_then(Value::as_str)
    }

    /// What people see of it, where this is its text, or how it begins: its [words](Self::words), and of what was printed what a
    /// terminal shows of it.
    pub fn shown<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let words = self.words(text);
        if !self.is_printed() {
            return words;
        }
        match words {
            Cow::Borrowed(words) => settled(words),
            Cow::Owned(words) => Cow::Owned(settled(&words).into_owned()),
        }
    }

    /// What is text of it: of a display its plain text, of blocks that are no text what they are.
    pub fn words<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.metadata.contains_key(FORMS) {
            return match &self.content {
                Content::Object { preview, .. } if preview == text => Cow::Borrowed(text),
                Content::Object { .. } | Content::Text(_) => plain_text_of(text),
            };
        }
        let Some(kind) = self.metadata.get(BLOCK).and_then(Value::as_str) else { return Cow::Borrowed(text) };
        let bytes = match &self.content {
            Content::Text(text) => text.len() as u64,
            Content::Object { bytes, .. } => *bytes,
        };
        let blocks = serde_json::from_str::<Vec<Value>>(text).unwrap_or_default();
        let label = |block: &Value| match block.get("text").and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None => format!("[{}]", block.get("type").and_then(Value::as_str).unwrap_or(kind)),
        };
        match blocks.is_empty() {
            true => Cow::Owned(format!("[{kind}, {bytes} bytes]")),
            false => Cow::Owned(blocks.iter().map(label).collect::<Vec<_>>().join("\n")),
        }
    }

    /// Whether it has what a program printed, which may have colours and lines that were written over.
    pub fn is_printed(&self) -> bool {
        matches!(self.role, Role::Output | Role::ToolResult) || self.is_shell_run()
    }

    /// Whether it is what a line of a shell gave that a person ran beside an agent, and nothing that was said to it.
    pub fn is_shell_run(&self) -> bool {
        self.role == Role::User
            && self.metadata.get("subtype").is_some_and(|subtype| subtype == "bashExecution")
    }

    /// The segments of transcripts that it stands for, where it is a summary.
    pub fn covers(&self) -> Vec<Segment> {
        let covers = (self.role == Role::Summary).then(|| self.metadata.get(COVERS)).flatten();
        covers.and_then(|covers| Vec::deserialize(covers).ok()).unwrap_or_default()
    }
}

/// The plain text of a bundle that is written so.
fn plain_text_of(json: &str) -> Cow<'_, str> {
    match serde_json::from_str::<Bundle>(json) {
        Ok(bundle) => Cow::Owned(bundle.words().into_owned()),
        Err(_) => Cow::Borrowed(json),
    }
}

/// Names an entry: BLAKE3, in hexadecimal where it is written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryHash([u8; 32]);

impl EntryHash {
    /// A hash as it was stored; none where it is not of 32 bytes.
    pub fn from_stored(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Returns the bytes of the hash.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for EntryHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for EntryHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EntryHash({self})")
    }
}

impl schemars::JsonSchema for EntryHash {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "EntryHash".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[0-9a-f]{64}$" })
    }
}

impl Serialize for EntryHash {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EntryHash {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let invalid = || serde::de::Error::custom("an entry's hash has 64 hexadecimal digits");
        let hash = blake3::Hash::from_hex(text).map_err(|_| invalid())?;
        Ok(Self(hash.into()))
    }
}

/// Where an entry came to be, which tells it from all others: the one that another was brought from, or that has a label.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// The session it came to be in.
    pub session: SessionId,
    /// Its number among that session's own entries.
    pub number: u64,
}

/// An entry, and where it stands among those that came to be in its session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TranscriptEntry {
    /// The session it came to be in.
    pub session: SessionId,
    /// How many of that session's own entries are before it.
    pub number: u64,
    /// The hash of the entry's content.
    pub hash: EntryHash,
    /// The entry as it is stored.
    pub entry: Entry,
    /// When it came to be.
    pub at: Timestamp,
    /// The first event of what it belongs to: for a cell, that which accepted its code.
    pub first: Seq,
    /// The last event that belongs to the entry.
    pub last: Seq,
    /// The entry it was brought from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(role: Role, text: &str) -> Entry {
        let metadata = [("language".to_owned(), json!("fsharp"))].into();
        Entry { role, content: Content::of(text.to_owned()).0, metadata }
    }

    #[test]
    fn an_entrys_hash_is_of_all_it_says_and_of_nothing_else() {
        let one = entry(Role::Input, "1 + 1");
        assert_eq!(one.hash(), entry(Role::Input, "1 + 1").hash());
        let others = [
            entry(Role::Output, "1 + 1"),
            entry(Role::Input, "1 + 2"),
            Entry { metadata: BTreeMap::new(), ..one.clone() },
        ];
        assert!(others.iter().all(|other| other.hash() != one.hash()));
        insta::assert_snapshot!(one.hash(), @"8fd85fb74390de7fbbe8d0cf4583832090dca2c1929d2f0666bfca86d33732f8");
    }

    #[test]
    fn large_content_is_an_object_under_the_same_hash() {
        let text = "é".repeat(INLINE_BYTES);
        let large = entry(Role::Output, &text);
        let kept_whole = Entry { content: Content::Text(text.clone()), ..large.clone() };
        assert_eq!(large.hash(), kept_whole.hash());
        let Content::Object { object, bytes, preview } = large.content else { panic!("it is inline") };
        assert_eq!((object, bytes), (ObjectHash::of(text.as_bytes()), text.len() as u64));
        assert!(text.starts_with(&preview) && preview.len() == PREVIEW_BYTES);
        assert_eq!(Content::of("é".repeat(INLINE_BYTES / 2)).1, None);
    }

    #[test]
    fn of_what_was_printed_people_see_what_a_terminal_shows() {
        let bar = "\r 50%\r100%\n\u{1b}[32mok\u{1b}[0m";
        assert_eq!(entry(Role::Output, bar).shown(bar), "100%\nok");
        assert_eq!(entry(Role::ToolResult, bar).shown(bar), "100%\nok");
        assert_eq!(entry(Role::Input, bar).shown(bar), bar, "code is no output");
        assert_eq!(entry(Role::Output, bar).words(bar), bar);
    }

    #[test]
    fn of_a_display_people_see_its_plain_text() {
        let bundle: Bundle =
            serde_json::from_value(json!({ "text/html": "<b>", "text/plain": "b" })).unwrap();
        let json = serde_json::to_string(&bundle).unwrap();
        let metadata = [(FORMS.to_owned(), json!(bundle.kinds()))].into();
        let (content, object) = Content::of_bundle(&bundle, json.clone());
        let display = Entry { role: Role::Output, content, metadata };
        assert_eq!((object, &*display.shown(&json)), (None, "b"));
        let large = Bundle::plain("é".repeat(INLINE_BYTES));
        let json = serde_json::to_string(&large).unwrap();
        let (content, object) = Content::of_bundle(&large, json.clone());
        let display = Entry { content, ..display };
        assert_eq!(object, Some(json.clone().into_bytes()));
        assert_eq!(display.shown(display.content.beginning()), "é".repeat(PREVIEW_BYTES / 2));
        assert_eq!(display.shown(&json), large.text());
    }

    #[test]
    fn a_hash_is_read_as_it_is_written() {
        let hash = entry(Role::Input, "x").hash();
        let json = serde_json::to_string(&hash).unwrap();
        assert_eq!(serde_json::from_str::<EntryHash>(&json).unwrap(), hash);
        assert_eq!(EntryHash::from_stored(hash.as_bytes()), Some(hash));
        assert!(serde_json::from_str::<EntryHash>("\"ab\"").is_err());
        assert_eq!(EntryHash::from_stored(b"short"), None);
    }
}
