//! What a session begins with in a new worker: its folder, the assemblies of its project, and the scripts that run before its own code.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use mainstay_model::{
    LoadedAssembly, LoadedProject, ProfileRun, Reference, References, RunnerInfo, Startup, Unopened,
};
use mainstay_runner::Report;
use serde::{Deserialize, Serialize};

use crate::protocol::WorkerEnvironment;

/// All that a session's first worker starts with.
#[derive(Clone, Debug, Default)]
pub struct StartupContext {
    /// The folder its code runs in.
    pub working_directory: PathBuf,
    /// What people should know of the tools it runs on.
    pub notes: Vec<String>,
    /// Its project, where it has one.
    pub project: Option<Project>,
    /// What its compiler is told besides what the project says.
    pub arguments: Vec<String>,
    /// The scripts, in order.
    pub profiles: Vec<PathBuf>,
    /// Where to say how far the start is.
    pub report: Report,
    /// Scripts that are not run, and why.
    pub skipped: Vec<ProfileRun>,
}

/// A project, as far as it is known before anything of it is loaded.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Project {
    /// What is known of it.
    pub known: LoadedProject,
    /// Its own assemblies, each after those that it needs.
    pub own: Vec<ShadowCopy>,
    /// The others that they need.
    pub others: Vec<ShadowCopy>,
    /// What the compiler of the session is told.
    pub arguments: Vec<String>,
    /// What is defined for the conditional code of its own assemblies, by the path of each where it was built. Of one that is not in it, that
    /// is not known.
    #[serde(default)]
    pub symbols: BTreeMap<PathBuf, Vec<String>>,
    /// The assemblies of shared frameworks beside the worker's own. They are loaded where they are.
    pub frameworks: Vec<PathBuf>,
    /// The folders in which native libraries are looked for.
    pub natives: Vec<PathBuf>,
    /// The folder of the copies, in which the project's code looks for its own files.
    pub folder: Option<PathBuf>,
    /// Which of its names are opened.
    pub opens: OpenedNames,
    /// How often its code may be exchanged in one worker; none where that has no limit.
    #[serde(default)]
    pub most_swaps: Option<u64>,
}

/// Which names of a project are opened, so that code can use them without qualification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OpenedNames {
    /// The namespaces and modules of the project and of all projects that it refers to.
    All,
    /// What a file of the project sees without opening anything: the project's own namespaces and their parents.
    #[default]
    Project,
    /// No names: code has to qualify each.
    None,
}

/// An assembly of which a copy is loaded, so that a build may replace it meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShadowCopy {
    /// The folder that was copied.
    pub origin: PathBuf,
    /// The copy of the folder.
    pub copy: PathBuf,
}

/// What a worker is told of a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HelloProject {
    assemblies: Vec<String>,
    references: Vec<String>,
    frameworks: Vec<String>,
    natives: Vec<String>,
    /// What its own assemblies are built from, in the order of the builds.
    sources: Vec<String>,
    /// What is defined for the conditional code of its own assemblies, as far as that is known.
    #[serde(default)]
    symbols: Vec<AssemblySymbols>,
    folder: Option<String>,
    /// The folder of the project's file, in which its application runs.
    directory: Option<String>,
    /// The assemblies of which names are opened.
    opened: Vec<String>,
    /// Whether their modules are opened too, beside those that open themselves.
    opens_modules: bool,
    /// How often its code may be exchanged; none where that has no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    most_swaps: Option<u64>,
}

/// What is defined for the conditional code of an assembly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct AssemblySymbols {
    /// The path of the copy that is loaded.
    assembly: String,
    names: Vec<String>,
}

/// What a worker says of what it brought in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkerStartup {
    #[serde(default)]
    failed: Vec<NotLoaded>,
    #[serde(default)]
    opened: Vec<String>,
    #[serde(default)]
    unopened: Vec<Unopened>,
    #[serde(default)]
    profiles: Vec<ProfileRun>,
    /// The addresses on which code from before a reset still listens.
    #[serde(default)]
    listens: Vec<String>,
}

/// An assembly that could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct NotLoaded {
    path: String,
    error: String,
}

/// What a worker says of itself when it is ready.
pub(crate) struct ReadyMessage {
    pub(crate) kernel: String,
    pub(crate) runtime: String,
    pub(crate) pid: u32,
    pub(crate) environment: Option<WorkerEnvironment>,
    pub(crate) startup: Option<WorkerStartup>,
}

impl StartupContext {
    /// In a folder, with nothing else.
    pub fn in_folder(folder: &Path) -> Self {
        Self { working_directory: folder.to_owned(), ..Self::default() }
    }

    /// The same without its scripts, which are said not to have run to their end, and why: one of them is the reason.
    #[must_use]
    pub fn without_profiles(&self, culprit: usize, reason: &str) -> Self {
        let name = self.profiles.get(culprit).and_then(|path| path.file_name()).unwrap_or_default();
        let skip = |(index, path): (usize, &PathBuf)| ProfileRun {
            path: text(path),
            diagnostics: Vec::new(),
            error: Some(match index == culprit {
                true => reason.to_owned(),
                false => format!("it was left out with {}", name.display()),
            }),
            output: String::new(),
            duration_ms: 0,
        };
        let all = self.profiles.iter().enumerate().map(skip);
        let skipped = self.skipped.iter().cloned().chain(all).collect();
        Self { profiles: Vec::new(), skipped, ..self.clone() }
    }

    /// What the worker is told of the project.
    pub(crate) fn hello_project(&self) -> Option<HelloProject> {
        let Project { known, own, others, symbols, frameworks, natives, folder, opens, most_swaps, .. } =
            self.project.as_ref()?;
        let copies = |all: &[ShadowCopy]| all.iter().map(|one| text(&one.copy)).collect();
        let texts = |all: &[PathBuf]| all.iter().map(|path| text(path)).collect();
        let symbols_of = |one: &ShadowCopy| {
            let names = symbols.get(&one.origin)?.clone();
            Some(AssemblySymbols { assembly: text(&one.copy), names })
        };
        Some(HelloProject {
            assemblies: copies(own),
            references: copies(others),
            frameworks: texts(frameworks),
            natives: texts(natives),
            sources: known.sources.clone(),
            symbols: own.iter().filter_map(symbols_of).collect(),
            folder: folder.as_deref().map(text),
            directory: Path::new(&known.path).parent().map(text),
            opened: copies(match opens {
                OpenedNames::All => own,
                // All projects of a solution are meant; of a single project the last is itself, behind those it refers to.
                OpenedNames::Project if known.path.ends_with(".fsproj") => {
                    &own[own.len().saturating_sub(1)..]
                }
                OpenedNames::Project => own,
                OpenedNames::None => &[],
            }),
            opens_modules: *opens == OpenedNames::All,
            most_swaps: *most_swaps,
        })
    }

    /// What the compiler of the session is told.
    pub(crate) fn hello_arguments(&self) -> Vec<String> {
        let of_project = self.project.iter().flat_map(|project| &project.arguments);
        of_project.chain(&self.arguments).cloned().collect()
    }

    /// What the worker is told of the scripts.
    pub(crate) fn hello_profiles(&self) -> Vec<String> {
        self.profiles.iter().map(|path| text(path)).collect()
    }

    /// A worker that is ready, as the engine knows it.
    pub(crate) fn info(&self, said: ReadyMessage) -> RunnerInfo {
        let ReadyMessage { kernel, runtime, pid, environment, startup } = said;
        let references = environment.map(|environment| self.at_origins(environment.references()));
        let startup = self.startup(startup.unwrap_or_default());
        RunnerInfo { kernel, runtime, language: None, pid: Some(pid), references, startup }
    }

    /// What code rests on are the assemblies themselves; what becomes of their copies says nothing.
    pub(crate) fn at_origins(&self, references: References) -> References {
        let origins = self.origins();
        let at_origin = |(name, reference): (String, Reference)| {
            let path = reference.path.map(|path| origins.get(&path).cloned().unwrap_or(path));
            (name, Reference { path, ..reference })
        };
        references.into_iter().map(at_origin).collect()
    }

    fn startup(&self, said: WorkerStartup) -> Option<Box<Startup>> {
        let WorkerStartup { failed, opened, unopened, profiles, listens } = said;
        let error_of = |copied: &ShadowCopy| {
            let copy = text(&copied.copy);
            failed.iter().find(|one| one.path == copy).map(|one| one.error.clone())
        };
        let loaded =
            |copied: &ShadowCopy| LoadedAssembly { path: text(&copied.origin), error: error_of(copied) };
        let project = self.project.as_ref().map(|Project { known, own, others, .. }| LoadedProject {
            assemblies: own.iter().map(loaded).collect(),
            references: u32::try_from(others.len()).unwrap_or(u32::MAX),
            missing: others.iter().map(loaded).filter(|one| one.error.is_some()).collect(),
            opened,
            unopened,
            ..known.clone()
        });
        let profiles = self.skipped.iter().cloned().chain(profiles).collect();
        let notes = self.notes.iter().cloned().chain(goes_on(&listens)).collect();
        let startup = Startup { notes, project, profiles };
        (!startup.is_empty()).then(|| Box::new(startup.cut()))
    }

    fn origins(&self) -> HashMap<String, String> {
        let all = self.project.iter().flat_map(|project| project.own.iter().chain(&project.others));
        all.map(|one| (text(&one.copy), text(&one.origin))).collect()
    }
}

/// What is to be known of code that goes on in a worker that was reset.
fn goes_on(listens: &[String]) -> Option<String> {
    let addresses = listens.join(", ");
    (!listens.is_empty()).then(|| {
        format!("code from before the reset goes on: it listens on {addresses}; a hard reset ends it")
    })
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
