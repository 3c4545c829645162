//! What is kept warm: how projects are built again, and a compiler for each SDK that they are built with.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mainstay_home::Home;
use mainstay_home::compilers::{self, CompilerRecord};
use mainstay_home::config::FsharpConfig;
use mainstay_kernel::fsharp::project::{Built, OnStep, Plan, Resolved};
use mainstay_kernel::fsharp::{Code, Sdk, Search, select};
use mainstay_kernel::worker::{CompilerProcess, launch_compiler};
use mainstay_os::process::Launch;
use mainstay_os::system::{available_bytes, started_at};
use mainstay_shim::Activity;
use rustix::process::Pid;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::{BuiltProject, WarmCompilerTerms};
use crate::fsharp::program;

/// How often it is looked what the compilers take, and whether they have anything to do.
const LOOK: Duration = Duration::from_secs(10);
/// How often a new compiler does its work for nothing: after that it is about as fast as it gets.
const ROUNDS: usize = 5;
/// How often it has done so when it is faster than a build, and used.
const FIRST_ROUNDS: usize = 2;
/// How long that may take before no other round is begun.
const WARM_UP: Duration = Duration::from_secs(40);
/// Has the runtime make fast code of what is used often while other code is still new: half the rounds do then.
const EAGER: (&str, &str) = ("DOTNET_TC_CallCountingDelayMs", "0");
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
    /// Whether a compiler does its work for nothing.
    is_warming: AtomicBool,
}

#[derive(Default)]
struct State {
    /// The projects that were built since it was found out how they are built again, the newest last, each with the number of its build.
    wanted: Vec<(BuiltProject, u64)>,
    /// How often something was wanted.
    wishes: u64,
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

/// That a compiler does its work for nothing, until it is dropped.
struct Warming<'a>(&'a AtomicBool);

impl<'a> Warming<'a> {
    fn begins(is_warming: &'a AtomicBool) -> Self {
        is_warming.store(true, Ordering::Relaxed);
        Self(is_warming)
    }
}

impl Drop for Warming<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
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
            is_warming: AtomicBool::new(false),
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
            // Where it makes something else just now, that is done before a build would be.
            let kept = kept.ok_or("no compiler is warm")?;
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
        state.want(project);
        drop(state);
        self.changed.notify_waiters();
    }

    /// The same where that is neither wanted nor known already, with a compiler that is warm.
    pub(super) fn want_unless_ready(&self, project: BuiltProject) {
        let is_ready = {
            let state = self.state();
            let is_wanted = state.wanted.iter().any(|(wanted, _)| wanted.is_same(&project));
            is_wanted
                || match state.plan(&project) {
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
                        // What is warm by then is so for what was built meanwhile, too.
                        if !self.is_warming.load(Ordering::Relaxed) {
                            break;
                        }
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

    fn next_wanted(&self) -> Option<(BuiltProject, u64)> {
        let state = self.state();
        state.wanted.last().filter(|_| state.deaths < DEATHS).cloned()
    }

    /// Finds out how a project is built again, and warms a compiler. Dropping the future gives that up.
    async fn prepare(&self, wanted: Option<(BuiltProject, u64)>) {
        let Some((project, wish)) = wanted else { return };
        self.activity.rests_for(self.terms.rest).await;
        while has_less_than(self.terms.memory_bytes) {
            sleep(LOOK).await;
            self.activity.rests_for(self.terms.rest).await;
        }
        let planned = self.plan(&project).await;
        let is_other = !self.state().knows(&project);
        // A compiler that is warm by the time of the next build is used, whether or not it does more for nothing.
        match &planned {
            Ok((plan, sdk)) => self.learn(&project, Known::Planned(Arc::new(plan.clone()), sdk.clone())),
            Err(reason) => self.learn(&project, Known::Unplanned(reason.clone())),
        }
        if let Ok((plan, sdk)) = planned
            && let Err(reason) = self.warm(&plan, &sdk, is_other).await
        {
            self.state().deaths += 1;
            self.learn(&project, Known::Unplanned(reason));
        }
        // One that was built again meanwhile is wanted again.
        self.state().wanted.retain(|(_, number)| *number != wish);
    }

    /// Keeps what is known of a project.
    fn learn(&self, project: &BuiltProject, known: Known) {
        if let Known::Unplanned(reason) = &known {
            tracing::info!(project = %project.path.display(), reason, "a project is always built by msbuild");
        }
        let mut state = self.state();
        state.plans.retain(|(planned, _)| planned.path != project.path);
        let surplus = (state.plans.len() + 1).saturating_sub(PLANS);
        state.plans.drain(..surplus);
        state.plans.push((project.clone(), known));
    }

    async fn plan(&self, project: &BuiltProject) -> Result<(Plan, Sdk), String> {
        let (search, path) = (self.search.of_session(&project.environment), project.path.clone());
        let selected = tokio::task::spawn_blocking(move || select(&search, Code::Of(&path)));
        let sdk = selected.await.map_err(|error| error.to_string())?.map_err(|none| none.to_string())?.sdk;
        let plan = Plan::of(&project.path, &sdk, &project.environment).await?;
        Ok((plan, sdk))
    }

    /// Sees to it that the compiler of this SDK is there and has done this work before; one that is warm already, where the work is another.
    async fn warm(&self, plan: &Plan, sdk: &Sdk, is_other: bool) -> Result<(), String> {
        let (process, rounds) = match self.compiler(sdk) {
            Some(process) => (process, usize::from(is_other)),
            None => (self.start(sdk).await?, ROUNDS),
        };
        let _warming = Warming::begins(&self.is_warming);
        let mut taken = Duration::ZERO;
        for round in 1..=rounds {
            let began = Instant::now();
            plan.warm_up(&*process).await?;
            taken += began.elapsed();
            if round >= FIRST_ROUNDS {
                self.becomes_warm(sdk);
            }
            if taken > WARM_UP {
                break;
            }
            // What a user builds is not to share the machine with it.
            self.activity.rests_for(self.terms.rest).await;
        }
        self.becomes_warm(sdk);
        Ok(())
    }

    /// The compiler of this SDK is used from now on.
    fn becomes_warm(&self, sdk: &Sdk) {
        let mut state = self.state();
        let Some(kept) = state.compilers.get_mut(&sdk.root) else { return };
        if !kept.is_warm {
            tracing::info!("a compiler is warm process={}", kept.process.pid().unwrap_or_default());
        }
        kept.is_warm = true;
        kept.used = Instant::now();
        self.tell(&state);
    }

    /// Tells those who look at the home which compilers there are.
    fn tell(&self, state: &State) {
        let record = |kept: &Kept| {
            let pid = kept.process.pid()?;
            let started = i32::try_from(pid).ok().and_then(Pid::from_raw).and_then(started_at);
            Some(CompilerRecord { pid, started, is_warm: kept.is_warm })
        };
        let records: Vec<_> = state.compilers.values().filter_map(record).collect();
        if let Err(error) = compilers::tell(&self.sockets, &records) {
            tracing::debug!(%error, "the status will not tell of the warm compilers");
        }
    }

    fn compiler(&self, sdk: &Sdk) -> Option<Arc<CompilerProcess>> {
        let state = self.state();
        let kept = state.compilers.get(&sdk.root).filter(|kept| kept.is_warm && !kept.process.has_ended())?;
        Some(Arc::clone(&kept.process))
    }

    async fn start(&self, sdk: &Sdk) -> Result<Arc<CompilerProcess>, String> {
        let program = program(&self.search.home, sdk).await.map_err(|error| error.to_string())?;
        let eager = (EAGER.0.into(), EAGER.1.into());
        let launch = Launch {
            program: program.program,
            arguments: program.arguments,
            environment: program.environment.into_iter().chain([eager]).collect(),
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
        self.tell(&state);
        Ok(process)
    }

    /// Ends compilers that are used no more or take too much. One that takes too much or has ended is wanted anew.
    fn let_go(&self) {
        let memory_is_short = has_less_than(self.terms.memory_bytes / 2);
        let mut state = self.state();
        let (before, mut lost) = (state.compilers.len(), Vec::new());
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
        if state.compilers.len() < before {
            self.tell(&state);
        }
        for (root, has_ended) in lost {
            tracing::info!(has_ended, "a warm compiler is gone");
            state.deaths += u32::from(has_ended);
            let is_of = |(_, known): &&(BuiltProject, Known)| matches!(known, Known::Planned(_, sdk) if sdk.root == root);
            let newest = state.plans.iter().rev().find(is_of).map(|(project, _)| project.clone());
            let is_new = |project: &BuiltProject| !state.wanted.iter().any(|(wanted, _)| wanted == project);
            if let Some(project) = newest.filter(is_new) {
                state.want(project);
            }
        }
    }
}

impl State {
    fn want(&mut self, project: BuiltProject) {
        self.wishes += 1;
        self.wanted.retain(|(wanted, _)| wanted.path != project.path);
        self.wanted.push((project, self.wishes));
    }

    /// Whether it is known how this very project is built again.
    fn knows(&self, project: &BuiltProject) -> bool {
        matches!(self.plan(project), Some(Known::Planned(..)))
    }

    fn plan(&self, project: &BuiltProject) -> Option<Known> {
        self.plans.iter().find(|(planned, _)| planned.is_same(project)).map(|(_, known)| known.clone())
    }
}

/// Whether less memory is available. Where the system does not tell, there is enough.
fn has_less_than(bytes: u64) -> bool {
    available_bytes().is_some_and(|available| available < bytes)
}
