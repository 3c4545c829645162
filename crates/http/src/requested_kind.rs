//! The kind of a session that a client wants, where it says one.

use mainstay_engine::{Client, KindResolver};
use mainstay_model::SessionKind;
use schemars::JsonSchema;
use serde::Deserialize;

use super::bare::{Decode, Encode, Malformed, Reader, Schema, Shape};

/// A language like `fsharp` or `python`, or an agent. In BARE, whose version 1 has a text here, an empty one is none.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct RequestedKind(Option<SessionKind>);

impl RequestedKind {
    /// It, or what the folder is for, when this client creates a session there.
    pub(super) async fn or(self, kinds: &KindResolver, client: &Client, folder: &str) -> SessionKind {
        match self.0 {
            Some(kind) => kind,
            None => kinds.default_kind(client, folder).await,
        }
    }

    fn text(&self) -> &str {
        self.0.as_ref().map_or("", SessionKind::as_str)
    }
}

impl Shape for RequestedKind {
    fn shape(schema: &mut Schema) -> String {
        str::shape(schema)
    }
}

impl Encode for RequestedKind {
    fn encode(&self, to: &mut Vec<u8>) {
        self.text().encode(to);
    }
}

impl Decode for RequestedKind {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        match from.text()? {
            "" => Ok(Self(None)),
            text => {
                SessionKind::new(text).map(Some).map(Self).map_err(|error| from.malformed(error.to_string()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::bare::{message, read};
    use super::*;

    #[test]
    fn none_is_an_empty_text_in_bare_and_what_is_no_kind_is_refused() {
        for (text, kind) in [("python", SessionKind::new("python").ok()), ("", None)] {
            let written = message(&text.to_owned());
            assert_eq!(message(&RequestedKind(kind.clone())), written);
            assert_eq!(read::<RequestedKind>(&written).unwrap().0, kind);
        }
        assert!(read::<RequestedKind>(&message(&"no kind!".to_owned())).is_err());
    }
}
