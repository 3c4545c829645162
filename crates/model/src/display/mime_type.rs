//! MIME types, and which of them are JSON or binary.

use std::fmt;

/// Names a form: `text/html`, `image/png`. In lower case, without parameters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MimeType(pub(super) String);

impl MimeType {
    const MAX_BYTES: usize = 127;

    /// A type as a worker names it; none where it is not one.
    pub fn new(name: &str) -> Option<Self> {
        let name = name.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let is_token = |part: &str| {
            let is_part = |c: char| c.is_ascii_alphanumeric() || "!#$&^_.+-".contains(c);
            !part.is_empty() && part.chars().all(is_part)
        };
        let is_type = name.split_once('/').is_some_and(|(kind, form)| is_token(kind) && is_token(form));
        (is_type && name.len() <= Self::MAX_BYTES).then_some(Self(name))
    }

    /// Returns the name of the type.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// By its name; `application/vnd.vegalite.v6.json` is what Altair 6 says.
    pub(super) fn is_json(&self) -> bool {
        ["/json", "+json", ".json"].iter().any(|end| self.0.ends_with(end))
    }

    /// Whether nothing in its name says that it stands for text or bytes.
    pub(super) fn may_be_json(&self) -> bool {
        self.0.starts_with("application/") && !self.0.ends_with("+xml") && !self.is_binary()
    }

    pub(super) fn is_binary(&self) -> bool {
        let is_bytes = ["image/", "audio/", "video/", "font/"].iter().any(|start| self.0.starts_with(start));
        is_bytes && !self.0.ends_with("+xml")
            || ["application/pdf", "application/octet-stream", "application/zip"].contains(&self.0.as_str())
    }
}

impl fmt::Display for MimeType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
