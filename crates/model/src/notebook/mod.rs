//! Notebooks: files of cells, which are run one after the other. Scripts whose cells are parted by marks, Polyglot notebooks
//! (`.dib`) and Jupyter's (`.ipynb`) are read and written here, so that what nobody touched stays as it was. Nothing here runs a cell.

mod dib;
mod ipynb;
mod script;
mod step;
mod text;

use std::path::Path;

use serde_json::Value;

pub(crate) use dib::written as dib_text;
pub use ipynb::Ipynb;
pub(crate) use script::MARK as SCRIPT_MARK;
pub use step::Steps;
pub use text::Text;

use crate::error::Error;
use crate::id::SessionKind;

/// How a notebook is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotebookFormat {
    /// A script. Its cells begin with `// %%` or `(* --- *)`, each on a line of its own.
    Script,
    /// A Polyglot notebook. Its cells begin with the name of their language: `#!fsharp`.
    Dib,
    /// A Jupyter notebook.
    Ipynb,
}

impl NotebookFormat {
    /// That of a file with this name, where the name tells.
    pub fn of_file(file: &Path) -> Option<Self> {
        match file.extension()?.to_str()? {
            "fsx" | "fsscript" => Some(Self::Script),
            "dib" => Some(Self::Dib),
            "ipynb" => Some(Self::Ipynb),
            _ => None,
        }
    }
}

/// A notebook that was read.
#[derive(Clone, Debug, PartialEq)]
pub enum Notebook {
    /// A script.
    Script(Text),
    /// A Polyglot notebook.
    Dib(Text),
    /// A Jupyter notebook.
    Ipynb(Ipynb),
}

/// What a cell is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CellKind {
    /// Code, of the language that the notebook says, where it does.
    Code(Option<Language>),
    /// Text to read.
    Markdown,
    /// What is neither: settings, raw text.
    Other,
}

/// One cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// What it is.
    pub kind: CellKind,
    /// Its text, without its mark and the blank lines around it.
    pub source: String,
    /// The line at which that begins, from 1: of the file, where that is text, else of the cell.
    pub line: u32,
}

/// A language as notebooks call it, in the spelling of session kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Language(String);

impl Language {
    /// By any of its names.
    pub fn named(name: &str) -> Self {
        let name = name.trim().trim_start_matches('.').to_ascii_lowercase();
        Self(match name.as_str() {
            "f#" | "net-fsharp" => "fsharp".to_owned(),
            "c#" | "net-csharp" => "csharp".to_owned(),
            "powershell" | "net-pwsh" => "pwsh".to_owned(),
            "js" => "javascript".to_owned(),
            _ => name,
        })
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether sessions of this kind run it.
    pub fn is_of(&self, kind: &SessionKind) -> bool {
        self.0 == kind.as_str()
    }
}

impl Cell {
    /// Whether there is anything to run.
    pub fn is_code(&self) -> bool {
        matches!(self.kind, CellKind::Code(_)) && !self.source.is_empty()
    }

    /// Of the text that stands from this line on.
    fn new(kind: CellKind, text: &str, line: u32) -> Self {
        let blank = text.split_inclusive('\n').take_while(|line| line.trim().is_empty());
        let (lines, bytes) = blank.fold((0, 0), |(lines, bytes), line| (lines + 1, bytes + line.len()));
        let source = text.get(bytes..).unwrap_or_default().trim_end().to_owned();
        let line = if source.is_empty() { line } else { line + lines };
        Self { kind, source, line }
    }
}

impl Notebook {
    /// Reads a file of this format.
    ///
    /// # Errors
    /// [`Error::NotebookInvalid`] for what is no Jupyter notebook; the other formats are text, which always is one.
    pub fn read(format: NotebookFormat, text: &str) -> Result<Self, Error> {
        Ok(match format {
            NotebookFormat::Script => Self::Script(script::read(text)),
            NotebookFormat::Dib => Self::Dib(dib::read(text)),
            NotebookFormat::Ipynb => Self::Ipynb(Ipynb::read(text)?),
        })
    }

    /// The whole file. A text is byte for byte what was read; of JSON it is the same value, as Jupyter writes it.
    pub fn text(&self) -> String {
        match self {
            Self::Script(text) | Self::Dib(text) => text.to_string(),
            Self::Ipynb(notebook) => notebook.text(),
        }
    }

    /// Its cells, in order.
    pub fn cells(&self) -> Vec<Cell> {
        match self {
            Self::Script(text) | Self::Dib(text) => text.cells(),
            Self::Ipynb(notebook) => notebook.cells(),
        }
    }

    /// Whether what came of a cell can stand in the file.
    pub const fn keeps_outputs(&self) -> bool {
        matches!(self, Self::Ipynb(_))
    }

    /// Puts what came of a code cell into the file, where its format has a place for it.
    pub fn set_outputs(&mut self, cell: usize, number: u64, outputs: Vec<Value>) {
        match self {
            Self::Ipynb(notebook) => notebook.set_outputs(cell, number, outputs),
            Self::Script(_) | Self::Dib(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
