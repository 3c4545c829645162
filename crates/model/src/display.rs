//! Displays: what code shows besides the text it prints, in as many forms as it has, each under its MIME type.
//!
//! A form is text, a picture or other bytes (in base64, as Jupyter sends them), or JSON. One of them always is plain text, so
//! whoever can show nothing else has something to show. Nothing here draws or renders: that is whoever shows it.

mod bundle;
mod mime_type;
mod picture;

use serde::{Deserialize, Serialize};

use crate::id::DisplayId;

pub use self::bundle::{Bundle, Form};
pub use self::mime_type::MimeType;
pub use self::picture::{Picture, PictureFormat, WantedSize};

/// Something that code showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Display {
    /// What code calls it; a later display of the session with the same name stands for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<DisplayId>,
    /// Whether it is the value of the code's last expression, in more forms than the language prints.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_value: bool,
    /// Whether it only stands for what was shown under its name before, and has no place of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_update: bool,
    /// Whether a value stands in this place, before or after other output, and is not shown with the end of its code.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_in_place: bool,
    /// The content, in one or more MIME types.
    pub data: Bundle,
}

impl Display {
    /// Whether it stands where it was shown. Any other value is shown with the end of its code.
    pub const fn is_put_out(&self) -> bool {
        !self.is_value || self.is_in_place
    }
}

/// The form that is always there.
pub const PLAIN: &str = "text/plain";

/// A picture that is text.
pub const SVG: &str = "image/svg+xml";

/// A web page's part.
pub const HTML: &str = "text/html";

/// Rows with named columns.
pub const TABLE: &str = "application/vnd.dataresource+json";

/// Under which name a bundle that is written has what is said of its forms, as Jupyter's messages have it beside them. It is none of the forms.
pub const METADATA: &str = "application/vnd.mainstay.metadata+json";

/// What came of tests ([`TestRun`](crate::TestRun)).
pub const TESTS: &str = "application/vnd.mainstay.tests+json";

/// How far a run of tests has come ([`TestProgress`](crate::TestProgress)).
pub const TEST_PROGRESS: &str = "application/vnd.mainstay.test-progress+json";

#[cfg(test)]
mod tests;
