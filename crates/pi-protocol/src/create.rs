//! Commands that bring sessions: created, loaded from a file, forked. Those that wait for others, or bring much, keep nothing behind them
//! waiting.

use std::path::Path;

use futures::FutureExt;
use futures::future::BoxFuture;
use mainstay_engine::{AcceptedCommand, Client, Creation, CreationSource, ImportSession};
use mainstay_formats::exchange::{ImportFormat, SessionFile, read_session_file, session_file_text};
use mainstay_model::command;
use mainstay_model::{
    Answered, CreateSession, Error, ForkSession, Outcome, ProjectChoice, Response as Done, Session,
    SessionCommand, SessionId, SessionKind, Timestamp, Version,
};
use serde_json::json;

use super::command::PiCommand;
use super::daemon::PiDaemon;
use super::frames::session_frame;
use super::handlers::{Call, CommandResult, Failed, Result, SubmittedCommand};
use super::info::{info, name_of};
use super::queries::is_typed;
use super::session_path;

/// Bytes of a session file that is loaded.
const FILE_BYTES: u64 = 256 * 1024 * 1024;

impl Call<'_> {
    pub(super) async fn create(&self, cwd: Option<&str>) -> Result<SubmittedCommand> {
        let create = self.new_session(cwd.unwrap_or(self.folder).to_owned());
        let coming = self.begin(CreationSource::Empty(create)).await?;
        Ok(self.in_order(coming.ended().boxed()).await)
    }

    /// A stored session: one of ours that was unloaded is had back, any other file is read into a session of its own.
    pub(super) async fn load(&self, path: &str) -> Result<SubmittedCommand> {
        if let Some(session) = self.unloaded(path).await? {
            return Ok(SubmittedCommand::at_once(self.reload(session).await));
        }
        self.client.require_all("read files of the daemon's user")?;
        let SessionFile { imported, .. } = read_file(path).await?;
        let create = self.new_session(imported.header.working_directory.clone());
        let coming = self.begin(CreationSource::Import(ImportSession { create, imported })).await?;
        Ok(SubmittedCommand::of(coming.ended().boxed()))
    }

    /// The session of ours that this path is of, where it is unloaded, or was until this very command, by its id or its key.
    async fn unloaded(&self, path: &str) -> std::result::Result<Option<SessionId>, Error> {
        let Some(session) = session_path::session_of(&self.daemon.home, path) else { return Ok(None) };
        if self.ended_before().await.is_some_and(|stored| stored.session == Some(session)) {
            return Ok(Some(session));
        }
        if let Some(key) = &self.command.key
            && self.client.ended_with_key(session, key).await?.is_some()
        {
            return Ok(Some(session));
        }
        let found = self.client.seen_session(session).await?;
        let is_unloaded = |found: &Session| found.deleted_at.is_none() && found.unloaded_at.is_some();
        Ok(found.filter(is_unloaded).map(|found| found.id))
    }

    async fn reload(&self, session: SessionId) -> Result {
        let load = SessionCommand::Load(command::Load { alias: self.command.session.clone() });
        let begun = self.client.begin(session, self.engines(load)).await?;
        let coming = PendingSession {
            begun,
            daemon: self.daemon.clone(),
            client: self.client.clone(),
            alias: self.command.session.clone(),
        };
        coming.loaded(session).await
    }

    /// A session that begins with what was said before a person's words, which are given back to be said otherwise.
    pub(super) async fn fork(&self, entry: &str) -> Result<SubmittedCommand> {
        let session = self.session().await?;
        let unknown = || Error::InvalidArgument {
            argument: "entryId".to_owned(),
            reason: format!("there is no entry `{entry}`; get_fork_messages has those there are"),
        };
        let index = entry.parse::<u64>().ok().and_then(|number| number.checked_sub(1)).ok_or_else(unknown)?;
        let found = self.client.whole_entries(session, index, 1).await?;
        let said = found.first().filter(|placed| is_typed(placed)).ok_or_else(unknown)?;
        let text = said.entry.content.beginning().to_owned();
        let fork = ForkSession { from: session, entries: Some(index), name: None, before_reset: false };
        let coming = self.begin(CreationSource::Fork(fork)).await?;
        let ended = async move {
            let ended = coming.ended().await?;
            let name = ended.data.as_ref().and_then(|data| data.get("sessionId")).cloned();
            let data = Some(json!({ "sessionId": name, "text": text, "cancelled": false }));
            // The session that was forked has changed nothing.
            Ok(CommandResult { data, version: None, ..ended })
        };
        Ok(self.in_order(ended.boxed()).await)
    }

    /// What depends on nothing is through before the next command is looked at, which may be for the session that it brings.
    async fn in_order(&self, ended: BoxFuture<'static, Result>) -> SubmittedCommand {
        match self.command.depends_on.is_empty() {
            true => SubmittedCommand::at_once(ended.await),
            false => SubmittedCommand::of(ended),
        }
    }

    async fn begin(&self, beginning: CreationSource) -> std::result::Result<PendingSession, Error> {
        let PiCommand { key, depends_on, session, .. } = self.command;
        let (id, key, depends_on) = (self.id.clone(), key.clone(), depends_on.clone());
        Ok(PendingSession {
            begun: self.client.begin_creation(Creation { id, key, depends_on, beginning }).await?,
            daemon: self.daemon.clone(),
            client: self.client.clone(),
            alias: session.clone(),
        })
    }

    /// A session as its client calls it.
    fn new_session(&self, working_directory: String) -> CreateSession {
        let alias = self.command.session.clone();
        CreateSession {
            kind: SessionKind::pi(),
            working_directory,
            project: ProjectChoice::Nothing,
            arguments: Vec::new(),
            name: alias.clone(),
            alias,
        }
    }
}

/// A session on its way.
struct PendingSession {
    begun: AcceptedCommand,
    daemon: PiDaemon,
    client: Client,
    /// What its client calls it.
    alias: Option<String>,
}

impl PendingSession {
    async fn ended(self) -> Result {
        let Self { begun, daemon, client, alias } = self;
        let Answered { outcome, version, is_replay } = client.created(begun).await?;
        let session = match outcome {
            Outcome::Done { response: Done::Created { session } | Done::Forked { session, .. } } => session,
            Outcome::Done { .. } => return Ok(CommandResult::default()),
            Outcome::Failed { error } => return Err(Failed::Error { error, is_replay }),
        };
        came(&daemon, &client, CreatedSession { session, alias, version, is_replay }).await
    }

    /// The same of a session that was there.
    async fn loaded(self, session: SessionId) -> Result {
        let Self { begun, daemon, client, alias } = self;
        let Answered { outcome, version, is_replay } = begun.ended().await?;
        match outcome {
            Outcome::Done { .. } => {
                came(&daemon, &client, CreatedSession { session, alias, version, is_replay }).await
            }
            Outcome::Failed { error } => Err(Failed::Error { error, is_replay }),
        }
    }
}

/// A session that has come.
struct CreatedSession {
    session: SessionId,
    /// What its client calls it.
    alias: Option<String>,
    version: Version,
    is_replay: bool,
}

/// What the client of a session that has come is answered, and what others are told.
async fn came(daemon: &PiDaemon, client: &Client, came: CreatedSession) -> Result {
    let CreatedSession { session, alias, version, is_replay } = came;
    let gone = |session: SessionId| {
        let name = alias.clone().unwrap_or_else(|| session.to_string());
        let data = Some(json!({ "sessionId": name }));
        Ok(CommandResult { data, version: Some(version), is_replay, ..CommandResult::default() })
    };
    let session = match client.status(session).await {
        // It came, and has gone since.
        Ok(status) if is_replay && status.session.unloaded_at.is_some() => return gone(session),
        Err(Error::SessionNotFound { .. }) if is_replay => return gone(session),
        Ok(status) => status.session,
        Err(error) => return Err(error.into()),
    };
    let name = name_of(&session, client.principal());
    let info = info(daemon, client, &session).await?;
    let told = session_frame("session_created", &name, Some(&info));
    let data = json!({ "sessionId": name, "sessionInfo": info });
    let told = (!is_replay).then_some(told);
    Ok(CommandResult {
        data: Some(data),
        version: Some(version),
        is_replay,
        told,
        ..CommandResult::default()
    })
}

/// Reads a session file of pi's.
async fn read_file(path: &str) -> std::result::Result<SessionFile, Error> {
    let invalid = |reason: String| Error::InvalidArgument { argument: "sessionPath".to_owned(), reason };
    let is_one = Path::new(path).is_absolute() && (path.ends_with(".jsonl") || path.ends_with(".json"));
    if !is_one {
        return Err(invalid(
            "sessionPath must be the absolute path of a .jsonl or .json session file".to_owned(),
        ));
    }
    let missing = |_| invalid("sessionPath must point to an existing session file".to_owned());
    let about = tokio::fs::metadata(path).await.map_err(missing)?;
    if !about.is_file() || about.len() > FILE_BYTES {
        return Err(invalid(format!(
            "sessionPath must point to a session file of at most {FILE_BYTES} bytes"
        )));
    }
    let bytes = tokio::fs::read(path).await.map_err(missing)?;
    let read = tokio::task::spawn_blocking(move || {
        session_file_text(bytes).and_then(|text| read_session_file(&text, Timestamp::now()))
    });
    let file = read.await.map_err(|error| invalid(error.to_string()))??;
    match file.format {
        ImportFormat::Pi => Ok(file),
        other @ (ImportFormat::Mainstay | ImportFormat::ClaudeCode) => {
            Err(invalid(format!("it is a session file of {}; `mainstay import` reads it", other.title())))
        }
    }
}
