//! What front ends want to know of a language: how to colour it, and how to call a file of it.

use mainstay_model::SessionKind;
use mainstay_model::notebook::Language;
use serde_json::{Value, json};

/// Of a language: its name, its MIME type, how files of it end, and what Pygments and CodeMirror call it.
const KNOWN: [(&str, &str, &str, &str, &str); 5] = [
    ("fsharp", "text/x-fsharp", ".fsx", "fsharp", "text/x-fsharp"),
    ("python", "text/x-python", ".py", "ipython3", "python"),
    ("bash", "text/x-sh", ".sh", "bash", "shell"),
    ("typescript", "text/x.typescript", ".ts", "typescript", "typescript"),
    ("javascript", "text/javascript", ".js", "javascript", "javascript"),
];

/// What `kernel_info_reply` says of the language of a session, whose runtime is called `NAME VERSION` once there is one.
pub(super) fn language_info(kind: &SessionKind, runtime: Option<&str>) -> Value {
    let (name, version) = runtime.and_then(|runtime| runtime.rsplit_once(' ')).unwrap_or((kind.as_str(), ""));
    let language = Language::of(kind).unwrap_or_else(|| Language::named(name));
    let language = language.as_str();
    match KNOWN.iter().find(|(name, ..)| *name == language) {
        Some((name, mime_type, extension, lexer, mode)) => json!({
            "name": name,
            "version": version,
            "mimetype": mime_type,
            "file_extension": extension,
            "pygments_lexer": lexer,
            "codemirror_mode": mode,
        }),
        None => {
            json!({ "name": language, "version": version, "mimetype": "text/plain", "file_extension": ".txt" })
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
        assert_eq!(told("mine", Some("typescript 5.9")), r#""typescript" "5.9" ".ts""#);
        assert_eq!(told("octave", Some("Octave 9.2")), r#""octave" "9.2" ".txt""#);
        assert_eq!(told("octave", None), r#""octave" "" ".txt""#);
    }
}
