//! Jupyter notebooks (nbformat 4). What is not understood is kept: only outputs are ever written into one.

use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Map, Value, json};

use super::dib::Kernels;
use super::{Cell, CellKind, Language};
use mainstay_model::error::Error;
use mainstay_model::id::SessionKind;

/// The version that is read.
const VERSION: u64 = 4;
/// The languages of .NET Interactive, whose notebooks may have several.
const DOTNET: [&str; 3] = ["fsharp", "csharp", "pwsh"];
/// What Jupyter's programs tag cells with whose errors do not end the run.
const MAY_RAISE: &str = "raises-exception";

/// A notebook of Jupyter (`.ipynb`).
#[derive(Clone, Debug, PartialEq)]
pub struct Ipynb {
    /// All but the cells.
    document: Map<String, Value>,
    cells: Vec<IpynbCell>,
}

#[derive(Clone, Debug, PartialEq)]
struct IpynbCell {
    json: Map<String, Value>,
    cell: Cell,
}

impl Ipynb {
    pub(super) fn read(text: &str) -> Result<Self, Error> {
        let invalid =
            |line: usize, reason: String| Error::NotebookInvalid { line: line.max(1) as u64, reason };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut document: Map<String, Value> = serde_json::from_str(text).map_err(|error| {
            let place = format!("line {} ", error.line());
            invalid(error.line(), error.to_string().replace(&place, ""))
        })?;
        match document.get("nbformat").and_then(Value::as_u64) {
            Some(VERSION) => {}
            Some(version) => return Err(invalid(1, format!("it is of version {version}, not {VERSION}"))),
            None => return Err(invalid(1, "it does not say its `nbformat`".to_owned())),
        }
        let Some(Value::Array(cells)) = document.remove("cells") else {
            return Err(invalid(1, "it has no `cells`".to_owned()));
        };
        let polyglot = Polyglot::of(&document);
        let cells = cells.into_iter().zip(1..).map(|(cell, number)| {
            read_cell(cell, polyglot.as_ref())
                .ok_or_else(|| invalid(1, format!("cell {number} lacks its `cell_type` or its `source`")))
        });
        let cells = cells.collect::<Result<_, _>>()?;
        Ok(Self { document, cells })
    }

    pub(super) fn kinds(&self) -> Vec<SessionKind> {
        if default_language(&self.document).is_some() {
            return vec![SessionKind::fsharp()];
        }
        let mut kinds = Vec::new();
        for name in said(&self.document) {
            let kind = SessionKind::new(Language::named(name).as_str()).ok();
            kinds.extend(kind.filter(|kind| !kinds.contains(kind)));
        }
        kinds
    }

    pub(super) fn cells(&self) -> Vec<Cell> {
        self.cells.iter().map(|cell| cell.cell.clone()).collect()
    }

    /// As Jupyter writes it: keys in order, each level one blank further in.
    pub(super) fn text(&self) -> String {
        let mut document = self.document.clone();
        let cells = self.cells.iter().map(|cell| Value::Object(cell.json.clone())).collect();
        document.insert("cells".to_owned(), Value::Array(cells));
        let mut bytes = Vec::new();
        let mut serializer = Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(b" "));
        // JSON always can be written to memory, and is UTF-8.
        document.serialize(&mut serializer).ok();
        bytes.push(b'\n');
        String::from_utf8(bytes).unwrap_or_default()
    }

    pub(super) fn set_outputs(&mut self, cell: usize, number: u64, outputs: Vec<Value>) {
        let Some(IpynbCell { json, cell }) = self.cells.get_mut(cell) else { return };
        if cell.is_code() {
            json.insert("outputs".to_owned(), Value::Array(outputs));
            json.insert("execution_count".to_owned(), json!(number));
        }
    }
}

fn read_cell(cell: Value, polyglot: Option<&Polyglot>) -> Option<IpynbCell> {
    let Value::Object(json) = cell else { return None };
    let source = source(json.get("source")?)?;
    let cell = match json.get("cell_type")?.as_str()? {
        "code" => code(&json, source, polyglot),
        "markdown" => Cell::new(CellKind::Markdown, &source, 1),
        _ => Cell::new(CellKind::Other, &source, 1),
    };
    Some(IpynbCell { json, cell })
}

/// A text, or its lines.
fn source(source: &Value) -> Option<String> {
    match source {
        Value::String(text) => Some(text.clone()),
        Value::Array(lines) => lines.iter().map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// A code cell. What is not of a Polyglot notebook goes to its kernel as it is, blank lines and the kernel's own commands too.
fn code(json: &Map<String, Value>, source: String, polyglot: Option<&Polyglot>) -> Cell {
    let cell = match polyglot {
        Some(polyglot) => polyglot_code(json, &source, polyglot),
        None => Cell { kind: CellKind::Code(None), source, line: 1, may_raise: false },
    };
    let tags = json.get("metadata").and_then(|metadata| metadata["tags"].as_array());
    let may_raise = tags.is_some_and(|tags| tags.iter().any(|tag| tag == MAY_RAISE));
    Cell { may_raise, ..cell }
}

/// One of a Polyglot notebook. Its first line may name its language.
fn polyglot_code(json: &Map<String, Value>, source: &str, polyglot: &Polyglot) -> Cell {
    let (first, rest) = source.split_once('\n').unwrap_or((source, ""));
    if let Some(kind) = polyglot.kernels.mark(first) {
        return Cell::new(kind, rest, 2);
    }
    let of_cell = json.get("metadata").and_then(|metadata| {
        let name = metadata.pointer("/polyglot_notebook/kernelName");
        name.or_else(|| metadata.pointer("/dotnet_interactive/language"))?.as_str()
    });
    let language = of_cell.map_or_else(|| polyglot.default.clone(), |name| polyglot.kernels.named(name));
    Cell::new(CellKind::Code(Some(language)), source, 1)
}

/// How Jupyter's kernels begin that are sessions of Mainstay: with the kind of those behind it.
pub const OWN_KERNELS: &str = "mainstay-";

/// What the notebook says of all its cells: the kernel's name first.
fn said(document: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let places = ["/kernelspec/name", "/kernelspec/language", "/language_info/name"];
    let metadata = document.get("metadata");
    let said = places.into_iter().filter_map(move |place| metadata?.pointer(place)?.as_str());
    // A kernel of Mainstay's own is another in a session.
    said.map(|name| name.strip_prefix(OWN_KERNELS).unwrap_or(name))
}

/// What a Polyglot notebook says of its cells.
struct Polyglot {
    /// The language of those that do not say theirs.
    default: Language,
    kernels: Kernels,
}

impl Polyglot {
    /// None where it is of another kernel than .NET Interactive.
    fn of(document: &Map<String, Value>) -> Option<Self> {
        let default = default_language(document)?;
        let metadata = document.get("metadata");
        let said = metadata.and_then(|metadata| metadata.pointer("/polyglot_notebook/kernelInfo"));
        Some(Self { default, kernels: said.map(Kernels::said).unwrap_or_default() })
    }
}

/// The language of a Polyglot notebook's cells that do not say theirs; none where it is of another kernel than .NET Interactive.
fn default_language(document: &Map<String, Value>) -> Option<Language> {
    said(document).map(Language::named).find(|language| DOTNET.contains(&language.as_str()))
}
