//! Builds a project again by its plan: what is older than what it is made of is compiled beside its place and then put there, at once and
//! whole, with the times that tell a build of msbuild's what it was made of.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use mainstay_model::{Diagnostic, Error};
use tokio::task::spawn_blocking;
use uuid::Uuid;

use super::build::{BuildWay, Built};
use super::compilation::Compilation;
use super::remarks::is_error;
use super::{OnStep, Plan, Road};

/// What an assembly's companions are named by.
const SYMBOLS: &str = "pdb";
/// How exact the times of files are at least.
const COARSE: Duration = Duration::from_millis(20);
/// What the name of a folder begins with in which something is compiled.
const STAGING: &str = "~";
/// How old a folder is that was left behind.
const LEFT: Duration = Duration::from_secs(60 * 60);
/// The file that the compiler's own program takes where it makes a program.
const MANIFEST: &str = "default.win32manifest";

/// A compiler that is warm.
#[async_trait]
pub trait WarmCompiler: Send + Sync {
    /// Makes an assembly in a folder, as the compiler's program does with these arguments.
    ///
    /// # Errors
    /// [`Error::WorkerFailed`] where it is gone.
    async fn compile(&self, folder: &Path, arguments: Vec<String>) -> Result<Compiled, Error>;
}

/// What came of a compilation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiled {
    /// Whether the assembly is there.
    pub is_made: bool,
    /// What the compiler said.
    pub diagnostics: Vec<Diagnostic>,
}

impl Plan {
    /// Builds what is older than what it is made of. A compilation with errors is no error.
    ///
    /// # Errors
    /// Why only a build can tell what is due, for people. Whatever was put in its place is whole.
    pub async fn recompile(&self, compiler: &dyn WarmCompiler, say: OnStep<'_>) -> Result<Built, String> {
        let start = Instant::now();
        let plan = self.clone();
        let changed = spawn_blocking(move || plan.changed()).await.map_err(|error| error.to_string())?;
        if let Some(reason) = changed {
            return Err(reason);
        }
        let mut built = Built::by(Road::Msbuild);
        built.way = BuildWay::WarmCompiler;
        for (index, one) in self.compilations.iter().enumerate() {
            if is_up_to_date(one)? {
                continue;
            }
            say(format!(
                "compiling {} with the warm compiler ({} of {})",
                one.output.file_stem().unwrap_or_default().to_string_lossy(),
                index + 1,
                self.compilations.len()
            ));
            let compiled = compile(one, compiler).await?;
            let has_errors = compiled.diagnostics.iter().any(is_error);
            built.diagnostics.extend(compiled.diagnostics);
            if !compiled.is_made {
                // What stands in no file is no mistake in the code.
                if !has_errors || built.diagnostics.iter().any(|one| is_error(one) && one.file.is_none()) {
                    return Err("the warm compiler failed".to_owned());
                }
                built.success = false;
                break;
            }
        }
        if built.success {
            let compilations = self.compilations.clone();
            let copied = spawn_blocking(move || copy_all(&compilations)).await;
            copied.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        }
        built.diagnostics.sort_by_key(|remark| !is_error(remark));
        built.milliseconds = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(built)
    }

    /// Has the compiler do its work once, for nothing: the next time it is faster. Nothing of a project changes.
    ///
    /// # Errors
    /// Why it could not.
    pub async fn warm_up(&self, compiler: &dyn WarmCompiler) -> Result<(), String> {
        let scratch = super::toolchain::scratch().map_err(|error| error.to_string())?;
        for one in &self.compilations {
            let arguments = arguments(one, scratch.path());
            compiler.compile(&one.folder, arguments).await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

fn written(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|about| about.modified()).ok()
}

/// All that the compiler reads, beside what must not have changed at all.
fn inputs(one: &Compilation) -> Vec<PathBuf> {
    one.sources().chain(one.references()).collect()
}

/// What the compiler writes.
fn outputs(one: &Compilation) -> Vec<PathBuf> {
    let documentation = one.option("--doc:").map(|path| one.folder.join(path));
    let own = [Some(one.made.clone()), one.reference_made.clone(), documentation];
    own.into_iter().flatten().collect()
}

/// Whether nothing was written since it was compiled, as msbuild tells it.
fn is_up_to_date(one: &Compilation) -> Result<bool, String> {
    let mut newest = SystemTime::UNIX_EPOCH;
    for input in inputs(one) {
        let at = written(&input).ok_or_else(|| format!("{} is not there", input.display()))?;
        newest = newest.max(at);
    }
    let oldest = outputs(one).iter().map(|path| written(path)).min().flatten();
    Ok(oldest.is_some_and(|oldest| oldest >= newest))
}

/// The time to be written of what is made: not later than its sources were read, so that a source that is written meanwhile is newer.
fn made_at(one: &Compilation) -> SystemTime {
    let before = SystemTime::now() - COARSE;
    inputs(one).iter().filter_map(|path| written(path)).fold(before, SystemTime::max)
}

/// Compiles one project beside its place, and puts what was made there.
async fn compile(one: &Compilation, compiler: &dyn WarmCompiler) -> Result<Compiled, String> {
    let staging = Staging::beside(&one.made).map_err(|error| error.to_string())?;
    let at = made_at(one);
    let compiled = compiler.compile(&one.folder, arguments(one, &staging.0)).await;
    let compiled = compiled.map_err(|error| error.to_string())?;
    if compiled.is_made {
        let one = one.clone();
        let put = spawn_blocking(move || put(&one, &staging.0, at)).await;
        put.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
    }
    Ok(compiled)
}

/// A folder in which something is compiled. It goes when it is dropped.
struct Staging(PathBuf);

impl Staging {
    /// Makes one beside the folder of a file. Its path is as long as that of the folder: so all that the compiler writes is what it would write
    /// there, once the path is replaced.
    fn beside(made: &Path) -> io::Result<Self> {
        let folder = made.parent().unwrap_or(Path::new("/"));
        let above = folder.parent().unwrap_or(Path::new("/"));
        let length = folder.file_name().unwrap_or_default().len();
        remove_left(above);
        let name: String = std::iter::once('~')
            .chain(Uuid::new_v4().simple().to_string().chars().cycle())
            .take(length)
            .collect();
        let staging = above.join(name);
        fs::create_dir(&staging)?;
        fs::create_dir(staging.join("ref"))?;
        Ok(Self(staging))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// Removes what a process left that was killed.
fn remove_left(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_staging = entry.file_name().to_string_lossy().starts_with(STAGING);
        let is_left =
            || written(&entry.path()).and_then(|at| at.elapsed().ok()).is_some_and(|age| age > LEFT);
        if is_staging && is_left() {
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}

/// What the compiler is told so that it writes into another folder what it would write in its place.
fn arguments(one: &Compilation, staging: &Path) -> Vec<String> {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_owned();
    let into = |path: &Path| staging.join(name(path)).display().to_string();
    let moved = |argument: &String| {
        for option in ["-o:", "--doc:", "--pdb:"] {
            if let Some(path) = argument.strip_prefix(option) {
                return Some(format!("{option}{}", into(Path::new(path))));
            }
        }
        (!argument.starts_with("--refout:")).then(|| argument.clone())
    };
    let mut arguments: Vec<String> = one.arguments.iter().filter_map(moved).collect();
    if one.reference_made.is_some() {
        let path = staging.join("ref").join(name(&one.made));
        arguments.push(format!("--refout:{}", path.display()));
    }
    let folder = one.made.parent().unwrap_or(Path::new("/"));
    arguments.push(format!("--pathmap:{}={}", staging.display(), folder.display()));
    let has = |start: &str| one.option(start).is_some();
    let is_program = has("--target:exe") || has("--target:winexe");
    if is_program && !has("--win32manifest:") && !has("--nowin32manifest") && !has("--win32res:") {
        let manifest = one.compiler.with_file_name(MANIFEST);
        arguments.push(match manifest.is_file() {
            true => format!("--win32manifest:{}", manifest.display()),
            false => "--nowin32manifest".to_owned(),
        });
    }
    arguments
}

/// Puts what was made in its place, the assembly last.
fn put(one: &Compilation, staging: &Path, at: SystemTime) -> io::Result<()> {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_owned();
    let folder = one.made.parent().unwrap_or(Path::new("/"));
    let fresh = staging.join(name(&one.made));
    let mut moves =
        vec![(fresh.with_extension(SYMBOLS), folder.join(name(&one.made)).with_extension(SYMBOLS))];
    if let Some(path) = one.option("--pdb:") {
        moves.push((staging.join(name(Path::new(path))), one.folder.join(path)));
    }
    if let Some(path) = one.option("--doc:") {
        moves.push((staging.join(name(Path::new(path))), one.folder.join(path)));
    }
    if let (Some(made), Some(output)) = (&one.reference_made, &one.reference_output) {
        let reference = staging.join("ref").join(name(&one.made));
        // As msbuild has it: whoever is compiled with it need not be, where it is the same.
        if fs::read(&reference)? != fs::read(output).unwrap_or_default() {
            let copy = staging.join("ref").join("copy.dll");
            fs::copy(&reference, &copy)?;
            moves.push((copy, output.clone()));
        }
        moves.push((reference, made.clone()));
    }
    moves.push((fresh, one.made.clone()));
    for (from, to) in moves.iter().filter(|(from, _)| from.is_file()) {
        File::options().write(true).open(from)?.set_modified(at)?;
        fs::create_dir_all(to.parent().unwrap_or(folder))?;
        fs::rename(from, to)?;
    }
    Ok(())
}

/// Copies what was made to where a build puts it: beside the project's own program, and beside those of projects that refer to it.
fn copy_all(compilations: &[Compilation]) -> io::Result<()> {
    let folders: BTreeSet<&Path> = compilations.iter().filter_map(|one| one.output.parent()).collect();
    for one in compilations {
        let documentation = one.option("--doc:").map(|path| one.folder.join(path));
        for folder in &folders {
            let to = folder.join(one.output.file_name().unwrap_or_default());
            let is_own = to == one.output;
            if !is_own && !to.is_file() {
                continue;
            }
            if let Some(from) = &documentation {
                let to = folder.join(from.file_name().unwrap_or_default());
                if one.documentation.as_ref() == Some(&to) || to.is_file() {
                    copy_newer(from, &to)?;
                }
            }
            copy_newer(&one.made.with_extension(SYMBOLS), &to.with_extension(SYMBOLS))?;
            copy_newer(&one.made, &to)?;
        }
    }
    Ok(())
}

/// Copies a file, where it is there and the copy is not the same, with its time: msbuild takes a copy of the same time and length for the same.
fn copy_newer(from: &Path, to: &Path) -> io::Result<()> {
    let Ok(about) = fs::metadata(from) else { return Ok(()) };
    let at = about.modified()?;
    let is_same = fs::metadata(to).is_ok_and(|there| {
        there.len() == about.len() && there.modified().is_ok_and(|modified| modified == at)
    });
    if is_same {
        return Ok(());
    }
    let folder = to.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    let fresh = tempfile::Builder::new().prefix(".mainstay").tempfile_in(folder)?;
    fs::copy(from, fresh.path())?;
    fresh.as_file().set_modified(at)?;
    fresh.persist(to).map_err(|error| error.error)?;
    Ok(())
}
