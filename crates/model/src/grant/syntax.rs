//! How targets and patterns are written, and what their segments are, for each kind of operation.

use super::canonical::{Canonical, Reason};
use super::glob::SegmentGlob;
use super::{name, path, url};

/// How targets and patterns of a kind are written, and what their segments are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    /// An absolute path: a segment is a name between slashes.
    Path,
    /// A URL: its segments are the scheme, the host, the port, and each name of its path.
    Url,
    /// The name of a tool: split at `/` where it has one, else at `.`.
    Tool,
    /// The name of an agent, and its version.
    Agent,
    /// Any other name: split at `/`.
    Name,
}

impl Syntax {
    pub(super) fn canonical(self, target: &str) -> Result<Canonical, Reason> {
        match self {
            Self::Path => path::canonical(target),
            Self::Url => url::canonical(target),
            Self::Tool => name::canonical(target, name::tool_segments),
            Self::Agent => name::canonical(target, name::agent_segments),
            Self::Name => name::canonical(target, name::segments),
        }
    }

    pub(super) fn pattern(self, text: &str) -> Result<Vec<SegmentGlob>, Reason> {
        if text == "**" {
            return Ok(vec![SegmentGlob::AnySegments]);
        }
        match self {
            Self::Path => path::pattern(text),
            Self::Url => url::pattern(text),
            Self::Tool => name::pattern(text, name::tool_segments),
            Self::Agent => name::agent_pattern(text),
            Self::Name => name::pattern(text, name::segments),
        }
    }
}
