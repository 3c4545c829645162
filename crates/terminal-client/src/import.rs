//! Making a session of a file.

use std::path::{Path, PathBuf};

use mainstay_client::Client;
use mainstay_formats::exchange::{self, Header, SessionFile};
use mainstay_home::Home;
use mainstay_model::{CommandId, Error, SessionKind, Timestamp};
use mainstay_protocol::operations::{GetStatus, ImportSession, Imported};
use mainstay_terminal::{counted, note};

use crate::kernels;
use crate::paths::{existing, working_directory};

/// A file that is whole, and where its code is to run.
pub struct Source {
    file: String,
    kind: SessionKind,
    folder: PathBuf,
}

impl Source {
    /// Reads it here first, so that a damaged file is refused before a kernel is installed or a daemon started for it.
    pub fn read(path: &Path, directory: Option<PathBuf>) -> Result<Self, Error> {
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
    pub async fn import(
        self,
        home: &Home,
        client: &Client,
        command: Option<CommandId>,
        name: Option<String>,
    ) -> Result<Imported, Error> {
        let Self { file, kind, folder } = self;
        check_size(client, &file).await?;
        kernels::make_ready(home, &kind, &folder).await?;
        let working_directory = Some(folder.display().to_string());
        client.call(ImportSession { command, file, working_directory, name }).await
    }
}

/// What came of a file, and what did not.
pub fn imported_text(Imported { format, entries, left_out, .. }: &Imported) -> String {
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
