//! A compiler's remark as an agent sees it.

use std::fmt::{Display, Formatter, Result};

use mainstay_model::{Diagnostic, Severity};
use schemars::JsonSchema;
use serde::Serialize;

/// A remark on the code, with its range in it; the end is exclusive.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DiagnosticLine {
    severity: &'static str,
    code: String,
    message: String,
    /// The file it is in, where that is not the code that was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    line: u32,
    column: u32,
    end_line: u32,
    end_column: u32,
}

impl From<Diagnostic> for DiagnosticLine {
    fn from(diagnostic: Diagnostic) -> Self {
        let Diagnostic { severity, code, message, file, start, end } = diagnostic;
        Self {
            severity: match severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Info => "info",
                Severity::Hidden => "hidden",
            },
            code,
            message,
            file,
            line: start.line,
            column: start.column,
            end_line: end.line,
            end_column: end.column,
        }
    }
}

impl Display for DiagnosticLine {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Self { severity, code, message, file, line, column, .. } = self;
        if let Some(file) = file {
            write!(f, "{file}:")?;
        }
        write!(f, "{line}:{column} {severity} {code}: {message}")
    }
}

/// Whether a diagnostic tells whoever wrote the code to change it.
pub(super) fn wants_change(diagnostic: &Diagnostic) -> bool {
    match diagnostic.severity {
        Severity::Error | Severity::Warning => true,
        Severity::Info | Severity::Hidden => false,
    }
}

/// Whether a diagnostic is for people, not only for tools.
pub(super) fn is_for_people(diagnostic: &Diagnostic) -> bool {
    diagnostic.severity != Severity::Hidden
}
