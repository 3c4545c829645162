//! Builds projects: with the SDK's msbuild where that runs, else with its F# compiler, one project after the other.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mainstay_model::{Diagnostic, Error, Severity, TextPosition};
use mainstay_runner::Environment;
use serde::{Deserialize, Serialize};
use tokio::process::Command;

use super::evaluation::Evaluated;
use super::fallback::{self, Surroundings};
use super::msbuild::{counted, escaped};
use super::notes::not_restored;
use super::packages::{deployed, restored};
use super::remarks::{is_error, is_remark, remarks};
use super::solution::is_fsharp;
use super::stamp::Stamp;
use super::toolchain::{Msbuild, Toolchain, scratch, unavailable};
use super::{OnStep, Road, Roots, legacy, once, telling};
use crate::fsharp::recipe::{assemblies_in, option};
use crate::fsharp::sdk::{CompilerLibrary, Sdk};
use mainstay_os::command::{self, CommandError};

/// How long a build may take. Whoever waits for one may give up earlier.
const LIMIT: Duration = Duration::from_secs(60 * 60);
/// How much of what a step prints is looked at, in bytes: its end.
const READ_BYTES: u64 = 16 * 1024 * 1024;
/// How much of it is kept, in bytes: its end.
const KEPT_BYTES: usize = 64 * 1024;
/// The code of remarks that are ours.
const OWN_CODE: &str = "MAINSTAY";

/// A build that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Built {
    /// Whether all was built.
    pub success: bool,
    /// What was remarked of the projects and their files, each once, the errors first.
    pub diagnostics: Vec<Diagnostic>,
    /// What was printed: the end of it, where it is long.
    pub output: String,
    /// How long it took.
    pub milliseconds: u64,
    /// The way in which the project was built.
    pub road: Road,
    /// By what it was built.
    pub way: BuildWay,
}

/// By what a project was built.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BuildWay {
    /// By a build of the SDK's, or of ours where the SDK's msbuild does not run.
    #[default]
    Build,
    /// By a compiler that was warm, since nothing but sources had changed.
    WarmCompiler,
}

/// Builds `project`, an `.fsproj`, `.sln` or `.slnx`, and all it refers to, after restoring their packages where msbuild runs, for a session whose
/// creator has this in its environment.
/// Dropping the future ends the build and all it has started. A build that fails is no error.
///
/// # Errors
/// [`Error::ProjectNotFound`], [`Error::ProjectInvalid`], and [`Error::KernelUnavailable`] where the SDK cannot be used.
pub async fn build(
    project: &Path,
    sdk: &Sdk,
    environment: &Environment,
    progress: OnStep<'_>,
) -> Result<Built, Error> {
    let start = Instant::now();
    let roots = Roots::of(project)?;
    if roots.projects.is_empty() {
        let mut built = Built::by(Road::Msbuild);
        roots.legacy.iter().for_each(|project| built.remark(project, legacy::REASON));
        return Ok(built);
    }
    let toolchain = Toolchain::for_creator(sdk, environment).await?;
    let mut built = match &toolchain.msbuild {
        Msbuild::Works => with_msbuild(&roots, &toolchain, progress).await?,
        Msbuild::Fails(_) => with_compiler(&roots, &toolchain, progress).await?,
    };
    built.milliseconds = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(built)
}

impl Built {
    pub(super) fn by(road: Road) -> Self {
        Self {
            success: true,
            diagnostics: Vec::new(),
            output: String::new(),
            milliseconds: 0,
            road,
            way: BuildWay::Build,
        }
    }

    /// Runs `command` as a part of this build. Tells whether it did its work.
    async fn step(&mut self, command: &mut Command, log: &Path, folder: &Path) -> Result<bool, Error> {
        let ended = command::run(command, log, LIMIT).await;
        let printed = printed(log);
        self.diagnostics.extend(remarks(&printed, folder));
        self.output.push_str(&printed);
        match ended {
            Ok(()) => return Ok(true),
            Err(CommandError::Start { source, .. }) => return Err(unavailable(source)),
            Err(error @ CommandError::TimedOut { .. }) => self.output.push_str(&format!("{error}\n")),
            Err(error @ CommandError::Failed { .. }) => {
                let is_told = self.diagnostics.iter().any(is_error);
                if !is_told {
                    self.output.push_str(&format!("{error}\n"));
                }
            }
        }
        self.success = false;
        Ok(false)
    }

    /// The lines that were printed and are none of the remarks.
    pub fn other_lines(&self) -> impl Iterator<Item = &str> {
        self.output.lines().filter(|line| !line.trim().is_empty() && !is_remark(line))
    }

    fn bounded(mut self) -> Self {
        self.diagnostics.sort_by_key(|remark| !is_error(remark));
        if self.output.len() > KEPT_BYTES {
            let start = self.output.len() - KEPT_BYTES;
            let start = (start..).find(|&at| self.output.is_char_boundary(at)).unwrap_or(start);
            self.output = format!("…{}", &self.output[start..]);
        }
        self
    }
}

fn printed(log: &Path) -> String {
    let mut bytes = Vec::new();
    // What could be read is shown.
    let _ = read_end(log, READ_BYTES, &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn read_end(log: &Path, most: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    let mut file = fs::File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
    file.take(most).read_to_end(bytes).map(drop)
}

async fn with_msbuild(roots: &Roots, toolchain: &Toolchain, progress: OnStep<'_>) -> Result<Built, Error> {
    let scratch = scratch()?;
    let file = scratch.path().join("build.proj");
    fs::write(&file, building(roots)).map_err(unavailable)?;
    let mut built = Built::by(Road::Msbuild);
    let mut command = toolchain.msbuild(&roots.folder);
    let log = scratch.path().join("log");
    let step = built.step(command.arg(&file), &log, &roots.folder);
    let what = format!("building {} with msbuild", counted(roots.projects.len()));
    telling(what, progress, step).await?;
    Ok(built.bounded())
}

/// A project that restores and builds others. Both kinds of solutions are built so, also with SDKs that know one only.
fn building(roots: &Roots) -> String {
    let mut text = "<Project DefaultTargets=\"Build\"><ItemGroup>\n".to_owned();
    for project in &roots.projects {
        text += &format!("<P Include=\"{}\" />\n", escaped(project));
    }
    let solution = roots.solution_folder.as_deref();
    let solution = solution.map(|folder| format!("SolutionDir={}/", escaped(folder))).unwrap_or_default();
    // A property of its own has msbuild read the projects again with what the restore wrote.
    text + &format!(
        "</ItemGroup><Target Name=\"Build\">\n\
         <MSBuild Projects=\"@(P)\" Targets=\"Restore\" Properties=\"MSBuildRestoreSessionId=mainstay;{solution}\" />\n\
         <MSBuild Projects=\"@(P)\" Targets=\"Build\" Properties=\"{solution}\" />\n\
         </Target></Project>\n"
    )
}

async fn with_compiler(roots: &Roots, toolchain: &Toolchain, progress: OnStep<'_>) -> Result<Built, Error> {
    let surroundings = Surroundings::of(toolchain);
    let projects = fallback::in_order(&roots.projects, &surroundings.runtime)?;
    let scratch = scratch()?;
    let mut built = Built::by(Road::Fallback);
    // What a project needs, and so whatever refers to it: what comes after has all before it at hand.
    let mut needed: HashMap<&Path, Vec<PathBuf>> = HashMap::new();
    for (index, project) in projects.iter().enumerate() {
        for note in &project.notes {
            built.output.push_str(&format!("{note}\n"));
        }
        let mut needs: Vec<PathBuf> =
            project.projects.iter().filter_map(|path| needed.get(&**path)).flatten().cloned().collect();
        needs.extend_from_slice(&project.references);
        needs.extend(packages(&mut built, project, toolchain));
        once(&mut needs);
        if !is_fsharp(&project.path) {
            if !project.output.is_file() {
                built.remark(&project.path, "only F# projects can be built without msbuild");
            }
        } else {
            let what = format!("compiling {} ({} of {})", name(&project.path), index + 1, projects.len());
            let compiling = compile(&mut built, project, &needs, toolchain, scratch.path());
            if !telling(what, progress, compiling).await? {
                break;
            }
        }
        needs.push(project.output.clone());
        needed.insert(&project.path, needs);
    }
    Ok(built.bounded())
}

/// Compiles one project beside its place, and puts it there once it is whole; where nothing of it has changed, it is there.
async fn compile(
    built: &mut Built,
    project: &Evaluated,
    needs: &[PathBuf],
    toolchain: &Toolchain,
    scratch: &Path,
) -> Result<bool, Error> {
    let folder = project.path.parent().unwrap_or(Path::new(""));
    let bin = project.output.parent().unwrap_or(Path::new(""));
    fs::create_dir_all(bin).map_err(unavailable)?;
    let stamp = Stamp::new(project, &arguments(project, toolchain, &project.output), needs);
    if stamp.is_up_to_date() {
        return Ok(true);
    }
    let staging = tempfile::Builder::new().prefix(".mainstay").tempdir_in(bin).map_err(unavailable)?;
    let mut command = toolchain.compiler(folder);
    let fresh = staging.path().join(project.output.file_name().unwrap_or_default());
    command.args(arguments(project, toolchain, &fresh));
    command.args(needs.iter().map(|reference| option("-r:", reference)));
    command.args(&project.sources);
    if !built.step(&mut command, &scratch.join("compiler.log"), folder).await? {
        return Ok(false);
    }
    for file in [fresh.with_extension("pdb"), fresh.clone()] {
        if file.is_file() {
            fs::rename(&file, bin.join(file.file_name().unwrap_or_default())).map_err(unavailable)?;
        }
    }
    // Whatever was written while it was compiled is in the stamp as it was before.
    stamp.write();
    Ok(true)
}

fn packages(built: &mut Built, project: &Evaluated, toolchain: &Toolchain) -> Vec<PathBuf> {
    let framework = project.framework.as_deref().unwrap_or_default();
    let folders = Surroundings::of(toolchain).package_folders;
    let packages = restored(&project.restored, framework).or_else(|| deployed(&project.output, &folders));
    if packages.is_none() && !project.packages.is_empty() {
        built.output.push_str(&format!("{}\n", not_restored(&project.path, &project.packages)));
    }
    let is_core = |path: &Path| path.file_name().is_some_and(|name| name == "FSharp.Core.dll");
    packages.unwrap_or_default().into_iter().filter(|path| !is_core(path)).collect()
}

fn arguments(project: &Evaluated, toolchain: &Toolchain, output: &Path) -> Vec<OsString> {
    let target = if project.is_program { "--target:exe" } else { "--target:library" };
    let debug = match toolchain.parts.library {
        CompilerLibrary::Service(_) => "--debug:portable",
        // It wants OpenSSL 1.1 for the hash of the debug file, and aborts without.
        CompilerLibrary::Private(_) => "--debug-",
    };
    let flags = [
        target,
        debug,
        "--nologo",
        "--targetprofile:netcore",
        "--noframework",
        "--nocopyfsharpcore",
        "--optimize-",
        "--fullpaths",
        "--flaterrors",
    ];
    let mut arguments: Vec<OsString> = flags.iter().map(Into::into).collect();
    arguments.extend(project.defines.iter().map(|name| format!("--define:{name}").into()));
    arguments.extend(project.options.iter().map(Into::into));
    let core = toolchain.parts.fsharp.join("FSharp.Core.dll");
    let framework = assemblies_in(&toolchain.parts.references);
    arguments.extend(framework.iter().chain([&core]).map(|path| option("-r:", path)));
    arguments.push(option("-o:", output));
    arguments
}

fn name(project: &Path) -> String {
    project.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

impl Built {
    /// Adds an error of our own.
    fn remark(&mut self, project: &Path, message: &str) {
        let start = TextPosition { line: 1, column: 1 };
        let diagnostic = Diagnostic {
            severity: Severity::Error,
            code: OWN_CODE.to_owned(),
            message: message.to_owned(),
            file: Some(project.display().to_string()),
            start,
            end: start,
        };
        self.output.push_str(&format!("{}: {message}\n", project.display()));
        self.diagnostics.push(diagnostic);
        self.success = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_much_that_is_printed_the_end_is_kept() {
        let mut built = Built::by(Road::Msbuild);
        built.output = format!("a{}", "é".repeat(KEPT_BYTES));
        let kept = built.bounded().output;
        assert!(kept.len() <= KEPT_BYTES + '…'.len_utf8() && kept.starts_with('…') && kept.ends_with('é'));
    }

    #[test]
    fn of_a_long_log_the_end_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        fs::write(&log, "a warning\nan error").unwrap();
        let end = |most| {
            let mut bytes = Vec::new();
            read_end(&log, most, &mut bytes).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(end(8), "an error");
        assert_eq!(end(100), "a warning\nan error");
    }

    #[test]
    fn what_is_no_remark_is_told_besides() {
        let mut built = Built::by(Road::Msbuild);
        built.output = "Restoring\n\nA.fs(1,1): error FS0039: not defined\nUnhandled exception\n".to_owned();
        assert_eq!(built.other_lines().collect::<Vec<_>>(), ["Restoring", "Unhandled exception"]);
    }
}
