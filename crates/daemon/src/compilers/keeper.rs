//! What is kept warm: how projects are built again, and a compiler for each SDK that they are built with.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mainstay_home::Home;
use mainstay_home::config::FsharpConfig;
use mainstay_kernel::fsharp::project::{Built, OnStep, Plan, Resolved};
use mainstay_kernel::fsharp::{Code, Sdk, Search, select};
use mainstay_kernel::worker::{CompilerProcess, launch_compiler};
use mainstay_os::process::Launch;
use mainstay_os::system::available_bytes;
use mainstay_shim::Activity;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::{BuiltProject, WarmCompilerTerms};
use crate::fsharp::program;

/// How often it is looked what the compilers take, and whether they have anything to do.
const LOOK: Duration = Duration::from_secs(10);
/// How often a new compiler does its work for nothing: after that it is about as fast as it gets.
const ROUNDS: usize = 3;
/// How long that may take before no other round is begun.
const WARM_UP: Duration = Duration::from_secs(20);
/// Of how many projects it is known how they are built again.
const PLANS: usize = 32;
/// So many compilers may end by themselves before none is started any more, until a project was built.
const DEATHS: u32 = 3;

/// Keeps compilers warm, and knows how projects are built again.
pub(super) struct Keeper {
    search: Search,
    /// The folder of the workers' sockets.
    sockets: PathBuf,
    terms: WarmCompilerTerms,
    activity: Activity,
    state: Mutex<State>,
    /// That something is wanted, or no more.
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// The projects that were built since it was found out how they are built again, the newest last.
    wanted: Vec<BuiltProject>,
    /// How projects are built again, the newest last; or why they are not.
    plans: Vec<(BuiltProject, Known)>,
    compilers: HashMap<PathBuf, Kept>,
    deaths: u32,
}

/// What is known of a project.
#[derive(Clone)]
enum Known {
    Planned(Arc<Plan>, Sdk),
    /// Why only a build can build it.
    Unplanned(String),
}

/// A compiler that is kept.
struct Kept {
    process: Arc<CompilerProcess>,
    used: Instant,
    /// Whether it has done its work for nothing.
    is_warm: bool,
}

impl Keeper {
    pub(super) fn new(
        home: &Home,
        config: FsharpConfig,
        sockets: &Path,
        terms: WarmCompilerTerms,
        activity: Activity,
    ) -> Self {
        Self {
            search: mainstay_home::search::fsharp_sdks(home, config),
            sockets: sockets.to_owned(),
            terms,
            activity,
            state: Mutex::default(),
            changed: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Builds a project again.
    ///
    /// # Errors
    /// Why only a build can do that, for people.
    pub(super) async fn recompile(&self, project: &BuiltProject, say: OnStep<'_>) -> Result<Built, String> {
        let (plan, process) = {
            let mut state = self.state();
            // A build follows where it is not ready, and is not to share the machine with what is done ahead.
            let (plan, sdk) = match state.plan(project) {
                Some(Known::Planned(plan, sdk)) => (plan, sdk),
                Some(Known::Unplanned(reason)) => return Err(reason),
                None => {
                    drop(state);
                    self.changed.notify_waiters();
                    return Err("it is not known yet how it is built again".to_owned());
                }
            };
            let kept =
                state.compilers.get_mut(&sdk.root).filter(|kept| kept.is_warm && !kept.process.has_ended());
            let kept = kept.ok_or("no compiler is warm")?;
            if kept.process.is_busy() {
                return Err("the warm compiler is busy".to_owned());
            }
            kept.used = Instant::now();
            (plan, Arc::clone(&kept.process))
        };
        plan.recompile(&*process, say).await
    }

    /// What a project consists of, where that is known.
    pub(super) async fn resolved(&self, project: &BuiltProject) -> Option<Resolved> {
        let Some(Known::Planned(plan, _)) = self.state().plan(project) else { return None };
        tokio::task::spawn_blocking(move || plan.resolved()).await.ok()?
    }

    /// A project is built. It will be seen to that it can be built again.
    pub(super) fn want(&self, project: BuiltProject) {
        let mut state = self.state();
        state.deaths = 0;
        state.wanted.retain(|wanted| wanted.path != project.path);
        state.wanted.push(project);
        drop(state);
        self.changed.notify_waiters();
    }

    /// The same where that is not known already, with a compiler that is warm: one that is warmed once more builds nothing meanwhile.
    pub(super) fn want_unless_ready(&self, project: BuiltProject) {
        let is_ready = {
            let state = self.state();
            match state.plan(&project) {
                Some(Known::Planned(_, sdk)) => state
                    .compilers
                    .get(&sdk.root)
                    .is_some_and(|kept| kept.is_warm && !kept.process.has_ended()),
                Some(Known::Unplanned(_)) | None => false,
            }
        };
        if !is_ready {
            self.want(project);
        }
    }

    /// Makes what is wanted, once nobody waits for anything, and lets go of what is used no more.
    pub(super) async fn run(&self) {
        let mut changed = pin!(self.changed.notified());
        loop {
            let wanted = self.next_wanted();
            let mut prepared = pin!(self.prepare(wanted.clone()));
            loop {
                tokio::select! {
                    () = &mut changed => {
                        changed.set(self.changed.notified());
                        break;
                    }
                    () = &mut prepared, if wanted.is_some() => break,
                    () = sleep(LOOK) => {
                        self.let_go();
                        if wanted.is_none() && self.next_wanted().is_some() {
                            break;
                        }
                    }
                }
            }
        }
    }

    fn next_wanted(&self) -> Option<BuiltProject> {
        let state = self.state();
        state.wanted.last().filter(|_| state.deaths < DEATHS).cloned()
    }

    /// Finds out how a project is built again, and warms a compiler. Dropping the future gives that up.
    async fn prepare(&self, wanted: Option<BuiltProject>) {
        let Some(project) = wanted else { return };
        self.activity.rests_for(self.terms.rest).await;
        while has_less_than(self.terms.memory_bytes) {
            sleep(LOOK).await;
            self.activity.rests_for(self.terms.rest).await;
        }
        let mut warmed = None;
        let known = match self.plan(&project).await {
            Ok((plan, sdk)) => match self.warmed(&plan, &sdk).await {
                Ok(process) => {
                    warmed = process.pid();
                    Known::Planned(Arc::new(plan), sdk)
                }
                Err(reason) => {
                    self.state().deaths += 1;
                    Known::Unplanned(reason)
                }
            },
            Err(reason) => Known::Unplanned(reason),
        };
        if let Known::Unplanned(reason) = &known {
            tracing::info!(project = %project.path.display(), reason, "a project is always built by msbuild");
        }
        let mut state = self.state();
        state.wanted.retain(|wanted| !wanted.is_same(&project));
        state.plans.retain(|(planned, _)| planned.path != project.path);
        let surplus = (state.plans.len() + 1).saturating_sub(PLANS);
        state.plans.drain(..surplus);
        state.plans.push((project, known));
        if let Some(process) = warmed {
            tracing::info!("a compiler is warm process={process}");
        }
    }

    async fn plan(&self, project: &BuiltProject) -> Result<(Plan, Sdk), String> {
        let (search, path) = (self.search.of_session(&project.environment), project.path.clone());
        let selected = tokio::task::spawn_blocking(move || select(&search, Code::Of(&path)));
        let sdk = selected.await.map_err(|error| error.to_string())?.map_err(|none| none.to_string())?.sdk;
        let plan = Plan::of(&project.path, &sdk, &project.environment).await?;
        Ok((plan, sdk))
    }

    /// Sees to it that the compiler of this SDK is there and has done this work before.
    async fn warmed(&self, plan: &Plan, sdk: &Sdk) -> Result<Arc<CompilerProcess>, String> {
        let (process, rounds) = match self.compiler(sdk) {
            Some(process) => (process, 1),
            None => (self.start(sdk).await?, ROUNDS),
        };
        let began = Instant::now();
        for _ in 0..rounds {
            plan.warm_up(&*process).await?;
            if began.elapsed() > WARM_UP {
                break;
            }
        }
        if let Some(kept) = self.state().compilers.get_mut(&sdk.root) {
            kept.is_warm = true;
            kept.used = Instant::now();
        }
        Ok(process)
    }

    fn compiler(&self, sdk: &Sdk) -> Option<Arc<CompilerProcess>> {
        let state = self.state();
        let kept = state.compilers.get(&sdk.root).filter(|kept| kept.is_warm && !kept.process.has_ended())?;
        Some(Arc::clone(&kept.process))
    }

    async fn start(&self, sdk: &Sdk) -> Result<Arc<CompilerProcess>, String> {
        let program = program(&self.search.home, sdk).await.map_err(|error| error.to_string())?;
        let launch = Launch {
            program: program.program,
            arguments: program.arguments,
            environment: program.environment,
        };
        let process = launch_compiler(&launch, &self.sockets).await.map_err(|error| error.to_string())?;
        let process = Arc::new(process);
        let mut state = self.state();
        while state.compilers.len() >= self.terms.most {
            let oldest =
                state.compilers.iter().min_by_key(|(_, kept)| kept.used).map(|(root, _)| root.clone());
            let Some(oldest) = oldest else { break };
            state.compilers.remove(&oldest);
        }
        let kept = Kept { process: Arc::clone(&process), used: Instant::now(), is_warm: false };
        state.compilers.insert(sdk.root.clone(), kept);
        Ok(process)
    }

    /// Ends compilers that are used no more or take too much. One that takes too much or has ended is wanted anew.
    fn let_go(&self) {
        let memory_is_short = has_less_than(self.terms.memory_bytes / 2);
        let mut state = self.state();
        let mut lost = Vec::new();
        state.compilers.retain(|root, kept| {
            let takes = kept.process.usage().map_or(0, |usage| usage.resident_bytes);
            let is_large = self.terms.bytes.is_some_and(|most| takes > most);
            let has_ended = kept.process.has_ended();
            if (is_large || has_ended) && kept.is_warm {
                lost.push((root.clone(), has_ended));
            }
            let is_left = kept.used.elapsed() > self.terms.idle && !kept.process.is_busy();
            !(has_ended || is_large || is_left || memory_is_short)
        });
        for (root, has_ended) in lost {
            tracing::info!(has_ended, "a warm compiler is gone");
            state.deaths += u32::from(has_ended);
            let is_of = |(_, known): &&(BuiltProject, Known)| matches!(known, Known::Planned(_, sdk) if sdk.root == root);
            let newest = state.plans.iter().rev().find(is_of).map(|(project, _)| project.clone());
            let is_new = |project: &BuiltProject| !state.wanted.contains(project);
            if let Some(project) = newest.filter(is_new) {
                state.wanted.push(project);
            }
        }
    }
}

impl State {
    fn plan(&self, project: &BuiltProject) -> Option<Known> {
        self.plans.iter().find(|(planned, _)| planned.is_same(project)).map(|(_, known)| known.clone())
    }
}

/// Whether less memory is available. Where the system does not tell, there is enough.
fn has_less_than(bytes: u64) -> bool {
    available_bytes().is_some_and(|available| available < bytes)
}
