//! `mainstay prune`: old sessions become files, and are deleted.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use mainstay_client::Client;
use mainstay_formats::exchange::{self, Format};
use mainstay_home::Home;
use mainstay_model::store::Collected;
use mainstay_model::{Error, SessionId, SessionState, Timestamp};
use mainstay_protocol::operations::{DeleteSession, GetSession, ListSessions};
use mainstay_protocol::view::SessionView;
use mainstay_protocol::{Conditions, Sent};
use mainstay_terminal::{Enter, Paint, agrees, counted, note, printable};
use mainstay_terminal_client::connect::connect_or_start;
use mainstay_terminal_client::export;
use mainstay_terminal_client::paths::working_directory;
use mainstay_terminal_client::session_text::session_line;
use mainstay_terminal_client::store::{collect, collected_text};
use serde::Serialize;

use super::timestamps::moment;

/// Exports sessions that were not used for long, deletes them, and removes what nobody needs.
///
/// Each is written to a file of its own, which is read again before the session is deleted: `mainstay import` makes a session of it.
/// Sessions that are not idle stay, and so does what other sessions come from.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay prune --older-than 90d --dry-run\n  mainstay prune --older-than 90d --archive ~/old-sessions --yes"
)]
pub(super) struct Prune {
    /// Those that were last used before then: 90d, 2026-08-01
    #[arg(long, value_name = "TIME", value_parser = |text: &str| moment(text, Timestamp::now()))]
    older_than: Timestamp,

    /// Where the files are written [default: `archive` in Mainstay's folder]
    #[arg(long, value_name = "FOLDER")]
    archive: Option<PathBuf>,

    /// Only sessions of this folder
    #[arg(long)]
    here: bool,

    /// Only show which they are
    #[arg(long)]
    dry_run: bool,

    /// Remove without asking first
    #[arg(short, long)]
    yes: bool,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// A session that was archived.
#[derive(Serialize)]
struct Archived {
    session: SessionView,
    /// None where nothing was written.
    file: Option<PathBuf>,
}

impl Prune {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let client = connect_or_start(home, "cli").await?.client;
        let old = self.old_sessions(&client).await?;
        let now = Timestamp::now();
        if self.dry_run || old.is_empty() {
            let none = |session| Archived { session, file: None };
            return self.report(&old.into_iter().map(none).collect::<Vec<_>>(), Collected::default(), now);
        }
        let archive = self.archive.clone().unwrap_or_else(|| home.archive());
        let many = counted(old.len() as u64, "session");
        let question = format!("Archive {many} in {}, and delete what was archived?", archive.display());
        if !self.yes && !agrees(&question, Enter::No)? {
            note("nothing was deleted");
            return Ok(ExitCode::FAILURE);
        }
        let unwritable = |error: std::io::Error| export::unwritable(&archive.display().to_string(), &error);
        DirBuilder::new().recursive(true).mode(0o700).create(&archive).map_err(unwritable)?;
        let mut archived = Vec::with_capacity(old.len());
        for session in old {
            let file = archive_session(&client, &session, &archive).await?;
            if !delete_unchanged(&client, &session).await? {
                note(&format!(
                    "{} was used meanwhile and stays; {} is of before",
                    printable(&session.name),
                    file.display()
                ));
                continue;
            }
            if !self.json {
                note(&format!("{} is in {}", printable(&session.name), file.display()));
            }
            archived.push(Archived { session, file: Some(file) });
        }
        let collected = collect(&client).await?;
        self.report(&archived, collected, now)
    }

    /// The idle ones that were last used long ago, the oldest first.
    async fn old_sessions(&self, client: &Client) -> Result<Vec<SessionView>, Error> {
        let working_directory =
            if self.here { Some(working_directory()?.display().to_string()) } else { None };
        let list = ListSessions { working_directory, ..ListSessions::default() };
        let mut sessions = client.call(list).await?;
        sessions.retain(|session| {
            session.last_activity < self.older_than
                && session.state == SessionState::Uninitialized.name()
                && session.asks == 0
        });
        sessions.reverse();
        Ok(sessions)
    }

    fn report(&self, archived: &[Archived], collected: Collected, now: Timestamp) -> Result<ExitCode, Error> {
        if self.json {
            super::print_json(&serde_json::json!({ "sessions": archived, "collected": collected }))?;
            return Ok(ExitCode::SUCCESS);
        }
        if archived.is_empty() {
            note("no session is that old");
        }
        // The others were told one by one.
        for Archived { session, .. } in archived.iter().filter(|archived| archived.file.is_none()) {
            print!("{}", session_line(session, Paint::stdout(), now));
        }
        if !collected.is_empty() {
            print!("{}", collected_text(&collected));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes a session to a file, and reads that again: what is deleted afterwards is there.
async fn archive_session(client: &Client, session: &SessionView, archive: &Path) -> Result<PathBuf, Error> {
    let (header, items) = export::read(client, session.session.to_string()).await?;
    let text = Format::Jsonl.write(&header, &items)?;
    let file = archive.join(file_name(&session.name, session.session));
    // One that was cut off left the same file.
    export::write(&file, text.as_bytes(), true)
        .map_err(|error| export::unwritable(&file.display().to_string(), &error))?;
    let written = std::fs::read_to_string(&file)
        .map_err(|error| export::unwritable(&file.display().to_string(), &error))?;
    exchange::read(&written)?;
    Ok(file)
}

/// Its name as far as it can be one of a file, and its whole id: no two sessions have the same.
fn file_name(name: &str, session: SessionId) -> String {
    let plain = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    let name: String = name.trim_start_matches('.').chars().map(plain).take(40).collect();
    format!("{name}-{session}.jsonl")
}

/// Deletes it unless it was used since it was listed; says whether it did.
async fn delete_unchanged(client: &Client, session: &SessionView) -> Result<bool, Error> {
    let reference = session.session.to_string();
    let now = client.call(GetSession { session: reference.clone() }).await?;
    if (&now.state, now.last_seq) != (&session.state, session.last_seq) {
        return Ok(false);
    }
    let conditions = Conditions { if_version: Some(session.version), ..Conditions::default() };
    let sent = Sent { command: None, conditions };
    match client.call(DeleteSession { session: reference, sent }).await {
        Ok(_) => Ok(true),
        Err(Error::VersionMismatch { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_files_name_is_one_whatever_the_sessions_is() {
        let id: SessionId = "019a0000-0000-7000-8000-0000a1b2c3d4".parse().unwrap();
        assert_eq!(file_name("lab", id), "lab-019a0000-0000-7000-8000-0000a1b2c3d4.jsonl");
        assert!(file_name("../../etc/pass wd", id).starts_with("-..-etc-pass-wd-"));
        assert!(file_name(&"é".repeat(400), id).len() < 200);
    }
}
