//! The road without msbuild: projects are read here, and what they need is looked for where builds and restores leave it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};

use mainstay_model::Error;

use super::evaluation::{Evaluated, evaluate};
use super::notes::{not_built, not_restored, not_there};
use super::options::{CompilationProperties, symbols};
use super::order::dependencies_first;
use super::packages::{deployed, restored};
use super::solution::is_fsharp;
use super::{Resolved, Road};
use crate::fsharp::version::SdkVersion;

/// The configurations whose outputs are looked for, the preferred one first.
const CONFIGURATIONS: [&str; 2] = ["Debug", "Release"];

/// What projects need is looked for with this.
#[derive(Debug, Clone)]
pub(super) struct Surroundings {
    /// The runtime that loads the assemblies.
    pub(super) runtime: SdkVersion,
    /// The folders of restored packages.
    pub(super) package_folders: Vec<PathBuf>,
}

/// Resolves what the projects in `roots` need.
pub(super) fn resolve(roots: &[PathBuf], surroundings: &Surroundings) -> Result<Resolved, Error> {
    let projects = in_order(roots, &surroundings.runtime)?;
    let mut resolved = Resolved::empty(Road::Fallback);
    for project in projects {
        add(&mut resolved, project, surroundings)?;
    }
    Ok(resolved)
}

/// `roots` and all projects they refer to, each after those it refers to.
pub(super) fn in_order(roots: &[PathBuf], runtime: &SdkVersion) -> Result<Vec<Evaluated>, Error> {
    let mut evaluated = HashMap::new();
    let mut waiting = roots.to_vec();
    while let Some(path) = waiting.pop() {
        if let Entry::Vacant(place) = evaluated.entry(path) {
            let project = evaluate(place.key(), CONFIGURATIONS[0], runtime)?;
            waiting.extend_from_slice(&project.projects);
            place.insert(project);
        }
    }
    let references = |path: &Path| evaluated.get(path).map(|project| &*project.projects).unwrap_or_default();
    let ordered = dependencies_first(roots, &references)?;
    Ok(ordered.into_iter().filter_map(|path| evaluated.get(path).cloned()).collect())
}

fn add(resolved: &mut Resolved, project: Evaluated, surroundings: &Surroundings) -> Result<(), Error> {
    let mut notes = project.notes.clone();
    let output = built(&project, surroundings, &mut notes)?;
    for path in &project.references {
        if path.is_file() {
            resolved.references.push(path.clone());
        } else {
            notes.push(not_there(&project.path, path));
        }
    }
    let framework = project.framework.as_deref().unwrap_or_default();
    let packages = restored(&project.restored, framework)
        .or_else(|| deployed(output.as_deref()?, &surroundings.package_folders));
    match packages {
        Some(assemblies) => resolved.references.extend(assemblies),
        None if project.packages.is_empty() => {}
        None => notes.push(not_restored(&project.path, &project.packages)),
    }
    if output.is_none() {
        resolved.unbuilt.push(project.path.clone());
    }
    resolved.sources.extend(project.sources);
    if is_fsharp(&project.path) {
        resolved
            .arguments
            .extend(CompilationProperties::default().arguments(&project.defines, &surroundings.runtime));
        let symbols = symbols(&project.defines, project.options.iter().map(String::as_str));
        resolved.symbols.extend(output.clone().map(|assembly| (assembly, symbols)));
        resolved.defines.extend(project.defines);
    }
    resolved.assemblies.extend(output);
    resolved.runtimes.extend(project.runtimes.into_iter().map(|name| (project.path.clone(), name)));
    resolved.framework = project.framework.or(resolved.framework.take());
    resolved.projects.push(project.path);
    resolved.notes.extend(notes);
    Ok(())
}

/// The assembly of a project, of the first configuration in which it was built.
fn built(
    project: &Evaluated,
    surroundings: &Surroundings,
    notes: &mut Vec<String>,
) -> Result<Option<PathBuf>, Error> {
    if project.output.is_file() {
        return Ok(Some(project.output.clone()));
    }
    for configuration in &CONFIGURATIONS[1..] {
        let output = evaluate(&project.path, configuration, &surroundings.runtime)?.output;
        if output.is_file() {
            notes.push(format!(
                "{}: its {configuration} build is taken, there is no other",
                project.path.display()
            ));
            return Ok(Some(output));
        }
    }
    notes.push(not_built(&project.path, &project.output));
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fsharp::testing::Tree;

    fn surroundings() -> Surroundings {
        Surroundings { runtime: SdkVersion::release(3, 1, 2), package_folders: Vec::new() }
    }

    fn project(tree: &Tree, path: &str, items: &str) {
        let text = format!(
            "<Project Sdk='Microsoft.NET.Sdk'><PropertyGroup><TargetFramework>netcoreapp3.1</TargetFramework></PropertyGroup><ItemGroup>{items}</ItemGroup></Project>"
        );
        tree.write(path, &text);
    }

    #[test]
    fn projects_come_after_those_they_refer_to_and_once() {
        let tree = Tree::of("A/bin/Debug/netcoreapp3.1/A.dll\nB/bin/Release/netcoreapp3.1/B.dll");
        project(&tree, "A/A.fsproj", "<Compile Include='A.fs' />");
        project(&tree, "B/B.fsproj", "<ProjectReference Include='../A/A.fsproj' />");
        project(
            &tree,
            "C/C.fsproj",
            "<ProjectReference Include='../B/B.fsproj' /><ProjectReference Include='../A/A.fsproj' /><PackageReference Include='P' />",
        );
        let resolved = resolve(&[tree.path("C/C.fsproj"), tree.path("A/A.fsproj")], &surroundings()).unwrap();
        assert_eq!(resolved.projects, ["A/A.fsproj", "B/B.fsproj", "C/C.fsproj"].map(|path| tree.path(path)));
        let expected = ["A/bin/Debug/netcoreapp3.1/A.dll", "B/bin/Release/netcoreapp3.1/B.dll"];
        assert_eq!(resolved.assemblies, expected.map(|path| tree.path(path)));
        let c = tree.path("C");
        let c = c.display();
        let expected = [
            format!("{}: its Release build is taken, there is no other", tree.path("B/B.fsproj").display()),
            format!(
                "{c}/C.fsproj: {c}/bin/Debug/netcoreapp3.1/C.dll is not there; `session rebuild` builds it"
            ),
            format!("{c}/C.fsproj: its packages (P) were not found; `session rebuild` restores it"),
        ];
        assert_eq!(resolved.notes, expected);
    }

    #[test]
    fn a_circle_and_a_missing_project_are_refused() {
        let tree = Tree::of("");
        project(&tree, "A.fsproj", "<ProjectReference Include='B.fsproj' />");
        project(&tree, "B.fsproj", "<ProjectReference Include='A.fsproj' />");
        project(&tree, "C.fsproj", "<ProjectReference Include='None.fsproj' />");
        let refused = |path: &str| resolve(&[tree.path(path)], &surroundings()).unwrap_err();
        assert!(refused("A.fsproj").to_string().contains("it refers to itself"));
        assert_eq!(
            refused("C.fsproj"),
            Error::ProjectNotFound { path: tree.path("None.fsproj").display().to_string() }
        );
    }
}
