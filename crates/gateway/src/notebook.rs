//! Running a file of cells, whichever gateway asks for it.

use std::ops::Range;
use std::path::{Path, PathBuf};

use mainstay_formats::notebook::runs::{CellRun, NotebookRuns, RunRecords, check_kind, goes_on, passed_over};
use mainstay_formats::notebook::{Cell, Notebook, NotebookFormat};
use mainstay_model::{Error, Language, Session, SessionCommand, SessionKind, command};
use mainstay_protocol::view::{CellView, EvalView, NotebookView};

/// Runs a cell's code in a session.
pub trait Evaluate: Send {
    /// Runs it under its command's name; whether it ran to its end is in what came of it.
    fn evaluate(
        &mut self,
        run: CellRun,
        body: SessionCommand,
    ) -> impl Future<Output = Result<EvalView, Error>> + Send;
}

/// A file in cells.
pub struct NotebookFile {
    path: PathBuf,
    kinds: Vec<SessionKind>,
    cells: Vec<Cell>,
}

/// Which of its cells are to run.
#[derive(Clone, Debug, Default)]
pub struct CellSelection {
    /// From this one on, counted from 1.
    pub from: Option<u32>,
    /// Run only the cell of this number.
    pub cell: Option<u32>,
    /// Also those that ran to their end before.
    pub again: bool,
    /// How the first of them were run already on behalf of the same request: it goes on behind them.
    pub begun: Vec<CellRun>,
}

impl NotebookFile {
    /// Reads a file of this machine, up to so many bytes.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it cannot be read or is too large, [`Error::NotebookInvalid`].
    pub async fn read(path: &Path, limit: usize) -> Result<Self, Error> {
        let unusable = |reason: String| Error::InvalidArgument {
            argument: "path".to_owned(),
            reason: format!("`{}`: {reason}", path.display()),
        };
        let format = NotebookFormat::named(path).map_err(unusable)?;
        let path = tokio::fs::canonicalize(path).await.map_err(|error| unusable(error.to_string()))?;
        let metadata = tokio::fs::metadata(&path).await.map_err(|error| unusable(error.to_string()))?;
        if !metadata.is_file() {
            return Err(unusable("it is no file".to_owned()));
        }
        if metadata.len() > limit as u64 {
            return Err(unusable(format!("it has {} bytes; `message-bytes` allows {limit}", metadata.len())));
        }
        let bytes = tokio::fs::read(&path).await.map_err(|error| unusable(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| unusable("it is not UTF-8".to_owned()))?;
        let notebook = Notebook::read(format, &text)?;
        Ok(Self { path, kinds: notebook.kinds(), cells: notebook.cells() })
    }

    /// Where it is, absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The kinds of session that it is for, the one that it names first; none where it does not say.
    pub fn kinds(&self) -> &[SessionKind] {
        &self.kinds
    }

    /// Where it is, absolute, and its cells, for a session of this kind and this language.
    ///
    /// # Errors
    /// As [`check_kind`].
    pub fn into_parts(
        self,
        kind: &SessionKind,
        language: Option<&Language>,
    ) -> Result<(PathBuf, Vec<Cell>), Error> {
        check_kind(&self.path, &self.kinds, kind, language)?;
        Ok((self.path, self.cells))
    }

    /// The indices of the cells that are meant.
    fn range(&self, wanted: &CellSelection) -> Result<Range<usize>, Error> {
        let cells = self.cells.len();
        let index = |number: u32, argument: &str| match (number as usize).checked_sub(1) {
            Some(index) if index < cells => Ok(index),
            Some(_) | None => Err(Error::InvalidArgument {
                argument: argument.to_owned(),
                reason: format!("there is no cell {number}; there are {cells}"),
            }),
        };
        match (wanted.cell, wanted.from) {
            (Some(cell), _) => index(cell, "cell").map(|cell| cell..cell + 1),
            (None, Some(from)) => index(from, "from").map(|from| from..cells),
            (None, None) => Ok(0..cells),
        }
    }

    /// Runs the cells that are meant, one after the other, up to the first that fails.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where there is no such cell, or the session is of another language; what running and reading fail with.
    pub async fn run(
        self,
        records: &impl RunRecords,
        session: &Session,
        wanted: CellSelection,
        mut session_runs: impl Evaluate,
    ) -> Result<NotebookView, Error> {
        let range = self.range(&wanted)?;
        let (kind, language) = (&session.kind, session.language());
        check_kind(&self.path, &self.kinds, kind, language.as_ref())?;
        let file = self.path.display().to_string();
        let mut runs = NotebookRuns::new(session.id, &file, &[], &self.cells, wanted.again);
        let mut view =
            NotebookView { session: session.id, success: true, cells: Vec::new(), not_run: Vec::new() };
        let is_run = |cell: &&(usize, &Cell)| passed_over(cell.1, kind, language.as_ref()).is_none();
        let cells: Vec<_> = self.cells.iter().enumerate().collect();
        let meant: Vec<_> = cells.get(range).into_iter().flatten().filter(is_run).collect();
        let mut begun = wanted.begun.into_iter();
        for (index, cell) in meant {
            if !view.success {
                view.not_run.push(index + 1);
                continue;
            }
            let run = match begun.next() {
                Some(run) => run,
                None => runs.of_cell(records, *index).await?,
            };
            let ran_before = run.ran_before;
            let (code, file) = (cell.source.clone(), Some(file.clone()));
            let body = SessionCommand::Eval(command::Eval {
                code,
                file,
                command_line: None,
                origin: None,
                withheld: false,
            });
            let eval = session_runs.evaluate(run, body).await?;
            if !ran_before {
                runs.ran_anew();
            }
            view.success = goes_on(cell, &eval.ending);
            view.cells.push(CellView { cell: index + 1, line: cell.line, ran_before, eval });
        }
        Ok(view)
    }
}
