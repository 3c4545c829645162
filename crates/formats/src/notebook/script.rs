//! Scripts in cells, as editors part them: by `// %%` or `# %%`, and in F# by a comment of dashes alone.

use super::{CellKind, Text};
use mainstay_model::id::SessionKind;

/// A language whose scripts are read in cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptLanguage {
    /// A script in F#.
    FSharp,
    /// A script in Python.
    Python,
    /// A script in TypeScript.
    TypeScript,
    /// A script in JavaScript.
    JavaScript,
    /// A script for Bash.
    Bash,
}

impl ScriptLanguage {
    /// Every language that a script may have.
    pub const ALL: [Self; 5] = [Self::FSharp, Self::Python, Self::TypeScript, Self::JavaScript, Self::Bash];

    /// How the names of its scripts end.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::FSharp => "fsx",
            Self::Python => "py",
            Self::TypeScript => "ts",
            Self::JavaScript => "js",
            Self::Bash => "sh",
        }
    }

    /// That of files whose names end in this.
    pub(super) fn of_extension(extension: &str) -> Option<Self> {
        match extension {
            "fsscript" => Some(Self::FSharp),
            extension => Self::ALL.into_iter().find(|language| language.extension() == extension),
        }
    }

    /// That which a session's language is written in.
    pub(crate) fn named(language: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|script| script.name() == language)
    }

    /// Its name, as kinds of sessions spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FSharp => "fsharp",
            Self::Python => "python",
            Self::TypeScript => "typescript",
            Self::JavaScript => "javascript",
            Self::Bash => "bash",
        }
    }

    /// What a comment begins with.
    pub(crate) const fn comment(self) -> &'static str {
        match self {
            Self::FSharp | Self::TypeScript | Self::JavaScript => "//",
            Self::Python | Self::Bash => "#",
        }
    }

    /// The kinds of sessions that run it.
    pub(super) fn kinds(self) -> Vec<SessionKind> {
        // What runs TypeScript runs JavaScript.
        let names: &[&str] = match self {
            Self::JavaScript => &["javascript", "typescript"],
            Self::FSharp | Self::Python | Self::TypeScript | Self::Bash => &[self.name()],
        };
        names.iter().filter_map(|name| SessionKind::new(*name).ok()).collect()
    }
}

/// Reads a script; one without marks is one cell. A mark is one wherever its line stands, even in a text of the language.
pub(super) fn read(language: ScriptLanguage, text: &str) -> Text {
    Text::read(text, CellKind::Code(None), |line| {
        if language == ScriptLanguage::FSharp && is_ruler(line) {
            return Some(CellKind::Code(None));
        }
        let title = line.strip_prefix(language.comment())?.trim_start().strip_prefix("%%")?;
        Some(if title.contains("[markdown]") { CellKind::Markdown } else { CellKind::Code(None) })
    })
}

/// Whether a line is `(* --- *)`, of at least three dashes.
fn is_ruler(line: &str) -> bool {
    let comment = line.strip_prefix("(*").and_then(|line| line.strip_suffix("*)"));
    comment.map(str::trim).is_some_and(|dashes| dashes.len() >= 3 && dashes.chars().all(|c| c == '-'))
}
