//! Text with the escapes that colour it on a terminal (SGR), as HTML. Of colours there are those that page.css names; every other escape is
//! left out. Where the escapes end nowhere, so does the text.

use maud::{Markup, html};

/// What a text looks like from here on.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Look {
    colour: Option<u8>,
    is_bold: bool,
}

/// The text in its colours.
pub(super) fn coloured(text: &str) -> Markup {
    let mut pieces = Vec::new();
    let (mut look, mut rest) = (Look::default(), text);
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        pieces.push((look, before));
        let end = after.find(|c: char| ('@'..='~').contains(&c)).unwrap_or(after.len());
        let (codes, other) = after.split_at(end);
        if other.starts_with('m') {
            look.obey(codes);
        }
        rest = other.get(1..).unwrap_or_default();
    }
    pieces.push((look, rest));
    html! {
        @for (look, text) in pieces {
            @match look.class() {
                Some(class) if !text.is_empty() => span.{ (class) } { (text) },
                Some(_) | None => (text),
            }
        }
    }
}

impl Look {
    fn obey(&mut self, codes: &str) {
        let mut codes = codes.split(';').map(|code| code.parse::<u8>().unwrap_or_default());
        while let Some(code) = codes.next() {
            match code {
                0 => *self = Self::default(),
                1 => self.is_bold = true,
                22 => self.is_bold = false,
                30..=37 => self.colour = Some(code - 30),
                90..=97 => self.colour = Some(code - 90),
                39 => self.colour = None,
                38 => self.colour = extended(&mut codes),
                // A background's numbers are no codes of their own.
                48 => drop(extended(&mut codes)),
                _ => {}
            }
        }
    }

    fn class(self) -> Option<String> {
        let colour = self.colour.map(|colour| format!("sgr{colour}"));
        let bold = self.is_bold.then(|| "sgr-bold".to_owned());
        match (colour, bold) {
            (Some(colour), Some(bold)) => Some(format!("{colour} {bold}")),
            (colour, bold) => colour.or(bold),
        }
    }
}

/// The nearest of the eight colours to one of 256, or of all.
fn extended(codes: &mut impl Iterator<Item = u8>) -> Option<u8> {
    let nearest = |red: u8, green: u8, blue: u8| {
        let most = red.max(green).max(blue);
        let has = |part: u8| u8::from(most > 0 && u16::from(part) * 2 > u16::from(most));
        has(red) | has(green) << 1 | has(blue) << 2
    };
    match codes.next()? {
        5 => match codes.next()? {
            colour @ 0..=15 => Some(colour % 8),
            colour @ 16..=231 => {
                let place = colour - 16;
                Some(nearest(place / 36, place / 6 % 6, place % 6))
            }
            232.. => None,
        },
        2 => {
            let (red, green, blue) = (codes.next()?, codes.next()?, codes.next()?);
            Some(nearest(red, green, blue))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_become_the_colours_that_the_page_has() {
        for (text, expected) in [
            ("a<b", "a&lt;b"),
            ("\u{1b}[31mred\u{1b}[39m plain", r#"<span class="sgr1">red</span> plain"#),
            ("\u{1b}[38;5;28;01mif\u{1b}[39;00m x", r#"<span class="sgr2 sgr-bold">if</span> x"#),
            ("\u{1b}[48;5;31mon\u{1b}[0m", "on"),
            ("\u{1b}[38;2;200;10;10mtrue\u{1b}[m", r#"<span class="sgr1">true</span>"#),
            ("\u{1b}[2Jgone\u{1b}[1", "gone"),
            ("\u{1b}[38;5", ""),
            ("\u{1b}[38;5;mé", r#"<span class="sgr0">é</span>"#),
        ] {
            assert_eq!(coloured(text).into_string(), expected, "{text:?}");
        }
    }
}
