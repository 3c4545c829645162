//! Languages, as notebooks and kinds of sessions call them.

use serde::{Deserialize, Serialize};

use crate::id::SessionKind;

/// A language as notebooks call it, in the spelling of session kinds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(from = "String")]
pub struct Language(String);

impl Language {
    /// By any of its names.
    pub fn named(name: &str) -> Self {
        let name = name.trim().trim_start_matches('.').to_ascii_lowercase();
        Self(match name.as_str() {
            "f#" | "fs" | "net-fsharp" => "fsharp".to_owned(),
            "c#" | "cs" | "net-csharp" => "csharp".to_owned(),
            "powershell" | "net-pwsh" => "pwsh".to_owned(),
            "js" => "javascript".to_owned(),
            _ => name,
        })
    }

    /// That which sessions of a kind run, where the kind's name tells: it is the language's, or that of a kernel that many have.
    pub fn of(kind: &SessionKind) -> Option<Self> {
        let name = match kind.as_str() {
            "fsharp" => "fsharp",
            "python" | "python2" | "python3" | "xpython" | "xpython-raw" => "python",
            "bash" => "bash",
            "typescript" | "deno" => "typescript",
            "javascript" | "xjavascript" => "javascript",
            "r" | "ir" | "xr" => "r",
            julia if julia.starts_with("julia") => "julia",
            _ => return None,
        };
        Some(Self(name.to_owned()))
    }

    /// Returns the name of the language.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it begins a comment with `#`, and not with `//`.
    pub fn comments_by_hash(&self) -> bool {
        ["python", "bash", "r", "julia"].contains(&self.as_str())
    }

    /// Whether a session runs it that is of this kind, and runs this language as far as that is known.
    pub fn is_run_by(&self, kind: &SessionKind, language: Option<&Self>) -> bool {
        self.0 == kind.as_str() || language == Some(self)
    }
}

impl From<String> for Language {
    fn from(name: String) -> Self {
        Self::named(&name)
    }
}
