//! Text whose control characters a terminal does not obey.

use std::borrow::Cow;

/// The text with the signs of its control characters in their place, but for line ends and tabs: a terminal obeys none of it.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_obeyed = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let sign = |c: char| match c {
        '\u{7f}' => '\u{2421}',
        c if !is_obeyed(c) => c,
        c => char::from_u32(0x2400 + u32::from(c)).filter(|_| c < ' ').unwrap_or(char::REPLACEMENT_CHARACTER),
    };
    Cow::Owned(text.replace("\r\n", "\n").chars().map(sign).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_and_not_obeyed() {
        assert_eq!(printable("a\r\n\tb"), "a\r\n\tb".replace('\r', ""));
        assert_eq!(printable("\u{1b}[31m\u{7}\u{7f}\u{9b}"), "␛[31m␇␡\u{fffd}");
        assert_eq!(printable("größe"), "größe");
    }
}
