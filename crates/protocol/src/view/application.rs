//! The application of a session's project as clients see it.

use mainstay_model::session::Session;
use mainstay_model::{Application, SessionApplication, Timestamp};
use serde::{Deserialize, Serialize};

/// The application of a session's project, which runs or is to run again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationView {
    /// What it is called: its assembly.
    pub name: String,
    /// The function that it begins with, where that is not the entry point of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// What it was given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// Whether it runs; if not, the session's next worker starts it again.
    pub runs: bool,
    /// The addresses it listens on, or did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// Since when it runs, or did.
    pub since: Timestamp,
}

impl ApplicationView {
    /// The application of a session; none where none is to run.
    pub fn of(session: &Session) -> Option<Self> {
        let SessionApplication { application, since } = session.application.as_deref()?;
        let Application { name, entry, arguments, addresses, .. } = application.clone();
        Some(Self { name, entry, arguments, runs: session.runs_application(), addresses, since: *since })
    }
}
