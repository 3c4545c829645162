//! `mainstay import`: a session from a file.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use mainstay_gateway::rpc::api::{GetStatus, ImportSession};
use mainstay_gateway::rpc::client::Client;
use mainstay_model::exchange::{self, Header};
use mainstay_model::{CommandId, Error, SessionKind, SessionState};

use super::session::{existing, show_new};
use super::target::{settle, working_directory};
use crate::connect::connect_or_start;
use crate::home::Home;
use crate::kernels;
use crate::terminal::note;

/// Makes a session of a file that `mainstay export` wrote, with its transcript and its values.
///
/// Its code runs again: import only what you would run. It runs in the folder it ran in, where that is there, and else in this one.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay import lab.jsonl\n  mainstay import lab.jsonl --name ada-lab --directory ~/lab\n\nExit codes: 0 the session is ready, 1 it is not, or nothing was imported."
)]
pub(super) struct Import {
    /// The file
    file: PathBuf,

    /// What people call it [default: as before, numbered where a session is called so]
    #[arg(long)]
    name: Option<String>,

    /// The folder its code runs in [default: the one it ran in, or this one]
    #[arg(long, value_name = "FOLDER")]
    directory: Option<PathBuf>,

    /// A name of your own for this command: given again, it gets the same session and creates no other
    #[arg(long, value_name = "ID", value_parser = |text: &str| CommandId::new(text))]
    id: Option<CommandId>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Import {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let file = std::fs::read_to_string(&self.file).map_err(|error| Error::InvalidArgument {
            argument: "file".to_owned(),
            reason: format!("`{}`: {error}", self.file.display()),
        })?;
        // Here first, so that a damaged file is refused before a kernel is installed or a daemon started for it.
        let Header { kind, working_directory: ran_in, .. } = exchange::read(&file)?.header;
        let folder = match self.directory {
            Some(folder) => existing(&folder, "directory")?,
            None if PathBuf::from(&ran_in).is_dir() => PathBuf::from(ran_in),
            None => {
                let here = working_directory()?;
                note(&format!("`{ran_in}` is not here; it runs in {}", here.display()));
                here
            }
        };
        let connection = connect_or_start(home, "cli").await?;
        check_size(&connection.client, &file).await?;
        if kind == SessionKind::fsharp() {
            kernels::ready_fsharp(home).await?;
        }
        let working_directory = Some(folder.display().to_string());
        let import = ImportSession { command: self.id, file, working_directory, name: self.name };
        let session = connection.client.call(import).await?;
        let session = settle(&connection.client, session).await?;
        let is_faulted = session.state == SessionState::Faulted.name();
        show_new(&session, self.json)?;
        Ok(if is_faulted { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

/// A message that is too long ends the connection, which says nothing of why.
async fn check_size(client: &Client, file: &str) -> Result<(), Error> {
    /// What stands around the file in its message.
    const AROUND: usize = 64 * 1024;
    let limit = client.call(GetStatus {}).await?.limits.message_bytes;
    let message = serde_json::to_string(file).map_or(usize::MAX, |json| json.len()).saturating_add(AROUND);
    if message <= limit {
        return Ok(());
    }
    let reason = format!(
        "it takes a message of {message} bytes, and `message-bytes` is {limit}; raise it in config.toml, and start the daemon again"
    );
    Err(Error::InvalidArgument { argument: "file".to_owned(), reason })
}
