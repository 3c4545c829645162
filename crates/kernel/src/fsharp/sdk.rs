//! One .NET SDK on disk: where its parts lie, and whether it can run F# kernels. Finding SDKs is `discover`'s work;
//! nothing here runs a program.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::version::SdkVersion;

/// The file name of the `dotnet` executable.
pub(super) const HOST: &str = "dotnet";

/// What led to an SDK. The order is the order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Origin {
    /// The user's configuration names it.
    Configuration,
    /// The environment variable `DOTNET_ROOT` names it.
    DotnetRoot,
    /// A `dotnet` on the `PATH` belongs to it.
    Path,
    /// The `global.json` of the code's folder names its place.
    GlobalJson,
    /// It lies where installers and package managers put SDKs.
    Usual,
    /// Mainstay installed it under its own folder.
    Mainstay,
}

/// An SDK on disk. Several can share one root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sdk {
    /// The folder that holds the `dotnet` executable; links resolved.
    pub root: PathBuf,
    /// The SDK's version, the name of its folder under `sdk`.
    pub version: SdkVersion,
    /// What led to it.
    pub origin: Origin,
}

/// The shared runtime that programs built with an SDK run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runtime {
    /// The runtime's own version, not the SDK's.
    pub version: SdkVersion,
    /// The folder of its assemblies.
    pub folder: PathBuf,
}

/// The parts of an SDK that F# kernels are built with and run on; each was there when this was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    /// The `dotnet` executable that starts everything else.
    pub host: PathBuf,
    /// The folder of the F# compiler and its library.
    pub fsharp: PathBuf,
    /// The F# compiler, a managed program for the host: `fsc.dll`, or `fsc.exe` on SDK 3.1.
    pub compiler: PathBuf,
    /// The compiler as a library.
    pub library: CompilerLibrary,
    /// The newest shared runtime of the SDK's release line.
    pub runtime: Runtime,
    /// The folder of the assemblies to compile against: the reference pack, or the runtime's own where a distribution
    /// leaves the pack out.
    pub references: PathBuf,
}

/// The library through which an SDK offers the F# compiler. Its name tells the generation of its API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompilerLibrary {
    /// `FSharp.Compiler.Service.dll` of newer SDKs.
    Service(PathBuf),
    /// `FSharp.Compiler.Private.dll` of SDK 3.1.
    Private(PathBuf),
}

/// Why an SDK cannot run F# kernels.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// It is older than every SDK the worker is written for.
    #[error("it is older than 3.1, the oldest that can run F# kernels")]
    TooOld,
    /// A part is not where it should be.
    #[error("it has no {part} (looked for {})", .path.display())]
    Missing {
        /// What the part is.
        part: &'static str,
        /// Where it was expected.
        path: PathBuf,
    },
}

impl Serialize for Unusable {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Sdk {
    /// Whether it is one of npm's generation: Microsoft supports none before 8 any more.
    pub fn is_unsupported(&self) -> bool {
        self.version < SdkVersion::release(5, 0, 0)
    }

    /// The parts that F# kernels need.
    ///
    /// # Errors
    /// [`Unusable`] when the SDK cannot run F# kernels.
    pub fn parts(&self) -> Result<Parts, Unusable> {
        if self.version < SdkVersion::release(3, 1, 0) {
            return Err(Unusable::TooOld);
        }
        let host = present("dotnet executable", self.root.join(HOST), Path::is_file)?;
        let fsharp = self.root.join("sdk").join(self.version.to_string()).join("FSharp");
        let fsharp = present("F# folder", fsharp, Path::is_dir)?;
        let file = |part, name: &str| present(part, fsharp.join(name), Path::is_file);
        let compiler = file("F# compiler", "fsc.dll")
            .or_else(|missing| file("F# compiler", "fsc.exe").map_err(|_| missing))?;
        let library = "F# compiler library";
        let older = || file(library, "FSharp.Compiler.Private.dll").map(CompilerLibrary::Private);
        let library = file(library, "FSharp.Compiler.Service.dll")
            .map(CompilerLibrary::Service)
            .or_else(|missing| older().map_err(|_| missing))?;
        let runtime = self.runtime()?;
        let references = self.references(&library, &runtime)?;
        Ok(Parts { host, fsharp, compiler, library, runtime, references })
    }

    fn references(&self, library: &CompilerLibrary, runtime: &Runtime) -> Result<PathBuf, Unusable> {
        let packs = self.root.join("packs/Microsoft.NETCore.App.Ref");
        let pack = self
            .newest_of_line(&packs)
            .map(|(_, pack)| pack.join("ref").join(self.version.target_framework()));
        match (pack.filter(|folder| folder.is_dir()), library) {
            (Some(pack), _) => Ok(pack),
            (None, CompilerLibrary::Service(_)) => Ok(runtime.folder.clone()),
            // This compiler does not follow the runtime's forwarded types, and writes programs that cannot start.
            (None, CompilerLibrary::Private(_)) => {
                Err(Unusable::Missing { part: "reference pack", path: packs })
            }
        }
    }

    fn runtime(&self) -> Result<Runtime, Unusable> {
        let runtimes = self.root.join("shared/Microsoft.NETCore.App");
        let (version, folder) = self
            .newest_of_line(&runtimes)
            .ok_or(Unusable::Missing { part: "shared runtime of its own release", path: runtimes })?;
        Ok(Runtime { version, folder })
    }

    fn newest_of_line(&self, folder: &Path) -> Option<(SdkVersion, PathBuf)> {
        versions_in(folder).into_iter().rfind(|(version, _)| version.same_line(&self.version))
    }
}

impl CompilerLibrary {
    /// Returns the path of the library.
    pub fn path(&self) -> &Path {
        match self {
            Self::Service(path) | Self::Private(path) => path,
        }
    }
}

fn present(part: &'static str, path: PathBuf, is: impl Fn(&Path) -> bool) -> Result<PathBuf, Unusable> {
    if is(&path) { Ok(path) } else { Err(Unusable::Missing { part, path }) }
}

/// The folders in `folder` that are named by a version, oldest first. A folder that cannot be read has none.
pub(super) fn versions_in(folder: &Path) -> Vec<(SdkVersion, PathBuf)> {
    let mut found: Vec<_> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .filter(|(_, path)| path.is_dir())
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fsharp::testing::{NET_3_1, NET_8, Tree};

    fn sdk(tree: &Tree, version: &str) -> Sdk {
        Sdk { root: tree.root(), version: version.parse().unwrap(), origin: Origin::Path }
    }

    #[test]
    fn the_parts_of_sdk_3_1_are_found() {
        let tree = Tree::of(NET_3_1);
        let sdk = sdk(&tree, "3.1.102");
        let fsharp = tree.path("sdk/3.1.102/FSharp");
        let parts = Parts {
            host: tree.path("dotnet"),
            compiler: fsharp.join("fsc.exe"),
            library: CompilerLibrary::Private(fsharp.join("FSharp.Compiler.Private.dll")),
            fsharp,
            runtime: Runtime {
                version: SdkVersion::release(3, 1, 2),
                folder: tree.path("shared/Microsoft.NETCore.App/3.1.2"),
            },
            references: tree.path("packs/Microsoft.NETCore.App.Ref/3.1.0/ref/netcoreapp3.1"),
        };
        assert_eq!(sdk.parts(), Ok(parts));
    }

    #[test]
    fn the_parts_of_sdk_8_are_found_beside_another_sdk() {
        let tree = Tree::of(&[NET_3_1, NET_8].concat());
        let sdk = sdk(&tree, "8.0.404");
        let fsharp = tree.path("sdk/8.0.404/FSharp");
        let parts = Parts {
            host: tree.path("dotnet"),
            compiler: fsharp.join("fsc.dll"),
            library: CompilerLibrary::Service(fsharp.join("FSharp.Compiler.Service.dll")),
            fsharp,
            runtime: Runtime {
                version: SdkVersion::release(8, 0, 11),
                folder: tree.path("shared/Microsoft.NETCore.App/8.0.11"),
            },
            references: tree.path("packs/Microsoft.NETCore.App.Ref/8.0.11/ref/net8.0"),
        };
        assert_eq!(sdk.parts(), Ok(parts), "8.0.11 is newer than 8.0.9");
    }

    #[test]
    fn without_reference_packs_sdk_8_compiles_against_the_runtime_and_sdk_3_1_is_refused() {
        let tree = Tree::of(&[NET_3_1, NET_8].concat());
        tree.remove("packs");
        let references = sdk(&tree, "8.0.404").parts().unwrap().references;
        assert_eq!(references, tree.path("shared/Microsoft.NETCore.App/8.0.11"));
        let reason = sdk(&tree, "3.1.102").parts().unwrap_err().to_string();
        assert!(reason.starts_with("it has no reference pack"), "{reason}");
    }

    #[test]
    fn an_sdk_says_which_part_it_lacks() {
        let reason = |without: &str, version: &str| {
            let tree = Tree::of(&NET_8.replace("sdk/8.0.404", &format!("sdk/{version}")));
            tree.remove(without);
            sdk(&tree, version).parts().map_err(|reason| reason.to_string()).unwrap_err()
        };
        assert!(reason("dotnet", "8.0.404").contains("no dotnet executable"));
        assert!(reason("sdk/8.0.404/FSharp", "8.0.404").contains("no F# folder"));
        assert!(reason("sdk/8.0.404/FSharp/fsc.dll", "8.0.404").contains("no F# compiler (looked"));
        let library = "sdk/8.0.404/FSharp/FSharp.Compiler.Service.dll";
        assert!(reason(library, "8.0.404").contains("no F# compiler library"));
        assert!(reason("packs", "9.0.100").contains("no shared runtime"));
        assert!(reason("packs", "2.1.500").contains("older than 3.1"));
    }
}
