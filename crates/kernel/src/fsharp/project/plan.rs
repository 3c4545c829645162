//! How a project and all it refers to is built again where nothing but its sources has changed: by a compiler that is there already, with
//! the arguments that msbuild would give. Whatever is not known for certain is left to a build.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use mainstay_runner::Environment;
use tokio::task::spawn_blocking;

use super::compilation::{Compilation, compilations};
use super::guard::{Guard, ambient, commit_files};
use super::plain::plain;
use super::solution::is_fsharp;
use super::toolchain::{Msbuild, Toolchain, unavailable};
use super::{Resolved, Road, Roots, resolve_roots};
use crate::fsharp::sdk::Sdk;

/// What marks an assembly that makes types while others are compiled, of files that no build knows of.
const TYPE_PROVIDER: &[u8] = b"TypeProviderAssemblyAttribute";
/// How the names of variables begin that the compiler reads itself.
const COMPILER_VARIABLES: [&str; 3] = ["FCS_", "FSHARP_", "FSharp_"];
/// Options of which the effect on a build is not known here.
const UNKNOWN_OPTIONS: [&str; 6] = ["--sig:", "--allsigs", "--pathmap:", "--out:", "--compressmetadata", "@"];
/// What each build writes anew beside what it makes, and puts into nothing that is compiled here.
const REWRITTEN: &str = "ILLink.Substitutions.xml";
/// The fewest characters of a folder beside which another of the same length is made.
const SHORTEST_NAME: usize = 4;

/// How a project is built again.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What it consists of.
    pub(super) resolved: Resolved,
    /// How each project is compiled, after those that it refers to.
    pub(super) compilations: Vec<Compilation>,
    guard: Guard,
}

impl Plan {
    /// How `project` is built again with this SDK, for a session whose creator has this in its environment; else why only a build can.
    /// Nothing is built. Dropping the future ends all that was started.
    ///
    /// # Errors
    /// The reason, for people.
    pub async fn of(project: &Path, sdk: &Sdk, environment: &Environment) -> Result<Self, String> {
        if environment
            .variables()
            .any(|(name, _)| COMPILER_VARIABLES.iter().any(|start| name.starts_with(start)))
        {
            return Err("the environment has variables for the compiler".to_owned());
        }
        let roots = Roots::of(project).map_err(|error| error.to_string())?;
        if !roots.legacy.is_empty() || roots.projects.is_empty() {
            return Err("it has projects that no SDK builds".to_owned());
        }
        let failed = |error: mainstay_model::Error| error.to_string();
        let toolchain = Toolchain::for_creator(sdk, environment).await.map_err(failed)?;
        if toolchain.msbuild != Msbuild::Works {
            return Err("the SDK's msbuild does not run here".to_owned());
        }
        let resolved = resolve_roots(roots, &toolchain, &|_| {}).await.map_err(failed)?;
        let root = project.to_owned();
        let guarded = resolved.clone();
        let guard =
            spawn_blocking(move || guard(&root, &guarded)).await.map_err(|error| error.to_string())??;
        let told = compilations(&resolved.projects, &toolchain).await?;
        let compiler = toolchain.parts.compiler.clone();
        let plan = spawn_blocking(move || finished(resolved, told, guard, &compiler)).await;
        plan.map_err(|error| unavailable(error).to_string())?
    }

    /// What the project consists of, where that is still so and all of it is built. Whether what is built is as new as its sources is another
    /// question.
    pub fn resolved(&self) -> Option<Resolved> {
        let is_there =
            self.resolved.assemblies.iter().chain(&self.resolved.references).all(|path| path.is_file());
        (is_there && self.changed().is_none()).then(|| self.resolved.clone())
    }

    /// What has changed, beside sources, since the plan was made; none where it still holds.
    pub fn changed(&self) -> Option<String> {
        self.guard.changed()
    }
}

/// What the plan of a project rests on, as it is before msbuild is asked.
fn guard(root: &Path, resolved: &Resolved) -> Result<Guard, String> {
    if resolved.road != Road::Msbuild || !resolved.unbuilt.is_empty() {
        return Err("it is not built".to_owned());
    }
    if let Some(other) = resolved.projects.iter().find(|project| !is_fsharp(project)) {
        return Err(format!("{} is no F# project", other.display()));
    }
    let (mut files, mut folders): (BTreeSet<PathBuf>, Vec<PathBuf>) = Default::default();
    let mut has_patterns = false;
    files.insert(root.to_owned());
    for project in &resolved.projects {
        let beside = ambient(project);
        for file in beside.iter().filter(|file| is_msbuilds(file) && file.is_file()) {
            let said = plain(file)?;
            has_patterns |= said.has_patterns;
            files.extend(said.imports);
        }
        files.extend(beside);
        let folder = project.parent().unwrap_or(Path::new("/"));
        files.extend(commit_files(folder));
        folders.push(folder.to_owned());
    }
    let guard = Guard::of(files, &folders, has_patterns);
    match guard.changed() {
        None => Ok(guard),
        Some(reason) => Err(reason),
    }
}

/// Whether a file is one of msbuild's language, among those of [`ambient`].
fn is_msbuilds(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension != "json" && !extension.eq_ignore_ascii_case("config"))
}

/// The plan, where the compilations that msbuild told are such as a warm compiler can make, and nothing has changed meanwhile.
fn finished(
    resolved: Resolved,
    compilations: Vec<Compilation>,
    mut guard: Guard,
    compiler: &Path,
) -> Result<Plan, String> {
    let own: BTreeSet<&Path> = compilations
        .iter()
        .flat_map(|one| [Some(&*one.output), one.reference_output.as_deref()])
        .flatten()
        .collect();
    for one in &compilations {
        let name = one.output.display();
        if !is_same_file(&one.compiler, compiler) {
            return Err(format!("{name}: its compiler is {}", one.compiler.display()));
        }
        known(one).map_err(|reason| format!("{name}: {reason}"))?;
        guard.add(one.inputs.iter().filter(|input| !input.ends_with(REWRITTEN)).cloned());
        guard.add(one.named());
        guard.add(one.sources().filter(|source| is_made(one, source)));
        guard.add(restored_beside(one));
    }
    let others = resolved.references.iter().filter(|path| !own.contains(&***path));
    if let Some(provider) = others.chain(&resolved.assemblies).find(|path| is_type_provider(path)) {
        return Err(format!("{} provides types", provider.display()));
    }
    match guard.changed() {
        None => Ok(Plan { resolved, compilations, guard }),
        Some(reason) => Err(reason),
    }
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    one == other
        || one.canonicalize().ok().is_some_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

/// Whether all of how a project is compiled is known here.
fn known(one: &Compilation) -> Result<(), String> {
    if let Some(argument) =
        one.arguments.iter().find(|argument| UNKNOWN_OPTIONS.iter().any(|start| argument.starts_with(start)))
    {
        return Err(format!("it is compiled with `{argument}`"));
    }
    let outputs = one.arguments.iter().filter(|argument| argument.starts_with("-o:")).count();
    if outputs != 1 || !one.made.is_absolute() || !one.output.is_absolute() {
        return Err("where it is compiled to is not known".to_owned());
    }
    let folder = one.made.parent().unwrap_or(Path::new("/"));
    let is_usual = |c: char| c.is_ascii() && !matches!(c, '=' | ',' | ';' | '"');
    let is_long = folder.file_name().is_some_and(|name| name.len() >= SHORTEST_NAME);
    if !is_long || !folder.to_str().is_some_and(|path| path.chars().all(is_usual)) {
        return Err("the name of the folder it is compiled to is not a usual one".to_owned());
    }
    let mut made = one.sources().filter(|source| is_made(one, source));
    match made.find(|source| !is_usual_made(source)) {
        Some(source) => Err(format!("{} is made by its build", source.display())),
        None => Ok(()),
    }
}

/// Whether a source lies among what builds make.
fn is_made(one: &Compilation, source: &Path) -> bool {
    let folder = one.made.parent().unwrap_or(Path::new("/"));
    source.starts_with(folder) || source.starts_with(one.folder.join("obj"))
}

/// Whether a source that a build makes is made of nothing but what the project's files say.
fn is_usual_made(source: &Path) -> bool {
    let name = source.file_name().unwrap_or_default().to_string_lossy();
    ["AssemblyInfo.fs", "AssemblyAttributes.fs"].iter().any(|end| name.ends_with(end))
}

/// What a restore writes beside its list of assets and msbuild reads.
fn restored_beside(one: &Compilation) -> Vec<PathBuf> {
    let folders = one.inputs.iter().filter(|input| input.ends_with("project.assets.json"));
    let entries = folders.filter_map(|assets| fs::read_dir(assets.parent()?).ok()).flatten().flatten();
    let is_msbuilds = |path: &PathBuf| {
        path.extension().is_some_and(|extension| extension == "props" || extension == "targets")
    };
    entries.map(|entry| entry.path()).filter(is_msbuilds).collect()
}

fn is_type_provider(assembly: &Path) -> bool {
    let is_core = assembly.file_name().is_some_and(|name| name == "FSharp.Core.dll");
    !is_core && fs::read(assembly).is_ok_and(|bytes| has_mark(&bytes))
}

fn has_mark(bytes: &[u8]) -> bool {
    bytes.windows(TYPE_PROVIDER.len()).any(|window| window == TYPE_PROVIDER)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compilation(arguments: &[&str]) -> Compilation {
        Compilation {
            folder: PathBuf::from("/a"),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            made: PathBuf::from("/a/obj/Debug/net10.0/A.dll"),
            output: PathBuf::from("/a/bin/A.dll"),
            ..Compilation::default()
        }
    }

    #[test]
    fn what_is_compiled_in_an_unusual_way_is_left_to_a_build() {
        let known = |arguments: &[&str]| known(&compilation(arguments));
        let made = "obj/Debug/net10.0/A.AssemblyInfo.fs";
        assert_eq!(known(&["-o:obj/Debug/net10.0/A.dll", made, "A.fs"]), Ok(()));
        assert_eq!(known(&["-o:a", "--sig:A.fsi"]).unwrap_err(), "it is compiled with `--sig:A.fsi`");
        assert_eq!(known(&["A.fs"]).unwrap_err(), "where it is compiled to is not known");
        let lexer = "/a/obj/Debug/net10.0/Lexer.fs is made by its build";
        assert_eq!(known(&["-o:a", "obj/Debug/net10.0/Lexer.fs"]).unwrap_err(), lexer);
        let mut short = compilation(&["-o:a"]);
        short.made = PathBuf::from("/a/o/A.dll");
        assert!(super::known(&short).is_err());
    }
}
