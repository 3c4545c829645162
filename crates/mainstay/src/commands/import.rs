//! `mainstay import`: a session from a file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use mainstay_client::Client;
use mainstay_formats::exchange::{self, Header, SessionFile};
use mainstay_home::Home;
use mainstay_model::{CommandId, Error, SessionKind, SessionState, Timestamp};
use mainstay_protocol::operations::{GetStatus, ImportSession, Imported};
use mainstay_terminal::{counted, note};

use super::arguments::existing;
use super::session_text::show_new;
use super::target::{settle, working_directory};
use crate::connect::connect_or_start;
use crate::kernels;

/// Makes a session of a file that `mainstay export` wrote, or of a session file of Claude Code or pi.
///
/// What the file is, is told by what is in it. An exported session comes with its transcript and its values: its code runs again,
/// so import only what you would run. It runs in the folder it ran in, where that is there, and else in this one. An agent's
/// conversation can be read, searched, compacted, forked and exported.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay import lab.jsonl\n  mainstay import lab.jsonl --name ada-lab --directory ~/lab\n  mainstay import ~/.claude/projects/-home-ada-lab/SESSION.jsonl --json | jq .leftOut\n\nExit codes: 0 the session is there, 1 it is Faulted, or nothing was imported."
)]
pub(super) struct Import {
    /// The file to be imported
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

    /// Print the session as JSON
    #[arg(long)]
    json: bool,
}

impl Import {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let source = Source::read(&self.file, self.directory)?;
        let connection = connect_or_start(home, "cli").await?;
        let imported = source.import(home, &connection.client, self.id, self.name).await?;
        let session = settle(&connection.client, imported.session.clone()).await?;
        let is_faulted = session.state == SessionState::Faulted.name();
        if self.json {
            super::print_json(&Imported { session, ..imported })?;
        } else {
            show_new(&session, false)?;
            note(&came_of(&imported));
        }
        Ok(if is_faulted { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

/// A file that is whole, and where its code is to run.
pub(crate) struct Source {
    file: String,
    kind: SessionKind,
    folder: PathBuf,
}

impl Source {
    /// Reads it here first, so that a damaged file is refused before a kernel is installed or a daemon started for it.
    pub(crate) fn read(path: &Path, directory: Option<PathBuf>) -> Result<Self, Error> {
        let file = std::fs::read(path).map_err(|error| Error::InvalidArgument {
            argument: "file".to_owned(),
            reason: format!("`{}`: {error}", path.display()),
        })?;
        let file = exchange::session_file_text(file)?;
        let SessionFile { imported, .. } = exchange::read_session_file(&file, Timestamp::now())?;
        let Header { kind, working_directory: ran_in, .. } = imported.header;
        let folder = match directory {
            Some(folder) => existing(&folder, "directory")?,
            // An agent's conversation need not go on here: it keeps the folder it was of.
            None if kind.is_agent() && PathBuf::from(&ran_in).is_absolute() => PathBuf::from(ran_in),
            None if kind.is_agent() => working_directory()?,
            None if PathBuf::from(&ran_in).is_dir() => PathBuf::from(ran_in),
            None => {
                let here = working_directory()?;
                note(&format!("`{ran_in}` is not here; it runs in {}", here.display()));
                here
            }
        };
        Ok(Self { file, kind, folder })
    }

    /// Makes a session of it, which may still warm up.
    pub(crate) async fn import(
        self,
        home: &Home,
        client: &Client,
        command: Option<CommandId>,
        name: Option<String>,
    ) -> Result<Imported, Error> {
        let Self { file, kind, folder } = self;
        check_size(client, &file).await?;
        kernels::ready(home, &kind, &folder).await?;
        let working_directory = Some(folder.display().to_string());
        client.call(ImportSession { command, file, working_directory, name }).await
    }
}

/// What came of a file, and what did not.
pub(crate) fn came_of(Imported { format, entries, left_out, .. }: &Imported) -> String {
    let mut told = format!("{}, from a file of {}", counted(*entries, "entry"), format.title());
    for (index, (what, count)) in left_out.iter().enumerate() {
        let before = if index == 0 { "; left out: " } else { ", " };
        told.push_str(&format!("{before}{count} {what}"));
    }
    told
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
