//! What front ends want to know of a language: how to colour it, and how to call a file of it.

use mainstay_model::SessionKind;
use serde_json::{Value, json};

/// A language as front ends know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Language {
    /// Its name.
    pub(super) name: &'static str,
    mime_type: &'static str,
    extension: &'static str,
    /// What Pygments calls it.
    lexer: &'static str,
    /// What CodeMirror calls it.
    mode: &'static str,
}

const LANGUAGES: [Language; 5] = [
    Language {
        name: "fsharp",
        mime_type: "text/x-fsharp",
        extension: ".fsx",
        lexer: "fsharp",
        mode: "text/x-fsharp",
    },
    Language {
        name: "python",
        mime_type: "text/x-python",
        extension: ".py",
        lexer: "ipython3",
        mode: "python",
    },
    Language { name: "bash", mime_type: "text/x-sh", extension: ".sh", lexer: "bash", mode: "shell" },
    Language {
        name: "typescript",
        mime_type: "text/x.typescript",
        extension: ".ts",
        lexer: "typescript",
        mode: "typescript",
    },
    Language {
        name: "javascript",
        mime_type: "text/javascript",
        extension: ".js",
        lexer: "javascript",
        mode: "javascript",
    },
];

/// What `kernel_info_reply` says of the language of a session, whose runtime is called `NAME VERSION` once there is one.
pub(super) fn language_info(kind: &SessionKind, runtime: Option<&str>) -> Value {
    let (name, version) = runtime.and_then(|runtime| runtime.rsplit_once(' ')).unwrap_or((kind.as_str(), ""));
    let (name, kind) = (name.to_lowercase(), kind.as_str());
    let known = LANGUAGES.iter().find(|known| known.name == kind || known.name == name);
    match known {
        Some(Language { name, mime_type, extension, lexer, mode }) => json!({
            "name": name,
            "version": version,
            "mimetype": mime_type,
            "file_extension": extension,
            "pygments_lexer": lexer,
            "codemirror_mode": mode,
        }),
        None => {
            json!({ "name": name, "version": version, "mimetype": "text/plain", "file_extension": ".txt" })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_known_by_the_kind_of_a_session_or_by_its_runtime() {
        let told = |kind: &str, runtime| {
            let info = language_info(&SessionKind::new(kind).unwrap(), runtime);
            format!("{} {} {}", info["name"], info["version"], info["file_extension"])
        };
        assert_eq!(told("fsharp", Some(".NET 8.0.1")), r#""fsharp" "8.0.1" ".fsx""#);
        assert_eq!(told("python3", Some("python 3.12.3")), r#""python" "3.12.3" ".py""#);
        assert_eq!(told("deno", Some("typescript 5.9")), r#""typescript" "5.9" ".ts""#);
        assert_eq!(told("ir", Some("R 4.4")), r#""r" "4.4" ".txt""#);
        assert_eq!(told("ir", None), r#""ir" "" ".txt""#);
    }
}
