//! Running a file of this machine cell by cell. Each cell is a command of its own, named by what comes to it: who is cut off asks again, and
//! it goes on.

use axum::Json;
use mainstay_engine::Client;
use mainstay_model::{Action, Admission, Command, Error, Outcome, Response, SessionCommand, SessionId};
use schemars::JsonSchema;
use serde::Deserialize;

use super::bare::record;
use super::body::Body;
use super::caller::Caller;
use mainstay_formats::notebook::runs::CellRun;
use mainstay_gateway::notebook::{CellSelection, Evaluate, NotebookFile};
use mainstay_gateway::path::absolute;
use mainstay_gateway::problem::Problem;
use mainstay_gateway::view::eval_view;
use mainstay_protocol::view::{EvalView, NotebookView};

/// Runs a notebook, or a script in cells, up to the first cell that fails.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RunNotebook {
    /// The file, absolute: an .ipynb or .dib, or a script in cells (.fsx, .py, .ts, .js, .sh).
    path: String,
    /// The first cell that is meant, from 1; Markdown counts.
    #[serde(default)]
    from: Option<u32>,
    /// Run only the cell of this number.
    #[serde(default)]
    cell: Option<u32>,
    /// Whether also those run that ran to their end before.
    #[serde(default)]
    again: bool,
}

record!(RunNotebook { path, from, cell, again });

pub(super) async fn run(caller: Caller, Body(run): Body<RunNotebook>) -> Result<Json<NotebookView>, Problem> {
    let RunNotebook { path, from, cell, again } = run;
    caller.client.require_all("read files")?;
    let path = absolute(&path)?;
    let opened = NotebookFile::read(&path, caller.daemon.engine.limits().message_bytes).await?;
    let session = caller.session(Some(Action::Eval)).await?;
    let about = caller.client.status(session).await?.session;
    let client = caller.client.clone();
    let wanted = CellSelection { from, cell, again, begun: Vec::new() };
    // A client that goes away does not stop it in the middle of a cell.
    let cells = Cells { client: client.clone(), session };
    let ran = tokio::spawn(async move { opened.run(&client, &about, wanted, cells).await });
    let ended = ran.await.map_err(|error| Error::StoreFailed { reason: error.to_string() })?;
    Ok(Json(ended?))
}

/// Runs cells for a request.
struct Cells {
    client: Client,
    session: SessionId,
}

impl Evaluate for Cells {
    async fn evaluate(&mut self, run: CellRun, body: SessionCommand) -> Result<EvalView, Error> {
        let (Self { client, session }, id) = (self, run.command);
        let command =
            Command { admission: Admission::Queue, ..Command::new(id.clone(), client.source(), body) };
        match client.submit(*session, command).await?.outcome {
            Outcome::Done { response: Response::Evaluated(outcome) } => {
                eval_view(client, *session, id, outcome).await
            }
            Outcome::Done { .. } => Err(Error::WorkerFailed { reason: "a cell was no eval".to_owned() }),
            Outcome::Failed { error } => Err(error),
        }
    }
}
