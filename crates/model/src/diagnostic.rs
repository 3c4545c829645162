//! What a compiler says about code, with exact positions.

use serde::{Deserialize, Serialize};

/// A place in a text: line and column count from 1, columns in UTF-16 code units.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct TextPosition {
    /// From 1.
    pub line: u32,
    /// From 1, in UTF-16 code units.
    pub column: u32,
}

/// How much a diagnostic matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// The code does not run.
    Error,
    /// The code runs; something looks wrong.
    Warning,
    /// Worth knowing.
    Info,
    /// For tools only.
    Hidden,
}

impl Severity {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
            Self::Hidden => "hidden",
        }
    }
}

/// One remark of a compiler on a range of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Diagnostic {
    /// How much it matters.
    pub severity: Severity,
    /// The compiler's own code, such as `FS0039`.
    pub code: String,
    /// What it says.
    pub message: String,
    /// The file whose text it is of; none where that is the code that was submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Where it begins.
    pub start: TextPosition,
    /// Where it ends, exclusive.
    pub end: TextPosition,
}

impl Diagnostic {
    /// Where it begins, for people: `2:9`, `/code/Shop.fs:2:9`.
    pub fn place(&self) -> String {
        let TextPosition { line, column } = self.start;
        match &self.file {
            Some(file) => format!("{file}:{line}:{column}"),
            None => format!("{line}:{column}"),
        }
    }
}
