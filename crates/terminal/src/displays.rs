//! What people see on a terminal of what code shows: the picture where the terminal shows pictures, else its plain text, and of pictures
//! what they are.

use mainstay_model::display::{SVG, TABLE};
use mainstay_model::{Bundle, Display, Picture};
use mainstay_protocol::view::EvalView;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::pictures::ImageSupport;
use super::{Paint, printable, printed};

/// How a picture is seen that a terminal cannot show.
const HINT: &str = "`mainstay export --output FILE.ipynb` has it";

/// What displays are shown on.
#[derive(Clone, Copy, Debug)]
pub struct Surface {
    /// Its width, where it has one.
    columns: Option<usize>,
    easel: Option<ImageSupport>,
    paint: Paint,
}

impl Surface {
    /// Lines of text, as long as they are.
    pub const LINES: Self = Self { columns: None, easel: None, paint: Paint::plain() };

    /// Describes standard output as a surface.
    pub fn stdout() -> Self {
        Self { columns: columns(), easel: ImageSupport::stdout(), paint: Paint::stdout() }
    }

    /// How many columns it has, where it is a terminal.
    pub const fn columns(self) -> Option<usize> {
        self.columns
    }

    /// Whether people look at it.
    pub const fn is_terminal(self) -> bool {
        self.columns.is_some()
    }

    /// Whether it shows pictures.
    pub const fn shows_pictures(self) -> bool {
        self.easel.is_some()
    }

    /// A picture of it in whole lines, where there is one and it shows pictures.
    pub fn drawn(self, bundle: &Bundle) -> Option<String> {
        self.easel.and_then(|easel| easel.drawn(bundle))
    }
}

/// A display in whole lines; a table's are cut at the width of what it is shown on.
pub fn display_text(display: &Display, surface: Surface) -> String {
    let bundle = &display.data;
    if let Some(drawn) = surface.drawn(bundle) {
        return drawn;
    }
    let words = printed(bundle.coloured_words().trim_end(), surface.paint);
    let mut lines: Vec<String> = words.lines().map(str::to_owned).collect();
    if let (Some(_), Some(columns)) = (bundle.form(TABLE), surface.columns) {
        lines.iter_mut().for_each(|line| *line = cut(line, columns));
    }
    if let Some(picture) = bundle.picture() {
        lines.retain(|line| *line != format!("[{picture}]"));
        lines.push(told(&picture));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// What an eval gave, in whole lines: what the language printed of it, then the forms of its value that say more. A table stands in the
/// place of the text that F# prints of its rows.
pub fn result_text(eval: &EvalView, surface: Surface) -> String {
    let displays = || eval.displays.iter().map(|view| &view.display);
    let forms = value_text(displays(), &eval.display, surface);
    let is_table = displays().any(|display| !display.is_put_out() && display.data.form(TABLE).is_some());
    let printed = match eval.value_type.as_deref() {
        Some(value_type) if is_table && !forms.is_empty() => {
            without_value(&eval.display, value_type).unwrap_or(&eval.display)
        }
        Some(_) | None => &eval.display,
    };
    let printed = printable(printed.trim_end());
    if printed.is_empty() { forms } else { format!("{printed}\n{forms}") }
}

/// What F# printed up to the text of the last value: `val it: T =`.
fn without_value<'a>(printed: &'a str, value_type: &str) -> Option<&'a str> {
    let head = format!("val it: {value_type} =");
    let (start, _) =
        printed.rmatch_indices(&head).find(|(start, _)| printed[..*start].ends_with('\n') || *start == 0)?;
    printed.get(..start + head.len())
}

/// The forms of a value in whole lines, where they say more than what the language printed of it.
fn value_text<'a>(displays: impl Iterator<Item = &'a Display>, printed: &str, surface: Surface) -> String {
    let more = |display: &Display| {
        let bundle = &display.data;
        if !printed.contains(bundle.words().lines().next().unwrap_or_default()) {
            return has_words(bundle).then(|| display_text(display, surface));
        }
        let is_untold = |picture: &Picture<'_>| !printed.contains(&format!("[{picture}]"));
        let words = || bundle.picture().filter(is_untold).map(|picture| told(&picture) + "\n");
        surface.drawn(bundle).or_else(words)
    };
    displays.filter(|display| !display.is_put_out()).filter_map(more).collect()
}

/// What a picture is that is not seen.
fn told(picture: &Picture<'_>) -> String {
    format!("[{picture}: {HINT}]")
}

/// Whether its plain text shows what it is.
fn has_words(bundle: &Bundle) -> bool {
    bundle.form(TABLE).is_some() || bundle.form(SVG).is_some() || bundle.picture().is_some()
}

/// How many columns standard output has, where it is a terminal.
fn columns() -> Option<usize> {
    use std::io::IsTerminal;
    let size = || crossterm::terminal::size().ok().map(|(columns, _)| usize::from(columns));
    std::io::stdout().is_terminal().then(size).flatten().filter(|columns| *columns > 0)
}

/// The line, on so many columns at most.
pub fn cut(line: &str, columns: usize) -> String {
    if line.width() <= columns {
        return line.to_owned();
    }
    let mut width = 1;
    let fits = |c: &char| {
        width += c.width().unwrap_or(0);
        width <= columns
    };
    line.chars().take_while(fits).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NARROW: Surface = Surface { columns: Some(7), easel: None, paint: Paint::plain() };

    fn value(forms: Value) -> Display {
        Display {
            id: None,
            is_value: true,
            is_update: false,
            is_in_place: false,
            data: serde_json::from_value(forms).unwrap(),
        }
    }

    #[test]
    fn a_table_is_cut_at_the_width_of_the_terminal_and_other_text_is_not() {
        let text = "Name  Age\nAda 漢字  36";
        let table = value(json!({ "text/plain": text, "application/vnd.dataresource+json": {} }));
        assert_eq!(display_text(&table, NARROW), "Name  …\nAda 漢…\n");
        assert_eq!(display_text(&table, Surface::LINES), format!("{text}\n"));
        assert_eq!(display_text(&value(json!({ "text/plain": text })), NARROW), format!("{text}\n"));
    }

    #[test]
    fn a_picture_is_told_of_and_control_characters_are_not_obeyed() {
        let picture = value(json!({ "image/png": "iVBORw0KGgoAAAANSUhEUgAAAoAAAAHgCAYAAAA=" }));
        insta::assert_snapshot!(display_text(&picture, Surface::LINES), @"[image/png, 640×480, 29 bytes: `mainstay export --output FILE.ipynb` has it]");
        let figure = value(json!({ "image/png": "iVBORw==", "text/plain": "<Figure>\u{1b}[31m\u{7}\n" }));
        insta::assert_snapshot!(display_text(&figure, Surface::LINES), @"
        <Figure>
        [image/png, 4 bytes: `mainstay export --output FILE.ipynb` has it]
        ");
    }

    fn without_rows(printed: &str) -> Option<&str> {
        without_value(printed, "Row list")
    }

    #[test]
    fn a_table_takes_the_place_of_the_text_of_its_rows() {
        assert_eq!(without_rows("val it: Row list = [{ A = 1 }]"), Some("val it: Row list ="));
        let before = "val a: string = \"val it: Row list = 1\"\n";
        assert_eq!(
            without_rows(&format!("{before}val it: Row list =\n  [{{ A = 1 }}]")),
            Some(format!("{before}val it: Row list =").as_str())
        );
        assert_eq!(without_rows(before), None);
        assert_eq!(without_rows("val it: Row array = [||]"), None);
    }

    #[test]
    fn a_value_is_told_again_only_where_that_says_more() {
        let line = value(json!({ "text/plain": "▁█  2 numbers", "image/svg+xml": "<svg/>" }));
        let told = |display: &Display, printed| value_text([display].into_iter(), printed, Surface::LINES);
        assert_eq!(told(&line, "val it: int list = [1; 2]"), "▁█  2 numbers\n");
        assert_eq!(told(&line, "val it: Chart = ▁█  2 numbers"), "");
        assert_eq!(told(&value(json!({ "text/html": "<b>" })), "val it: Rich"), "");
        assert_eq!(told(&Display { is_value: false, ..line }, ""), "");
        let image = value(json!({ "text/plain": "<Image>", "image/png": "iVBORw==" }));
        insta::assert_snapshot!(told(&image, "<Image>"), @"[image/png, 4 bytes: `mainstay export --output FILE.ipynb` has it]");
        assert_eq!(told(&image, "<Image> [image/png, 4 bytes]"), "");
    }

    #[test]
    fn a_picture_stands_for_its_words_where_the_terminal_shows_it() {
        let easel = Surface { columns: Some(80), easel: Some(ImageSupport::kitty()), paint: Paint::plain() };
        let figure = value(json!({
            "image/png": "iVBORw0KGgoAAAANSUhEUgAAACAAAAAQ",
            "text/plain": "<Figure>",
        }));
        let drawn = display_text(&figure, easel);
        assert!(
            drawn.starts_with("\u{1b}_G") && drawn.ends_with('\n') && !drawn.contains("<Figure>"),
            "{drawn:?}"
        );
        assert_eq!(value_text([&figure].into_iter(), "<Figure>", easel), drawn);
        let table = value(json!({ "text/plain": "n\n1", "text/html": "<table>" }));
        assert_eq!(display_text(&table, easel), "n\n1\n");
    }
}
