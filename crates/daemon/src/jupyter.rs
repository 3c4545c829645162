//! Jupyter kernels, joined to the engine: any kind of session that is no other is the name of a kernelspec, or a language.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use mainstay_embedded::kernel_file;
use mainstay_home::Home;
use mainstay_kernel::jupyter::{Kernelspec, Places, SnapshotPlace, Start, launch};
use mainstay_model::{Capabilities, Capability, Error, Limits, SessionId, SessionKind};
use mainstay_runner::{Environment, RunnerFactory, RunnerSpec, StartObserver, StartedRunner};

/// Starts the kernels of Jupyter sessions.
pub(crate) struct JupyterKernels {
    home: Home,
    /// The folder of the kernels' sockets.
    sockets: PathBuf,
    /// How much of a session's values is kept, in bytes; 0 for nothing.
    snapshot_bytes: u64,
}

impl JupyterKernels {
    pub(crate) fn new(home: &Home, sockets: PathBuf, limits: &Limits) -> Self {
        Self { home: home.clone(), sockets, snapshot_bytes: limits.snapshot_bytes }
    }

    /// The kernel that a kind means in a folder, as things are now: one may have come or gone since the last time.
    async fn kernelspec(
        &self,
        kind: &SessionKind,
        folder: &Path,
        environment: &Environment,
    ) -> Result<Kernelspec, Error> {
        let (home, kind, folder) = (self.home.clone(), kind.clone(), folder.to_owned());
        let environment = environment.clone();
        let looked = tokio::task::spawn_blocking(move || {
            Places::of_session(&environment, &home.jupyter(), Some(&folder))
                .kernelspecs()
                .choose(&kind)
                .cloned()
        });
        looked.await.unwrap_or_else(|error| Err(Error::KernelUnavailable { reason: error.to_string() }))
    }
}

#[async_trait]
impl RunnerFactory for JupyterKernels {
    fn serves(&self, kind: &SessionKind) -> bool {
        !kind.is_fsharp() && !kind.is_agent()
    }

    fn capabilities(&self, _kind: &SessionKind) -> Capabilities {
        Capabilities::KERNEL.with(Capability::Comms)
    }

    fn cancel_grace_ms(&self, _kind: &SessionKind, limits: &Limits) -> u64 {
        limits.jupyter_cancel_grace_ms
    }

    async fn find(&self, kind: &SessionKind, folder: &Path, environment: &Environment) -> Result<(), Error> {
        self.kernelspec(kind, folder, environment).await.map(drop)
    }

    async fn start(&self, spec: RunnerSpec, _observer: StartObserver) -> Result<StartedRunner, Error> {
        let RunnerSpec { session, kind, working_directory, environment, .. } = spec;
        let kernelspec = self.kernelspec(&kind, &working_directory, &environment).await?;
        let (sockets, bytes) = (self.sockets.clone(), self.snapshot_bytes);
        let snapshots = (bytes > 0)
            .then(|| SnapshotPlace { folder: self.home.snapshots().join(session.to_string()), bytes });
        launch(Start { kernelspec, working_directory, sockets, environment, files: kernel_file, snapshots })
            .await
    }

    async fn kept(&self) -> Vec<SessionId> {
        let entries = std::fs::read_dir(self.home.snapshots()).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    }

    async fn forget(&self, session: SessionId) {
        // What stays behind is found again at the next collection.
        tokio::fs::remove_dir_all(self.home.snapshots().join(session.to_string())).await.ok();
    }
}
