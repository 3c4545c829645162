//! The F# kernel, joined to the engine: the worker is built on first use, then started for each session.

use std::path::PathBuf;

use async_trait::async_trait;
use mainstay_engine::runner::{RunnerFactory, RunnerSpec, StartedRunner};
use mainstay_kernel::fsharp::{PrepareError, Search, WorkerProgram, prepare};
use mainstay_kernel::{Launch, worker};
use mainstay_model::{Error, SessionKind};

use crate::home::Home;

/// Starts F# workers.
pub(super) struct FsharpKernel {
    search: Search,
    /// The folder of the workers' sockets.
    sockets: PathBuf,
}

impl FsharpKernel {
    pub(super) fn new(home: &Home, dotnet: Option<PathBuf>, sockets: PathBuf) -> Self {
        Self { search: crate::kernels::search(home, dotnet), sockets }
    }

    /// The worker as it is started now: an SDK may have come or gone since the last time.
    async fn program(&self) -> Result<WorkerProgram, Error> {
        prepare(&self.search, &|progress| tracing::info!(?progress, "F# is prepared"))
            .await
            .map_err(|error| unavailable(&error))
    }
}

#[async_trait]
impl RunnerFactory for FsharpKernel {
    fn serves(&self, kind: &SessionKind) -> bool {
        *kind == SessionKind::fsharp()
    }

    async fn prepare(&self) -> Result<(), Error> {
        self.program().await.map(drop)
    }

    async fn start(&self, spec: RunnerSpec) -> Result<StartedRunner, Error> {
        let program = self.program().await?;
        let launch = Launch {
            program: program.program,
            arguments: program.arguments,
            environment: program.environment,
        };
        worker::launch(&launch, &spec.working_directory, &self.sockets).await
    }
}

fn unavailable(error: &PrepareError) -> Error {
    Error::KernelUnavailable { reason: error.to_string() }
}
