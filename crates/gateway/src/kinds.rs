//! The kinds of sessions that are known here: those that can start, and those that lack something, with what that is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mainstay_engine::Client;
use mainstay_log::SessionFilter;
use mainstay_model::{Error, SessionKind};
use mainstay_runner::Environment;
use schemars::JsonSchema;
use serde::Serialize;

/// How many sessions are looked at for what was used last.
const LOOKED_AT: usize = 200;

/// A kind of session that is known here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KnownKind {
    /// The kind, as the creation of a session takes it.
    pub kind: SessionKind,
    /// What people call it, for example `Python 3 (ipykernel)`.
    pub name: String,
    /// The language of its code, in lower case; absent for an agent, and where the kernel does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Why no session of this kind can start; absent where one can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<Missing>,
    /// The tools that it offers, as of its last start; absent where it is no tool worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<KnownTool>>,
}

/// A tool of a tool worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KnownTool {
    /// The name of the tool, as code calls it.
    pub name: String,
    /// The versions that the tool is there in; empty where it has no versions.
    pub versions: Vec<String>,
    /// The version that its bare name means, where it has versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Whether its input is an object.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takes_objects: bool,
}

/// What a kind of session lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Missing {
    /// What is wrong, for people.
    pub reason: String,
    /// What to do about it, with the command to run.
    pub next_step: String,
}

type List = dyn Fn(Option<&Path>, &Environment) -> Vec<KnownKind> + Send + Sync;

/// Lists the kinds that are known to someone who works in a folder, or anywhere, and has an environment.
#[derive(Clone)]
pub struct Kinds(Arc<List>);

impl Kinds {
    /// As this function lists them, which may look at files. The order is that of preference.
    pub fn new(list: impl Fn(Option<&Path>, &Environment) -> Vec<KnownKind> + Send + Sync + 'static) -> Self {
        Self(Arc::new(list))
    }

    /// The kinds that can start come first, the one that the caller's sessions used last before the others.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn known(&self, client: &Client, folder: Option<String>) -> Result<Vec<KnownKind>, Error> {
        let (list, folder) = (Arc::clone(&self.0), folder.map(PathBuf::from));
        let environment = client.environment().cloned().unwrap_or_default();
        let looked = tokio::task::spawn_blocking(move || list(folder.as_deref(), &environment));
        let mut known =
            looked.await.map_err(|error| Error::KernelUnavailable { reason: error.to_string() })?;
        let filter = SessionFilter { limit: Some(LOOKED_AT), ..SessionFilter::default() };
        let used: Vec<SessionKind> =
            client.sessions(filter).await?.into_iter().map(|session| session.kind).collect();
        known.sort_by_key(|kind| {
            let last = used.iter().position(|used| kind.runs(used));
            (kind.missing.is_some(), last.unwrap_or(usize::MAX))
        });
        Ok(known)
    }
}

impl Default for Kinds {
    /// F# alone, which can start.
    fn default() -> Self {
        let fsharp = KnownKind {
            kind: SessionKind::fsharp(),
            name: "F#".to_owned(),
            language: Some("fsharp".to_owned()),
            missing: None,
            tools: None,
        };
        Self::new(move |_, _| vec![fsharp.clone()])
    }
}

impl KnownKind {
    /// Whether a session of a kind is run by this one: a kind may be the name of a language.
    fn runs(&self, kind: &SessionKind) -> bool {
        self.kind == *kind || self.language.as_deref() == Some(kind.as_str())
    }
}
