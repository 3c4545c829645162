//! The projects of F# sessions: what of one a worker loads, the scripts that run beside it, and how it is built.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use mainstay_kernel::fsharp::project::{self, BuildWay, Built, InFolder, OnStep, Resolved, Road};
use mainstay_kernel::fsharp::{Code, Sdk, Search, Selected, select};
use mainstay_kernel::{Builder, OpenedNames, Project, ShadowCopy};
use mainstay_model::{
    BuildReport, ChosenProject, Diagnostic, Error, LoadedProject, ProjectChoice, ProjectRoad, Severity,
};
use mainstay_runner::{Environment, Report, WarmUpPhase, WarmUpProgress};
use tokio::time::timeout;

use crate::builds::Builds;
use crate::compilers::{BuiltProject, client};

/// The script of a user's that runs in every session, in Mainstay's home.
const PROFILE: &str = "init.fsx";
/// The one of a project, beside its file.
const PROJECT_PROFILE: &str = ".mainstayrc.fsx";
/// How many lines are told of what a build printed that did not succeed: its last.
const LINES: usize = 100;
/// What is told of a build that the warm compiler did.
const COMPILED: &str = "compiled by the warm compiler";
/// How many errors of a build are told of at a session's start.
const ERRORS: usize = 5;

/// Which project a session in `folder` is for.
///
/// # Errors
/// [`Error::ProjectNotFound`] and [`Error::ProjectAmbiguous`] where a folder is named that does not have one project.
pub(crate) fn project_of(folder: &Path, wanted: ProjectChoice) -> Result<ChosenProject, Error> {
    let text = |path: PathBuf| path.display().to_string();
    match wanted {
        ProjectChoice::Nothing => Ok(ChosenProject::Nothing),
        ProjectChoice::At(path) => project::named(Path::new(&path)).map(text).map(ChosenProject::One),
        ProjectChoice::OfFolder => Ok(match InFolder::of(folder) {
            InFolder::Nothing => ChosenProject::Nothing,
            InFolder::One(project) => ChosenProject::One(text(project)),
            InFolder::Several(projects) => ChosenProject::Several(projects.into_iter().map(text).collect()),
        }),
    }
}

/// A project that is about to be loaded into a new worker.
pub(crate) struct Loading<'a> {
    pub(crate) file: &'a Path,
    pub(crate) sdk: &'a Sdk,
    /// What the session's creator has in its environment.
    pub(crate) environment: &'a Environment,
    pub(crate) report: &'a Report,
    pub(crate) builds: &'a Builds,
    /// The folder of the daemon's sockets, where its warm compilers are asked.
    pub(crate) compilers: &'a Path,
    /// Whether it is built too where its sources were written since: what a session is to run is what was saved.
    pub(crate) builds_newest: bool,
}

impl Loading<'_> {
    /// What is there of the project to load, after it was built where that is due. One that cannot be found out is told of, and nothing
    /// of it is loaded; of one that does not build the rest is. To find it out may take as long as `limit`.
    pub(crate) async fn loadable(&self, copies: &Path, limit: Duration) -> Project {
        match self.found(copies, limit).await {
            Ok(project) => project,
            Err(problem) => {
                let problem = format!("{problem} Then `session rebuild` loads it.");
                let known = LoadedProject::failed(self.file.display().to_string(), problem);
                Project { known, ..Project::default() }
            }
        }
    }

    async fn found(&self, copies: &Path, limit: Duration) -> Result<Project, String> {
        let (resolved, complaints) = self.built(limit).await?;
        let copied = within(limit, project::shadow(&resolved, copies)).await?;
        let mut project = of(self.file.display().to_string(), resolved, copied);
        project.known.notes.splice(0..0, complaints);
        Ok(project)
    }

    /// What it consists of, once it is built; what is to be said of a build that failed.
    async fn built(&self, limit: Duration) -> Result<(Resolved, Vec<String>), String> {
        let resolved = self.resolved(limit).await?;
        let made_of: Vec<&PathBuf> = resolved.projects.iter().chain(&resolved.sources).collect();
        let is_older = || !written_since(&made_of, &resolved.assemblies).is_empty();
        if resolved.unbuilt.is_empty() && !(self.builds_newest && is_older()) {
            client::note_loaded(self.compilers, self.built_project()).await;
            return Ok((resolved, Vec::new()));
        }
        let made_of = newest(resolved.projects.iter().chain(&resolved.sources));
        let report = match self.builds.failed_before(self.file, made_of) {
            Some(failed) => failed,
            None => {
                self.report.say(WarmUpProgress::begun(WarmUpPhase::Build));
                let say = |line| tracing::info!(line, "a build");
                let report =
                    build((self.file, self.sdk, self.environment), self.builds, self.compilers, &say).await;
                self.builds.ended(self.file, made_of, &report);
                report
            }
        };
        match &report.built {
            Ok(()) => Ok((self.resolved(limit).await?, Vec::new())),
            Err(reason) => {
                let head = format!(
                    "{} does not build: {reason}; correct it, then `session rebuild`",
                    self.file.display()
                );
                let errors = report.diagnostics.iter().filter(|one| one.severity == Severity::Error);
                let errors = errors.take(ERRORS).map(in_a_line);
                Ok((resolved, std::iter::once(head).chain(errors).collect()))
            }
        }
    }

    fn built_project(&self) -> BuiltProject {
        BuiltProject::new(self.file, self.environment)
    }

    async fn resolved(&self, limit: Duration) -> Result<Resolved, String> {
        self.report.say(WarmUpProgress::begun(WarmUpPhase::Project));
        if let Some(resolved) = client::resolved(self.compilers, self.built_project()).await {
            return Ok(resolved);
        }
        let say = |step| tracing::debug!(step, "a project is read");
        within(limit, project::resolve(self.file, self.sdk, self.environment, &say)).await
    }
}

async fn within<T>(limit: Duration, work: impl Future<Output = Result<T, Error>>) -> Result<T, String> {
    match timeout(limit, work).await {
        Ok(done) => done.map_err(|error| format!("{error}. {}", error.next_step())),
        Err(_) => {
            let limit_ms = limit.as_millis();
            Err(format!("what it consists of was not found out within {limit_ms} ms (`project-ms`)."))
        }
    }
}

/// When the last of some files was written.
fn newest<'a>(files: impl Iterator<Item = &'a PathBuf>) -> Option<SystemTime> {
    files.filter_map(|path| written(path)).max()
}

fn written(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|metadata| metadata.modified()).ok()
}

/// `Shop.fs:3:5: error FS0039: …`, from the first line of what was remarked.
fn in_a_line(remark: &Diagnostic) -> String {
    let message = remark.message.lines().next().unwrap_or_default();
    format!("{}: error {}: {message}", remark.place(), remark.code)
}

fn of(path: String, resolved: Resolved, copied: Resolved) -> Project {
    // Of too many the last are not kept: what each of the projects is made of says more than any one source.
    let made_of: Vec<&PathBuf> = resolved.projects.iter().chain(&resolved.sources).collect();
    let unbuilt: Vec<&PathBuf> =
        resolved.unbuilt.iter().chain(written_since(&made_of, &resolved.assemblies)).collect();
    let texts = |paths: Vec<&PathBuf>| paths.into_iter().map(|path| path.display().to_string()).collect();
    let known = LoadedProject {
        path,
        road: Some(match resolved.road {
            Road::Msbuild => ProjectRoad::Msbuild,
            Road::Fallback => ProjectRoad::Fallback,
        }),
        framework: resolved.framework,
        unbuilt: texts(unbuilt),
        sources: texts(made_of),
        notes: copied.notes,
        ..LoadedProject::default()
    };
    let own = beside(&resolved.assemblies, &copied.assemblies);
    let others = beside(&resolved.references, &copied.references);
    let Resolved { arguments, symbols, frameworks, natives, folder, .. } = copied;
    let opens = OpenedNames::default();
    Project { known, own, others, arguments, symbols, frameworks, natives, folder, opens, most_swaps: None }
}

/// Those of the files that were written after the last of the assemblies was built. Where some of several projects were built since, some
/// are missed.
fn written_since<'a>(files: &[&'a PathBuf], assemblies: &[PathBuf]) -> Vec<&'a PathBuf> {
    let Some(built) = newest(assemblies.iter()) else { return Vec::new() };
    files.iter().copied().filter(|file| written(file).is_some_and(|at| at > built)).collect()
}

/// Each copy with what it is of: of files of one name only the first is copied.
fn beside(origins: &[PathBuf], copies: &[PathBuf]) -> Vec<ShadowCopy> {
    let of = |copy: &PathBuf| {
        let origin = origins.iter().find(|origin| origin.file_name() == copy.file_name())?;
        Some(ShadowCopy { origin: origin.clone(), copy: copy.clone() })
    };
    copies.iter().filter_map(of).collect()
}

/// The scripts that run before a session's own code: the user's, then the project's. Whoever opens a project runs its code anyway, when it
/// is built; so that of a folder without one is not run.
pub(crate) fn profiles(home: &Path, project: Option<&Path>) -> Vec<PathBuf> {
    let of_project = project.and_then(Path::parent).map(|folder| folder.join(PROJECT_PROFILE));
    std::iter::once(home.join(PROFILE)).chain(of_project).filter(|path| path.is_file()).collect()
}

/// Builds one project with the SDK that is its by then, once no other session builds it.
pub(crate) struct ProjectBuilder {
    pub(crate) project: PathBuf,
    pub(crate) search: Search,
    pub(crate) environment: Environment,
    pub(crate) builds: Arc<Builds>,
    /// The folder of the daemon's sockets, where its warm compilers are asked.
    pub(crate) compilers: PathBuf,
}

#[async_trait]
impl Builder for ProjectBuilder {
    async fn build(&self, say: &(dyn Fn(String) + Send + Sync)) -> BuildReport {
        let sdk = match select(&self.search, Code::Of(&self.project)) {
            Ok(Selected { sdk, .. }) => sdk,
            Err(none) => return failed(none.to_string()),
        };
        build((&self.project, &sdk, &self.environment), &self.builds, &self.compilers, say).await
    }
}

/// Builds a project once no other session does: by a warm compiler where one knows how, else by msbuild.
async fn build(
    (project, sdk, environment): (&Path, &Sdk, &Environment),
    builds: &Builds,
    compilers: &Path,
    say: OnStep<'_>,
) -> BuildReport {
    let _turn = builds.turn(project, say).await;
    let known = || BuiltProject::new(project, environment);
    if let Some(built) = client::recompile(compilers, known(), say).await {
        if built.success {
            say(COMPILED.to_owned());
        }
        return report(built);
    }
    match project::build(project, sdk, environment, say).await {
        Ok(built) => {
            last_words(&built).into_iter().for_each(|line| say(line.to_owned()));
            if built.success {
                client::note_built(compilers, known()).await;
            }
            report(built)
        }
        Err(error) => failed(format!("{error}. {}", error.next_step())),
    }
}

fn failed(reason: String) -> BuildReport {
    BuildReport { built: Err(reason), diagnostics: Vec::new(), by_warm_compiler: false }
}

/// What is told of what a build printed: of one that did not succeed the last lines, beside its diagnostics.
fn last_words(built: &Built) -> Vec<&str> {
    let lines: Vec<&str> = if built.success { Vec::new() } else { built.other_lines().collect() };
    lines[lines.len().saturating_sub(LINES)..].to_vec()
}

fn report(built: Built) -> BuildReport {
    let Built { success, diagnostics, output, way, .. } = built;
    let is_error = |diagnostic: &&Diagnostic| diagnostic.severity == Severity::Error;
    let reason = || match (diagnostics.iter().filter(is_error).count(), output.lines().last()) {
        (0, Some(line)) => line.to_owned(),
        (0, None) => "it says nothing".to_owned(),
        (1, _) => "the build has 1 error".to_owned(),
        (count, _) => format!("the build has {count} errors"),
    };
    let by_warm_compiler = way == BuildWay::WarmCompiler;
    BuildReport { built: if success { Ok(()) } else { Err(reason()) }, diagnostics, by_warm_compiler }
}

#[cfg(test)]
mod tests {
    use mainstay_model::Startup;

    use super::*;

    #[test]
    fn the_script_of_a_folder_runs_only_with_its_project() {
        let (home, code) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (init, rc) = (home.path().join(PROFILE), code.path().join(PROJECT_PROFILE));
        let project = code.path().join("Shop.fsproj");
        assert_eq!(profiles(home.path(), Some(&project)), Vec::<PathBuf>::new());
        std::fs::write(&init, "()").unwrap();
        std::fs::write(&rc, "()").unwrap();
        assert_eq!(profiles(home.path(), None), [init.as_path()]);
        assert_eq!(profiles(home.path(), Some(&project)), [init, rc]);
    }

    #[test]
    fn of_too_many_files_those_of_the_projects_are_kept() {
        let mut resolved = Resolved::empty(Road::Msbuild);
        resolved.sources = (0..1_000).map(|number| PathBuf::from(format!("/code/{number}.fs"))).collect();
        resolved.projects = vec![PathBuf::from("/code/Shop.fsproj")];
        let known = of("/code/Shop.fsproj".to_owned(), resolved.clone(), resolved).known;
        let kept = Startup { project: Some(known), profiles: Vec::new(), ..Startup::default() }
            .cut()
            .project
            .unwrap();
        assert!(kept.sources.contains(&"/code/Shop.fsproj".to_owned()));
    }

    #[test]
    fn the_last_lines_of_a_build_that_fails_are_told_beside_its_diagnostics() {
        let printed: String = (0..2 * LINES).map(|line| format!("line {line}\n")).collect();
        let built = |success| Built {
            success,
            diagnostics: Vec::new(),
            output: format!("{printed}A.fs(1,1): error FS0039: not defined\n"),
            milliseconds: 0,
            road: Road::Msbuild,
            way: BuildWay::Build,
        };
        let failed = built(false);
        let told = last_words(&failed);
        assert_eq!((told.len(), told[0], told[LINES - 1]), (LINES, "line 100", "line 199"));
        assert_eq!(last_words(&built(true)), Vec::<&str>::new());
    }

    #[test]
    fn each_copy_is_of_the_first_file_of_its_name() {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let (origins, copies) =
            (paths(&["/a/x.dll", "/b/x.dll", "/b/y.dll"]), paths(&["/c/x.dll", "/c/y.dll"]));
        let found = beside(&origins, &copies);
        assert_eq!(
            found.iter().map(|one| one.origin.clone()).collect::<Vec<_>>(),
            paths(&["/a/x.dll", "/b/y.dll"])
        );
    }
}
