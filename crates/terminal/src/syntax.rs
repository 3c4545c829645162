//! Code in colours. Inside code a colour means syntax, unlike everywhere else: keywords are magenta, types cyan, strings green, numbers
//! yellow, operators blue, comments grey.

use mainstay_highlight::{self as highlight, Syntax};
use mainstay_model::Language;
use reedline::Color;

/// The colour of a piece of code.
pub const fn syntax_colour(syntax: Syntax) -> Option<Color> {
    match syntax {
        Syntax::Keyword => Some(Color::Magenta),
        Syntax::Type => Some(Color::Cyan),
        Syntax::Text => Some(Color::Green),
        Syntax::Number => Some(Color::Yellow),
        Syntax::Operator => Some(Color::Blue),
        Syntax::Comment => Some(Color::DarkGray),
        Syntax::Plain => None,
    }
}

/// The lines of a code, each with its own colours; without any where the language has no grammar here. The code must be printable.
pub(super) fn coloured_lines(code: &str, language: Option<&Language>) -> Vec<String> {
    let mut lines = vec![String::new()];
    for (syntax, range) in highlight::spans(code, language) {
        // A grammar that splits a character leaves the code without colour.
        let Some(text) = code.get(range) else { return code.lines().map(str::to_owned).collect() };
        for (index, piece) in text.split('\n').enumerate() {
            if index > 0 {
                lines.push(String::new());
            }
            let shown = match syntax_colour(syntax).filter(|_| !piece.trim().is_empty()) {
                Some(colour) => colour.paint(piece).to_string(),
                None => piece.to_owned(),
            };
            lines.last_mut().into_iter().for_each(|line| line.push_str(&shown));
        }
    }
    if lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}
