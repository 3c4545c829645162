//! The road of msbuild: the SDK itself reads the projects, and a target of ours has them tell what they are made of.
//! `-getItem` and `-getProperty` would do that too, but SDKs before 8 do not know them.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::slice;
use std::time::Duration;

use mainstay_model::Error;
use tokio::task::spawn_blocking;

use super::document::path_from;
use super::fallback::in_order;
use super::framework::{Framework, choose};
use super::notes::{not_built, not_loadable, not_restored, not_there, unknown_language};
use super::options::{CompilationProperties, symbols};
use super::order::dependencies_first;
use super::runtimes::native_folders;
use super::solution::is_fsharp;
use super::toolchain::{Toolchain, scratch, unavailable};
use super::{Content, OnStep, Resolved, Road, telling};
use crate::fsharp::version::SdkVersion;
use mainstay_os::command::{self, CommandError};

/// How long msbuild may take to read projects. It takes half a second, and a tenth for each project.
const LIMIT: Duration = Duration::from_secs(5 * 60);
/// How often projects may name others that are not known yet.
const MOST_ROUNDS: usize = 128;
/// What a worker runs on anyway.
const OWN_RUNTIMES: [&str; 2] = ["Microsoft.NETCore.App", "NETStandard.Library"];
const TARGETS: &str = include_str!("probe.targets");

/// Why msbuild did not tell what projects are made of.
#[derive(Debug)]
pub(super) enum Refusal {
    /// It has something against the projects: this is what.
    Projects(String),
    /// It could not be tried.
    Machine(Error),
}

/// What `roots` need, as msbuild finds it.
pub(super) async fn resolve(
    roots: &[PathBuf],
    toolchain: &Toolchain,
    progress: OnStep<'_>,
) -> Result<Resolved, Refusal> {
    let runtime = &toolchain.parts.runtime.version;
    let mut probed: HashMap<PathBuf, ProjectProperties> = HashMap::new();
    let mut waiting: Vec<ProjectQuery> = first_asked(roots, runtime).await;
    for _ in 0..MOST_ROUNDS {
        if waiting.is_empty() {
            break;
        }
        let what = format!("reading {} with msbuild", counted(waiting.len()));
        let told = telling(what, progress, probe(&waiting, toolchain)).await?;
        let mut next: Vec<ProjectQuery> = Vec::new();
        for (asked, told) in waiting.into_iter().zip(told) {
            match told {
                ProjectAnswer::Frameworks(frameworks) => next.push(asked.for_one_of(&frameworks, runtime)?),
                ProjectAnswer::Project(project) => {
                    let others = project.projects.iter();
                    next.extend(others.map(|path| ProjectQuery { path: path.clone(), framework: None }));
                    probed.insert(asked.path, project);
                }
            }
        }
        next.sort();
        next.dedup();
        next.retain(|asked| !probed.contains_key(&asked.path));
        waiting = next;
    }
    put_together(roots, &probed, runtime).map_err(Refusal::Machine)
}

/// Each start of msbuild takes about a second, so in the first one also those projects are asked that seem to be referred to. Whether they
/// are, it tells itself.
async fn first_asked(roots: &[PathBuf], runtime: &SdkVersion) -> Vec<ProjectQuery> {
    let (given, runtime) = (roots.to_vec(), runtime.clone());
    let seem = spawn_blocking(move || in_order(&given, &runtime)).await;
    let seem = seem.ok().and_then(Result::ok).unwrap_or_default();
    let paths: BTreeSet<PathBuf> =
        seem.into_iter().map(|project| project.path).chain(roots.iter().cloned()).collect();
    paths.into_iter().map(|path| ProjectQuery { path, framework: None }).collect()
}

/// `1 project`, `2 projects`.
pub(super) fn counted(projects: usize) -> String {
    format!("{projects} project{}", if projects == 1 { "" } else { "s" })
}

/// A project that is to be read, for one framework where it has several.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ProjectQuery {
    path: PathBuf,
    framework: Option<String>,
}

impl ProjectQuery {
    fn for_one_of(self, frameworks: &str, runtime: &SdkVersion) -> Result<Self, Refusal> {
        let path = self.path.display();
        if self.framework.is_some() {
            return Err(Refusal::Projects(format!("{path}: it has frameworks in its frameworks")));
        }
        let names = || frameworks.split([',', ';']).map(str::trim).filter(|name| !name.is_empty());
        let framework = choose(names(), runtime).or_else(|| names().next());
        let framework =
            framework.ok_or_else(|| Refusal::Projects(format!("{path}: it names no target framework")))?;
        Ok(Self { framework: Some(framework.to_owned()), path: self.path })
    }
}

/// What a project told.
#[derive(Debug, PartialEq, Eq)]
enum ProjectAnswer {
    /// It has several frameworks: it is to be asked for one of them.
    Frameworks(String),
    Project(ProjectProperties),
}

#[derive(Debug, Default, PartialEq, Eq)]
struct ProjectProperties {
    framework: String,
    output: PathBuf,
    defines: Vec<String>,
    references: Vec<PathBuf>,
    sources: Vec<PathBuf>,
    projects: Vec<PathBuf>,
    /// The shared runtimes it runs on.
    runtimes: Vec<String>,
    /// What it says of its compilation.
    said: CompilationProperties,
    /// The native libraries of its packages, each with the platform it is for.
    natives: Vec<(String, PathBuf)>,
    /// What a build puts beside its assembly.
    contents: Vec<Content>,
    /// The packages it names, where they were not restored.
    unrestored: Vec<String>,
}

async fn probe(asked: &[ProjectQuery], toolchain: &Toolchain) -> Result<Vec<ProjectAnswer>, Refusal> {
    let scratch = scratch().map_err(Refusal::Machine)?;
    let folder = scratch.path();
    let write = |name: &str, text: &str| {
        fs::write(folder.join(name), text).map_err(|error| Refusal::Machine(unavailable(error)))
    };
    write("probe.targets", TARGETS)?;
    write("probe.proj", &probing(asked, folder))?;
    let log = folder.join("log");
    let mut command = toolchain.msbuild(folder);
    match command::run(command.arg(folder.join("probe.proj")), &log, LIMIT).await {
        Ok(()) => {}
        Err(CommandError::Start { source, .. }) => return Err(Refusal::Machine(unavailable(source))),
        Err(error @ CommandError::TimedOut { .. }) => return Err(Refusal::Projects(error.to_string())),
        Err(CommandError::Failed { text, .. }) => return Err(Refusal::Projects(text)),
    }
    let told = |(index, asked): (usize, &ProjectQuery)| {
        let text = fs::read_to_string(folder.join(index.to_string()));
        let text =
            text.map_err(|_| Refusal::Projects(format!("{}: it told nothing", asked.path.display())))?;
        Ok(told(&text, asked.path.parent().unwrap_or(Path::new(""))))
    };
    asked.iter().enumerate().map(told).collect()
}

/// A project that has others tell what they are made of, each into a file named by its place in the list.
fn probing(asked: &[ProjectQuery], folder: &Path) -> String {
    let mut text = "<Project DefaultTargets=\"Probe\"><ItemGroup>\n".to_owned();
    for (index, ProjectQuery { path, framework }) in asked.iter().enumerate() {
        let output = escaped(&folder.join(index.to_string()));
        let framework = framework.as_ref().map(|name| format!(";TargetFramework={name}")).unwrap_or_default();
        let include = escaped(path);
        text += &format!(
            "<P{index} Include=\"{include}\"><AdditionalProperties>MainstayOutput={output}{framework}</AdditionalProperties></P{index}>\n"
        );
    }
    let targets = escaped(&folder.join("probe.targets"));
    // A design-time build compiles nothing, and takes the outputs of other projects as they are.
    let properties = format!(
        "DesignTimeBuild=true;BuildProjectReferences=false;SkipCompilerExecution=true;CopyLocalLockFileAssemblies=true;\
         CustomAfterMicrosoftCommonTargets={targets};CustomAfterMicrosoftCommonCrossTargetingTargets={targets}"
    );
    text += "</ItemGroup><Target Name=\"Probe\">\n";
    for index in 0..asked.len() {
        text += &format!(
            "<MSBuild Projects=\"@(P{index})\" Targets=\"MainstayProbe\" Properties=\"{properties}\" />\n"
        );
    }
    text + "</Target></Project>\n"
}

/// A path as the text of an attribute that msbuild takes for nothing but this path.
pub(super) fn escaped(path: &Path) -> String {
    let mut text = String::new();
    for c in path.to_string_lossy().chars() {
        match c {
            '%' | '*' | '?' | '@' | '$' | '(' | ')' | ';' | '\'' | '=' => {
                text += &format!("%{:02X}", c as u32)
            }
            '&' => text += "&amp;",
            '<' => text += "&lt;",
            '>' => text += "&gt;",
            '"' => text += "&quot;",
            c => text.push(c),
        }
    }
    text
}

fn told(text: &str, folder: &Path) -> ProjectAnswer {
    let mut project = ProjectProperties::default();
    for (name, value) in text.lines().filter_map(|line| line.trim_start_matches('\u{feff}').split_once('=')) {
        let path = || path_from(folder, value);
        match name {
            "frameworks" => return ProjectAnswer::Frameworks(value.to_owned()),
            "framework" => value.clone_into(&mut project.framework),
            "output" => project.output = path(),
            "defines" => project.defines = names(value),
            "reference" => project.references.push(path()),
            "source" => project.sources.push(path()),
            "project" => project.projects.push(path()),
            "nullable" => value.clone_into(&mut project.said.nullable),
            "language" => value.clone_into(&mut project.said.language),
            "nowarn" => value.clone_into(&mut project.said.no_warn),
            "warnon" => value.clone_into(&mut project.said.warn_on),
            "flags" => value.clone_into(&mut project.said.other_flags),
            "native" => {
                let platform = value
                    .split_once('|')
                    .map(|(platform, file)| (platform.to_owned(), path_from(folder, file)));
                project.natives.extend(platform);
            }
            "content" => {
                let content = value.split_once('|').map(|(place, file)| Content {
                    origin: path_from(folder, file),
                    place: PathBuf::from(place.replace('\\', "/")),
                });
                project.contents.extend(content);
            }
            "runtime" if !OWN_RUNTIMES.contains(&value) => project.runtimes.push(value.to_owned()),
            // It comes with every F# project, and from the worker.
            "unrestored" if value != "FSharp.Core" => project.unrestored.push(value.to_owned()),
            _ => {}
        }
    }
    ProjectAnswer::Project(project)
}

fn names(list: &str) -> Vec<String> {
    list.split([',', ';']).map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn put_together(
    roots: &[PathBuf],
    probed: &HashMap<PathBuf, ProjectProperties>,
    runtime: &SdkVersion,
) -> Result<Resolved, Error> {
    let references = |path: &Path| probed.get(path).map(|project| &*project.projects).unwrap_or_default();
    let mut resolved = Resolved::empty(Road::Msbuild);
    for path in dependencies_first(roots, &references)? {
        let Some(project) = probed.get(path) else { continue };
        resolved.notes.extend(notes(path, project, runtime));
        let there = |files: &[PathBuf]| -> Vec<PathBuf> {
            files.iter().filter(|file| file.is_file()).cloned().collect()
        };
        let output = there(slice::from_ref(&project.output));
        if output.is_empty() {
            resolved.unbuilt.push(path.to_owned());
        }
        resolved.references.extend(there(&project.references));
        resolved.sources.extend_from_slice(&project.sources);
        // What another language's compiler is told, such as C#'s `LangVersion`, means nothing or something else to F#'s.
        if is_fsharp(path) {
            resolved.arguments.extend(project.said.arguments(&project.defines, runtime));
            let unknown = project.said.unknown_language(runtime);
            resolved.notes.extend(unknown.map(|language| unknown_language(path, language)));
            resolved.defines.extend_from_slice(&project.defines);
            let symbols = symbols(&project.defines, project.said.other_flags.split_whitespace());
            resolved.symbols.extend(output.iter().map(|assembly| (assembly.clone(), symbols.clone())));
        }
        resolved.assemblies.extend(output);
        resolved.natives.extend(native_folders(&project.natives));
        resolved.contents.extend_from_slice(&project.contents);
        resolved.runtimes.extend(project.runtimes.iter().map(|name| (path.to_owned(), name.clone())));
        resolved.framework = Some(project.framework.clone());
        resolved.projects.push(path.to_owned());
    }
    Ok(resolved)
}

/// What a project lacks.
fn notes(path: &Path, project: &ProjectProperties, runtime: &SdkVersion) -> Vec<String> {
    let mut notes = Vec::new();
    if !project.output.is_file() {
        notes.push(not_built(path, &project.output));
    }
    let framework = &project.framework;
    if !Framework::of(framework).is_some_and(|framework| framework.runs_on(runtime)) {
        notes.push(not_loadable(path, framework, runtime));
    }
    if !project.unrestored.is_empty() {
        notes.push(not_restored(path, &project.unrestored));
    }
    let missing = project.references.iter().filter(|file| !file.is_file());
    notes.extend(missing.map(|file| not_there(path, file)));
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_project_told_is_read() {
        let text = "\u{feff}framework=net8.0\noutput=/a/bin/A.dll\ndefines=TRACE,,A\nreference=/p/a=b.dll\nsource=/a/A.fs\nproject=../b/B.fsproj\nruntime=Microsoft.NETCore.App\nruntime=Web\nnullable=enable\nnowarn=25;40\nnative=linux-x64|/p/libx.so\ncontent=data\\x.json|/a/data/x.json\nunrestored=FSharp.Core\nunrestored=Json\nother\n";
        let expected = ProjectProperties {
            framework: "net8.0".into(),
            output: "/a/bin/A.dll".into(),
            defines: vec!["TRACE".into(), "A".into()],
            references: vec!["/p/a=b.dll".into()],
            sources: vec!["/a/A.fs".into()],
            projects: vec!["/b/B.fsproj".into()],
            runtimes: vec!["Web".into()],
            said: CompilationProperties {
                nullable: "enable".into(),
                no_warn: "25;40".into(),
                ..CompilationProperties::default()
            },
            natives: vec![("linux-x64".into(), "/p/libx.so".into())],
            contents: vec![Content { origin: "/a/data/x.json".into(), place: "data/x.json".into() }],
            unrestored: vec!["Json".into()],
        };
        assert_eq!(told(text, Path::new("/a")), ProjectAnswer::Project(expected));
        assert_eq!(told("frameworks=a,b", Path::new("/a")), ProjectAnswer::Frameworks("a,b".into()));
    }

    #[test]
    fn a_path_is_nothing_but_itself_to_msbuild() {
        assert_eq!(
            escaped(Path::new("/a b/$(c);*\"&%.fsproj")),
            "/a b/%24%28c%29%3B%2A&quot;&amp;%25.fsproj"
        );
        let asked = [ProjectQuery { path: "/a;b/A.fsproj".into(), framework: Some("net8.0".into()) }];
        let text = probing(&asked, Path::new("/tmp/x"));
        assert!(roxmltree::Document::parse(&text).is_ok(), "{text}");
        assert!(text.contains("Include=\"/a%3Bb/A.fsproj\""), "{text}");
    }
}
