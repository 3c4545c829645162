//! Polyglot notebooks (`.dib`): each cell begins with a line that names its language.

use serde_json::{Value, json};

use super::{CellKind, Language, Text};

/// What cells are called that are no text and no settings. Other lines that begin with `#!` are commands in code.
const LANGUAGES: [&str; 17] = [
    "fsharp",
    "f#",
    "csharp",
    "c#",
    "pwsh",
    "powershell",
    "javascript",
    "js",
    "html",
    "mermaid",
    "sql",
    "kql",
    "http",
    "value",
    "python",
    "r",
    "typescript",
];
/// The language of what has no mark, where the settings do not say.
const UNSAID: &str = "csharp";

/// Reads a Polyglot notebook.
pub(super) fn read(text: &str) -> Text {
    let default = Language::named(default_kernel(text).as_deref().unwrap_or(UNSAID));
    Text::read(text, CellKind::Code(Some(default)), mark)
}

/// What the cell is that a line begins.
pub(super) fn mark(line: &str) -> Option<CellKind> {
    let name = line.trim_end().strip_prefix("#!")?;
    match name {
        "markdown" => Some(CellKind::Markdown),
        "meta" => Some(CellKind::Other),
        name if LANGUAGES.contains(&name) => Some(CellKind::Code(Some(Language::named(name)))),
        _ => None,
    }
}

/// The file of these cells: code of this language, and Markdown.
pub(crate) fn written<'a>(
    language: &Language,
    cells: impl IntoIterator<Item = (CellKind, &'a str)>,
) -> String {
    let name = language.as_str();
    let kernels = json!({ "kernelInfo": {
        "defaultKernelName": name, "items": [{ "name": name, "languageName": name, "aliases": [] }],
    }});
    let mut text = format!("#!meta\n\n{kernels}\n");
    for (kind, source) in cells {
        let name = match &kind {
            CellKind::Code(language) => language.as_ref().map_or(name, Language::as_str),
            CellKind::Markdown | CellKind::Other => "markdown",
        };
        text.push_str(&format!("\n#!{name}\n\n"));
        for line in source.trim_end().lines() {
            // A line that would begin a cell is set apart by a blank, which means nothing to whoever reads it.
            text.push_str(if mark(line).is_some() { " " } else { "" });
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

fn default_kernel(text: &str) -> Option<String> {
    let mut lines = text.lines().skip_while(|line| line.trim_end() != "#!meta").skip(1);
    let settings: String = lines.by_ref().take_while(|line| mark(line).is_none()).collect();
    let settings: Value = serde_json::from_str(&settings).ok()?;
    settings["kernelInfo"]["defaultKernelName"].as_str().map(str::to_owned)
}
