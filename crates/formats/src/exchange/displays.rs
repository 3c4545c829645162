//! Displays in exported sessions: as Markdown, and as the outputs of a notebook.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::documents::push_fenced;
use mainstay_model::display::{Bundle, Form, SVG, TABLE};

/// What stands for a picture in Markdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pictures {
    /// It itself, in the text.
    Embedded,
    /// Its type and size, or how it calls itself: who reads text alone would have to read all of it.
    Named,
}

/// As Markdown: a picture as one that is in the text itself where it is wanted so, a table as a table, all else as its plain text. A web page's part is not let in: whoever
/// shows Markdown may run what is in it.
pub(super) fn markdown(text: &mut String, bundle: &Bundle, pictures: Pictures) {
    // Writing to a text never fails.
    if pictures == Pictures::Named
        && let Some(name) = picture_name(bundle)
    {
        write!(text, "\n*[picture: {}]*\n", bare(&name)).ok();
    } else if let Some(picture) = bundle.picture() {
        write!(text, "\n![{picture}](data:{};base64,{})\n", picture.kind, picture.data.as_str()).ok();
    } else if let Some(Form::Text(svg)) = bundle.form(SVG) {
        let first = bundle.text().lines().next().unwrap_or_default();
        write!(text, "\n![{}](data:{SVG},{})\n", bare(first), percent_encoded(svg)).ok();
    } else if let Some(table) = bundle.form(TABLE).and_then(table) {
        write!(text, "\n{table}").ok();
    } else if let Some(Form::Text(markdown)) = bundle.form("text/markdown") {
        write!(text, "\n{}\n", markdown.trim_end()).ok();
    } else if !bundle.text().trim().is_empty() {
        push_fenced(text, "text", bundle.text());
    }
}

/// What a picture is called; none where the display has no picture.
fn picture_name(bundle: &Bundle) -> Option<String> {
    match (bundle.picture(), bundle.form(SVG)) {
        (Some(picture), _) => Some(picture.to_string()),
        (None, Some(Form::Text(_))) => Some(bundle.text().lines().next().unwrap_or_default().to_owned()),
        (None, Some(_) | None) => None,
    }
}

/// As a notebook has its data: text as its lines.
pub(super) fn notebook(bundle: &Bundle) -> Map<String, Value> {
    let plain = Form::Text(bundle.text().to_owned());
    let forms = bundle.forms().map(|(kind, form)| (kind.as_str(), form.clone()));
    let value = |form| match form {
        Form::Text(text) => json!(lines(&text)),
        form @ (Form::Binary(_) | Form::Json(_)) => form.into_value(),
    };
    forms
        .chain([(mainstay_model::display::PLAIN, plain)])
        .map(|(kind, form)| (kind.to_owned(), value(form)))
        .collect()
}

/// A text as notebooks have it: its lines, with their ends.
pub(super) fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// The rows of a table that says which columns it has.
fn table(form: &Form) -> Option<String> {
    let Form::Json(table) = form else { return None };
    let columns: Vec<&str> = table["schema"]["fields"]
        .as_array()?
        .iter()
        .map(|field| field["name"].as_str())
        .collect::<Option<_>>()?;
    let rows = table["data"].as_array()?;
    let mut text = row(columns.iter().map(|column| cell(column)));
    text.push_str(&row(columns.iter().map(|_| "---".to_owned())));
    for of in rows {
        text.push_str(&row(columns.iter().map(|column| match &of[column] {
            Value::String(value) => cell(value),
            Value::Null => String::new(),
            value => cell(&value.to_string()),
        })));
    }
    Some(text)
}

fn row(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

/// Text that stays in its cell.
fn cell(text: &str) -> String {
    let mut cell = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' => cell.push(' '),
            '|' | '\\' | '`' | '*' | '_' | '<' | '[' | ']' => cell.extend(['\\', c]),
            c => cell.push(c),
        }
    }
    cell
}

/// Text that can stand for a picture.
fn bare(text: &str) -> String {
    text.chars().filter(|c| !"[]\\".contains(*c)).collect()
}

fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z'
            | b'a'..=b'z'
            | b'0'..=b'9'
            | b'-'
            | b'_'
            | b'.'
            | b'~'
            | b'/'
            | b':'
            | b'='
            | b',' => {
                encoded.push(char::from(byte));
            }
            byte => {
                write!(encoded, "%{byte:02X}").ok();
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(data: Value) -> String {
        written_with(data, Pictures::Embedded)
    }

    fn written_with(data: Value, pictures: Pictures) -> String {
        let mut text = String::new();
        markdown(&mut text, &serde_json::from_value(data).unwrap(), pictures);
        text
    }

    #[test]
    fn who_reads_text_alone_is_told_what_a_picture_is() {
        let png = json!({ "image/png": "iVBORw==", "text/plain": "no" });
        let svg = json!({ "image/svg+xml": "<svg/>", "text/plain": "a [line]\n▁▂" });
        let told = [png, svg].map(|data| written_with(data, Pictures::Named));
        assert_eq!(told, ["\n*[picture: image/png, 4 bytes]*\n", "\n*[picture: a line]*\n"]);
        assert_eq!(
            written_with(json!({ "text/plain": "it" }), Pictures::Named),
            written(json!({ "text/plain": "it" }))
        );
    }

    #[test]
    fn each_form_is_written_as_markdown_has_it() {
        let table = json!({
            "schema": { "fields": [{ "name": "Name", "type": "string" }, { "name": "Age|y", "type": "integer" }] },
            "data": [{ "Name": "Ada\n<b>", "Age|y": 36 }, { "Name": null }],
        });
        let all = [
            json!({ "image/png": "iVBORw==", "text/plain": "no" }),
            json!({ "image/svg+xml": "<svg>\"é\"</svg>", "text/plain": "a [line]\n▁▂" }),
            json!({ "application/vnd.dataresource+json": table, "text/html": "<table>", "text/plain": "no" }),
            json!({ "text/markdown": "**it**\n", "text/plain": "no" }),
            json!({ "text/html": "<script>alert(1)</script>", "text/plain": "a page" }),
            json!({ "application/vnd.dataresource+json": 3, "text/plain": "no table" }),
        ];
        insta::assert_snapshot!(all.map(written).concat(), @r"

        ![image/png, 4 bytes](data:image/png;base64,iVBORw==)

        ![a line](data:image/svg+xml,%3Csvg%3E%22%C3%A9%22%3C/svg%3E)

        | Name | Age\|y |
        | --- | --- |
        | Ada \<b> | 36 |
        |  |  |

        **it**

        ```text
        a page
        ```

        ```text
        no table
        ```
        ");
    }
}
