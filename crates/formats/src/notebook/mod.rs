//! Notebooks: files of cells, which are run one after the other. Scripts whose cells are parted by marks, Polyglot notebooks
//! (`.dib`) and Jupyter's (`.ipynb`) are read and written here, so that what nobody touched stays as it was. Nothing here runs a cell.

mod dib;
mod ipynb;
pub mod runs;
mod script;
mod step;
mod text;

use std::path::Path;

use serde_json::Value;

pub(crate) use dib::written as dib_text;
pub use ipynb::{Ipynb, OWN_KERNELS};
use mainstay_model::Language;
pub use script::ScriptLanguage;
pub use step::Steps;
pub use text::Text;

use mainstay_model::error::Error;
use mainstay_model::id::SessionKind;

/// How a notebook is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotebookFormat {
    /// A script of this language. Its cells begin with `// %%` or `# %%`, each on a line of its own.
    Script(ScriptLanguage),
    /// A Polyglot notebook. Its cells begin with the name of their language: `#!fsharp`.
    Dib,
    /// A notebook of Jupyter (`.ipynb`).
    Ipynb,
}

impl NotebookFormat {
    /// That of a file with this name, where the name tells.
    pub fn of_file(file: &Path) -> Option<Self> {
        match file.extension()?.to_str()? {
            "dib" => Some(Self::Dib),
            "ipynb" => Some(Self::Ipynb),
            script => ScriptLanguage::of_extension(script).map(Self::Script),
        }
    }

    /// That of a file with this name.
    ///
    /// # Errors
    /// Why there is none, for who named the file.
    pub fn named(file: &Path) -> Result<Self, String> {
        Self::of_file(file).ok_or_else(|| {
            let scripts = ScriptLanguage::ALL.map(ScriptLanguage::extension).join(", .");
            format!("its name must end in .ipynb, .dib or, for a script in cells, in .{scripts}")
        })
    }
}

/// A notebook that was read.
#[derive(Clone, Debug, PartialEq)]
pub enum Notebook {
    /// A script, which is one cell.
    Script(ScriptLanguage, Text),
    /// A Polyglot notebook (`.dib`).
    Dib(Text),
    /// A notebook of Jupyter (`.ipynb`).
    Ipynb(Ipynb),
}

/// What a cell is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CellKind {
    /// Code: of this language where the notebook has several, else of the notebook's.
    Code(Option<Language>),
    /// Text for people, in Markdown.
    Markdown,
    /// What is neither: settings, raw text.
    Other,
}

/// One cell of a notebook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The kind of the cell.
    pub kind: CellKind,
    /// Its text, without its mark and the blank lines around it.
    pub source: String,
    /// The line at which that begins, from 1: of the file, where that is text, else of the cell.
    pub line: u32,
    /// Whether those after it run also where it raises an error.
    pub may_raise: bool,
}

impl Cell {
    /// Whether there is anything to run.
    pub fn is_code(&self) -> bool {
        matches!(self.kind, CellKind::Code(_)) && !self.source.trim().is_empty()
    }

    /// Of the text that stands from this line on.
    fn new(kind: CellKind, text: &str, line: u32) -> Self {
        let blank = text.split_inclusive('\n').take_while(|line| line.trim().is_empty());
        let (lines, bytes) = blank.fold((0, 0), |(lines, bytes), line| (lines + 1, bytes + line.len()));
        let source = text.get(bytes..).unwrap_or_default().trim_end().to_owned();
        let line = if source.is_empty() { line } else { line + lines };
        Self { kind, source, line, may_raise: false }
    }
}

impl Notebook {
    /// Reads a file of this format.
    ///
    /// # Errors
    /// [`Error::NotebookInvalid`] for what is no Jupyter notebook; the other formats are text, which always is one.
    pub fn read(format: NotebookFormat, text: &str) -> Result<Self, Error> {
        Ok(match format {
            NotebookFormat::Script(language) => Self::Script(language, script::read(language, text)),
            NotebookFormat::Dib => Self::Dib(dib::read(text)),
            NotebookFormat::Ipynb => Self::Ipynb(Ipynb::read(text)?),
        })
    }

    /// The whole file. A text is byte for byte what was read; of JSON it is the same value, as Jupyter writes it.
    pub fn text(&self) -> String {
        match self {
            Self::Script(_, text) | Self::Dib(text) => text.to_string(),
            Self::Ipynb(notebook) => notebook.text(),
        }
    }

    /// Its cells, in order.
    pub fn cells(&self) -> Vec<Cell> {
        match self {
            Self::Script(_, text) | Self::Dib(text) => text.cells(),
            Self::Ipynb(notebook) => notebook.cells(),
        }
    }

    /// The kinds of sessions that run it, the one it names first; none where it says nothing of that. Of what Polyglot notebooks may
    /// have, sessions run F#.
    pub fn kinds(&self) -> Vec<SessionKind> {
        match self {
            Self::Script(language, _) => language.kinds(),
            Self::Dib(_) => vec![SessionKind::fsharp()],
            Self::Ipynb(notebook) => notebook.kinds(),
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
            Self::Script(..) | Self::Dib(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
