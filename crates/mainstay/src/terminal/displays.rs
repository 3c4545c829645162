//! What people see on a terminal of what code shows: its plain text, and of pictures what they are.

use mainstay_model::display::{SVG, TABLE};
use mainstay_model::{Bundle, Display};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::printable;

/// How a picture is seen that a terminal cannot show.
const HINT: &str = "`mainstay export --output FILE.ipynb` has it";

/// A display in whole lines; a table's are cut at so many columns.
pub(crate) fn display_text(display: &Display, columns: Option<usize>) -> String {
    let bundle = &display.data;
    let mut lines: Vec<String> = printable(bundle.text().trim_end()).lines().map(str::to_owned).collect();
    if let (Some(_), Some(columns)) = (bundle.form(TABLE), columns) {
        lines.iter_mut().for_each(|line| *line = cut(line, columns));
    }
    if let Some(picture) = bundle.picture() {
        lines.retain(|line| *line != format!("[{picture}]"));
        lines.push(format!("[{picture}: {HINT}]"));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The forms of a value in whole lines, where they say more than what the language printed of it.
pub(crate) fn value_text<'a>(
    displays: impl Iterator<Item = &'a Display>,
    printed: &str,
    columns: Option<usize>,
) -> String {
    let says_more = |display: &&Display| {
        let first = display.data.text().lines().next().unwrap_or_default();
        display.is_value && has_words(&display.data) && !printed.contains(first)
    };
    displays.filter(says_more).map(|display| display_text(display, columns)).collect()
}

/// Whether its plain text shows what it is.
fn has_words(bundle: &Bundle) -> bool {
    bundle.form(TABLE).is_some() || bundle.form(SVG).is_some() || bundle.picture().is_some()
}

/// How many columns standard output has, where it is a terminal.
pub(crate) fn columns() -> Option<usize> {
    use std::io::IsTerminal;
    let size = || crossterm::terminal::size().ok().map(|(columns, _)| usize::from(columns));
    std::io::stdout().is_terminal().then(size).flatten().filter(|columns| *columns > 0)
}

fn cut(line: &str, columns: usize) -> String {
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

    fn value(forms: Value) -> Display {
        Display { id: None, is_value: true, data: serde_json::from_value(forms).unwrap() }
    }

    #[test]
    fn a_table_is_cut_at_the_width_of_the_terminal_and_other_text_is_not() {
        let text = "Name  Age\nAda 漢字  36";
        let table = value(json!({ "text/plain": text, "application/vnd.dataresource+json": {} }));
        assert_eq!(display_text(&table, Some(7)), "Name  …\nAda 漢…\n");
        assert_eq!(display_text(&table, None), format!("{text}\n"));
        assert_eq!(display_text(&value(json!({ "text/plain": text })), Some(7)), format!("{text}\n"));
    }

    #[test]
    fn a_picture_is_told_of_and_control_characters_are_not_obeyed() {
        let picture = value(json!({ "image/png": "iVBORw0KGgoAAAANSUhEUgAAAoAAAAHgCAYAAAA=" }));
        insta::assert_snapshot!(display_text(&picture, None), @"[image/png, 640×480, 29 bytes: `mainstay export --output FILE.ipynb` has it]");
        let figure = value(json!({ "image/png": "iVBORw==", "text/plain": "<Figure>\u{1b}[2J\n" }));
        insta::assert_snapshot!(display_text(&figure, None), @"
        <Figure>␛[2J
        [image/png, 4 bytes: `mainstay export --output FILE.ipynb` has it]
        ");
    }

    #[test]
    fn a_value_is_told_again_only_where_that_says_more() {
        let line = value(json!({ "text/plain": "▁█  2 numbers", "image/svg+xml": "<svg/>" }));
        let told = |display: &Display, printed| value_text([display].into_iter(), printed, None);
        assert_eq!(told(&line, "val it : int list = [1; 2]"), "▁█  2 numbers\n");
        assert_eq!(told(&line, "val it : Chart = ▁█  2 numbers"), "");
        assert_eq!(told(&value(json!({ "text/html": "<b>" })), "val it : Rich"), "");
        assert_eq!(told(&Display { is_value: false, ..line }, ""), "");
    }
}
