//! `mainstay import`: a session from a file.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use mainstay_home::Home;
use mainstay_model::{CommandId, Error, SessionState};
use mainstay_protocol::operations::Imported;
use mainstay_terminal::note;
use mainstay_terminal_client::connect::connect_or_start;
use mainstay_terminal_client::import::{Source, imported_text};
use mainstay_terminal_client::sessions::settle;

use super::session_text::show_new;

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
            note(&imported_text(&imported));
        }
        Ok(if is_faulted { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}
