//! `run_notebook`: a notebook or a script, cell by cell; run again it goes on after the last cell that ran to its end.

use std::fmt::{Display, Formatter};

use mainstay_model::affordance::Reach;
use mainstay_model::{Action, Command, Error, SessionCommand, SessionId};
use mainstay_protocol::OperationId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::Call;
use super::command_wait::carried_out_among;
use super::eval::{EvalAnswer, view_of};
use super::needs::{Waits, Works};
use super::running_command::RunningCommand;
use super::tool::{Answer, Effect, PictureBlock, Tool};
use mainstay_formats::notebook::runs::CellRun;
use mainstay_gateway::notebook::{CellSelection, Evaluate, NotebookFile};
use mainstay_gateway::path::absolute;
use mainstay_protocol::view::{CellView, EvalView, NotebookView};

/// Runs the cells of a notebook.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RunNotebook {
    session_id: Option<String>,
    /// Absolute: .ipynb, .dib, .fsx, .py, .ts, .js or .sh.
    path: String,
    /// The first cell, from 1.
    from: Option<u32>,
    /// Only the cell of this number.
    cell: Option<u32>,
    /// Also cells that ran to their end before.
    #[serde(default)]
    again: bool,
}

/// What came of its cells.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NotebookAnswer {
    session_id: String,
    success: bool,
    cells: Vec<CellLine>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_run: Vec<usize>,
    /// What is to be said instead, where a daemon was lost that ran it.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

/// What is said of a notebook that a daemon ran which is gone. The cell that it was at may have done part of what it does.
const CUT_OFF: &str = "the daemon was lost while this ran. Cells that ran to their end are kept: look at what the next one may have done \
    in part (get_eval_timeline), then call run_notebook again, which goes on there";

/// What came of one.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CellLine {
    cell: usize,
    line: u32,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    ran_before: bool,
    /// As send_code tells it; not of what ran before.
    #[serde(skip_serializing_if = "Option::is_none")]
    eval: Option<EvalAnswer>,
}

impl Tool for RunNotebook {
    const NAME: &'static str = "run_notebook";
    const OPERATIONS: &'static [OperationId] = &[];
    const DESCRIPTION: &'static str =
        "Run a notebook or a script in cells, up to the first cell that fails. Run again, it goes on there.";
    const EFFECT: Effect = Effect::RunsCode { idempotent: false };
    const ACTION: Option<Action> = Some(Action::Eval);
    const WORKS: Works = Works::InAny(Action::Eval, Reach::InTurn);
    const WAITS: Waits = Waits::AsAsked;
    const FILES: bool = true;
    const SAYS_ANSWER: bool = false;
    type Answer = NotebookAnswer;

    async fn carry_out(self, call: &Call) -> Result<NotebookAnswer, Error> {
        call.client().require_all("read files")?;
        let Self { session_id, path, from, cell, again } = self;
        let opened = NotebookFile::read(&absolute(&path)?, call.limits().message_bytes).await?;
        let (session, begun) = match call.continued() {
            Some(RunningCommand { session, cells, .. }) => (*session, cells.clone().unwrap_or_default()),
            None => {
                let kinds = opened.kinds().to_vec();
                let place = call.workplace_for(session_id.as_deref(), Action::Eval, kinds);
                (place.await?, Vec::new())
            }
        };
        if call.repeatable().is_again() && call.continued().is_none() {
            return Ok(NotebookAnswer::cut_off(session));
        }
        let ready = call.bring_up(session).await?;
        let wanted = CellSelection { from, cell, again, begun };
        let cells = Cells { call, session, ran: Vec::new() };
        let file = opened.path().display().to_string();
        let ran = opened.run(call.client(), &ready, wanted, cells).await?;
        Ok(NotebookAnswer::of(ran, &file))
    }
}

/// Runs cells for a call.
struct Cells<'a> {
    call: &'a Call,
    session: SessionId,
    /// What it ran, or had run before.
    ran: Vec<CellRun>,
}

impl Evaluate for Cells<'_> {
    async fn evaluate(&mut self, run: CellRun, body: SessionCommand) -> Result<EvalView, Error> {
        let Self { call, session, ran } = self;
        let id = run.command.clone();
        ran.push(run);
        let now = call.client().status(*session).await?.session;
        let command = Command { id: id.clone(), ..call.code(&now, body) };
        let response = carried_out_among(call, &now, command, Some(ran.clone())).await?;
        view_of(call, &now, id, response).await
    }
}

impl NotebookAnswer {
    /// What came of the cells of this file, with the places of errors as the file has them.
    fn of(view: NotebookView, file: &str) -> Self {
        let NotebookView { session, success, cells, not_run } = view;
        let line = |CellView { cell, line, ran_before, eval }: CellView| CellLine {
            cell,
            line,
            ran_before,
            eval: (!ran_before)
                .then(|| EvalAnswer::from(eval.in_lines_of(Some(file), line.saturating_sub(1)))),
        };
        let cells = cells.into_iter().map(line).collect();
        Self { session_id: session.short(), success, cells, not_run, note: None }
    }

    fn cut_off(session: SessionId) -> Self {
        let (cells, not_run) = (Vec::new(), Vec::new());
        Self { session_id: session.short(), success: false, cells, not_run, note: Some(CUT_OFF) }
    }
}

impl Answer for NotebookAnswer {
    const IS_MARKED: bool = true;

    fn is_failure(&self) -> bool {
        !self.success
    }

    fn pictures(&mut self) -> Vec<PictureBlock> {
        let evals = self.cells.iter_mut().filter_map(|cell| cell.eval.as_mut());
        evals.flat_map(Answer::pictures).collect()
    }

    fn fit(&mut self, bytes: usize) {
        let share = bytes / self.cells.len().max(1);
        self.cells.iter_mut().filter_map(|cell| cell.eval.as_mut()).for_each(|eval| eval.fit(share));
    }
}

impl Display for NotebookAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        for CellLine { cell, line, eval, .. } in &self.cells {
            match eval {
                Some(eval) => writeln!(f, "cell {cell} (line {line}):\n{eval}")?,
                None => writeln!(f, "cell {cell} (line {line}) ran before")?,
            }
        }
        if let Some(note) = self.note {
            return write!(f, "{note} [session {}]", self.session_id);
        }
        let numbers: Vec<String> = self.not_run.iter().map(ToString::to_string).collect();
        match (self.success, numbers.as_slice()) {
            (true, _) => f.write_str("all cells ran to their end"),
            (false, []) => f.write_str("the last cell failed"),
            (false, numbers) => write!(f, "not run: cells {}", numbers.join(", ")),
        }
    }
}
