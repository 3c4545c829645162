//! The F# kernel, joined to the engine: the worker is built on first use, then started for each session with what that begins with.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use mainstay_engine::runner::{RunnerFactory, RunnerSpec, StartedRunner};
use mainstay_engine::{Report, WarmUpPhase};
use mainstay_kernel::fsharp::{PrepareError, Sdk, Search, WorkerProgram, choose, prepare};
use mainstay_kernel::{Beginning, Builder, Launch, Project, worker};
use mainstay_model::{Error, SessionId, SessionKind};

use super::builds::Builds;
use super::projects::{ProjectBuilder, loadable, profiles};
use crate::home::Home;

/// Starts F# workers.
pub(super) struct FsharpKernel {
    search: Search,
    /// Mainstay's home.
    home: PathBuf,
    /// Where copies of projects' assemblies are, by session.
    copies: PathBuf,
    /// The folder of the workers' sockets.
    sockets: PathBuf,
    builds: Arc<Builds>,
}

impl FsharpKernel {
    pub(super) fn new(home: &Home, dotnet: Option<PathBuf>, sockets: PathBuf) -> Self {
        Self {
            search: crate::kernels::search(home, dotnet),
            home: home.folder().to_owned(),
            copies: home.copies(),
            sockets,
            builds: Arc::default(),
        }
    }

    /// The worker as it is started now: an SDK may have come or gone since the last time.
    async fn program(&self) -> Result<WorkerProgram, Error> {
        prepare(&self.search, &|progress| tracing::info!(?progress, "F# is prepared"))
            .await
            .map_err(|error| unavailable(&error))
    }

    fn sdk(&self) -> Result<Sdk, Error> {
        choose(&self.search).map_err(|none| Error::KernelUnavailable { reason: none.to_string() })
    }

    fn copies_of(&self, session: SessionId) -> PathBuf {
        self.copies.join(session.to_string())
    }

    async fn project(&self, spec: &RunnerSpec) -> Result<Option<Project>, Error> {
        let Some(file) = &spec.project else { return Ok(None) };
        let copies = self.copies_of(spec.session);
        Ok(Some(loadable(file, &self.sdk()?, &copies, &spec.report).await))
    }

    async fn launch(&self, beginning: Beginning, spec: &RunnerSpec) -> Result<StartedRunner, Error> {
        let WorkerProgram { program, arguments, environment, .. } = self.program().await?;
        let launch = Launch { program, arguments, environment };
        let builder = spec.project.clone().map(|project| {
            let (search, builds) = (self.search.clone(), Arc::clone(&self.builds));
            Arc::new(ProjectBuilder { project, search, builds }) as Arc<dyn Builder>
        });
        worker::launch(&launch, beginning, builder, &self.sockets).await
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
        let (report, ran_scripts) = watched(spec.report.clone());
        let beginning = Beginning {
            working_directory: spec.working_directory.clone(),
            project: self.project(&spec).await?,
            profiles: profiles(&self.home, spec.project.as_deref()),
            report,
            skipped: Vec::new(),
        };
        let plain = beginning.without_profiles("it ended the worker");
        match self.launch(beginning, &spec).await {
            // A script of the user's must not cost him his session.
            Err(Error::WorkerFailed { reason }) if ran_scripts.load(Ordering::Relaxed) => {
                tracing::warn!(reason, "a worker ended in a script of its profile, and is started without");
                self.launch(plain, &spec).await
            }
            started => started,
        }
    }

    async fn kept(&self) -> Vec<SessionId> {
        let Ok(mut folders) = tokio::fs::read_dir(&self.copies).await else { return Vec::new() };
        let mut kept = Vec::new();
        while let Ok(Some(folder)) = folders.next_entry().await {
            kept.extend(folder.file_name().to_str().and_then(|name| name.parse::<SessionId>().ok()));
        }
        kept
    }

    async fn forget(&self, session: SessionId) {
        // What stays behind is found again at the next collection.
        tokio::fs::remove_dir_all(self.copies_of(session)).await.ok();
    }
}

/// Says the same, and remembers whether scripts of the profile have begun to run.
fn watched(report: Report) -> (Report, Arc<AtomicBool>) {
    let ran_scripts = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&ran_scripts);
    let watched = Report::to(move |progress| {
        if progress.phase == WarmUpPhase::Profile {
            seen.store(true, Ordering::Relaxed);
        }
        report.say(progress);
    });
    (watched, ran_scripts)
}

fn unavailable(error: &PrepareError) -> Error {
    Error::KernelUnavailable { reason: error.to_string() }
}
