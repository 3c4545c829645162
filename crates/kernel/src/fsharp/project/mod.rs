//! F# projects: what a session needs of one to have its code at hand (`resolve`), how it is built (`build`), and copies of its assemblies
//! that a build does not touch (`shadow`). The SDK's msbuild is asked where it runs (`msbuild`); where it does not, the
//! files are read here (`fallback`). Nothing is loaded here: that is the worker's.

mod build;
mod compilation;
mod condition;
mod document;
mod evaluation;
mod fallback;
mod folder;
mod framework;
mod guard;
mod legacy;
mod msbuild;
mod notes;
mod options;
mod order;
mod packages;
mod plain;
mod plan;
mod recompile;
mod remarks;
mod runtimes;
mod shadow;
mod solution;
mod stamp;
mod toolchain;

use std::collections::{BTreeMap, HashSet};
use std::mem;
use std::path::{Path, PathBuf, absolute};
use std::time::Duration;

use mainstay_model::Error;
use mainstay_runner::Environment;
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, interval};

use self::document::{invalid, not_found, path_from};
use self::fallback::Surroundings;
use self::msbuild::Refusal;
use self::notes::not_loaded;
use self::runtimes::framework_assemblies;
use self::solution::{Form, is_fsharp};
use self::toolchain::{Msbuild, Toolchain, unavailable};
use super::recipe::assemblies_in;
use super::sdk::Sdk;

pub use build::{BuildWay, Built, build};
pub use folder::{InFolder, named};
pub use plan::Plan;
pub use recompile::{Compiled, WarmCompiler};
pub use shadow::shadow;

/// Is told, for people, what is done next. It is called from the task that does the work, so it must not block.
pub type OnStep<'a> = &'a (dyn Fn(String) + Send + Sync);

/// Between two words that the same goes on.
const GOES_ON: Duration = Duration::from_secs(30);

/// Awaits `work`, telling what goes on, and rarely for how long: what is told may be kept.
async fn telling<T>(what: String, progress: OnStep<'_>, work: impl Future<Output = T>) -> T {
    let start = Instant::now();
    let mut ticks = interval(GOES_ON);
    tokio::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return done,
            _ = ticks.tick() => match start.elapsed().as_secs() {
                0 => progress(what.clone()),
                seconds => progress(format!("{what} ({seconds} s)")),
            },
        }
    }
}

/// What a session needs of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resolved {
    /// What was built of the projects themselves, each after those it refers to. One that was not built is in `notes`.
    pub assemblies: Vec<PathBuf>,
    /// The other assemblies they need, other than FSharp.Core and those of the framework, which a worker has.
    pub references: Vec<PathBuf>,
    /// Their sources, in the order of compilation.
    pub sources: Vec<PathBuf>,
    /// What is defined for their conditional code.
    pub defines: Vec<String>,
    /// What is defined for the conditional code of each of their assemblies, as far as it is written in F#.
    pub symbols: BTreeMap<PathBuf, Vec<String>>,
    /// The project files, each after those it refers to.
    pub projects: Vec<PathBuf>,
    /// Those of them that have no output: they were not built.
    pub unbuilt: Vec<PathBuf>,
    /// The target framework; of several projects, that of the last.
    pub framework: Option<String>,
    /// How all this was found.
    pub road: Road,
    /// What could not be found or was not understood, for people.
    pub notes: Vec<String>,
    /// What the compiler of a session is told, so that it compiles code as the project's is.
    pub arguments: Vec<String>,
    /// The assemblies of shared frameworks that they run on beside the worker's own, such as ASP.NET Core's.
    pub frameworks: Vec<PathBuf>,
    /// The folders of native libraries that their packages bring.
    pub natives: Vec<PathBuf>,
    /// Files that a build puts beside the assemblies, such as `appsettings.json`.
    pub contents: Vec<Content>,
    /// The folder of the assemblies and contents, once they are copied.
    pub folder: Option<PathBuf>,
    /// The shared frameworks that the projects name, each with the project.
    runtimes: Vec<(PathBuf, String)>,
}

/// A file that a build puts beside the assemblies.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Content {
    /// The file in the project.
    pub origin: PathBuf,
    /// Where it lies, from the folder of the assemblies.
    pub place: PathBuf,
}

/// How a project is read and built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Road {
    /// By the SDK's msbuild.
    Msbuild,
    /// By Mainstay itself, with the SDK's F# compiler.
    Fallback,
}

impl Resolved {
    /// Nothing yet, to be found on this road.
    pub fn empty(road: Road) -> Self {
        Self {
            assemblies: Vec::new(),
            references: Vec::new(),
            sources: Vec::new(),
            defines: Vec::new(),
            symbols: BTreeMap::new(),
            projects: Vec::new(),
            unbuilt: Vec::new(),
            framework: None,
            road,
            notes: Vec::new(),
            arguments: Vec::new(),
            frameworks: Vec::new(),
            natives: Vec::new(),
            contents: Vec::new(),
            folder: None,
            runtimes: Vec::new(),
        }
    }

    /// Without what a worker has itself, and without anything twice.
    fn tidied(mut self, toolchain: &Toolchain) -> Self {
        let name = |path: &Path| path.file_name().unwrap_or_default().to_owned();
        let mut there: HashSet<_> =
            assemblies_in(&toolchain.parts.runtime.folder).iter().map(|path| name(path)).collect();
        there.insert("FSharp.Core.dll".into());
        for (project, name) in mem::take(&mut self.runtimes) {
            match framework_assemblies(&toolchain.parts.runtime, &name) {
                Some(assemblies) => self.frameworks.extend(assemblies),
                None => self.notes.push(not_loaded(&project, &name)),
            }
        }
        // Its packs name some assemblies of the runtime again.
        self.frameworks.retain(|path| there.insert(name(path)));
        there.extend(self.assemblies.iter().map(|path| name(path)));
        self.references.retain(|path| there.insert(name(path)));
        once(&mut self.sources);
        once(&mut self.defines);
        once(&mut self.notes);
        once(&mut self.arguments);
        once(&mut self.contents);
        self
    }
}

fn once<T: Clone + Eq + std::hash::Hash>(list: &mut Vec<T>) {
    let mut seen = HashSet::new();
    list.retain(|item| seen.insert(item.clone()));
}

/// What `project`, an `.fsproj`, `.sln` or `.slnx`, needs to be loaded, for a session whose creator has this in its environment. Nothing is
/// built or restored. Dropping the future ends all that was started.
///
/// # Errors
/// [`Error::ProjectNotFound`], [`Error::ProjectInvalid`], and [`Error::KernelUnavailable`] where the SDK cannot be used.
pub async fn resolve(
    project: &Path,
    sdk: &Sdk,
    environment: &Environment,
    progress: OnStep<'_>,
) -> Result<Resolved, Error> {
    let roots = Roots::of(project)?;
    let left_out: Vec<String> =
        roots.legacy.iter().map(|project| format!("{}: {}", project.display(), legacy::REASON)).collect();
    if roots.projects.is_empty() {
        return Ok(Resolved { notes: left_out, ..Resolved::empty(Road::Msbuild) });
    }
    let toolchain = Toolchain::for_creator(sdk, environment).await?;
    let mut resolved = resolve_roots(roots, &toolchain, progress).await?;
    resolved.notes.splice(0..0, left_out);
    Ok(resolved)
}

async fn resolve_roots(roots: Roots, toolchain: &Toolchain, progress: OnStep<'_>) -> Result<Resolved, Error> {
    let (refused, is_news) = match &toolchain.msbuild {
        Msbuild::Works => match msbuild::resolve(&roots.projects, toolchain, progress).await {
            Ok(resolved) => return Ok(resolved.tidied(toolchain)),
            Err(Refusal::Machine(error)) => return Err(error),
            Err(Refusal::Projects(reason)) => {
                (format!("msbuild could not read the projects: {reason}"), true)
            }
        },
        Msbuild::Fails(reason) => (format!("the SDK's msbuild does not run here: {reason}"), false),
    };
    progress(format!("reading {} without msbuild", msbuild::counted(roots.projects.len())));
    let surroundings = Surroundings::of(toolchain);
    let found = spawn_blocking(move || fallback::resolve(&roots.projects, &surroundings)).await;
    let mut resolved = found.map_err(unavailable)??;
    // Where all was found without msbuild, that it does not run is nothing to be told of each session.
    if is_news || !resolved.notes.is_empty() {
        resolved.notes.insert(0, refused);
    } else {
        tracing::info!("{refused}");
    }
    Ok(resolved.tidied(toolchain))
}

/// The projects that a path names.
#[derive(Debug, PartialEq, Eq)]
struct Roots {
    /// The folder of the file that was named.
    folder: PathBuf,
    /// The same, where that file is a solution.
    solution_folder: Option<PathBuf>,
    projects: Vec<PathBuf>,
    /// Those that no SDK builds.
    legacy: Vec<PathBuf>,
}

impl Roots {
    fn of(path: &Path) -> Result<Self, Error> {
        let path = absolute(path).map_err(|error| invalid(path, error))?;
        let path = path_from(Path::new("/"), &path.to_string_lossy());
        if !path.is_file() {
            return Err(if path.exists() { invalid(&path, "it is no file") } else { not_found(&path) });
        }
        let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
        if let Some(form) = Form::of(&path) {
            let projects = solution::projects(&path, form)?;
            if let Some(missing) = projects.iter().find(|path| !path.is_file()) {
                return Err(not_found(missing));
            }
            return Ok(Self::new(folder.clone(), Some(folder), projects));
        }
        if !is_fsharp(&path) {
            return Err(invalid(&path, "its name ends in none of .fsproj, .sln and .slnx"));
        }
        Ok(Self::new(folder, None, vec![path]))
    }

    fn new(folder: PathBuf, solution_folder: Option<PathBuf>, projects: Vec<PathBuf>) -> Self {
        let (legacy, projects) = projects.into_iter().partition(|project| legacy::is_legacy(project));
        Self { folder, solution_folder, projects, legacy }
    }
}

impl Surroundings {
    fn of(toolchain: &Toolchain) -> Self {
        let named = toolchain.variable("NUGET_PACKAGES").map(PathBuf::from);
        let usual = || Some(PathBuf::from(toolchain.variable("HOME")?).join(".nuget/packages"));
        Self {
            runtime: toolchain.parts.runtime.version.clone(),
            package_folders: named.or_else(usual).into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_takes_long_is_told_again_with_its_time_and_rarely() {
        let told = Mutex::new(Vec::new());
        let progress = |step| told.lock().unwrap().push(step);
        let done = telling("building".to_owned(), &progress, async {
            sleep(GOES_ON * 5 / 2).await;
            5
        });
        assert_eq!(done.await, 5);
        assert_eq!(*told.lock().unwrap(), ["building", "building (30 s)", "building (60 s)"]);
    }
}
