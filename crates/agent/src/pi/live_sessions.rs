//! What lets an agent work in the live sessions of its daemon: pi has no MCP of its own, so it is given an extension that asks the daemon's
//! endpoint which tools there are, and calls them. The extension is told in its environment in which file it finds the daemon, and who it
//! is. It reads the file at each call, since pi may outlive the daemon, and the next one may have another port.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use mainstay_model::Principal;
use mainstay_runner::RunnerSpec;

/// The source of the extension that Mainstay loads into pi.
pub(super) const EXTENSION: &str = include_str!("live_sessions.js");
/// Its file, among a session's files.
pub(super) const FILE: &str = "live-sessions.js";

/// Where an agent finds the daemon, whose MCP endpoint has the sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveSessions {
    /// The file that says which daemon runs, and on which port.
    pub daemon_file: PathBuf,
    /// The file with the token to show there. It is the local principal's.
    pub token_file: PathBuf,
}

impl LiveSessions {
    /// Whether a session's agent may use them: the token would let one of another principal's do what that principal may not.
    pub(super) fn are_for(spec: &RunnerSpec) -> bool {
        spec.owner == Principal::local()
    }

    /// What pi and all that it starts find in their environment.
    pub(super) fn variables(&self, spec: &RunnerSpec) -> [(OsString, OsString); 5] {
        let named = |name: &str| format!("pi · {name}");
        let name = spec.conversation.as_ref().map(|conversation| named(&conversation.name));
        [
            ("MAINSTAY_DAEMON_FILE", self.daemon_file.clone().into()),
            ("MAINSTAY_TOKEN_FILE", self.token_file.clone().into()),
            ("MAINSTAY_SESSION", spec.session.to_string().into()),
            ("MAINSTAY_PROJECT", spec.working_directory.clone().into()),
            ("MAINSTAY_CLIENT", name.unwrap_or_else(|| "pi".to_owned()).into()),
        ]
        .map(|(name, value)| (name.into(), value))
    }

    /// How pi is told of the extension in a session's folder.
    pub(super) fn arguments(folder: &Path) -> [OsString; 2] {
        ["--extension".into(), folder.join(FILE).into()]
    }
}
