//! Targets in their one form, and why a text has none.

/// A target in its one form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Canonical {
    /// The form to act on.
    pub(super) text: String,
    /// What patterns are matched against.
    pub(super) segments: Vec<String>,
}

/// Why a target or a pattern is refused.
pub(super) type Reason = &'static str;
