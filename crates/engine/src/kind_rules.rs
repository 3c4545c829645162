//! What the daemon knows of kinds of sessions and its engine does not: which kind a folder is for, which kinds one kernel runs, and which
//! can be created at once. It looks at files, so it is asked apart from the tasks that must not wait.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mainstay_model::{Language, SessionKind};
use mainstay_runner::Environment;

use crate::Client;

/// The rules of kinds for someone who works in a folder and has an environment. They may look at files.
pub trait KindRules: Send + Sync + 'static {
    /// The kind of session that a folder is for, where nobody says.
    fn default_kind(&self, folder: &Path, environment: &Environment) -> SessionKind;

    /// The first of these kinds that can run, else the first that can be installed, else the first. Without more knowledge a kind of a known
    /// language is one that many users have.
    fn preferred(
        &self,
        kinds: &[SessionKind],
        _folder: Option<&Path>,
        _environment: &Environment,
    ) -> Option<SessionKind> {
        kinds.iter().find(|kind| Language::of(kind).is_some()).or(kinds.first()).cloned()
    }

    /// Those of `kinds` that the same kernel runs as this one.
    fn same_kernel(
        &self,
        kind: &SessionKind,
        kinds: Vec<SessionKind>,
        _folder: Option<&Path>,
        _environment: &Environment,
    ) -> Vec<SessionKind> {
        kinds.into_iter().filter(|other| other == kind).collect()
    }

    /// Whether what runs a kind is there. Where it is not but can be installed or built, the user wants to see that done.
    fn is_ready(&self, _kind: &SessionKind, _folder: &Path, _environment: &Environment) -> bool {
        true
    }
}

impl<F: Fn(&Path, &Environment) -> SessionKind + Send + Sync + 'static> KindRules for F {
    fn default_kind(&self, folder: &Path, environment: &Environment) -> SessionKind {
        self(folder, environment)
    }
}

/// Answers questions about kinds by the rules of the daemon.
#[derive(Clone)]
pub struct KindResolver(Arc<dyn KindRules>);

impl KindResolver {
    /// Answers by these rules.
    pub fn new(rules: impl KindRules) -> Self {
        Self(Arc::new(rules))
    }

    /// The kind of session that a folder is for, when this client creates one.
    pub async fn default_kind(&self, client: &Client, folder: &str) -> SessionKind {
        let folder = PathBuf::from(folder);
        let told = self.ask(client, move |rules, environment| rules.default_kind(&folder, environment)).await;
        // It is not worth a failed call.
        told.unwrap_or_else(SessionKind::fsharp)
    }

    /// Whether what runs this kind is there for this client.
    pub async fn is_ready(&self, client: &Client, kind: &SessionKind, folder: &str) -> bool {
        let (kind, folder) = (kind.clone(), PathBuf::from(folder));
        let told = self.ask(client, move |rules, environment| rules.is_ready(&kind, &folder, environment));
        told.await.unwrap_or(true)
    }

    /// The preferred one of these kinds.
    pub(crate) async fn preferred(
        &self,
        client: &Client,
        kinds: &[SessionKind],
        folder: Option<&str>,
    ) -> Option<SessionKind> {
        // One is preferred to none whatever runs it.
        if kinds.len() < 2 {
            return kinds.first().cloned();
        }
        let (kinds, folder) = (kinds.to_vec(), folder.map(PathBuf::from));
        let preferred = move |rules: &dyn KindRules, environment: &Environment| {
            rules.preferred(&kinds, folder.as_deref(), environment)
        };
        self.ask(client, preferred).await.flatten()
    }

    /// Those of `kinds` that the same kernel runs as this one.
    pub(crate) async fn same_kernel(
        &self,
        client: &Client,
        kind: SessionKind,
        kinds: Vec<SessionKind>,
        folder: Option<&str>,
    ) -> Vec<SessionKind> {
        let folder = folder.map(PathBuf::from);
        let same = move |rules: &dyn KindRules, environment: &Environment| {
            rules.same_kernel(&kind, kinds, folder.as_deref(), environment)
        };
        self.ask(client, same).await.unwrap_or_default()
    }

    /// What the rules say for this client; none where they panicked.
    async fn ask<T: Send + 'static>(
        &self,
        client: &Client,
        question: impl FnOnce(&dyn KindRules, &Environment) -> T + Send + 'static,
    ) -> Option<T> {
        let rules = Arc::clone(&self.0);
        let environment = client.environment().cloned().unwrap_or_default();
        tokio::task::spawn_blocking(move || question(&*rules, &environment)).await.ok()
    }
}

impl Default for KindResolver {
    /// F# in every folder, and each kind by a kernel of its own.
    fn default() -> Self {
        Self::new(|_: &Path, _: &Environment| SessionKind::fsharp())
    }
}
