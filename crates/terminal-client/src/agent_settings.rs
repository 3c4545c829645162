//! An agent's model and how hard it thinks, as people name them.

use mainstay_model::{Setting, ThinkingLevel};

/// A model as people name it.
pub fn model(text: &str) -> Result<Setting, String> {
    match text.split_once('/') {
        Some((provider, id)) if !provider.is_empty() && !id.is_empty() => {
            Ok(Setting::Model { provider: provider.to_owned(), id: id.to_owned() })
        }
        Some(_) | None => Err("write it as PROVIDER/ID".to_owned()),
    }
}

/// How hard to think, as people name it.
pub fn thinking(text: &str) -> Result<ThinkingLevel, String> {
    let found = ThinkingLevel::ALL.into_iter().find(|level| level.name() == text);
    found.ok_or_else(|| format!("it is one of {}", ThinkingLevel::ALL.map(ThinkingLevel::name).join(", ")))
}
