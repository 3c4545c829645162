//! Kinds of operations, and how the targets of each are written. Source: ARCP draft 1.1, section 9.2; draft
//! 02, section 9.2.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::syntax::Syntax;
use crate::error::Error;

/// The longest name of a kind, in bytes.
const LONGEST: usize = 100;

/// What an operation does, as a dotted name of lower-case words: `fs.read`, or a deployment's own such as
/// `payment.refund.create`.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct OperationKind(Cow<'static, str>);

impl OperationKind {
    /// Reading a file; the target is its path.
    pub const FS_READ: Self = Self(Cow::Borrowed("fs.read"));
    /// Writing a file; the target is its path.
    pub const FS_WRITE: Self = Self(Cow::Borrowed("fs.write"));
    /// Fetching over HTTP or HTTPS; the target is the URL.
    pub const NET_FETCH: Self = Self(Cow::Borrowed("net.fetch"));
    /// Calling a tool; the target is its name.
    pub const TOOL_CALL: Self = Self(Cow::Borrowed("tool.call"));
    /// Delegating to an agent; the target is its name, with `@` and a version or without.
    pub const AGENT_DELEGATE: Self = Self(Cow::Borrowed("agent.delegate"));
    /// Using a model; the target is its name.
    pub const MODEL_USE: Self = Self(Cow::Borrowed("model.use"));

    /// Returns the dotted name of the kind.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// How targets of this kind are written.
    pub(super) fn syntax(&self) -> Syntax {
        match self.as_str() {
            "fs.read" | "fs.write" => Syntax::Path,
            "net.fetch" => Syntax::Url,
            "tool.call" => Syntax::Tool,
            "agent.delegate" => Syntax::Agent,
            _ => Syntax::Name,
        }
    }
}

impl TryFrom<String> for OperationKind {
    type Error = Error;

    fn try_from(name: String) -> Result<Self, Error> {
        let invalid = |reason: &str| {
            Err(Error::InvalidArgument {
                argument: "kind of operation".to_owned(),
                reason: reason.to_owned(),
            })
        };
        if name == "cost.budget" {
            return invalid("`cost.budget` is a budget, not an operation");
        }
        let in_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
        let is_word =
            |word: &str| word.starts_with(|c: char| c.is_ascii_lowercase()) && word.chars().all(in_word);
        if name.len() > LONGEST || !name.contains('.') || !name.split('.').all(is_word) {
            return invalid("it is words of lower-case letters, digits, `-` and `_`, with dots between them");
        }
        Ok(Self(Cow::Owned(name)))
    }
}

impl From<OperationKind> for String {
    fn from(OperationKind(name): OperationKind) -> Self {
        name.into_owned()
    }
}

impl FromStr for OperationKind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::try_from(name.to_owned())
    }
}

impl fmt::Display for OperationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
