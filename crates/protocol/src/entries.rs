//! Entries of a transcript as people and models name them: by their numbers, from 1 on, where the engine counts from 0.

use std::ops::Range;

/// The entries that a text like `3,4,7-9` names.
///
/// # Errors
/// What is wrong with it, for people.
pub fn numbered(text: &str) -> Result<Vec<Range<u64>>, String> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u64>().ok().filter(|number| *number > 0);
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => Ok(first - 1..last),
            _ => Err(format!("`{part}` names no entries; write numbers from 1 on, as in 3,4,7-9")),
        }
    };
    text.split(',').map(range).collect()
}

/// The entry with a number, and so many before it. There is none with the number 0.
pub fn with_context(entry: u64, context: u64) -> Range<u64> {
    let index = entry.saturating_sub(1);
    index.saturating_sub(context)..entry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_named_by_numbers_and_ranges() {
        assert_eq!(numbered("3, 4,7-9"), Ok(vec![2..3, 3..4, 6..9]));
        for bad in ["", "0", "a", "4-3", "1,,2", "-1", "18446744073709551616"] {
            assert!(numbered(bad).is_err(), "{bad}");
        }
        assert_eq!((with_context(7, 2), with_context(2, 9)), (4..7, 0..2));
        assert!(with_context(0, 0).is_empty());
    }
}
