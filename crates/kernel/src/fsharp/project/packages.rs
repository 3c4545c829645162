//! The assemblies of a project's packages, where a restore or a build left a list of them: `obj/project.assets.json`, or the
//! `.deps.json` beside what was built.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::document::read;

/// The assemblies that a restore found for a framework, of all packages and of those that they need; nothing where it has not
/// run for that framework.
pub(super) fn restored(folder: &Path, framework: &str) -> Option<Vec<PathBuf>> {
    let assets = json(&folder.join("project.assets.json"))?;
    let folders: Vec<&Path> = assets["packageFolders"].as_object()?.keys().map(Path::new).collect();
    let targets = assets["targets"].as_object()?;
    let long = long_name(framework);
    let is_meant = |name: &str| name.eq_ignore_ascii_case(framework) || name.eq_ignore_ascii_case(&long);
    let target = targets.iter().find(|(name, _)| is_meant(name))?.1;
    let mut found = Vec::new();
    for (library, file) in package_files(target, &assets) {
        let path = assets["libraries"][library]["path"].as_str()?;
        found.extend(folders.iter().map(|folder| folder.join(path).join(file)).find(|path| path.is_file()));
    }
    Some(found)
}

/// The assemblies that the list beside a built assembly names: beside it as well, or in one of the folders of packages.
pub(super) fn deployed(assembly: &Path, package_folders: &[PathBuf]) -> Option<Vec<PathBuf>> {
    let dependencies = json(&assembly.with_extension("deps.json"))?;
    let target = &dependencies["targets"][dependencies["runtimeTarget"]["name"].as_str()?];
    let beside = assembly.parent()?;
    let mut found = Vec::new();
    for (library, file) in package_files(target, &dependencies) {
        let beside = Path::new(file).file_name().map(|name| beside.join(name));
        let package = dependencies["libraries"][library]["path"].as_str();
        let packed =
            package.map(|path| package_folders.iter().map(move |folder| folder.join(path).join(file)));
        found.extend(beside.into_iter().chain(packed.into_iter().flatten()).find(|path| path.is_file()));
    }
    Some(found)
}

/// The assemblies of the packages of a target, each with the package's name and version.
fn package_files<'a>(target: &'a Value, list: &'a Value) -> impl Iterator<Item = (&'a str, &'a str)> {
    let libraries = target.as_object().into_iter().flatten();
    let packages = libraries.filter(|(name, _)| list["libraries"][name.as_str()]["type"] == "package");
    packages.flat_map(|(name, library)| {
        let files = library["runtime"].as_object().into_iter().flatten().map(|(file, _)| file.as_str());
        files.filter(|file| file.ends_with(".dll")).map(|file| (name.as_str(), file))
    })
}

/// What the lists call a framework: `.NETCoreApp,Version=v3.1` for `netcoreapp3.1`; newer ones by their own name.
fn long_name(framework: &str) -> String {
    for (prefix, name) in [("netcoreapp", ".NETCoreApp"), ("netstandard", ".NETStandard")] {
        if let Some(version) = framework.strip_prefix(prefix) {
            return format!("{name},Version=v{version}");
        }
    }
    framework.to_owned()
}

fn json(path: &Path) -> Option<Value> {
    serde_json::from_str(&read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fsharp::testing::Tree;

    fn libraries() -> Value {
        json!({
            "Json/1.0.0": { "type": "package", "path": "json/1.0.0" },
            "Lib/1.0.0": { "type": "project", "path": "../Lib/Lib.fsproj" },
        })
    }

    fn target() -> Value {
        json!({
            "Json/1.0.0": { "runtime": { "lib/netstandard2.0/Json.dll": {}, "lib/netstandard2.0/_._": {} } },
            "Lib/1.0.0": { "runtime": { "bin/placeholder/Lib.dll": {} } },
        })
    }

    #[test]
    fn a_restore_tells_the_assemblies_of_packages() {
        let tree = Tree::of("packages/json/1.0.0/lib/netstandard2.0/Json.dll");
        let assets = json!({
            "targets": { ".NETCoreApp,Version=v3.1": target(), "net8.0": {} },
            "libraries": libraries(),
            "packageFolders": { tree.path("empty").to_str().unwrap(): {}, tree.path("packages").to_str().unwrap(): {} },
        });
        tree.write("obj/project.assets.json", &assets.to_string());
        let json = tree.path("packages/json/1.0.0/lib/netstandard2.0/Json.dll");
        assert_eq!(restored(&tree.path("obj"), "netcoreapp3.1"), Some(vec![json]));
        assert_eq!(restored(&tree.path("obj"), "net8.0"), Some(vec![]));
        assert_eq!(restored(&tree.path("obj"), "net9.0"), None);
        assert_eq!(restored(&tree.path("none"), "net8.0"), None);
    }

    #[test]
    fn what_lies_beside_an_assembly_is_preferred_to_what_is_packed() {
        let tree = Tree::of("packages/json/1.0.0/lib/netstandard2.0/Json.dll");
        let list = json!({
            "runtimeTarget": { "name": ".NETCoreApp,Version=v3.1" },
            "targets": { ".NETCoreApp,Version=v3.1": target() },
            "libraries": libraries(),
        });
        tree.write("bin/A.deps.json", &list.to_string());
        let found = || deployed(&tree.path("bin/A.dll"), &[tree.path("packages")]);
        assert_eq!(found(), Some(vec![tree.path("packages/json/1.0.0/lib/netstandard2.0/Json.dll")]));
        tree.write("bin/Json.dll", "");
        assert_eq!(found(), Some(vec![tree.path("bin/Json.dll")]));
        assert_eq!(deployed(&tree.path("bin/B.dll"), &[]), None);
    }

    #[test]
    fn a_list_that_is_damaged_is_as_good_as_none() {
        let tree = Tree::of("");
        for text in [
            "",
            "[]",
            "{\"targets\": 1, \"packageFolders\": {}}",
            "{\"targets\":{\"net8.0\":[]},\"packageFolders\":{}}",
        ] {
            tree.write("obj/project.assets.json", text);
            tree.write("obj/A.deps.json", text);
            assert!(restored(&tree.path("obj"), "net8.0").unwrap_or_default().is_empty());
            assert_eq!(deployed(&tree.path("obj/A.dll"), &[]), None);
        }
    }
}
