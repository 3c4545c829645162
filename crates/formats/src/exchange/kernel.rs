//! What runs a session's code, as files of the session name it.

use serde_json::{Value, json};

use super::Header;
use mainstay_model::Language;
use mainstay_model::id::SessionKind;
use mainstay_model::session::Session;

/// A kernel, as notebooks name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The name of its kernelspec.
    pub name: String,
    /// What people call it.
    pub display_name: String,
    /// The language of the kernel.
    pub language: Language,
}

impl Kernel {
    /// Of this session, as far as its kind and its kernel tell.
    pub fn of_session(session: &Session) -> Self {
        Self::of(&session.kind, session.language.as_ref())
    }

    /// Of a session that was exported.
    pub fn of_header(header: &Header) -> Self {
        Self::of(&header.kind, header.language.as_ref())
    }

    /// Of sessions of a kind and a language, as far as that is known: where the kind is a language, the kernel that most have for it.
    pub fn of(kind: &SessionKind, language: Option<&Language>) -> Self {
        let (name, display_name) = match kind.as_str() {
            "fsharp" => (".net-fsharp", ".NET (F#)"),
            "python" | "python3" => ("python3", "Python 3 (ipykernel)"),
            "bash" => ("bash", "Bash"),
            "typescript" | "deno" => ("deno", "Deno"),
            "r" | "ir" => ("ir", "R"),
            other => (other, other),
        };
        let by_kind = || Language::of(kind).unwrap_or_else(|| Language::named(kind.as_str()));
        let language = language.cloned().unwrap_or_else(by_kind);
        Self { name: name.to_owned(), display_name: display_name.to_owned(), language }
    }

    /// Whether what shows under a name takes the place of what that cell showed under it before, and not a place of its own.
    pub(super) fn shows_in_place(&self) -> bool {
        self.language.as_str() == "fsharp"
    }

    /// Whether it tells of errors as IPython does: a title, where it happened, and the error at the end.
    pub(super) fn tells_like_ipython(&self) -> bool {
        self.language.as_str() == "python"
    }

    /// Returns the metadata of a notebook for this kernel.
    pub(super) fn metadata(&self) -> Value {
        let language = match self.language.as_str() {
            "fsharp" => "F#",
            "r" => "R",
            other => other,
        };
        json!({
            "kernelspec": { "display_name": self.display_name, "language": language, "name": self.name },
            "language_info": { "name": language },
        })
    }
}
