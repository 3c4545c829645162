//! The projects of F# sessions: what of one a worker loads, the scripts that run beside it, and how it is built.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mainstay_engine::{Report, WarmUpPhase, WarmUpProgress};
use mainstay_kernel::fsharp::project::{self, Built, Resolved, Road};
use mainstay_kernel::fsharp::{Sdk, Search, choose};
use mainstay_kernel::{Builder, Copied, Project};
use mainstay_model::{BuildReport, Diagnostic, Error, LoadedProject, ProjectRoad, Severity};
use tokio::time::timeout;

use super::builds::Builds;

/// The script of a user's that runs in every session, in Mainstay's home.
const PROFILE: &str = "init.fsx";
/// The one of a project, beside its file.
const PROJECT_PROFILE: &str = ".mainstayrc.fsx";
/// How many lines are told of what a build printed that did not succeed: its last.
const LINES: usize = 100;

/// What is there of a project to load. One that cannot be found out is told of, and nothing of it is loaded.
pub(super) async fn loadable(
    file: &Path,
    sdk: &Sdk,
    copies: &Path,
    report: &Report,
    limit: Duration,
) -> Project {
    report.say(WarmUpProgress::begun(WarmUpPhase::Project));
    let copied = async {
        let resolved =
            project::resolve(file, sdk, &|step| tracing::debug!(step, "a project is read")).await?;
        let copied = project::shadow(&resolved, copies).await?;
        Ok::<_, Error>((resolved, copied))
    };
    let path = file.display().to_string();
    let problem = match timeout(limit, copied).await {
        Ok(Ok((resolved, copied))) => return of(path, resolved, copied),
        Ok(Err(error)) => format!("{error}. {}", error.next_step()),
        Err(_) => {
            let limit_ms = limit.as_millis();
            format!("what it consists of was not found out within {limit_ms} ms (`project-ms`)")
        }
    };
    Project { known: LoadedProject::failed(path, problem), ..Project::default() }
}

fn of(path: String, resolved: Resolved, copied: Resolved) -> Project {
    // Of too many the last are not kept: what each of the projects is made of says more than any one source.
    let made_of: Vec<&PathBuf> = resolved.projects.iter().chain(&resolved.sources).collect();
    let texts = |paths: Vec<&PathBuf>| paths.into_iter().map(|path| path.display().to_string()).collect();
    let known = LoadedProject {
        path,
        road: Some(match resolved.road {
            Road::Msbuild => ProjectRoad::Msbuild,
            Road::Fallback => ProjectRoad::Fallback,
        }),
        framework: resolved.framework,
        unbuilt: texts(written_since(&made_of, &resolved.assemblies)),
        sources: texts(made_of),
        notes: copied.notes,
        ..LoadedProject::default()
    };
    let own = beside(&resolved.assemblies, &copied.assemblies);
    let others = beside(&resolved.references, &copied.references);
    let Resolved { arguments, frameworks, natives, folder, .. } = copied;
    Project { known, own, others, arguments, frameworks, natives, folder }
}

/// Those of the files that were written after the last of the assemblies was built. Where some of several projects were built since, some
/// are missed.
fn written_since<'a>(files: &[&'a PathBuf], assemblies: &[PathBuf]) -> Vec<&'a PathBuf> {
    let written = |path: &PathBuf| path.metadata().and_then(|metadata| metadata.modified()).ok();
    let Some(built) = assemblies.iter().filter_map(written).max() else { return Vec::new() };
    files.iter().copied().filter(|file| written(file).is_some_and(|at| at > built)).collect()
}

/// Each copy with what it is of: of files of one name only the first is copied.
fn beside(origins: &[PathBuf], copies: &[PathBuf]) -> Vec<Copied> {
    let of = |copy: &PathBuf| {
        let origin = origins.iter().find(|origin| origin.file_name() == copy.file_name())?;
        Some(Copied { origin: origin.clone(), copy: copy.clone() })
    };
    copies.iter().filter_map(of).collect()
}

/// The scripts that run before a session's own code: the user's, then the project's. Whoever opens a project runs its code anyway, when it
/// is built; so that of a folder without one is not run.
pub(super) fn profiles(home: &Path, project: Option<&Path>) -> Vec<PathBuf> {
    let of_project = project.and_then(Path::parent).map(|folder| folder.join(PROJECT_PROFILE));
    std::iter::once(home.join(PROFILE)).chain(of_project).filter(|path| path.is_file()).collect()
}

/// Builds one project with the SDK that is preferred by then, once no other session builds it.
pub(super) struct ProjectBuilder {
    pub(super) project: PathBuf,
    pub(super) search: Search,
    pub(super) builds: Arc<Builds>,
}

#[async_trait]
impl Builder for ProjectBuilder {
    async fn build(&self, say: &(dyn Fn(String) + Send + Sync)) -> BuildReport {
        let failed = |reason: String| BuildReport { built: Err(reason), diagnostics: Vec::new() };
        let sdk = match choose(&self.search) {
            Ok(sdk) => sdk,
            Err(none) => return failed(none.to_string()),
        };
        let _turn = self.builds.turn(&self.project, say).await;
        match project::build(&self.project, &sdk, say).await {
            Ok(built) => {
                last_words(&built).into_iter().for_each(|line| say(line.to_owned()));
                report(built)
            }
            Err(error) => failed(format!("{error}. {}", error.next_step())),
        }
    }
}

/// What is told of what a build printed: of one that did not succeed the last lines, beside its diagnostics.
fn last_words(built: &Built) -> Vec<&str> {
    let lines: Vec<&str> = if built.success { Vec::new() } else { built.other_lines().collect() };
    lines[lines.len().saturating_sub(LINES)..].to_vec()
}

fn report(built: Built) -> BuildReport {
    let Built { success, diagnostics, output, .. } = built;
    let is_error = |diagnostic: &&Diagnostic| diagnostic.severity == Severity::Error;
    let reason = || match (diagnostics.iter().filter(is_error).count(), output.lines().last()) {
        (0, Some(line)) => line.to_owned(),
        (0, None) => "it says nothing".to_owned(),
        (1, _) => "the build has 1 error".to_owned(),
        (count, _) => format!("the build has {count} errors"),
    };
    BuildReport { built: if success { Ok(()) } else { Err(reason()) }, diagnostics }
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
        let kept = Startup { project: Some(known), profiles: Vec::new() }.cut().project.unwrap();
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
