//! What programs printed, on a terminal that others write to as well: its colours are obeyed, and nothing else of it.

use mainstay_model::screen::{Colour, Run, Screen, Style, settled};

use super::Paint;

/// What a terminal shows of this text in the end, with its colours where there are any. Each line ends in the terminal's own colours.
pub fn printed(text: &str, paint: Paint) -> String {
    if !paint.is_on() {
        return settled(text).into_owned();
    }
    Screen::of(text).runs().iter().map(coloured).collect()
}

fn coloured(Run { style, text, .. }: &Run) -> String {
    let parameters = parameters(*style);
    if parameters.is_empty() {
        return text.clone();
    }
    let line = |line: &str| match line.strip_suffix('\n') {
        Some("") => "\n".to_owned(),
        Some(line) => format!("\u{1b}[{parameters}m{line}\u{1b}[0m\n"),
        None => format!("\u{1b}[{parameters}m{line}\u{1b}[0m"),
    };
    text.split_inclusive('\n').map(line).collect()
}

/// Those of "select graphic rendition" (ECMA-48, 8.3.117) for a style.
fn parameters(style: Style) -> String {
    let marks = [
        (style.is_bold, "1"),
        (style.is_faint, "2"),
        (style.is_italic, "3"),
        (style.is_underlined, "4"),
        (style.is_reversed, "7"),
        (style.is_struck, "9"),
    ];
    let marks = marks.into_iter().filter(|(is_set, _)| *is_set).map(|(_, mark)| mark.to_owned());
    let colours = [(style.foreground, 30), (style.background, 40)];
    let colours = colours.into_iter().filter_map(|(colour, base)| {
        Some(match colour? {
            Colour::Indexed(index @ 0..8) => (base + u32::from(index)).to_string(),
            Colour::Indexed(index @ 8..16) => (base + 52 + u32::from(index)).to_string(),
            Colour::Indexed(index) => format!("{};5;{index}", base + 8),
            Colour::Rgb(red, green, blue) => format!("{};2;{red};{green};{blue}", base + 8),
        })
    });
    marks.chain(colours).collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PRINTED: &str =
        "0%\r50%\r\u{1b}[32m100%\u{1b}[0m\n\u{1b}]0;title\u{7}\u{1b}[1;97;48;5;208mtwo\nlines\u{1b}[0m\n";

    #[test]
    fn colours_stay_and_nothing_else() {
        let shown = printed(PRINTED, Paint { is_on: true });
        assert_eq!(
            shown,
            "\u{1b}[32m100%\u{1b}[0m\n\u{1b}[1;97;48;5;208mtwo\u{1b}[0m\n\u{1b}[1;97;48;5;208mlines\u{1b}[0m\n"
        );
        assert_eq!(printed(PRINTED, Paint::plain()), "100%\ntwo\nlines\n");
    }

    proptest! {
        #[test]
        fn what_is_shown_has_the_same_styles(codes in proptest::collection::vec(0..110_u8, 0..8)) {
            let text: String = codes.iter().map(|code| format!("\u{1b}[{code}mx")).collect();
            let shown = printed(&text, Paint { is_on: true });
            prop_assert_eq!(Screen::of(&shown).runs(), Screen::of(&text).runs());
        }
    }
}
