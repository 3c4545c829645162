//! The F# kernel, joined to the engine: the worker is built on first use, then started for each session with what that begins with.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mainstay_embedded::kernel_file;
use mainstay_home::Home;
use mainstay_home::config::{FsharpConfig, Watch};
use mainstay_kernel::fsharp::APPLICATIONS_VARIABLE;
use mainstay_kernel::fsharp::{
    Code, DIAGNOSTICS_SWITCHES, Sdk, Search, Selected, WorkerProgram, build, check_options, opened_to, select,
};
use mainstay_kernel::worker::Standby;
use mainstay_kernel::{Builder, OpenedNames, Project, StartupContext, worker};
use mainstay_model::{
    Capabilities, Capability, ChosenProject, Error, Limits, ProjectChoice, SessionId, SessionKind,
};
use mainstay_os::process::Launch;
use mainstay_runner::{
    Environment, Report, RunnerFactory, RunnerSpec, StartObserver, StartedRunner, WarmUpPhase,
};
use serde_json::Value;
use tokio::sync::{Mutex, watch};

use crate::builds::Builds;
use crate::kept_projects;
use crate::projects::{Loading, ProjectBuilder, profiles, project_of};
use crate::standby::{Plan, lacking};

/// Starts the workers of F# sessions.
pub(crate) struct FsharpKernel {
    search: Search,
    /// The home folder of Mainstay.
    home: PathBuf,
    /// Where copies of projects' assemblies are, by session.
    copies: PathBuf,
    /// The folder of the workers' sockets.
    sockets: PathBuf,
    builds: Arc<Builds>,
    /// The folder of the daemon's sockets, where its warm compilers are asked.
    compilers: PathBuf,
    /// Whether a new worker has what was saved last, and not what was built last.
    builds_newest: bool,
    /// Whether debuggers can attach to workers.
    debugging: bool,
    /// Which names of projects are opened.
    opens: OpenedNames,
    /// How often code is exchanged in one worker; none where that has no limit.
    most_swaps: Option<u64>,
    /// What the compiler of each session is told.
    arguments: Vec<String>,
    /// What the workers are told of applications, as text.
    applications: String,
    /// How long it may take to find out what a project is made of.
    project_limit: Duration,
    /// How long the scripts may take that run at a start.
    profile_limit: Duration,
    /// The worker that was started ahead, where this is the factory of a shim that stands by, and how it was started.
    standby: Mutex<Option<(Plan, Standby)>>,
}

impl FsharpKernel {
    pub(crate) fn new(home: &Home, config: FsharpConfig, sockets: PathBuf, limits: &Limits) -> Self {
        let arguments = config.fsi_args.split_whitespace().map(str::to_owned).collect();
        let applications = format!(
            "{};{};{}",
            config.application_start_ms, config.application_stop_ms, config.browser_reload
        );
        Self {
            applications,
            debugging: config.debugging,
            opens: config.opens,
            most_swaps: Some(config.swaps_per_worker).filter(|most| *most > 0),
            builds_newest: config.watch == Watch::Swap,
            search: mainstay_home::search::fsharp_sdks(home, config),
            home: home.folder().to_owned(),
            copies: home.copies(),
            compilers: home.run_folder().unwrap_or_default(),
            sockets,
            builds: Arc::new(Builds::locked_in(home.builds())),
            arguments,
            project_limit: Duration::from_millis(limits.project_ms),
            // Time for two starts is left.
            profile_limit: Duration::from_millis(limits.profile_ms.min(limits.worker_start_ms / 3)),
            standby: Mutex::default(),
        }
    }

    /// The SDK of a session as it is started now: one may have come or gone since the last time.
    fn selected(&self, spec: &RunnerSpec) -> Result<Selected, Error> {
        let code = spec.project.as_deref().map_or(Code::In(&spec.working_directory), Code::Of);
        select(&self.search.of_session(&spec.environment), code).map_err(unavailable)
    }

    async fn program(&self, sdk: &Sdk) -> Result<WorkerProgram, Error> {
        #[cfg(feature = "failpoints")]
        if let Some(program) = crate::scripted::worker(sdk) {
            return Ok(program);
        }
        program(&self.search.home, sdk).await
    }

    fn copies_of(&self, session: SessionId) -> PathBuf {
        self.copies.join(session.to_string())
    }

    async fn project(&self, spec: &RunnerSpec, report: &Report) -> Result<Option<Project>, Error> {
        let Some(file) = &spec.project else { return Ok(None) };
        let copies = self.copies_of(spec.session);
        let sdk = self.selected(spec)?.sdk;
        let loading = Loading {
            file,
            sdk: &sdk,
            environment: &spec.environment,
            report,
            builds: &self.builds,
            compilers: &self.compilers,
            builds_newest: self.builds_newest,
        };
        let project = loading.loadable(&copies, self.project_limit).await;
        Ok(Some(Project { opens: self.opens, most_swaps: self.most_swaps, ..project }))
    }

    /// How the worker of a session is started.
    async fn launch_of(&self, sdk: &Sdk, spec: &RunnerSpec) -> Result<Launch, Error> {
        let WorkerProgram { program, arguments, environment, .. } = self.program(sdk).await?;
        let creators = spec.environment.variables().map(|(name, value)| (name.into(), value.into()));
        // Whoever creates a session may say otherwise.
        let is_said = DIAGNOSTICS_SWITCHES.iter().any(|switch| spec.environment.variable(switch).is_some());
        let own = opened_to(environment, is_said, self.debugging);
        let applications = (APPLICATIONS_VARIABLE.into(), self.applications.clone().into());
        let environment = creators.chain(own).chain([applications]).collect();
        Ok(Launch { program, arguments, environment })
    }

    /// Starts a worker, or hands over the one that stands by where that fits. `script` is the script of the profile that runs.
    async fn launch(
        &self,
        beginning: StartupContext,
        sdk: &Sdk,
        spec: &RunnerSpec,
        script: &watch::Receiver<Option<usize>>,
    ) -> Result<StartedRunner, Error> {
        let launch = self.launch_of(sdk, spec).await?;
        let builder = spec.project.clone().map(|project| {
            let search = self.search.of_session(&spec.environment);
            let builds = Arc::clone(&self.builds);
            let (environment, compilers) = (spec.environment.clone(), self.compilers.clone());
            Arc::new(ProjectBuilder { project, search, environment, builds, compilers }) as Arc<dyn Builder>
        });
        let plan = Plan::of(&launch, &spec.environment, self.arguments.clone());
        let ahead = self.standby.lock().await.take();
        if let Some((_, standby)) = ahead.filter(|(ahead, _)| plan.as_ref() == Some(ahead)) {
            match standby.begin(beginning.clone(), builder.clone(), &lacking(&spec.environment)).await {
                Err(error @ Error::WorkerFailed { .. }) if script.borrow().is_none() => {
                    tracing::warn!(%error, "the worker that stood by could not be taken");
                }
                taken => return taken,
            }
        }
        worker::launch(&launch, beginning, builder, &self.sockets).await
    }
}

#[async_trait]
impl RunnerFactory for FsharpKernel {
    fn serves(&self, kind: &SessionKind) -> bool {
        *kind == SessionKind::fsharp()
    }

    fn capabilities(&self, _kind: &SessionKind) -> Capabilities {
        Capabilities::KERNEL.with(Capability::Tests).with(Capability::Review).with(Capability::Projects)
    }

    async fn find(&self, _kind: &SessionKind, folder: &Path, environment: &Environment) -> Result<(), Error> {
        let (search, folder) = (self.search.of_session(environment), folder.to_owned());
        let looked = tokio::task::spawn_blocking(move || select(&search, Code::In(&folder)).map(drop));
        looked.await.map_err(unavailable)?.map_err(unavailable)
    }

    async fn project(&self, folder: &Path, wanted: &ProjectChoice) -> Result<ChosenProject, Error> {
        let (folder, wanted) = (folder.to_owned(), wanted.clone());
        let found = tokio::task::spawn_blocking(move || project_of(&folder, wanted)).await;
        found.map_err(|error| Error::KernelUnavailable { reason: error.to_string() })?
    }

    fn arguments(&self, asked: &[String]) -> Result<Vec<String>, Error> {
        let all: Vec<String> = self.arguments.iter().chain(asked).cloned().collect();
        check_options(&all)?;
        Ok(all)
    }

    async fn prepare(&self, spec: &RunnerSpec) -> Result<(), Error> {
        self.program(&self.selected(spec)?.sdk).await.map(drop)
    }

    async fn gather(&self, spec: &RunnerSpec, observer: &StartObserver) -> Result<Option<Value>, Error> {
        let project = self.project(spec, &observer.report).await?;
        if let Some(project) = project.clone() {
            kept_projects::keep(project).await;
        }
        project.map(|project| serde_json::to_value(project).map_err(unavailable)).transpose()
    }

    async fn standby_plan(&self, spec: &RunnerSpec) -> Option<Value> {
        let launch = self.launch_of(&self.selected(spec).ok()?.sdk, spec).await.ok()?;
        let plan = Plan::of(&launch, &spec.environment, self.arguments.clone())?;
        serde_json::to_value(plan).ok()
    }

    async fn stand_by(&self, plan: Value) -> Result<u32, Error> {
        let plan: Plan = serde_json::from_value(plan).map_err(unavailable)?;
        let standby = worker::stand_by(&plan.launch(), plan.compiler.clone(), &self.sockets).await?;
        let pid = standby.pid();
        *self.standby.lock().await = Some((plan, standby));
        Ok(pid)
    }

    async fn standby_ended(&self) {
        if let Some((_, standby)) = self.standby.lock().await.as_mut() {
            standby.ended().await;
        }
    }

    async fn start(&self, spec: RunnerSpec, observer: StartObserver) -> Result<StartedRunner, Error> {
        let (report, script) = watched(observer.report);
        let project =
            spec.gathered.clone().map(serde_json::from_value::<Project>).transpose().map_err(unavailable)?;
        let Selected { sdk, note } = self.selected(&spec)?;
        let beginning = StartupContext {
            working_directory: spec.working_directory.clone(),
            notes: note.into_iter().collect(),
            project,
            arguments: spec.arguments.clone(),
            profiles: profiles(&self.home, spec.project.as_deref()),
            report,
            skipped: Vec::new(),
        };
        let what_it_did = tokio::select! {
            launched = self.launch(beginning.clone(), &sdk, &spec, &script) => match launched {
                Err(Error::WorkerFailed { .. }) if script.borrow().is_some() => "it ended the worker".to_owned(),
                launched => return launched,
            },
            () = runs_for(script.clone(), self.profile_limit) => {
                format!("it took longer than {} ms (`profile-ms`)", self.profile_limit.as_millis())
            }
        };
        // A script of the user's must not cost him his session.
        let culprit = script.borrow().unwrap_or_default();
        tracing::warn!(culprit, what_it_did, "a worker is started without the scripts of its profile");
        self.launch(beginning.without_profiles(culprit, &what_it_did), &sdk, &spec, &script).await
    }

    async fn start_mirror(&self, spec: RunnerSpec, observer: StartObserver) -> Result<StartedRunner, Error> {
        let Some(project) = kept_projects::kept(self.copies_of(spec.session)).await else {
            let reason = "the session has loaded no project; build it, then `session rebuild`".to_owned();
            return Err(Error::MirrorUnavailable { reason });
        };
        let Selected { sdk, .. } = self.selected(&spec)?;
        let beginning = StartupContext {
            working_directory: spec.working_directory.clone(),
            project: Some(project),
            arguments: spec.arguments.clone(),
            report: observer.report,
            ..StartupContext::default()
        };
        let launch = self.launch_of(&sdk, &spec).await?;
        worker::launch(&launch, beginning, None, &self.sockets).await
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

/// The worker of an SDK, which is built where it is not there yet.
pub(crate) async fn program(home: &Path, sdk: &Sdk) -> Result<WorkerProgram, Error> {
    let progress = |progress| tracing::info!(?progress, "F# is prepared");
    build(home, sdk, kernel_file, &progress).await.map_err(unavailable)
}

/// Says the same, and tells which of the profile's scripts runs; none before the first.
fn watched(report: Report) -> (Report, watch::Receiver<Option<usize>>) {
    let (running, script) = watch::channel(None);
    let watched = Report::to(move |progress| {
        if progress.phase == WarmUpPhase::Profile {
            running.send_replace(usize::try_from(progress.done).ok());
        }
        report.say(progress);
    });
    (watched, script)
}

/// Ends once scripts have run for so long.
async fn runs_for(mut script: watch::Receiver<Option<usize>>, limit: Duration) {
    let has_begun = script.wait_for(Option::is_some).await.is_ok();
    if has_begun {
        tokio::time::sleep(limit).await;
    } else {
        // The start has ended without.
        std::future::pending().await
    }
}

fn unavailable(reason: impl ToString) -> Error {
    Error::KernelUnavailable { reason: reason.to_string() }
}
