//! Patterns of targets: what they match, and which cover which. Source: ARCP draft 02, sections 9.2 and 9.4.

use std::fmt;

use super::glob::{self, SegmentGlob};
use super::kind::OperationKind;
use super::operation::Operation;
use super::syntax::Syntax;
use crate::error::Error;

/// How long patterns may be, and how many. What comparing two grants costs at most is the product of what
/// their patterns have in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternLimits {
    /// The longest pattern, in bytes.
    pub bytes: usize,
    /// How many patterns one grant may have, of all kinds together.
    pub patterns: usize,
    /// How many bytes all patterns of one grant may have together.
    pub total_bytes: usize,
}

impl PatternLimits {
    /// What a client's request may have at most, unless a deployment says otherwise.
    pub const REQUEST: Self = Self { bytes: 1024, patterns: 256, total_bytes: 16 * 1024 };
    /// What a grant may have at most that is read back from where it was stored. No request may have more.
    pub const STORED: Self = Self { bytes: 8192, patterns: 4096, total_bytes: 256 * 1024 };
}

/// An anchored glob over the segments of a target: `*` stands for any characters within one segment, `**` for
/// any number of segments.
///
/// What a segment is depends on the kind of the operation:
///
/// - Paths (`fs.read`, `fs.write`): a name between slashes. `/work/**` covers `/work` too.
/// - URLs (`net.fetch`): the scheme, the host, the port, and each name of the path. A query is not matched.
/// - Tools (`tool.call`): the names between slashes where there is a slash, else those between dots.
///   `mcp:github/*` covers all tools of that server, `humanq.*` covers `humanq.ask` and not
///   `humanq.ask.twice`, `**` covers every tool.
/// - Agents (`agent.delegate`): the name, and the version after `@`. A pattern without a version covers every
///   version.
/// - Models and all else (`model.use`, `payment.refund.create`): the names between slashes.
///
/// All other characters stand for themselves; case matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    syntax: Syntax,
    segments: Vec<SegmentGlob>,
}

impl Pattern {
    /// Reads a pattern of targets of this kind.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it is too long, or is none for this kind.
    pub fn parse(kind: &OperationKind, text: &str, limits: &PatternLimits) -> Result<Self, Error> {
        let syntax = kind.syntax();
        let segments = if text.len() > limits.bytes.min(PatternLimits::STORED.bytes) {
            Err("it is too long")
        } else {
            syntax.pattern(text)
        };
        match segments {
            Ok(segments) => Ok(Self { text: text.to_owned(), syntax, segments: glob::in_order(segments) }),
            Err(reason) => {
                let argument = format!("pattern `{}` of `{kind}`", super::operation::shown(text));
                Err(Error::InvalidArgument { argument, reason: reason.to_owned() })
            }
        }
    }

    /// Whether it covers an operation, with all that is below its target where that is meant.
    pub(super) fn allows(&self, operation: &Operation) -> bool {
        if !operation.is_recursive() {
            return self.matches(operation);
        }
        // A target with stars in its name is read as more than it is, which only asks for more.
        let below = format!("{}/**", operation.target().trim_end_matches('/'));
        let below = Self::parse(operation.kind(), &below, &PatternLimits::STORED);
        below.is_ok_and(|below| self.covers(&below))
    }

    /// Returns the pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the target of the operation is one that it stands for.
    pub fn matches(&self, operation: &Operation) -> bool {
        self.syntax == operation.kind().syntax() && glob::matches(&self.segments, operation.segments())
    }

    /// Whether every target that the other matches is one that it matches. It is false where that is not
    /// proven.
    pub fn covers(&self, other: &Self) -> bool {
        self.syntax == other.syntax && glob::covers(&self.segments, &other.segments)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}
