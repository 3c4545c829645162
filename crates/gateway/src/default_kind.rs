//! Which kind of session a folder is for, where nobody says.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mainstay_engine::Client;
use mainstay_model::SessionKind;
use mainstay_runner::Environment;

type Tell = dyn Fn(&Path, &Environment) -> SessionKind + Send + Sync;

/// Says it, going by what lies in the folder, and by what can run for whoever has an environment.
#[derive(Clone)]
pub struct DefaultKind(Arc<Tell>);

impl DefaultKind {
    /// As this function says, which may look at files.
    pub fn new(of: impl Fn(&Path, &Environment) -> SessionKind + Send + Sync + 'static) -> Self {
        Self(Arc::new(of))
    }

    /// The kind of session that a folder is for, when this client creates one.
    pub async fn of(&self, client: &Client, folder: &str) -> SessionKind {
        let (of, folder) = (Arc::clone(&self.0), PathBuf::from(folder));
        let environment = client.environment().cloned().unwrap_or_default();
        let told = tokio::task::spawn_blocking(move || of(&folder, &environment)).await;
        // It is not worth a failed call.
        told.unwrap_or_else(|_| SessionKind::fsharp())
    }
}

impl Default for DefaultKind {
    /// F# in every folder.
    fn default() -> Self {
        Self::new(|_, _| SessionKind::fsharp())
    }
}
