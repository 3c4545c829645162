//! Places in code: Jupyter counts code points from its beginning, Mainstay lines and UTF-16 code units.

use mainstay_model::TextPosition;

/// How many code points stand before a place; places behind the end of a line or of the code are its end.
pub fn offset(code: &str, TextPosition { line, column }: TextPosition) -> usize {
    let mut offset = 0;
    for (number, text) in (1..).zip(code.split('\n')) {
        if number == line {
            let mut units = 1;
            let before = text.chars().take_while(|c| {
                let is_before = units < column;
                units += c.len_utf16() as u32;
                is_before
            });
            return offset + before.count();
        }
        offset += text.chars().count() + 1;
    }
    code.chars().count()
}

/// The place behind so many code points.
pub fn position(code: &str, offset: usize) -> TextPosition {
    let (mut line, mut column) = (1, 1);
    for c in code.chars().take(offset) {
        if c == '\n' {
            line += 1;
            column = 1;
        } else {
            column += c.len_utf16() as u32;
        }
    }
    TextPosition { line, column }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn characters_of_two_units_are_one_code_point() {
        let code = "a𝄞b\nc";
        assert_eq!(offset(code, TextPosition { line: 1, column: 4 }), 2);
        assert_eq!(position(code, 2), TextPosition { line: 1, column: 4 });
        assert_eq!(offset(code, TextPosition { line: 2, column: 9 }), 5);
        assert_eq!(offset(code, TextPosition { line: 7, column: 1 }), 5);
    }

    proptest! {
        #[test]
        fn each_place_is_found_again(code in "[aé𝄞\n]{0,30}", share in 0.0..=1.0) {
            let at = (code.chars().count() as f64 * share) as usize;
            prop_assert_eq!(offset(&code, position(&code, at)), at);
        }
    }
}
