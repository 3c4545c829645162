//! Running a notebook's cells, whoever asks for it: which are run, and under what command, so that it goes on where it ended.

use std::ops::Range;
use std::path::{Path, PathBuf};

use mainstay_engine::CommandStatus;
use mainstay_formats::notebook::{Cell, CellKind, Notebook, NotebookFormat, Steps};
use mainstay_model::Language;
use mainstay_model::command;
use mainstay_model::{
    CommandId, Error, EvalEnding, Event, EventBody, Outcome, Response, Seq, Session, SessionCommand,
    SessionId, SessionKind,
};
use serde::{Deserialize, Serialize};

use crate::view::EvalView;

/// How many events are read at once.
pub const PAGE: usize = 1000;

/// Whom to ask what has run.
pub trait RunRecords: Sync {
    /// What a command has come to, where it has ended.
    fn outcome(&self, command: &CommandId) -> impl Future<Output = Result<Option<Outcome>, Error>> + Send;

    /// The next events of a session.
    fn events_after(
        &self,
        session: SessionId,
        after: Seq,
    ) -> impl Future<Output = Result<Vec<Event>, Error>> + Send;
}

impl RunRecords for mainstay_engine::Client {
    async fn outcome(&self, command: &CommandId) -> Result<Option<Outcome>, Error> {
        known(self.command(command).await.map(|status| match status {
            CommandStatus::Ended(stored) => Some(stored.outcome),
            CommandStatus::Waits { .. } | CommandStatus::Runs { .. } => None,
        }))
    }

    async fn events_after(&self, session: SessionId, after: Seq) -> Result<Vec<Event>, Error> {
        self.events(session, after, PAGE).await
    }
}

/// The outcome of a command, of which nothing may be known: one that never arrived has come to nothing.
///
/// # Errors
/// The given one, unless it says that there is no such command.
pub fn known(outcome: Result<Option<Outcome>, Error>) -> Result<Option<Outcome>, Error> {
    match outcome {
        Err(Error::CommandNotFound { .. }) => Ok(None),
        known => known,
    }
}

/// Whether a session of this kind, which runs this language as far as that is known, can run a file that is for sessions of these kinds.
///
/// # Errors
/// [`Error::InvalidArgument`] where it is of another language, as far as that can be told.
pub fn check_kind(
    file: &Path,
    wanted: &[SessionKind],
    kind: &SessionKind,
    language: Option<&Language>,
) -> Result<(), Error> {
    let languages: Vec<Language> = wanted.iter().filter_map(Language::of).collect();
    let is_wanted = |language: &Language| languages.contains(language);
    if wanted.contains(kind) || languages.is_empty() || language.is_none_or(is_wanted) {
        return Ok(());
    }
    let file = file.display();
    let wanted = wanted.first().map_or("another", SessionKind::as_str);
    let reason = format!(
        "it is of kind `{kind}`, and `{file}` is for `{wanted}`; name one of that kind, or create one"
    );
    Err(Error::InvalidArgument { argument: "session".to_owned(), reason })
}

/// Whether those after a cell run when it ended so.
pub fn goes_on(cell: &Cell, ending: &str) -> bool {
    ending == EvalEnding::Completed.name() || cell.may_raise && is_raised(ending)
}

/// Whether an ending of this name is an error of the code.
fn is_raised(ending: &str) -> bool {
    ["raised", "rejected"].contains(&ending)
}

/// Why a cell is not run: what it is instead of code for a session of this kind and this language, in words.
pub fn passed_over(cell: &Cell, kind: &SessionKind, language: Option<&Language>) -> Option<String> {
    match &cell.kind {
        CellKind::Markdown => Some(cell.source.lines().next().unwrap_or_default().to_owned()),
        CellKind::Other => Some("settings or raw text".to_owned()),
        CellKind::Code(Some(its)) if !its.is_run_by(kind, language) => {
            Some(format!("passed over: it is `{}`, and the session `{kind}`", its.as_str()))
        }
        CellKind::Code(_) if !cell.is_code() => Some("empty".to_owned()),
        CellKind::Code(_) => None,
    }
}

/// The runs of one file's cells in a session.
#[derive(Debug)]
pub struct NotebookRuns {
    session: SessionId,
    steps: Steps,
    /// Which of the cells count as run also where they raised an error.
    may_raise: Vec<bool>,
    /// Whether what ran before does not count: all runs anew.
    again: bool,
    /// The event since which resets were looked for, and the last one there was.
    resets: Option<(Seq, Option<Seq>)>,
}

/// How a cell is run now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellRun {
    /// The command that runs it.
    pub command: CommandId,
    /// Whether it has already run it to its end.
    pub ran_before: bool,
}

impl NotebookRuns {
    /// Of the cells of this file, by its absolute path, run with these arguments.
    pub fn new(session: SessionId, file: &str, arguments: &[String], cells: &[Cell], again: bool) -> Self {
        let may_raise = cells.iter().map(|cell| cell.may_raise).collect();
        Self { session, steps: Steps::new(session, file, arguments, cells), may_raise, again, resets: None }
    }

    /// How the cell with this index is run now.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where there is no such cell; what reading can fail with.
    pub async fn of_cell(&mut self, records: &impl RunRecords, cell: usize) -> Result<CellRun, Error> {
        let mut attempt = 0;
        let may_raise = self.may_raise.get(cell) == Some(&true);
        loop {
            let command = self.steps.command(cell, attempt)?;
            match records.outcome(&command).await? {
                None => return Ok(CellRun { command, ran_before: false }),
                Some(Outcome::Done { response: Response::Evaluated(eval) })
                    if !self.again
                        && (eval.success() || may_raise && is_raised(eval.ending.name()))
                        && !self.is_dropped(records, eval.completed).await? =>
                {
                    return Ok(CellRun { command, ran_before: true });
                }
                Some(Outcome::Done { .. } | Outcome::Failed { .. }) => attempt += 1,
            }
        }
    }

    /// A cell has run anew: so must those after it.
    pub const fn ran_anew(&mut self) {
        self.again = true;
    }

    /// Whether a reset has dropped what an eval defined that ended with this event.
    async fn is_dropped(&mut self, records: &impl RunRecords, completed: Seq) -> Result<bool, Error> {
        let last = match self.resets {
            Some((since, last)) if since <= completed => last,
            Some(_) | None => {
                let last = last_reset(records, self.session, completed).await?;
                self.resets = Some((completed, last));
                last
            }
        };
        Ok(last.is_some_and(|reset| reset > completed))
    }
}

async fn last_reset(records: &impl RunRecords, session: SessionId, since: Seq) -> Result<Option<Seq>, Error> {
    let (mut after, mut last) = (since, None);
    loop {
        let events = records.events_after(session, after).await?;
        let Some(newest) = events.last() else { return Ok(last) };
        after = newest.seq;
        let is_reset =
            |body: &EventBody| matches!(body, EventBody::SessionReset | EventBody::SessionHardReset);
        last = events.iter().rev().find(|event| is_reset(&event.body)).map(|event| event.seq).or(last);
    }
}

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

/// What came of a file's cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotebookView {
    /// The session in which the cells ran.
    pub session: SessionId,
    /// Whether all ran to their end.
    pub success: bool,
    /// Those that ran, or had before.
    pub cells: Vec<CellView>,
    /// The numbers of those that did not, since one before them failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_run: Vec<usize>,
}

/// What came of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CellView {
    /// Its number, from 1; Markdown counts.
    pub cell: usize,
    /// The line of the file that it begins in.
    pub line: u32,
    /// Whether it had run to its end before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ran_before: bool,
    /// What came of it.
    pub eval: EvalView,
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
