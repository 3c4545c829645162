//! What a project file says, read without msbuild: the part of its language that most project files keep to. What is not understood
//! is left out and named in the notes, for people; `docs/fsharp-projects.md` lists it. Only project files are read here, none of what
//! was built or restored.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use mainstay_model::Error;
use roxmltree::Node;

use super::condition;
use super::document::{invalid, parse, path_from, read};
use super::framework::{self, Framework};
use super::notes::not_loadable;
use crate::fsharp::version::SdkVersion;

/// How deep imports may be nested.
const DEEPEST_IMPORT: usize = 32;
/// How long a property may grow, in bytes.
const LONGEST_PROPERTY: usize = 256 * 1024;
/// How many notes are kept of one project.
const MOST_NOTES: usize = 32;

/// A project as its files have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Evaluated {
    /// The path of the project file.
    pub(super) path: PathBuf,
    /// The target framework that was chosen.
    pub(super) framework: Option<String>,
    /// The assembly that a build writes.
    pub(super) output: PathBuf,
    /// The folder of what a restore writes.
    pub(super) restored: PathBuf,
    /// Whether it is a program.
    pub(super) is_program: bool,
    /// Its sources, in order.
    pub(super) sources: Vec<PathBuf>,
    /// The assemblies it names by their files.
    pub(super) references: Vec<PathBuf>,
    /// The projects it refers to.
    pub(super) projects: Vec<PathBuf>,
    /// The packages it names.
    pub(super) packages: Vec<String>,
    /// What is defined for its conditional code.
    pub(super) defines: Vec<String>,
    /// What else the compiler is to be told.
    pub(super) options: Vec<String>,
    /// The shared frameworks it runs on beside .NET's own.
    pub(super) runtimes: Vec<String>,
    /// What was not understood.
    pub(super) notes: Vec<String>,
}

/// Reads the project at `path` for a configuration, for the newest of its frameworks that `runtime` can load.
pub(super) fn evaluate(path: &Path, configuration: &str, runtime: &SdkVersion) -> Result<Evaluated, Error> {
    let mut first = Evaluation::new(path, configuration, None);
    first.properties()?;
    let frameworks = first.said("TargetFrameworks").or(first.said("TargetFramework")).unwrap_or_default();
    let chosen = framework::choose(frameworks.split(';'), runtime);
    // Where none can be loaded, the first still says what there is.
    let framework = chosen.or_else(|| frameworks.split(';').map(str::trim).find(|name| !name.is_empty()));
    let mut evaluation = Evaluation::new(path, configuration, framework);
    evaluation.properties()?;
    evaluation.pass(Pass::Items)?;
    match framework {
        Some(name) if chosen.is_none() => evaluation.notes.push(not_loadable(path, name, runtime)),
        Some(_) => {}
        None => evaluation.note("it names no target framework".to_owned()),
    }
    Ok(evaluation.finish(framework))
}

/// The SDK of projects that run on [`WEB_RUNTIME`] without saying so.
const WEB_SDK: &str = "Microsoft.NET.Sdk.Web";
const WEB_RUNTIME: &str = "Microsoft.AspNetCore.App";

/// msbuild reads all properties before the first item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    Properties,
    Items,
}

/// The reading of one project.
struct Evaluation<'a> {
    path: &'a Path,
    folder: &'a Path,
    /// By name in small letters: names do not differ by case.
    properties: HashMap<String, String>,
    /// Names that the files cannot change.
    fixed: HashSet<&'static str>,
    /// The files that this pass has read.
    seen: HashSet<PathBuf>,
    items: Items,
    notes: Vec<String>,
}

#[derive(Default)]
struct Items {
    sources: Vec<PathBuf>,
    references: Vec<PathBuf>,
    projects: Vec<PathBuf>,
    packages: Vec<String>,
    /// The shared frameworks it names.
    runtimes: Vec<String>,
}

impl<'a> Evaluation<'a> {
    fn new(path: &'a Path, configuration: &str, framework: Option<&str>) -> Self {
        let folder = path.parent().unwrap_or(Path::new(""));
        let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut evaluation = Self {
            path,
            folder,
            properties: HashMap::new(),
            fixed: HashSet::from(["configuration", "platform"]),
            seen: HashSet::new(),
            items: Items::default(),
            notes: Vec::new(),
        };
        let mut define = |name: &str, value: String| {
            evaluation.properties.insert(name.to_ascii_lowercase(), value);
        };
        define("Configuration", configuration.to_owned());
        define("Platform", "AnyCPU".to_owned());
        define("DefineConstants", "TRACE".to_owned());
        define("MSBuildProjectDirectory", folder.display().to_string());
        define("MSBuildProjectFullPath", path.display().to_string());
        define("MSBuildProjectName", stem(path));
        define("MSBuildProjectFile", name(path));
        define("OS", "Unix".to_owned());
        // What project files add to, and so read before anyone has set it.
        for name in ["NoWarn", "OtherFlags", "TargetFramework", "TargetFrameworks"] {
            define(name, String::new());
        }
        if let Some(framework) = framework {
            define("TargetFramework", framework.to_owned());
            evaluation.fixed.insert("targetframework");
        }
        evaluation
    }

    fn properties(&mut self) -> Result<(), Error> {
        self.pass(Pass::Properties)
    }

    fn pass(&mut self, pass: Pass) -> Result<(), Error> {
        self.seen.clear();
        if let Some(props) = self.above("Directory.Build.props") {
            self.file(&props, pass, 0)?;
        }
        self.file(self.path, pass, 0)?;
        if let Some(targets) = self.above("Directory.Build.targets") {
            self.file(&targets, pass, 0)?;
        }
        Ok(())
    }

    /// The nearest file of this name in the project's folder or above it.
    fn above(&self, name: &str) -> Option<PathBuf> {
        self.folder.ancestors().map(|folder| folder.join(name)).find(|path| path.is_file())
    }

    fn file(&mut self, path: &Path, pass: Pass, depth: usize) -> Result<(), Error> {
        // msbuild too reads a file once.
        if !self.seen.insert(path.to_owned()) {
            return Ok(());
        }
        let text = read(path)?;
        let document = parse(&text).map_err(|reason| invalid(path, reason))?;
        let root = document.root_element();
        if root.tag_name().name() != "Project" {
            return Err(invalid(path, "it is no project: its root is not `Project`"));
        }
        if pass == Pass::Items && root.attribute("Sdk").is_some_and(|sdk| sdk.contains(WEB_SDK)) {
            self.items.runtimes.push(WEB_RUNTIME.to_owned());
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        self.properties.insert("msbuildthisfiledirectory".to_owned(), format!("{}/", folder.display()));
        self.children(root, folder, pass, depth)
    }

    fn children(
        &mut self,
        parent: Node<'_, '_>,
        folder: &Path,
        pass: Pass,
        depth: usize,
    ) -> Result<(), Error> {
        if depth > DEEPEST_IMPORT {
            return Err(invalid(self.path, "imports are nested too deeply"));
        }
        for node in parent.children().filter(Node::is_element) {
            match (node.tag_name().name(), pass) {
                ("PropertyGroup", Pass::Properties) if self.holds(node) => self.property_group(node),
                ("ItemGroup", Pass::Items) if self.holds(node) => self.item_group(node, folder),
                ("ImportGroup", _) if self.holds(node) => self.children(node, folder, pass, depth + 1)?,
                ("Import", _) if node.attribute("Sdk").is_none() && self.holds(node) => {
                    self.import(node, folder, pass, depth)?;
                }
                ("Choose", Pass::Items) => self.note("`Choose` is not followed".to_owned()),
                ("Target", Pass::Items) => {
                    let name = node.attribute("Name").unwrap_or_default();
                    self.note(format!("its own target `{name}` is not run"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn import(&mut self, node: Node<'_, '_>, folder: &Path, pass: Pass, depth: usize) -> Result<(), Error> {
        let written = node.attribute("Project").unwrap_or_default();
        let Some(path) = self.expanded(written) else { return Ok(()) };
        let path = path_from(folder, &path);
        if !path.is_file() {
            self.note(format!("it imports {}, which is not there", path.display()));
            return Ok(());
        }
        self.file(&path, pass, depth + 1)?;
        self.properties.insert("msbuildthisfiledirectory".to_owned(), format!("{}/", folder.display()));
        Ok(())
    }

    fn property_group(&mut self, group: Node<'_, '_>) {
        for node in group.children().filter(Node::is_element) {
            let name = node.tag_name().name().to_ascii_lowercase();
            if self.fixed.contains(name.as_str()) || !self.holds(node) {
                continue;
            }
            if let Some(value) = self.expanded(node.text().unwrap_or_default()) {
                self.properties.insert(name, value.trim().to_owned());
            }
        }
    }

    fn item_group(&mut self, group: Node<'_, '_>, folder: &Path) {
        for node in group.children().filter(Node::is_element) {
            if self.holds(node) {
                self.item(node, folder);
            }
        }
    }

    /// Paths of items count from the project's folder, also in a file that it imports.
    fn item(&mut self, node: Node<'_, '_>, folder: &Path) {
        let folder = if node.attribute("Include").is_some() { self.folder } else { folder };
        let kind = node.tag_name().name();
        match kind {
            "Compile" => {
                for path in self.listed(node, "Include") {
                    self.items.sources.push(path_from(folder, &path));
                }
                for path in self.listed(node, "Remove") {
                    let removed = path_from(self.folder, &path);
                    self.items.sources.retain(|source| *source != removed);
                }
            }
            "ProjectReference" => {
                let is_needed =
                    metadata(node, "ReferenceOutputAssembly").is_none_or(|value| value != "false");
                for path in self.listed(node, "Include") {
                    if is_needed {
                        self.items.projects.push(path_from(folder, &path));
                    }
                }
            }
            "Reference" => match metadata(node, "HintPath") {
                Some(hint) => {
                    if let Some(path) = self.expanded(hint) {
                        self.items.references.push(path_from(folder, &unescaped(&path)));
                    }
                }
                None => {
                    for name in self.listed(node, "Include") {
                        if name.ends_with(".dll") {
                            self.items.references.push(path_from(folder, &name));
                        } else {
                            self.note(format!("the reference `{name}` has no `HintPath`"));
                        }
                    }
                }
            },
            "PackageReference" => {
                let packages = self.listed(node, "Include");
                self.items.packages.extend(packages);
                for name in self.listed(node, "Remove") {
                    self.items.packages.retain(|package| !package.eq_ignore_ascii_case(&name));
                }
            }
            "FrameworkReference" => {
                let names = self.listed(node, "Include");
                self.items.runtimes.extend(names);
            }
            "EmbeddedResource" => self.note("embedded resources are not compiled in".to_owned()),
            _ => {}
        }
    }

    /// What an attribute lists. Patterns are named in a note and left out.
    fn listed(&mut self, node: Node<'_, '_>, attribute: &str) -> Vec<String> {
        let Some(written) = node.attribute(attribute) else { return Vec::new() };
        let Some(value) = self.expanded(written) else { return Vec::new() };
        let mut listed = Vec::new();
        for part in value.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            if part.contains(['*', '?']) || part.contains("@(") {
                self.note(format!("`{part}` is a pattern or a list, which is not followed"));
            } else {
                listed.push(unescaped(part));
            }
        }
        listed
    }

    /// Whether the condition of an element holds. One that is not understood does not.
    fn holds(&mut self, node: Node<'_, '_>) -> bool {
        let Some(condition) = node.attribute("Condition").filter(|text| !text.trim().is_empty()) else {
            return true;
        };
        let value = condition::holds(condition, &|text| self.known(text).ok());
        value.unwrap_or_else(|| {
            self.note(format!(
                "`{}` is left out: its condition is not understood: {condition}",
                node.tag_name().name()
            ));
            false
        })
    }

    /// A text with the values of its properties in it; nothing, and a note, where it names one that is not known.
    fn expanded(&mut self, text: &str) -> Option<String> {
        match self.known(text) {
            Ok(value) => Some(value),
            Err(unknown) => {
                self.note(format!("`{}` is left out: `{unknown}` is not known", text.trim()));
                None
            }
        }
    }

    fn known(&self, text: &str) -> Result<String, String> {
        let mut value = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("$(") {
            value.push_str(before);
            let (name, after) = after.split_once(')').ok_or_else(|| rest.to_owned())?;
            value.push_str(self.property(name).ok_or_else(|| format!("$({name})"))?);
            rest = after;
            if value.len() > LONGEST_PROPERTY {
                return Err("a property that is too long".to_owned());
            }
        }
        value.push_str(rest);
        Ok(value)
    }

    fn property(&self, name: &str) -> Option<&str> {
        self.properties.get(&name.trim().to_ascii_lowercase()).map(String::as_str)
    }

    /// A property that says something.
    fn said(&self, name: &str) -> Option<&str> {
        self.property(name).filter(|value| !value.is_empty())
    }

    fn is(&self, name: &str, value: &str) -> bool {
        self.property(name).is_some_and(|said| said.eq_ignore_ascii_case(value))
    }

    fn note(&mut self, note: String) {
        let note = format!("{}: {note}", self.path.display());
        if self.notes.len() < MOST_NOTES && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn finish(mut self, framework: Option<&str>) -> Evaluated {
        if self.is("UseArtifactsOutput", "true") {
            self.note("the layout of `UseArtifactsOutput` is not known".to_owned());
        }
        let restored = self.said("MSBuildProjectExtensionsPath").or(self.said("BaseIntermediateOutputPath"));
        let output_type = self.said("OutputType").unwrap_or("Library");
        Evaluated {
            framework: framework.map(str::to_owned),
            output: self.output(framework),
            restored: path_from(self.folder, restored.unwrap_or("obj")),
            is_program: !output_type.eq_ignore_ascii_case("Library"),
            defines: self.defines(framework),
            options: self.options(),
            path: self.path.to_owned(),
            sources: self.items.sources,
            references: self.items.references,
            projects: self.items.projects,
            packages: self.items.packages,
            runtimes: self.items.runtimes,
            notes: self.notes,
        }
    }

    fn output(&self, framework: Option<&str>) -> PathBuf {
        let mut folder = match self.said("OutputPath") {
            Some(written) => path_from(self.folder, written),
            None => path_from(self.folder, self.said("BaseOutputPath").unwrap_or("bin"))
                .join(self.property("Configuration").unwrap_or_default()),
        };
        if !self.is("AppendTargetFrameworkToOutputPath", "false") {
            folder.extend(framework);
            if !self.is("AppendRuntimeIdentifierToOutputPath", "false") {
                folder.extend(self.said("RuntimeIdentifier"));
            }
        }
        let name = self.said("AssemblyName").or(self.property("MSBuildProjectName")).unwrap_or_default();
        folder.join(format!("{name}.dll"))
    }

    fn defines(&self, framework: Option<&str>) -> Vec<String> {
        let mut defines: Vec<String> = Vec::new();
        let said = self
            .property("DefineConstants")
            .unwrap_or_default()
            .split([';', ','])
            .map(|name| name.trim().to_owned());
        let debug = self.is("Configuration", "Debug").then(|| "DEBUG".to_owned());
        let implied = framework.and_then(Framework::of).map(Framework::defines).unwrap_or_default();
        for name in said.chain(debug).chain(implied) {
            if !name.is_empty() && !defines.contains(&name) {
                defines.push(name);
            }
        }
        defines
    }

    fn options(&self) -> Vec<String> {
        let listed = |name: &str| -> Vec<String> {
            let value = self.property(name).unwrap_or_default();
            value.split([';', ',', ' ']).filter(|part| !part.is_empty()).map(str::to_owned).collect()
        };
        let mut options: Vec<String> =
            listed("NoWarn").iter().map(|code| format!("--nowarn:{code}")).collect();
        options.extend(self.said("LangVersion").map(|version| format!("--langversion:{version}")));
        if self.is("TreatWarningsAsErrors", "true") {
            options.push("--warnaserror+".to_owned());
        }
        options.extend(self.property("OtherFlags").unwrap_or_default().split_whitespace().map(str::to_owned));
        options
    }
}

/// What an item says beside its name: as an attribute or as an element in it.
fn metadata<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    let element = || node.children().find(|child| child.tag_name().name() == name)?.text();
    node.attribute(name).or_else(element).map(str::trim)
}

/// A text of a project in which `%28` stands for a parenthesis, as msbuild reads it.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('%');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..2).and_then(|code| u8::from_str_radix(code, 16).ok()).filter(u8::is_ascii);
        match code {
            Some(code) => plain.extend([char::from(code)].into_iter().chain(part[2..].chars())),
            None => plain.extend(['%'].into_iter().chain(part.chars())),
        }
    }
    plain
}

#[cfg(test)]
mod tests;
