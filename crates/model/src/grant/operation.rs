//! Operations at a boundary: what is checked before it is done. Source: ARCP draft 1.1, section 9.3; draft
//! 02, section 14.

use serde::{Deserialize, Serialize};

use super::canonical::Canonical;
use super::denial::Denial;
use super::kind::OperationKind;

/// The longest target, in bytes.
const LONGEST_TARGET: usize = 8192;

/// What somebody is about to do to a target, which is in its one form.
///
/// Whoever does it does it to [`Operation::target`], not to the text that it was made from: that is what is
/// checked. Symbolic links are the caller's: it resolves them before it makes the operation of a path, and
/// opens the path without following further ones. So are file systems that ignore case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    kind: OperationKind,
    target: Canonical,
    /// Whether it is done to all that is below the target, too.
    is_recursive: bool,
}

/// What somebody says that he is about to do, as he says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AskedOperation {
    /// What is to be done.
    pub kind: OperationKind,
    /// What it is to be done to, as the asker writes it.
    pub target: String,
    /// Whether it is done to all that is below the target, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_recursive: bool,
}

impl AskedOperation {
    /// The operation, with its target in its one form.
    ///
    /// # Errors
    /// As [`Operation::new`].
    pub fn operation(&self) -> Result<Operation, Denial> {
        let operation = Operation::new(self.kind.clone(), &self.target)?;
        Ok(Operation { is_recursive: self.is_recursive, ..operation })
    }

    /// Whether it is this operation, whose target is in its one form.
    pub(super) fn is(&self, operation: &Operation) -> bool {
        self.kind == operation.kind
            && self.target == operation.target()
            && self.is_recursive == operation.is_recursive
    }
}

impl From<&Operation> for AskedOperation {
    fn from(operation: &Operation) -> Self {
        Self {
            kind: operation.kind.clone(),
            target: operation.target().to_owned(),
            is_recursive: operation.is_recursive,
        }
    }
}

impl Operation {
    /// Brings the target into its one form.
    ///
    /// # Errors
    /// [`Denial::NotCanonical`] where it has none, or could mean several things.
    pub fn new(kind: OperationKind, target: &str) -> Result<Self, Denial> {
        let canonical = if target.len() > LONGEST_TARGET {
            Err("it is too long")
        } else {
            kind.syntax().canonical(target)
        };
        match canonical {
            Ok(target) => Ok(Self { kind, target, is_recursive: false }),
            Err(reason) => {
                Err(Denial::NotCanonical { kind, target: shown(target), reason: reason.to_owned() })
            }
        }
    }

    /// Returns what is done.
    pub const fn kind(&self) -> &OperationKind {
        &self.kind
    }

    /// Returns the target in its one form.
    pub fn target(&self) -> &str {
        &self.target.text
    }

    /// Whether it is done to all that is below the target, too.
    pub const fn is_recursive(&self) -> bool {
        self.is_recursive
    }

    pub(super) fn segments(&self) -> &[String] {
        &self.target.segments
    }
}

/// A target as messages show it: its beginning, without control characters.
pub(super) fn shown(target: &str) -> String {
    /// As many characters as help to recognise it.
    const SHOWN: usize = 200;
    let mut shown: String = target.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if target.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}
