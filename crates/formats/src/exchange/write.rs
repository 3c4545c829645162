//! Writing a file, line by line.

use super::item::{Header, Item};
use mainstay_model::object::ObjectHash;
use serde::Serialize;

/// Writes a file, line by line.
#[derive(Debug, Default)]
pub struct Lines {
    items: u64,
    hasher: blake3::Hasher,
}

impl Lines {
    /// Writes the first line of the file.
    pub fn header(&mut self, header: &Header) -> String {
        self.line(header)
    }

    /// The line of an item.
    pub fn item(&mut self, item: &Item) -> String {
        self.items += 1;
        self.line(item)
    }

    /// Writes the last line of the file.
    pub fn end(self) -> String {
        let hash = ObjectHash::from_stored(self.hasher.finalize().to_hex().to_string());
        let end = Item::End { items: self.items, hash };
        Self::default().line(&end)
    }

    fn line(&mut self, said: &impl Serialize) -> String {
        // What is written here has no keys that are not texts, and so always is JSON.
        let mut line = serde_json::to_string(said).unwrap_or_default();
        line.push('\n');
        self.hasher.update(line.as_bytes());
        line
    }
}
