//! How the F# worker is made from an SDK: compiler arguments, the files that lie beside it, and how it is started. Pure,
//! apart from listing folders of the SDK and looking at what the environment says already; `build` carries it out.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::diagnostics;
use super::icu::Cultures;
use super::sdk::{CompilerLibrary, Parts, Sdk};
use super::sdk_3_1;
use super::version::SdkVersion;

/// Raised when the same sources must be built anew, because what is made of them here has changed.
pub(super) const VERSION: u32 = 3;
/// The stack of threads of the pool, in hexadecimal: SDK 3.1 checks code on one of them, and deeply nested code would overflow
/// a usual one and end the process. Only what is used of it takes memory.
const POOL_STACK_BYTES: &str = "4000000";

/// The first SDK whose compiler can type-check files side by side.
const PARALLEL_COMPILATION_SINCE: SdkVersion = SdkVersion::release(8, 0, 100);

/// The worker's assembly, without its extension.
pub(super) const WORKER: &str = "mainstay-fsharp-worker";

/// The assembly of the module `Mainstay`, without its extension.
pub(super) const DISPLAY: &str = "Mainstay";

/// The file that [`Recipe::stand_in`] compiles: an assembly of nothing.
pub(super) const EMPTY: &str = "namespace Empty\n";

/// How one SDK makes the worker.
#[derive(Debug)]
pub(super) struct Recipe {
    pub(super) sdk: Sdk,
    pub(super) parts: Parts,
    references: Vec<PathBuf>,
}

impl Recipe {
    pub(super) fn of(sdk: &Sdk, parts: Parts) -> Self {
        Self { references: assemblies_in(&parts.references), sdk: sdk.clone(), parts }
    }

    /// The host's arguments that compile the module `Mainstay` to `output`.
    pub(super) fn display(&self, sources: &[PathBuf], output: &Path) -> Vec<OsString> {
        let mut arguments = self.compiler("library");
        arguments.extend(["--optimize+".into(), option("-o:", output)]);
        arguments.extend(sources.iter().map(OsString::from));
        arguments
    }

    /// The host's arguments that compile the worker to `output`; `display` is the assembly of the module `Mainstay`.
    pub(super) fn worker(&self, sources: &[PathBuf], display: &Path, output: &Path) -> Vec<OsString> {
        let mut arguments = self.compiler("exe");
        arguments.push("--optimize+".into());
        if matches!(self.parts.library, CompilerLibrary::Service(_)) {
            arguments.push("--define:FCS_NEW".into());
        }
        if self.sdk.version >= PARALLEL_COMPILATION_SINCE {
            // The compiler calls this option one for test purposes (FS0075).
            arguments.extend(["--nowarn:75".into(), "--parallelcompilation+".into()]);
        }
        arguments.extend(
            [self.parts.library.path(), &self.interactive_settings(), display]
                .map(|path| option("-r:", path)),
        );
        arguments.push(option("-o:", output));
        arguments.extend(sources.iter().map(OsString::from));
        arguments
    }

    /// The host's arguments that compile [`EMPTY`], in `source`, to the assembly `output`.
    pub(super) fn stand_in(&self, source: &Path, output: &Path) -> Vec<OsString> {
        let mut arguments = self.compiler("library");
        arguments.extend(["--nowarn:988".into(), option("-o:", output), source.into()]);
        arguments
    }

    /// The names of assemblies that must lie beside the worker, and may be empty.
    pub(super) fn stand_ins(&self) -> &'static [&'static str] {
        match self.parts.library {
            CompilerLibrary::Service(_) => &[],
            CompilerLibrary::Private(_) => sdk_3_1::STAND_INS,
        }
    }

    /// Files of the SDK that are copied beside the worker. The runtime finds the compiler's assemblies in the SDK itself
    /// ([`Self::runtime_config`]). No file here is a link: whoever wrote into the worker's folder would write into the SDK.
    pub(super) fn copied(&self) -> Vec<PathBuf> {
        match self.parts.library {
            CompilerLibrary::Service(_) => Vec::new(),
            CompilerLibrary::Private(_) => {
                let mut files = self.compiler_assemblies();
                files.extend(sdk_3_1::copied(&self.parts.runtime.folder));
                files
            }
        }
    }

    /// The SDK's files that the worker is compiled against and runs with. Another build of one of them needs another worker.
    pub(super) fn determining_files(&self) -> Vec<PathBuf> {
        let mut files = self.compiler_assemblies();
        files.extend([self.parts.compiler.clone(), self.parts.host.clone()]);
        files.push(self.parts.runtime.folder.join("System.Private.CoreLib.dll"));
        files
    }

    /// The SDK's assemblies that the worker is compiled against, besides those of the runtime.
    pub(super) fn compiler_assemblies(&self) -> Vec<PathBuf> {
        vec![self.core(), self.parts.library.path().to_owned(), self.interactive_settings()]
    }

    /// The text of the file that tells the host which runtime the worker wants.
    pub(super) fn runtime_config(&self) -> String {
        let mut config = serde_json::json!({
            "runtimeOptions": {
                "tfm": self.sdk.version.target_framework(),
                "framework": { "name": "Microsoft.NETCore.App", "version": self.parts.runtime.version },
                "configProperties": {
                    "System.GC.Concurrent": false,
                    "System.GC.Server": false,
                    "System.Runtime.TieredCompilation.QuickJitForLoops": true,
                    "System.Runtime.TieredPGO": false,
                },
            }
        });
        if matches!(self.parts.library, CompilerLibrary::Service(_)) {
            // The runtime's own property: where it looks for assemblies that are not beside the program.
            config["runtimeOptions"]["configProperties"]["APP_PATHS"] =
                self.parts.fsharp.display().to_string().into();
        }
        format!("{config:#}\n")
    }

    /// What the compiler's environment must hold. It prints nothing that depends on cultures. Its runtime does not observe which code is
    /// used most, to compile that better: the compiler ends before this has paid, and takes about a fifth less of the processor so.
    pub(super) fn compiler_environment(&self) -> Vec<(OsString, OsString)> {
        let mut environment = self.environment(&Cultures::Invariant);
        environment.push(("DOTNET_TieredPGO".into(), "0".into()));
        environment
    }

    /// What the environment of a program of this SDK must hold.
    pub(super) fn environment(&self, cultures: &Cultures) -> Vec<(OsString, OsString)> {
        let mut environment = vec![
            ("DOTNET_ROOT".into(), self.sdk.root.clone().into()),
            ("DOTNET_CLI_TELEMETRY_OPTOUT".into(), "1".into()),
            ("DOTNET_NOLOGO".into(), "1".into()),
            // Lets the code of assemblies be exchanged that were built without optimization.
            ("DOTNET_MODIFIABLE_ASSEMBLIES".into(), "debug".into()),
            ("COMPlus_DefaultStackSize".into(), POOL_STACK_BYTES.into()),
            ("DOTNET_DefaultStackSize".into(), POOL_STACK_BYTES.into()),
        ];
        environment.extend(diagnostics::shut(|name| env::var_os(name)));
        environment.extend(cultures.variable().map(|(name, value)| (name.into(), value.into())));
        environment
    }

    /// Without `--debug-`, and with `--deterministic+`, the compiler of SDK 3.1 wants OpenSSL 1.1 for a hash, and aborts where there is none.
    fn compiler(&self, target: &str) -> Vec<OsString> {
        let mut arguments =
            vec!["exec".into(), self.parts.compiler.clone().into(), format!("--target:{target}").into()];
        let flags =
            ["--nologo", "--targetprofile:netcore", "--noframework", "--debug-", "--nocopyfsharpcore"];
        arguments.extend(flags.map(OsString::from));
        if matches!(self.parts.library, CompilerLibrary::Service(_)) {
            arguments.push("--deterministic+".into());
        }
        arguments.extend(self.references.iter().chain([&self.core()]).map(|path| option("-r:", path)));
        arguments
    }

    fn core(&self) -> PathBuf {
        self.parts.fsharp.join("FSharp.Core.dll")
    }

    fn interactive_settings(&self) -> PathBuf {
        self.parts.fsharp.join("FSharp.Compiler.Interactive.Settings.dll")
    }
}

/// The compiler's argument that keeps the folder of the sources out of an assembly, so that its bytes are the same wherever it is compiled. None
/// for a folder that the argument cannot name.
pub(super) fn without_folder(folder: &Path) -> Option<OsString> {
    let cannot_be_named = folder.as_os_str().as_encoded_bytes().iter().any(|byte| b",=".contains(byte));
    (!cannot_be_named).then(|| {
        let mut map = option("--pathmap:", folder);
        map.push("=/mainstay");
        map
    })
}

pub(super) fn option(name: &str, path: &Path) -> OsString {
    let mut option = OsString::from(name);
    option.push(path);
    option
}

/// The assemblies in a folder, by name. A folder that cannot be read has none, which the compiler will tell.
pub(super) fn assemblies_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<_> = entries.filter(|path| path.extension().is_some_and(|end| end == "dll")).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fsharp::sdk::Origin;
    use crate::fsharp::testing::{NET_3_1, NET_8, Tree};

    fn recipe(tree: &Tree, version: &str) -> Recipe {
        let sdk = Sdk { root: tree.root(), version: version.parse().unwrap(), origin: Origin::Path };
        Recipe::of(&sdk, sdk.parts().unwrap())
    }

    /// Arguments as one text, with the tree's own folder left out.
    fn text(tree: &Tree, arguments: &[OsString]) -> String {
        let words: Vec<_> = arguments.iter().map(|word| word.to_str().unwrap()).collect();
        words.join("\n").replace(&format!("{}/", tree.root().display()), "")
    }

    fn names(paths: &[PathBuf]) -> Vec<&str> {
        paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect()
    }

    #[test]
    fn sdk_8_compiles_against_its_reference_pack_and_the_compiler_service() {
        let tree = Tree::of(&[NET_3_1, NET_8].concat());
        let arguments = recipe(&tree, "8.0.404").worker(
            &["A.fs".into(), "B.fs".into()],
            Path::new("Mainstay.dll"),
            Path::new("w.dll"),
        );
        let expected = "exec
sdk/8.0.404/FSharp/fsc.dll
--target:exe
--nologo
--targetprofile:netcore
--noframework
--debug-
--nocopyfsharpcore
--deterministic+
-r:packs/Microsoft.NETCore.App.Ref/8.0.11/ref/net8.0/System.Runtime.dll
-r:sdk/8.0.404/FSharp/FSharp.Core.dll
--optimize+
--define:FCS_NEW
--nowarn:75
--parallelcompilation+
-r:sdk/8.0.404/FSharp/FSharp.Compiler.Service.dll
-r:sdk/8.0.404/FSharp/FSharp.Compiler.Interactive.Settings.dll
-r:Mainstay.dll
-o:w.dll
A.fs
B.fs";
        assert_eq!(text(&tree, &arguments), expected);
    }

    #[test]
    fn only_the_compiler_runs_without_profiles() {
        let tree = Tree::of(NET_8);
        let recipe = recipe(&tree, "8.0.404");
        let profiles = ("DOTNET_TieredPGO".into(), "0".into());
        assert!(recipe.compiler_environment().contains(&profiles));
        assert!(!recipe.environment(&Cultures::Invariant).contains(&profiles));
    }

    #[test]
    fn of_sdk_8_nothing_is_copied_and_the_runtime_is_told_where_its_compiler_is() {
        let tree = Tree::of(NET_8);
        let recipe = recipe(&tree, "8.0.404");
        assert_eq!(names(&recipe.copied()), [""; 0]);
        assert!(recipe.stand_ins().is_empty());
        let config: serde_json::Value = serde_json::from_str(&recipe.runtime_config()).unwrap();
        let options = &config["runtimeOptions"];
        assert_eq!(options["tfm"], "net8.0");
        let folder = tree.path("sdk/8.0.404/FSharp").display().to_string();
        assert_eq!(options["configProperties"]["APP_PATHS"], folder);
    }

    #[test]
    fn sdk_3_1_needs_the_runtimes_assemblies_and_stand_ins_too() {
        let tree = Tree::of(NET_3_1);
        let recipe = recipe(&tree, "3.1.102");
        let expected = [
            "FSharp.Core.dll",
            "FSharp.Compiler.Private.dll",
            "FSharp.Compiler.Interactive.Settings.dll",
            "System.Runtime.dll",
            "mscorlib.dll",
        ];
        assert_eq!(names(&recipe.copied()), expected);
        assert_eq!(recipe.stand_ins().len(), 4);
        let arguments = text(&tree, &recipe.worker(&[], Path::new("Mainstay.dll"), Path::new("w.dll")));
        assert!(!arguments.contains("FCS_NEW"), "{arguments}");
        // Where there is an OpenSSL 1.1, the compiler itself would not show this.
        assert!(!arguments.contains("--deterministic"), "{arguments}");
    }
}
