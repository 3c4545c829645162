//! What a kernel's helper reports of code that it has run.

use mainstay_model::{Binding, Diagnostic};
use serde::Deserialize;

use crate::jupyter::content::Payload;

/// What the helper that a kernel is given calls what it tells.
pub(in crate::jupyter) const HELPER: &str = "mainstay";

/// What a kernel's helper tells of code that it has run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::jupyter) struct Report {
    /// Whether it is proven that nothing of the session has changed.
    pub(in crate::jupyter) is_pure: bool,
    /// Whether it may use the value of the code before it.
    pub(in crate::jupyter) uses_last: bool,
    /// The names that the code bound.
    pub(in crate::jupyter) bindings: Vec<Binding>,
    /// The type of its value.
    pub(in crate::jupyter) value_type: Option<String>,
    /// What the compiler says of code that it did not take.
    pub(in crate::jupyter) rejected: Option<Diagnostic>,
    /// Of code that did not come to its end: how many bytes of it had.
    pub(in crate::jupyter) kept: usize,
}

impl Report {
    /// The report among what came with a reply.
    pub(super) fn among(payload: &[Payload]) -> Option<Self> {
        let told = payload.iter().find(|told| told.source == HELPER)?;
        Self::deserialize(&told.report).ok()
    }
}
