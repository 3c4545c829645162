//! What a project runs on beside the worker's own runtime: further shared frameworks, and native libraries of packages.

use std::env::consts::{ARCH, OS};
use std::path::{Path, PathBuf};

use crate::fsharp::recipe::assemblies_in;
use crate::fsharp::sdk::{Runtime, versions_in};

/// The assemblies of a shared framework (`Microsoft.AspNetCore.App`) of the runtime's own release line, where it is installed.
pub(super) fn framework_assemblies(runtime: &Runtime, name: &str) -> Option<Vec<PathBuf>> {
    let shared = runtime.folder.parent()?.parent()?;
    let mut versions = versions_in(&shared.join(name)).into_iter();
    let (_, folder) = versions.rfind(|(version, _)| version.same_line(&runtime.version))?;
    Some(assemblies_in(&folder)).filter(|assemblies| !assemblies.is_empty())
}

/// The folders of native libraries, from files that packages have for several platforms: each file with the runtime identifier
/// of its platform, such as `linux-x64`. Of one package's the closest to this machine is taken, and those of others left out.
pub(super) fn native_folders(files: &[(String, PathBuf)]) -> Vec<PathBuf> {
    let identifiers = identifiers();
    let mut folders = Vec::new();
    for identifier in &identifiers {
        let of_platform = files.iter().filter(|(platform, _)| platform == identifier);
        folders.extend(of_platform.filter_map(|(_, file)| file.parent().map(Path::to_owned)));
    }
    super::once(&mut folders);
    folders
}

/// The runtime identifiers whose libraries this machine can load, the closest first.
fn identifiers() -> Vec<String> {
    let arch = match ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        "x86" => "x86",
        other => other,
    };
    let system = if OS == "macos" { "osx" } else { OS };
    [system, "unix", "any"]
        .into_iter()
        .flat_map(|system| [format!("{system}-{arch}"), system.to_owned()])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fsharp::testing::{NET_8, Tree};

    #[test]
    fn a_shared_framework_is_that_of_the_runtimes_release() {
        let tree = Tree::of(NET_8);
        for file in ["8.0.4/A.dll", "8.0.11/A.dll", "9.0.1/A.dll"] {
            tree.write(&format!("shared/Microsoft.AspNetCore.App/{file}"), "");
        }
        let runtime = Runtime {
            version: "8.0.11".parse().unwrap(),
            folder: tree.path("shared/Microsoft.NETCore.App/8.0.11"),
        };
        let found = framework_assemblies(&runtime, "Microsoft.AspNetCore.App");
        assert_eq!(found, Some(vec![tree.path("shared/Microsoft.AspNetCore.App/8.0.11/A.dll")]));
        assert_eq!(framework_assemblies(&runtime, "Microsoft.WindowsDesktop.App"), None);
    }

    #[test]
    fn native_libraries_are_those_of_this_machine() {
        let own = identifiers()[0].clone();
        let file = |platform: &str| (platform.to_owned(), PathBuf::from(format!("/p/{platform}/native/l")));
        let files = [file("browser-wasm"), file(&own), file("any")];
        let folders = [own.as_str(), "any"].map(|platform| PathBuf::from(format!("/p/{platform}/native")));
        assert_eq!(native_folders(&files), folders);
    }
}
