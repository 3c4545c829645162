//! Texts of a size that a context window can take.

/// The longest text in an answer, in bytes: enough for a page of output.
pub(super) const TEXT_BYTES: usize = 16 * 1024;

/// The text, its middle left out where it has more than `limit` bytes: the beginning says what it is, the end how it came
/// out.
pub(super) fn shortened(text: String, limit: usize) -> String {
    let total = text.len();
    shortened_again(text, limit, total)
}

/// The same of a text that was cut so before, and had so many bytes at first.
pub(super) fn shortened_again(text: String, limit: usize, total: usize) -> String {
    if text.len() <= limit {
        return text;
    }
    let head = &text[..text.floor_char_boundary(limit / 2)];
    let tail = &text[text.ceil_char_boundary(text.len() - limit / 2)..];
    let left_out = total.saturating_sub(head.len() + tail.len());
    format!("{head}\n… {left_out} bytes left out …\n{tail}")
}

/// The most lines of one answer: of more some clients show the first alone.
const LINES: usize = 1_900;

/// The text as [`shortened`], and with lines left out in its middle where it has more than clients show.
pub(super) fn bounded(text: String, limit: usize) -> String {
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
    if ends.len() <= LINES {
        return shortened(text, limit);
    }
    let (head, tail) = (&text[..ends[LINES / 2 - 1]], &text[ends[ends.len() - LINES / 2 - 1]..]);
    let left_out = ends.len() - LINES / 2 * 2;
    shortened(format!("{head}… {left_out} lines left out …\n{tail}"), limit)
}

/// The end of a text, behind a mark where something was before it.
pub(super) fn ending(text: &str, limit: usize) -> String {
    match text.ceil_char_boundary(text.len().saturating_sub(limit)) {
        0 => text.to_owned(),
        start => format!("… {start} bytes before …\n{}", &text[start..]),
    }
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
    fn a_text_of_many_lines_keeps_its_ends_too() {
        let lines: String = (1..=5_000).map(|number| format!("{number}\n")).collect();
        let kept = bounded(lines, 100_000);
        assert!(kept.starts_with("1\n2\n") && kept.ends_with("4999\n5000\n"), "{kept}");
        assert!(kept.contains("950\n… 3100 lines left out …\n4051\n"), "{kept}");
        assert_eq!(kept.lines().count(), LINES + 1);
        assert_eq!(bounded("one\ntwo\n".to_owned(), 100), "one\ntwo\n");
    }

    #[test]
    fn an_end_is_marked_where_more_came_before() {
        assert_eq!(ending("one\ntwo", 10), "one\ntwo");
        assert_eq!(ending("one\ntwo", 3), "… 4 bytes before …\ntwo");
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
