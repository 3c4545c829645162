//! How a build calls the compiler of each project: the arguments as msbuild would give them, and where what is made goes to.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mainstay_os::command;

use super::document::path_from;
use super::msbuild::escaped;
use super::toolchain::{Toolchain, scratch};

/// How long msbuild may take. Nobody waits for it.
const LIMIT: Duration = Duration::from_secs(5 * 60);
const TARGETS: &str = include_str!("compilation.targets");

/// How one project is compiled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Compilation {
    /// The folder of the project: relative paths count from there.
    pub(super) folder: PathBuf,
    /// What the compiler is told.
    pub(super) arguments: Vec<String>,
    /// The assembly that the compiler writes, among what is made on the way.
    pub(super) made: PathBuf,
    /// The one without bodies, where that is made too.
    pub(super) reference_made: Option<PathBuf>,
    /// Where a build puts the assembly.
    pub(super) output: PathBuf,
    /// Where it puts the one without bodies, which projects that refer to this one are compiled with.
    pub(super) reference_output: Option<PathBuf>,
    /// Where it puts the documentation.
    pub(super) documentation: Option<PathBuf>,
    /// The compiler that msbuild would start.
    pub(super) compiler: PathBuf,
    /// Files that the arguments come from or that a build makes other files from.
    pub(super) inputs: Vec<PathBuf>,
}

/// How these projects are compiled, in their order; else why that could not be told.
pub(super) async fn compilations(
    projects: &[PathBuf],
    toolchain: &Toolchain,
) -> Result<Vec<Compilation>, String> {
    let scratch = scratch().map_err(|error| error.to_string())?;
    let folder = scratch.path();
    let write =
        |name: &str, text: &str| fs::write(folder.join(name), text).map_err(|error| error.to_string());
    write("compilation.targets", TARGETS)?;
    write("compilation.proj", &asking(projects, folder))?;
    let mut command = toolchain.msbuild(folder);
    let log = folder.join("log");
    let ran = command::run(command.arg(folder.join("compilation.proj")), &log, LIMIT).await;
    ran.map_err(|error| error.to_string())?;
    let told = |(index, project): (usize, &PathBuf)| {
        let text = fs::read_to_string(folder.join(index.to_string()))
            .map_err(|_| format!("{}: it told nothing", project.display()))?;
        Ok(told(&text, project.parent().unwrap_or(Path::new("/"))))
    };
    projects.iter().enumerate().map(told).collect()
}

/// A project that has others tell how they are compiled, each into a file named by its place in the list.
fn asking(projects: &[PathBuf], folder: &Path) -> String {
    let mut text = "<Project DefaultTargets=\"Ask\"><ItemGroup>\n".to_owned();
    for (index, project) in projects.iter().enumerate() {
        let (project, output) = (escaped(project), escaped(&folder.join(index.to_string())));
        text += &format!(
            "<P Include=\"{project}\"><AdditionalProperties>MainstayOutput={output}</AdditionalProperties></P>\n"
        );
    }
    let targets = escaped(&folder.join("compilation.targets"));
    let nowhere = escaped(&folder.join("nowhere"));
    // The compiler's target runs also where all is up to date, since one of its outputs is never there; the compiler does not.
    text + &format!(
        "</ItemGroup><Target Name=\"Ask\">\n\
         <MSBuild Projects=\"@(P)\" Targets=\"MainstayCompilation\" Properties=\"SkipCompilerExecution=true;\
         ProvideCommandLineArgs=true;BuildProjectReferences=false;NonExistentFile={nowhere};\
         CustomAfterMicrosoftCommonTargets={targets}\" />\n</Target></Project>\n"
    )
}

fn told(text: &str, folder: &Path) -> Compilation {
    let mut told = Compilation { folder: folder.to_owned(), ..Compilation::default() };
    for (name, value) in text.lines().filter_map(|line| line.trim_start_matches('\u{feff}').split_once('=')) {
        let path = || path_from(folder, value);
        match name {
            "argument" => told.arguments.push(value.to_owned()),
            "compiler" => told.compiler = path_from(folder, value.trim_matches('"')),
            "made" => told.made = path(),
            "reference-made" => told.reference_made = Some(path()),
            "output" => told.output = path(),
            "reference-output" => told.reference_output = Some(path()),
            "documentation" => told.documentation = Some(path()),
            "assets" | "input" => told.inputs.push(path()),
            _ => {}
        }
    }
    told
}

impl Compilation {
    /// The sources among the arguments, in their order.
    pub(super) fn sources(&self) -> impl Iterator<Item = PathBuf> {
        self.arguments
            .iter()
            .filter(|argument| !argument.starts_with('-'))
            .map(|source| path_from(&self.folder, source))
    }

    /// The assemblies it is compiled with.
    pub(super) fn references(&self) -> impl Iterator<Item = PathBuf> {
        let reference = |argument: &String| {
            let path = argument.strip_prefix("-r:").or_else(|| argument.strip_prefix("--reference:"))?;
            Some(path_from(&self.folder, path))
        };
        self.arguments.iter().filter_map(reference)
    }

    /// Files that options name, beside sources.
    pub(super) fn named(&self) -> impl Iterator<Item = PathBuf> {
        let sources: BTreeSet<PathBuf> = self.sources().collect();
        let named = |argument: &String| -> Vec<PathBuf> {
            let Some((option, value)) = argument.strip_prefix("--").and_then(|one| one.split_once(':'))
            else {
                return Vec::new();
            };
            let paths = || value.split([',', ';']).map(|path| path_from(&self.folder, path));
            match option {
                "reference" | "refout" | "doc" | "pdb" | "define" => Vec::new(),
                // Sources that no repository has are put into the symbols.
                "embed" => paths().collect(),
                // What follows the file says something of it.
                _ => paths().take(1).collect(),
            }
        };
        let named = self.arguments.iter().flat_map(named);
        named.filter(move |path| path.is_file() && !sources.contains(path))
    }

    /// The value of an option that is given once.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        self.arguments.iter().find_map(|argument| argument.strip_prefix(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_project_told_is_read() {
        let text = "\u{feff}compiler=\"/sdk/FSharp/fsc.dll\"\nassets=obj/project.assets.json\noutput=/a/bin/A.dll\nmade=/a/obj/A.dll\nargument=-o:obj/A.dll\nargument=--define:A=1\nargument=-r:/p/B.dll\nargument=sub/A.fs\nother=1\n";
        let read = told(text, Path::new("/a"));
        assert_eq!(read.arguments, ["-o:obj/A.dll", "--define:A=1", "-r:/p/B.dll", "sub/A.fs"]);
        assert_eq!(read.compiler, Path::new("/sdk/FSharp/fsc.dll"));
        assert_eq!(read.inputs, [Path::new("/a/obj/project.assets.json")]);
        assert_eq!(read.sources().collect::<Vec<_>>(), [Path::new("/a/sub/A.fs")]);
        assert_eq!(read.references().collect::<Vec<_>>(), [Path::new("/p/B.dll")]);
        assert_eq!((read.option("-o:"), read.option("--doc:")), (Some("obj/A.dll"), None));
        assert_eq!(read.reference_made, None);
    }

    #[test]
    fn sources_are_no_files_that_an_option_names() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["A.fs", "B.fs", "logo.png", "key.snk"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let said =
            ["--embed:A.fs,B.fs", "--resource:logo.png,A.logo", "--keyfile:key.snk", "--define:A.fs", "A.fs"];
        let one = Compilation {
            folder: folder.path().to_owned(),
            arguments: said.map(str::to_owned).into(),
            ..Compilation::default()
        };
        let expected = ["B.fs", "logo.png", "key.snk"].map(|name| folder.path().join(name));
        assert_eq!(one.named().collect::<Vec<_>>(), expected);
    }
}
