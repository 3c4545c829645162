//! Texts of a size that a context window can take.

/// The longest text in an answer, in bytes: enough for a page of output.
pub(super) const TEXT_BYTES: usize = 16 * 1024;

/// The text, its middle left out where it has more than `limit` bytes: the beginning says what it is, the end how it came
/// out.
pub(super) fn shortened(text: String, limit: usize) -> String {
    if text.len() <= limit {
        return text;
    }
    let head = &text[..text.floor_char_boundary(limit / 2)];
    let tail = &text[text.ceil_char_boundary(text.len() - limit / 2)..];
    let left_out = text.len() - head.len() - tail.len();
    format!("{head}\n… {left_out} bytes left out …\n{tail}")
}

/// The beginning of a text, in one line with a mark where more follows.
pub(super) fn beginning(text: &str, limit: usize) -> String {
    let text = text.trim_end();
    match text.floor_char_boundary(limit) {
        end if end == text.len() => text.to_owned(),
        end => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_long_text_keeps_its_ends_and_says_what_is_missing() {
        assert_eq!(shortened("abcdefghij".to_owned(), 4), "ab\n… 6 bytes left out …\nij");
        assert_eq!(shortened("aéèü".to_owned(), 4), "a\n… 4 bytes left out …\nü");
    }

    #[test]
    fn a_beginning_is_marked_where_more_follows() {
        assert_eq!(beginning("one\n", 10), "one");
        assert_eq!(beginning("one two", 3), "one…");
    }

    proptest! {
        #[test]
        fn a_text_within_the_limit_is_left_alone(text in ".{0,40}") {
            prop_assert_eq!(shortened(text.clone(), text.len()), text.clone());
            prop_assert_eq!(beginning(&text, text.len()), text.trim_end());
        }

        #[test]
        fn no_text_is_cut_within_a_character(text in ".{0,40}", limit in 0_usize..40) {
            shortened(text.clone(), limit);
            beginning(&text, limit);
        }
    }
}
