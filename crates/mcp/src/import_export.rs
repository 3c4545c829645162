//! `export_session` and `import_session`: sessions as files of this machine.

use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use mainstay_formats::exchange::{self, Format, Header, SessionFile};
use mainstay_model::affordance::Reach;
use mainstay_model::{Action, Capability, CreateSession, Error, Outcome, ProjectChoice, Response, Timestamp};
use mainstay_protocol::{OperationId, operations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;

use super::call::{Call, unexpected};
use super::lifecycle::SessionAnswer;
use super::needs::Works;
use super::text::{TEXT_BYTES, shortened};
use super::tool::{Answer, Effect, Tool};
use mainstay_gateway::path::absolute;
use mainstay_gateway::session_file::exported;

/// Exports a session as text.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ExportSession {
    session_id: Option<String>,
    /// A new file, absolute; without it the text is the answer, cut to what can be read.
    path: Option<String>,
    /// `jsonl`, `markdown`, `ipynb`, or a script (`fsx`, `dib`, `py`, …); by default by the path, or `markdown`.
    format: Option<String>,
}

/// The text of the exported session.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExportAnswer {
    session_id: String,
    cells: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl Tool for ExportSession {
    const NAME: &'static str = "export_session";
    const OPERATIONS: &'static [OperationId] = &[OperationId::of::<operations::ExportSession>()];
    const DESCRIPTION: &'static str = "Write a session to a file, or show it as text.";
    const EFFECT: Effect = Effect::Changes { destructive: false, idempotent: false };
    const ACTION: Option<Action> = Some(Action::Events);
    const WORKS: Works = Works::In(Action::Events, Reach::AtOnce);
    const SAYS_ANSWER: bool = false;
    type Answer = ExportAnswer;

    async fn carry_out(self, call: &Call) -> Result<ExportAnswer, Error> {
        let session = call.existing(self.session_id.as_deref(), Action::Events).await?;
        let path = self.path.map(|path| absolute(&path)).transpose()?;
        if path.is_some() {
            call.client().require_all("write files")?;
        }
        let format = match (self.format, &path) {
            (Some(format), _) => format.parse()?,
            (None, Some(path)) => Format::of_file(path).unwrap_or_default(),
            (None, None) => Format::Markdown,
        };
        let (header, items) = exported(call.client(), session).await?;
        let cells = items.iter().filter(|item| item.entries() > 0).count();
        let text = format.write(&header, &items)?;
        let session_id = session.short();
        match path {
            None => {
                Ok(ExportAnswer { session_id, cells, path: None, text: Some(shortened(text, TEXT_BYTES)) })
            }
            Some(path) => {
                let shown = path.display().to_string();
                let written = spawn_blocking(move || write_new(&path, &text)).await;
                written
                    .map_err(|error| unusable(&shown, &error))?
                    .map_err(|error| unusable(&shown, &error))?;
                Ok(ExportAnswer { session_id, cells, path: Some(shown), text: None })
            }
        }
    }
}

fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

impl Answer for ExportAnswer {}

impl Display for ExportAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match (&self.text, &self.path) {
            (Some(text), _) => f.write_str(text),
            (None, path) => {
                write!(f, "{} cells and messages in {}", self.cells, path.as_deref().unwrap_or_default())
            }
        }
    }
}

/// Imports a session from a file.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ImportSession {
    /// A `jsonl` file of `export_session`, whose code runs again; or a session file of Claude Code or pi. Absolute.
    path: String,
    name: Option<String>,
}

impl Tool for ImportSession {
    const NAME: &'static str = "import_session";
    const OPERATIONS: &'static [OperationId] = &[OperationId::of::<operations::ImportSession>()];
    const DESCRIPTION: &'static str = "Create a session of an exported one, wait until it is Ready, and use it from now on. In an agent's conversation no code runs.";
    const EFFECT: Effect = Effect::Changes { destructive: false, idempotent: false };
    const ACTION: Option<Action> = None;
    const WORKS: Works = Works::Always;
    const FILES: bool = true;
    const SAYS_ANSWER: bool = false;
    type Answer = ImportAnswer;

    async fn carry_out(self, call: &Call) -> Result<ImportAnswer, Error> {
        call.client().require_all("read files")?;
        let path = absolute(&self.path)?;
        let file = tokio::fs::read(&path).await.map_err(|error| unusable(&self.path, &error))?;
        let file = exchange::read_session_file(&exchange::session_file_text(file)?, Timestamp::now())?;
        let entries = file.entries();
        let SessionFile { imported, format, left_out } = file;
        let Header { kind, working_directory, project, .. } = imported.header.clone();
        // An agent's conversation need not go on here: it keeps the folder it was of.
        let is_here = match call.client().capabilities_of(&kind).has(Capability::Conversation) {
            true => Path::new(&working_directory).is_absolute(),
            false => Path::new(&working_directory).is_dir(),
        };
        let working_directory = if is_here { working_directory } else { call.meant().folder() };
        let project = ProjectChoice::exactly(project);
        let (name, arguments) = (self.name, Vec::new());
        let create = CreateSession { kind, working_directory, project, arguments, name, alias: None };
        let import = mainstay_engine::ImportSession { create, imported };
        match call.client().import(call.command_id(), import).await? {
            Outcome::Done { response: Response::Created { session } } => {
                let session = call.take_up(session).await?;
                let session = SessionAnswer::from(&session);
                Ok(ImportAnswer { session, format: format.title(), entries, left_out })
            }
            Outcome::Done { response } => Err(unexpected(&response)),
            Outcome::Failed { error } => Err(error),
        }
    }
}

/// The session that was read from a file.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ImportAnswer {
    #[serde(flatten)]
    session: SessionAnswer,
    /// What wrote the file.
    format: &'static str,
    entries: u64,
    /// What did not come along, and how often.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    left_out: BTreeMap<String, u64>,
}

impl Answer for ImportAnswer {
    fn is_failure(&self) -> bool {
        self.session.is_failure()
    }
}

impl Display for ImportAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { session, format, entries, left_out } = self;
        write!(f, "{session}, {entries} entries of {format}")?;
        left_out.iter().try_for_each(|(what, count)| write!(f, "; left out: {count} {what}"))
    }
}

/// That nothing can be done with what is at a path.
pub(super) fn unusable(path: &str, reason: &dyn Display) -> Error {
    Error::InvalidArgument { argument: "path".to_owned(), reason: format!("`{path}`: {reason}") }
}
