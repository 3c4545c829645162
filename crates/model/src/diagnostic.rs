//! What a compiler says about code, with exact positions.

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// A place in a text: line and column count from 1, columns in UTF-16 code units.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct TextPosition {
    /// The line, counted from 1.
    pub line: u32,
    /// From 1, in UTF-16 code units.
    pub column: u32,
}

impl TextPosition {
    /// The place in a text that somebody names: by default the last line, and the end of the line.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where the text has no such place; it names the line or the column, and how many there are.
    pub fn named(text: &str, line: Option<u32>, column: Option<u32>) -> Result<Self, Error> {
        let invalid = |argument: &str, given: u32, last: u32| Error::InvalidArgument {
            argument: argument.to_owned(),
            reason: format!("it is {given}, and must be from 1 to {last} in this code"),
        };
        let lines: Vec<&str> = text.split('\n').collect();
        let last = counted(lines.len());
        let line = line.unwrap_or(last);
        let index = line.checked_sub(1).and_then(|index| usize::try_from(index).ok());
        let found = index.and_then(|index| lines.get(index)).ok_or_else(|| invalid("line", line, last))?;
        let last = counted(found.encode_utf16().count() + 1);
        let column = column.unwrap_or(last);
        if !(1..=last).contains(&column) {
            return Err(invalid("column", column, last));
        }
        Ok(Self { line, column })
    }
}

fn counted(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// How much a diagnostic matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// The code does not run.
    Error,
    /// The code runs; something looks wrong.
    Warning,
    /// Something that is worth knowing.
    Info,
    /// Something that only tools show.
    Hidden,
}

impl Severity {
    /// Returns the name of the severity.
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
    /// The message of the compiler.
    pub message: String,
    /// The file whose text it is of; none where that is the code that was submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The place where it begins.
    pub start: TextPosition,
    /// Where it ends, exclusive.
    pub end: TextPosition,
}

impl Diagnostic {
    /// The code of what says that nothing was checked, and why: of some languages no kernel checks code without running it.
    pub const UNCHECKED: &str = "unchecked";

    /// Whether it says that nothing was checked, and nothing of the code.
    pub fn is_unchecked(&self) -> bool {
        self.severity == Severity::Info && self.code == Self::UNCHECKED
    }

    /// Where it begins, for people: `2:9`, `/code/Shop.fs:2:9`.
    pub fn place(&self) -> String {
        let TextPosition { line, column } = self.start;
        match &self.file {
            Some(file) => format!("{file}:{line}:{column}"),
            None => format!("{line}:{column}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_the_places_up_to_its_end_and_no_others() {
        let named = |line, column| match TextPosition::named("a𝄞b\n\nList.", line, column) {
            Ok(TextPosition { line, column }) => format!("{line}:{column}"),
            Err(error) => error.to_string(),
        };
        assert_eq!(named(None, None), "3:6");
        assert_eq!(named(Some(1), None), "1:5");
        assert_eq!(named(None, Some(2)), "3:2");
        for (line, column) in [(1, 1), (1, 5), (2, 1), (3, 6)] {
            assert_eq!(named(Some(line), Some(column)), format!("{line}:{column}"));
        }
        for line in [0, 4] {
            let refused = format!("line is not valid: it is {line}, and must be from 1 to 3 in this code");
            assert_eq!(named(Some(line), Some(1)), refused);
        }
        for (line, column, last) in [(1, 6, 5), (2, 0, 1), (2, 2, 1), (3, 7, 6)] {
            let refused =
                format!("column is not valid: it is {column}, and must be from 1 to {last} in this code");
            assert_eq!(named(Some(line), Some(column)), refused);
        }
        assert_eq!(TextPosition::named("", None, None), Ok(TextPosition { line: 1, column: 1 }));
    }
}
