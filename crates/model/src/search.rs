//! What is looked for in transcripts, and how what is found is shown.

use std::fmt::Write;

use crate::error::Error;

/// What an entry must have in it, all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words(Vec<Term>);

/// One term of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    /// A word, or several in a row.
    text: String,
    /// Whether the last word may go on.
    is_prefix: bool,
}

/// How many terms there may be.
const TERMS: usize = 32;

/// How many bytes of text are shown around what was found.
const SNIPPET_BYTES: usize = 160;

impl Words {
    /// Reads `word other "several in a row" begin*`. Signs that are no part of words only part them.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where there is no word, or too many.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let invalid = |reason: &str| Error::InvalidArgument {
            argument: "search".to_owned(),
            reason: reason.to_owned(),
        };
        let text = text.replace(char::is_control, " ");
        let mut terms = Vec::new();
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let (term, after) = match first {
                '"' => rest[1..].split_once('"').unwrap_or((&rest[1..], "")),
                _ => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
            };
            let after_star = after.strip_prefix('*').filter(|_| first == '"');
            let (term, is_prefix) = match (after_star, term.strip_suffix('*')) {
                (Some(_), _) => (term, true),
                (None, Some(stem)) => (stem, true),
                (None, None) => (term, false),
            };
            if term.chars().any(is_word) {
                terms.push(Term { text: term.to_owned(), is_prefix });
            }
            rest = after_star.unwrap_or(after).trim_start();
        }
        match terms.len() {
            0 => Err(invalid("there is no word in it")),
            1..=TERMS => Ok(Self(terms)),
            _ => Err(invalid("there are more than 32 words in it; put those in a row in quotation marks")),
        }
    }

    /// As SQLite's full-text search writes it.
    pub fn to_fts5(&self) -> String {
        let mut query = String::new();
        for Term { text, is_prefix } in &self.0 {
            let star = if *is_prefix { " *" } else { "" };
            // Writing to a text never fails.
            write!(query, "\"{}\"{star} ", text.replace('"', "\"\"")).ok();
        }
        query
    }

    /// The text around the first of them that is found in it, on one line.
    pub fn snippet(&self, text: &str) -> String {
        let folded = text.to_lowercase();
        // Of a text whose small letters take other bytes, places cannot be compared: it is shown from its beginning.
        let found = (folded.len() == text.len()).then(|| self.first_place(&folded)).flatten().unwrap_or(0);
        let start = text.floor_char_boundary(found.saturating_sub(SNIPPET_BYTES / 3));
        let end = text.ceil_char_boundary((start + SNIPPET_BYTES).min(text.len()));
        let line = text[start..end].split_whitespace().collect::<Vec<_>>().join(" ");
        let (before, after) = (if start > 0 { "… " } else { "" }, if end < text.len() { " …" } else { "" });
        format!("{before}{line}{after}")
    }

    fn first_place(&self, folded: &str) -> Option<usize> {
        let words = self.0.iter().flat_map(|term| term.text.split(|c| !is_word(c)));
        let begins_word =
            |at: &usize| folded[..*at].chars().next_back().is_none_or(|before| !is_word(before));
        let place = |word: String| folded.match_indices(&word).map(|(at, _)| at).find(begins_word);
        words.filter(|word| !word.is_empty()).filter_map(|word| place(word.to_lowercase())).min()
    }
}

/// As the index parts words.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn query(text: &str) -> String {
        Words::parse(text).unwrap().to_fts5()
    }

    #[test]
    fn words_phrases_and_beginnings_are_told_apart() {
        assert_eq!(query("List.map  dog"), "\"List.map\" \"dog\" ");
        assert_eq!(query("\"in a row\" dict*"), "\"in a row\" \"dict\" * ");
        assert_eq!(query("\"in a ro\"* x"), "\"in a ro\" * \"x\" ");
        assert_eq!(query("\"never closed"), "\"never closed\" ");
        assert_eq!(
            query("-> = AND x"),
            "\"AND\" \"x\" ",
            "signs alone are no words, and nothing is an operator"
        );
        for none in ["", "  ", "-> *", "\"\"", "\""] {
            assert!(Words::parse(none).is_err(), "{none}");
        }
        assert_eq!(query("a\0b\tc"), "\"a\" \"b\" \"c\" ");
        assert!(Words::parse(&"x ".repeat(33)).is_err());
    }

    #[test]
    fn a_snippet_shows_what_was_found_and_what_is_around_it() {
        let words = Words::parse("dog").unwrap();
        assert_eq!(words.snippet("a Dog\n  barks"), "a Dog barks");
        let long = format!("{}hotdog dog {}", "x ".repeat(200), "y ".repeat(200));
        let snippet = words.snippet(&long);
        assert!(
            snippet.starts_with("… x") && snippet.contains("hotdog dog y") && snippet.ends_with(" …"),
            "{snippet}"
        );
        assert_eq!(words.snippet("nothing of it"), "nothing of it");
    }

    proptest! {
        #[test]
        fn nothing_that_is_typed_or_found_is_too_much(typed in ".{0,60}", text in ".{0,400}") {
            if let Ok(words) = Words::parse(&typed) {
                let snippet = words.snippet(&text);
                prop_assert!(snippet.len() <= SNIPPET_BYTES + 20);
                prop_assert!(!snippet.contains('\n'));
            }
        }
    }
}
