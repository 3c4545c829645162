//! Prompts: what a user says to an agent, with images, and how it is delivered.

use serde::{Deserialize, Serialize};

use crate::message::{Message, Part, PartRole};

/// What is said to an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    /// The text of the prompt.
    pub text: String,
    /// The pictures that go with the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

/// A picture in a prompt.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// The type of the picture, such as `image/png`.
    pub mime_type: String,
    /// Its bytes, as base64.
    pub data: String,
}

// By hand: the bytes of a picture help nobody.
impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Image({}, {} bytes)", self.mime_type, self.data.len())
    }
}

impl Prompt {
    /// Creates a prompt of text alone.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), images: Vec::new() }
    }

    /// As someone says it in a conversation.
    pub fn message(&self) -> Message {
        let image = |image: &Image| {
            let block =
                serde_json::json!({ "type": "image", "data": image.data, "mimeType": image.mime_type });
            Part::block(PartRole::User, "image", &block)
        };
        let words = std::iter::once(Part::text(PartRole::User, self.text.clone()));
        Message { parts: words.chain(self.images.iter().map(image)).collect(), ..Message::default() }
    }
}

/// When an agent that works is to hear what is said to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Delivery {
    /// Before its next step: what is said steers it.
    #[serde(rename = "next")]
    Steer,
    /// When it would be done: what is said follows up.
    #[serde(rename = "atEnd")]
    FollowUp,
}

/// Something said to an agent while it worked, which it has not heard yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueuedPrompt {
    /// The prompt that waits.
    pub prompt: Prompt,
    /// When it is to hear it.
    pub hears: Delivery,
}

impl std::fmt::Display for Prompt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)?;
        match self.images.len() {
            0 => Ok(()),
            1 => f.write_str(" (with an image)"),
            count => write!(f, " (with {count} images)"),
        }
    }
}

impl std::fmt::Display for QueuedPrompt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let when = match self.hears {
            Delivery::Steer => "steer",
            Delivery::FollowUp => "follow up",
        };
        write!(f, "{when}: {}", self.prompt)
    }
}
