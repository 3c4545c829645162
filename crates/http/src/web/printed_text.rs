//! Printed text as HTML, as a terminal shows it: runs of text in classes for their stream and style.
//!
//! A page has a palette of its own, light or dark, in which every colour can be read: of the colours of the palette of 256 and of those
//! given as red, green and blue it takes the nearest of the eight.

use mainstay_model::OutputStream;
use mainstay_model::screen::{Colour, Run, Screen, Style};
use maud::{Markup, html};

/// What stands on a screen.
pub(super) fn shown(screen: &Screen) -> Markup {
    html! { @for run in screen.runs() { (run_of(&run)) } }
}

/// What a terminal shows of this text.
pub(super) fn text(text: &str) -> Markup {
    shown(&Screen::of(text))
}

fn run_of(Run { stream, style, text }: &Run) -> Markup {
    let classes = classes(*stream, *style);
    html! { @if classes.is_empty() { (text) } @else { span class=(classes) { (text) } } }
}

fn classes(stream: OutputStream, style: Style) -> String {
    // What is reversed has its colour behind it, and what was behind it is as good as the paper.
    let (text, behind) = match style.is_reversed {
        false => (style.foreground, style.background),
        true => (None, style.foreground),
    };
    let mut classes = Vec::new();
    classes.extend(text.map(|colour| format!("t-{}", hue(colour))));
    classes.extend(behind.map(|colour| format!("b-{}", hue(colour))));
    let named = [
        (stream == OutputStream::Stderr, "stderr"),
        (style.is_reversed, "reversed"),
        (style.is_bold, "bold"),
        (style.is_faint, "faint"),
        (style.is_italic, "italic"),
        (style.is_underlined, "underlined"),
        (style.is_struck, "struck"),
    ];
    classes.extend(named.into_iter().filter(|(is_so, _)| *is_so).map(|(_, name)| name.to_owned()));
    classes.join(" ")
}

/// The nearest of a terminal's eight colours.
fn hue(colour: Colour) -> &'static str {
    const HUES: [&str; 8] = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
    let index = match colour {
        // Bright black is what terminals have for grey.
        Colour::Indexed(8) => 0,
        Colour::Indexed(index @ 0..16) => index % 8,
        Colour::Indexed(index @ 16..232) => {
            let (red, green, blue) = ((index - 16) / 36, (index - 16) / 6 % 6, (index - 16) % 6);
            nearest([red, green, blue].map(|level| if level == 0 { 0 } else { 55 + 40 * level }))
        }
        Colour::Indexed(grey) => nearest([(grey - 232) * 10 + 8; 3]),
        Colour::Rgb(red, green, blue) => nearest([red, green, blue]),
    };
    HUES[usize::from(index)]
}

/// Which of the eight has the channels that stand out in this colour; of a grey one black or white.
fn nearest(channels: [u8; 3]) -> u8 {
    const LEAST_DIFFERENCE: u8 = 32;
    let (least, most) =
        channels.iter().fold((u8::MAX, 0), |(least, most), &channel| (channel.min(least), channel.max(most)));
    let middle = if most - least < LEAST_DIFFERENCE { u8::MAX / 2 } else { least.midpoint(most) };
    channels.iter().enumerate().map(|(bit, &channel)| u8::from(channel > middle) << bit).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_styles_are_classes() {
        let printed = "plain \u{1b}[1;31mred <b>\u{1b}[0m \u{1b}[7mreversed\u{1b}[27m \u{1b}[33;44;7mblue on yellow\u{1b}[0m \
            \u{1b}[38;5;208morange\u{1b}[38;2;90;90;90mgrey\u{1b}[94mbright";
        insta::assert_snapshot!(text(printed).into_string(), @r#"plain <span class="t-red bold">red &lt;b&gt;</span> <span class="reversed">reversed</span> <span class="b-yellow reversed">blue on yellow</span> <span class="t-yellow">orange</span><span class="t-black">grey</span><span class="t-blue">bright</span>"#);
    }

    #[test]
    fn every_colour_is_one_of_the_eight() {
        let all = (0..=255).map(Colour::Indexed);
        let hues: std::collections::BTreeSet<_> = all.map(hue).collect();
        assert_eq!(hues.len(), 8);
        assert_eq!([hue(Colour::Rgb(249, 38, 114)), hue(Colour::Rgb(250, 250, 240))], ["red", "white"]);
    }
}
