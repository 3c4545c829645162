//! The four formats in which agents ask models: what of a request is the model's tools and a tool's result, and how the model's next move is said.

mod chat;
mod generate;
mod messages;
mod responses;

use serde_json::Value;

/// One of the formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// The Responses interface of OpenAI.
    Responses,
    /// The Messages interface of Anthropic.
    Messages,
    /// The chat completions of OpenAI.
    Chat,
    /// The `generateContent` interface of Google.
    Generate,
}

/// What a model does.
#[derive(Clone, Debug)]
pub(crate) enum Move {
    /// It calls a tool.
    Call { id: String, tool: Offered, arguments: Value },
    /// It says something, which ends its turn.
    Say(String),
}

/// A tool that the model is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offered {
    /// What it stands in, where the format has such a thing.
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    /// Its length as the model is sent it, in bytes.
    pub(crate) bytes: usize,
}

/// What the model is shown of a tool's result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) parts: Vec<Part>,
    /// Whether it is marked as an error, where the format can say so.
    pub(crate) is_error: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Text(String),
    /// Of this type, with so many bytes as it is sent.
    Picture(String, usize),
}

impl Shown {
    /// All of its text.
    pub(crate) fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Picture(..) => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn has_picture(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Picture(..)))
    }
}

impl Format {
    /// The format that is spoken at a path.
    pub(crate) fn at(path: &str) -> Option<Self> {
        match path {
            _ if path.ends_with("/responses") => Some(Self::Responses),
            _ if path.ends_with("/messages") => Some(Self::Messages),
            _ if path.ends_with("/chat/completions") => Some(Self::Chat),
            _ if path.ends_with(":streamGenerateContent") => Some(Self::Generate),
            _ => None,
        }
    }

    /// The tools that a request offers.
    pub(crate) fn offered(self, request: &Value) -> Vec<Offered> {
        match self {
            Self::Responses => responses::offered(request),
            Self::Messages => messages::offered(request),
            Self::Chat => chat::offered(request),
            Self::Generate => generate::offered(request),
        }
    }

    /// The result of a call, as it stands in a request.
    pub(crate) fn result(self, request: &Value, call: &str) -> Option<Shown> {
        match self {
            Self::Responses => responses::result(request, call),
            Self::Messages => messages::result(request, call),
            Self::Chat => chat::result(request, call),
            Self::Generate => generate::result(request),
        }
    }

    /// The stream of events that says what the model does.
    pub(crate) fn events(self, next: &Move) -> String {
        match self {
            Self::Responses => responses::events(next),
            Self::Messages => messages::events(next),
            Self::Chat => chat::events(next),
            Self::Generate => generate::events(next),
        }
    }
}

/// A list that may be missing.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn named(tool: &Value, namespace: Option<&str>, whole: &Value) -> Option<Offered> {
    Some(Offered {
        namespace: namespace.map(str::to_owned),
        name: tool["name"].as_str()?.to_owned(),
        bytes: whole.to_string().len(),
    })
}

/// A picture that is given as an address with its data.
fn picture_at(address: &Value) -> Part {
    let address = address.as_str().unwrap_or_default();
    let (head, data) = address.split_once(',').unwrap_or(("", address));
    let kind = head.trim_start_matches("data:").trim_end_matches(";base64");
    Part::Picture(kind.to_owned(), data.len())
}

/// An event whose name stands in it too.
fn event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default())
}

fn data(data: &Value) -> String {
    format!("data: {data}\n\n")
}
