//! Polyglot notebooks (`.dib`): each cell begins with a line that names its language.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{CellKind, Language, Text};

/// What cells are called that are no text and no settings. Other lines that begin with `#!` are commands in code.
const LANGUAGES: [&str; 19] = [
    "fsharp",
    "f#",
    "fs",
    "csharp",
    "c#",
    "cs",
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
    let settings = settings(text).unwrap_or_default();
    let kernels = Kernels::said(&settings["kernelInfo"]);
    let default = settings["kernelInfo"]["defaultKernelName"].as_str().unwrap_or(UNSAID);
    Text::read(text, CellKind::Code(Some(kernels.named(default))), |line| kernels.mark(line))
}

/// What a notebook calls its kernels besides what all call them, in small letters, and which language each has.
#[derive(Debug, Default)]
pub(super) struct Kernels(BTreeMap<String, Language>);

impl Kernels {
    /// From the notebook's `kernelInfo`.
    pub(super) fn said(kernel_info: &Value) -> Self {
        let mut kernels = BTreeMap::new();
        for item in kernel_info["items"].as_array().into_iter().flatten() {
            let aliases = item["aliases"].as_array().into_iter().flatten();
            let names: Vec<&str> = aliases.chain([&item["name"]]).filter_map(Value::as_str).collect();
            let Some(language) = item["languageName"].as_str().or(item["name"].as_str()) else { continue };
            kernels.extend(names.iter().map(|name| (name.to_lowercase(), Language::named(language))));
        }
        Self(kernels)
    }

    /// The language of the kernel that is called so.
    pub(super) fn named(&self, name: &str) -> Language {
        self.0.get(&name.to_lowercase()).cloned().unwrap_or_else(|| Language::named(name))
    }

    /// What the cell is that a line begins.
    pub(super) fn mark(&self, line: &str) -> Option<CellKind> {
        let own = || self.0.get(&line.trim_end().strip_prefix("#!")?.to_lowercase()).cloned();
        mark(line).or_else(|| own().map(|language| CellKind::Code(Some(language))))
    }
}

/// What the cell is that a line begins, whatever a notebook calls its kernels.
fn mark(line: &str) -> Option<CellKind> {
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
    let settings = json!({ "kernelInfo": {
        "defaultKernelName": name, "items": [{ "name": name, "languageName": name, "aliases": [] }],
    }});
    let kernels = Kernels::said(&settings["kernelInfo"]);
    let mut text = format!("#!meta\n\n{settings}\n");
    for (kind, source) in cells {
        let name = match &kind {
            CellKind::Code(language) => language.as_ref().map_or(name, Language::as_str),
            CellKind::Markdown | CellKind::Other => "markdown",
        };
        text.push_str(&format!("\n#!{name}\n\n"));
        for line in source.trim_end().lines() {
            // A line that would begin a cell is set apart by a blank, which means nothing to whoever reads it.
            text.push_str(if kernels.mark(line).is_some() { " " } else { "" });
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// The JSON in the cell of settings, which ends where any cell begins: what cells are called is known once it is read.
fn settings(text: &str) -> Option<Value> {
    let mut lines = text.lines().skip_while(|line| line.trim_end() != "#!meta").skip(1);
    let settings: String = lines.by_ref().take_while(|line| !line.starts_with("#!")).collect();
    serde_json::from_str(&settings).ok()
}
