//! What front ends want to know of a language: how to colour it, and how to call a file of it.

use mainstay_model::{Language, SessionKind};
use serde_json::{Value, json};

/// Of a language: its name, its MIME type, how files of it end, and what Pygments and CodeMirror call it.
const KNOWN: [(&str, &str, &str, &str, &str); 5] = [
    ("fsharp", "text/x-fsharp", ".fsx", "fsharp", "text/x-fsharp"),
    ("python", "text/x-python", ".py", "ipython3", "python"),
    ("bash", "text/x-sh", ".sh", "bash", "shell"),
    ("typescript", "text/x.typescript", ".ts", "typescript", "typescript"),
    ("javascript", "text/javascript", ".js", "javascript", "javascript"),
];

/// What `kernel_info_reply` says of the language of a session, as far as it is known, and of its runtime, which is called `NAME VERSION`
/// once there is one.
pub(super) fn language_info(kind: &SessionKind, language: Option<&Language>, runtime: Option<&str>) -> Value {
    let version = runtime.and_then(|runtime| runtime.rsplit_once(' ')).map_or("", |(_, version)| version);
    let language = language.map_or(kind.as_str(), Language::as_str);
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
    fn what_is_known_of_a_language_is_told() {
        let told = |kind: &str, language: Option<&str>, runtime| {
            let language = language.map(Language::named);
            let info = language_info(&SessionKind::new(kind).unwrap(), language.as_ref(), runtime);
            format!("{} {} {}", info["name"], info["version"], info["file_extension"])
        };
        assert_eq!(told("fsharp", Some("fsharp"), Some(".NET 8.0.1")), r#""fsharp" "8.0.1" ".fsx""#);
        assert_eq!(told("mine", Some("python"), Some("python 3.12.3")), r#""python" "3.12.3" ".py""#);
        assert_eq!(told("xoctave", Some("Octave"), Some("Octave 9.2")), r#""octave" "9.2" ".txt""#);
        assert_eq!(told("octave", None, None), r#""octave" "" ".txt""#);
    }
}
