//! Which cells of a notebook are run, and under which command each, so that a run goes on where it ended. Whoever runs them says what has run.

use std::path::Path;

use mainstay_model::{
    CommandId, Error, EvalEnding, Event, EventBody, Language, Outcome, Response, Seq, SessionId, SessionKind,
};
use serde::{Deserialize, Serialize};

use super::{Cell, CellKind, Steps};

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
