//! Which kind of session a folder is for, where nobody says.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mainstay_model::SessionKind;

/// Says it, going by what lies in the folder.
#[derive(Clone)]
pub struct DefaultKind(Arc<dyn Fn(&Path) -> SessionKind + Send + Sync>);

impl DefaultKind {
    /// As this function says, which may look at files.
    pub fn new(of: impl Fn(&Path) -> SessionKind + Send + Sync + 'static) -> Self {
        Self(Arc::new(of))
    }

    /// The kind of session that a folder is for.
    pub(crate) async fn of(&self, folder: &str) -> SessionKind {
        let (of, folder) = (Arc::clone(&self.0), PathBuf::from(folder));
        let told = tokio::task::spawn_blocking(move || of(&folder)).await;
        // It is not worth a failed call.
        told.unwrap_or_else(|_| SessionKind::fsharp())
    }
}

impl Default for DefaultKind {
    /// F# in every folder.
    fn default() -> Self {
        Self::new(|_| SessionKind::fsharp())
    }
}
