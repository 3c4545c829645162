//! Builds the F# worker with the user's own SDK, once for each SDK and version of the worker.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf, absolute};
use std::time::Duration;

use tokio::process::Command;
use tokio::time::{Instant, interval};

use super::cache::{Cache, WorkerProgram, describe};
use super::icu::Cultures;
use super::prebuilt;
use super::progress::{OnProgress, Progress};
use super::recipe::{self, Recipe};
use super::sdk::{Sdk, Unusable};
use super::sources::{MissingSource, SourceFile, Sources};
use super::version::SdkVersion;
use crate::kernel_files::KernelFiles;
use mainstay_os::command::{self, CommandError};
use mainstay_os::folder::{FileError, Lock, Staging, failed};

/// How long one run of the compiler may take. On two slow cores it takes four seconds.
const LIMIT: Duration = Duration::from_secs(5 * 60);

/// The worker was not built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The sources of the worker are not whole.
    #[error(transparent)]
    Sources(#[from] MissingSource),
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The SDK cannot run F# kernels.
    #[error(
        "the .NET SDK {version} in {} cannot run F# kernels: {reason}; choose another, or run \
         `mainstay kernel install fsharp`",
        .root.display()
    )]
    Unusable {
        /// The version of the SDK.
        version: SdkVersion,
        /// The root folder of the SDK.
        root: PathBuf,
        /// The reason why the SDK cannot be used.
        reason: Unusable,
    },
    /// The compiler did not do its work.
    #[error(
        "the .NET SDK {version} could not compile the F# worker: {source} (everything it printed is in {}); \
         try another SDK, and report this with that file",
        .log.display()
    )]
    Compiler {
        /// The version of the SDK.
        version: SdkVersion,
        /// What happened, with the gist of what the compiler printed.
        source: CommandError,
        /// The file with everything the compiler printed.
        log: PathBuf,
    },
}

/// How to start the worker on `sdk`, built first if need be. `home` is Mainstay's own folder; a worker is kept under
/// `kernels/fsharp` in it. Two processes that build at once get the same one. `files` has the sources of the worker.
///
/// # Errors
/// [`BuildError`]; its text says what to do.
pub async fn build(
    home: &Path,
    sdk: &Sdk,
    files: KernelFiles,
    progress: OnProgress<'_>,
) -> Result<WorkerProgram, BuildError> {
    build_from(&Sources::read(files)?, files, home, sdk, progress).await
}

/// Whether the worker is built with this SDK already, so that [`build`] has nothing to do.
pub fn is_built(home: &Path, sdk: &Sdk, files: KernelFiles) -> bool {
    let (Ok(sources), Ok(parts), Ok(home)) = (Sources::read(files), sdk.parts(), absolute(home)) else {
        return false;
    };
    let recipe = Recipe::of(sdk, parts);
    Cache::of(&home, &recipe, &sources).program(&recipe).is_some()
}

async fn build_from(
    sources: &Sources,
    files: KernelFiles,
    home: &Path,
    sdk: &Sdk,
    progress: OnProgress<'_>,
) -> Result<WorkerProgram, BuildError> {
    let unusable =
        |reason| BuildError::Unusable { version: sdk.version.clone(), root: sdk.root.clone(), reason };
    let recipe = Recipe::of(sdk, sdk.parts().map_err(unusable)?);
    // The worker is started from other working directories than this process has.
    let home = absolute(home).map_err(failed("resolve", home))?;
    let cache = Cache::of(&home, &recipe, sources);
    if let Some(program) = cache.program(&recipe) {
        return Ok(program);
    }
    create(&home.join("kernels/fsharp"))?;
    let _lock = Lock::acquire(&cache.beside("lock"), || progress(Progress::Waiting)).await?;
    if let Some(program) = cache.program(&recipe) {
        return Ok(program);
    }
    let staging = Staging::create(&cache.beside("staging"))?;
    let workshop = Workshop::open(staging.folder(), &recipe, cache.beside("log"))?;
    let cultures = ticking(workshop.make(sources, files), sdk, progress).await?;
    staging.publish(workshop.product, cache.folder().to_owned()).await?;
    Ok(cache.start(&recipe, &cultures))
}

/// Awaits `work`, telling about once a second that it goes on, and at last that it is done.
async fn ticking<T>(
    work: impl Future<Output = Result<T, BuildError>>,
    sdk: &Sdk,
    progress: OnProgress<'_>,
) -> Result<T, BuildError> {
    let start = Instant::now();
    let mut ticks = interval(Duration::from_secs(1));
    tokio::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => {
                let done = done?;
                progress(Progress::Built { sdk: sdk.version.clone(), elapsed: start.elapsed() });
                return Ok(done);
            }
            _ = ticks.tick() => progress(Progress::Building { sdk: sdk.version.clone(), elapsed: start.elapsed() }),
        }
    }
}

/// The folders in which a worker is made.
struct Workshop<'a> {
    recipe: &'a Recipe,
    /// The folder for sources and logs of the build.
    bench: PathBuf,
    /// What becomes the worker's folder.
    product: PathBuf,
    /// Where the output of a compiler that failed is kept.
    log: PathBuf,
}

impl<'a> Workshop<'a> {
    fn open(folder: &Path, recipe: &'a Recipe, log: PathBuf) -> Result<Self, FileError> {
        let workshop = Self { recipe, bench: folder.join("bench"), product: folder.join("product"), log };
        create(&workshop.bench)?;
        create(&workshop.product)?;
        Ok(workshop)
    }

    /// Everything in the worker's folder. Tells how the worker gets its cultures.
    async fn make(&self, sources: &Sources, files: KernelFiles) -> Result<Cultures, BuildError> {
        for file in self.recipe.copied() {
            self.copy(&file)?;
        }
        let config = self.product.join(format!("{}.runtimeconfig.json", recipe::WORKER));
        write(&config, &self.recipe.runtime_config())?;
        let key = prebuilt::key(self.recipe, sources);
        let worker = async {
            match key.as_deref().and_then(|key| prebuilt::find(files, key)) {
                Some(carried) => self.unpack(carried).map_err(BuildError::from),
                None => self.worker(sources).await,
            }
        };
        let ((), cultures) = tokio::try_join!(worker, self.surroundings())?;
        describe(&self.product, self.recipe, &cultures, key)?;
        Ok(cultures)
    }

    /// The worker that the program carries.
    fn unpack(&self, carried: [(String, Cow<'static, [u8]>); 2]) -> Result<(), FileError> {
        carried.into_iter().try_for_each(|(name, bytes)| {
            let path = self.product.join(name);
            fs::write(&path, bytes).map_err(failed("write", &path))
        })
    }

    /// The worker refers to the module that shows values, and so comes behind it.
    async fn worker(&self, sources: &Sources) -> Result<(), BuildError> {
        let files = self.written(&sources.display)?;
        self.compile(recipe::DISPLAY, |output| self.recipe.display(&files, output)).await?;
        let files = self.written(&sources.worker)?;
        let display = self.product.join(format!("{}.dll", recipe::DISPLAY));
        self.compile(recipe::WORKER, |output| self.recipe.worker(&files, &display, output)).await
    }

    fn written(&self, sources: &[SourceFile]) -> Result<Vec<PathBuf>, FileError> {
        let write_one = |source: &SourceFile| {
            let file = self.bench.join(source.name.as_ref());
            write(&file, &source.text).map(|()| file)
        };
        sources.iter().map(write_one).collect()
    }

    /// What is compiled beside the worker, and tried out. One after the other: memory matters on small machines.
    async fn surroundings(&self) -> Result<Cultures, BuildError> {
        let empty = self.bench.join("Empty.fs");
        write(&empty, recipe::EMPTY)?;
        for name in self.recipe.stand_ins() {
            self.compile(name, |output| self.recipe.stand_in(&empty, output)).await?;
        }
        Ok(Cultures::probe(&self.recipe.parts, &self.bench.join("cultures.log")).await)
    }

    /// Compiles the assembly `name`; `arguments` are the host's, given the file to write.
    async fn compile(
        &self,
        name: &str,
        arguments: impl FnOnce(&Path) -> Vec<OsString>,
    ) -> Result<(), BuildError> {
        let mut compiler = Command::new(&self.recipe.parts.host);
        compiler.args(arguments(&self.product.join(format!("{name}.dll"))));
        compiler.args(recipe::without_folder(&self.bench));
        compiler.envs(self.recipe.compiler_environment()).current_dir(&self.bench);
        let output = self.bench.join(format!("{name}.log"));
        match command::run(&mut compiler, &output, LIMIT).await {
            Ok(()) => Ok(()),
            Err(source) => {
                fs::copy(&output, &self.log).map_err(failed("write", &self.log))?;
                let version = self.recipe.sdk.version.clone();
                Err(BuildError::Compiler { version, source, log: self.log.clone() })
            }
        }
    }

    /// Copies a file of the SDK beside the worker.
    fn copy(&self, file: &Path) -> Result<(), FileError> {
        let Some(name) = file.file_name() else { return Ok(()) };
        let place = self.product.join(name);
        fs::copy(file, &place).map(drop).map_err(failed("copy to", &place))
    }
}

fn create(folder: &Path) -> Result<(), FileError> {
    fs::create_dir_all(folder).map_err(failed("create", folder))
}

fn write(path: &Path, text: &str) -> Result<(), FileError> {
    fs::write(path, text).map_err(failed("write", path))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::fsharp::sdk::Origin;
    use crate::fsharp::testing::{NET_3_1, NET_8, Tree};

    fn file(name: &'static str, text: &'static str) -> Vec<SourceFile> {
        vec![SourceFile { name: name.into(), text: text.into() }]
    }

    fn small() -> Sources {
        Sources { display: file("Mainstay.fs", "module Mainstay"), worker: file("Program.fs", "()") }
    }

    /// A host that notes that it ran, and writes an empty file for every `-o:`.
    const COMPILES: &str = r#"echo "$@" >> "$(dirname "$0")/runs"
for word; do case "$word" in -o:*) : > "${word#-o:}";; esac; done"#;

    /// A fake SDK with a host of this script, and a home beside it.
    fn machine(files: &str, host: &str) -> (Tree, Sdk) {
        let tree = Tree::of(files);
        tree.script("dotnet", host);
        let version = if files == NET_8 { "8.0.404" } else { "3.1.102" };
        let sdk = Sdk { root: tree.root(), version: version.parse().unwrap(), origin: Origin::Path };
        (tree, sdk)
    }

    async fn build_in(tree: &Tree, sdk: &Sdk) -> Result<WorkerProgram, BuildError> {
        build_from(&small(), |_| None, &tree.path("home"), sdk, &|_| ()).await
    }

    fn runs(tree: &Tree) -> usize {
        fs::read_to_string(tree.path("runs")).unwrap_or_default().lines().count()
    }

    fn folder_of(program: &WorkerProgram) -> PathBuf {
        Path::new(&program.arguments[1]).parent().unwrap().to_owned()
    }

    #[tokio::test]
    async fn a_worker_is_built_once_and_then_recognised() {
        let (tree, sdk) = machine(NET_8, COMPILES);
        let seen = Mutex::new(Vec::new());
        let progress = |step| seen.lock().unwrap().push(step);
        let first = build_from(&small(), |_| None, &tree.path("home"), &sdk, &progress).await.unwrap();
        assert!(matches!(seen.lock().unwrap().last(), Some(Progress::Built { .. })));
        let after_first = runs(&tree);
        assert_eq!(after_first, 3, "the module, the worker, and the probe for cultures");
        assert_eq!(build_in(&tree, &sdk).await.unwrap(), first);
        assert_eq!(runs(&tree), after_first);
        assert_eq!(first.program, tree.path("dotnet"));
        assert!(first.environment.contains(&("DOTNET_ROOT".into(), tree.root().into())));
    }

    #[tokio::test]
    async fn other_sources_make_another_worker() {
        let (tree, sdk) = machine(NET_8, COMPILES);
        let first = build_in(&tree, &sdk).await.unwrap();
        for other in [
            Sources { worker: file("Program.fs", "printfn \"\""), ..small() },
            Sources { display: file("Mainstay.fs", "module Other"), ..small() },
        ] {
            let second = build_from(&other, |_| None, &tree.path("home"), &sdk, &|_| ()).await.unwrap();
            assert_ne!(folder_of(&first), folder_of(&second));
        }
    }

    #[tokio::test]
    async fn a_worker_whose_runtime_is_gone_is_built_anew() {
        let (tree, sdk) = machine(NET_3_1, COMPILES);
        build_in(&tree, &sdk).await.unwrap();
        tree.remove("shared/Microsoft.NETCore.App/3.1.2");
        tree.write("shared/Microsoft.NETCore.App/3.1.3/System.Runtime.dll", "");
        let before = runs(&tree);
        let second = build_in(&tree, &sdk).await.unwrap();
        assert!(runs(&tree) > before);
        assert!(folder_of(&second).join("System.Runtime.dll").exists());
    }

    #[tokio::test]
    async fn an_sdk_changed_in_place_makes_another_worker() {
        let (tree, sdk) = machine(NET_8, COMPILES);
        let first = build_in(&tree, &sdk).await.unwrap();
        tree.write("sdk/8.0.404/FSharp/FSharp.Compiler.Service.dll", "another build of it");
        let second = build_in(&tree, &sdk).await.unwrap();
        assert_ne!(folder_of(&first), folder_of(&second));
    }

    #[tokio::test]
    async fn a_worker_that_was_made_by_half_is_made_again() {
        let (tree, sdk) = machine(NET_8, COMPILES);
        let whole = build_in(&tree, &sdk).await.unwrap();
        let folder = folder_of(&whole);
        let module = folder.join("Mainstay.dll");

        // A daemon that is killed leaves what it was making, under another name.
        let staging = format!("{}.staging", folder.display());
        fs::create_dir(&staging).unwrap();
        fs::rename(&folder, Path::new(&staging).join("product")).unwrap();
        assert_eq!(build_in(&tree, &sdk).await.unwrap(), whole);
        assert!(module.is_file() && !Path::new(&staging).exists());

        // A disk that was full, or a copy that broke off, leaves less.
        fs::remove_file(&module).unwrap();
        assert_eq!(build_in(&tree, &sdk).await.unwrap(), whole);
        assert!(module.is_file());
        fs::write(&module, "other bytes than were compiled").unwrap();
        assert_eq!(build_in(&tree, &sdk).await.unwrap(), whole);
        assert_eq!(fs::read_to_string(&module).unwrap(), "");
    }

    #[tokio::test]
    async fn of_a_compiler_that_is_killed_nothing_is_used() {
        let killed = format!("{COMPILES}\nkill -9 $$");
        let (tree, sdk) = machine(NET_8, &killed);
        let error = build_in(&tree, &sdk).await.unwrap_err();
        assert!(matches!(error, BuildError::Compiler { .. }), "{error}");
        tree.script("dotnet", COMPILES);
        let folder = folder_of(&build_in(&tree, &sdk).await.unwrap());
        assert!(folder.join("Mainstay.dll").is_file());
    }

    #[tokio::test]
    async fn no_file_of_a_worker_leads_into_the_sdk() {
        for files in [NET_3_1, NET_8] {
            let (tree, sdk) = machine(files, COMPILES);
            let folder = folder_of(&build_in(&tree, &sdk).await.unwrap());
            for entry in fs::read_dir(folder).unwrap().flatten() {
                assert!(entry.file_type().unwrap().is_file(), "{} is a link", entry.path().display());
            }
        }
    }

    #[tokio::test]
    async fn a_worker_that_the_program_carries_is_not_compiled() {
        let (tree, sdk) = machine(NET_8, COMPILES);
        let folder = folder_of(&build_in(&tree, &sdk).await.unwrap());
        let manifest: serde_json::Value =
            serde_json::from_slice(&fs::read(folder.join("worker.json")).unwrap()).unwrap();
        static KEY: Mutex<String> = Mutex::new(String::new());
        *KEY.lock().unwrap() = manifest["prebuilt"].as_str().unwrap().to_owned();
        let carries: KernelFiles = |path| {
            let name = path.strip_prefix(&format!("fsharp/prebuilt/{}/", KEY.lock().unwrap()))?;
            Some(Cow::Owned(name.as_bytes().to_vec()))
        };
        let made = async |sdk: &Sdk, home: &str| {
            build_from(&small(), carries, &tree.path(home), sdk, &|_| ()).await.unwrap()
        };
        let before = runs(&tree);
        let unpacked = folder_of(&made(&sdk, "other").await);
        assert_eq!(runs(&tree), before + 1, "the probe for cultures");
        let read = |name: &str| fs::read_to_string(unpacked.join(name)).unwrap();
        assert_eq!(read("Mainstay.dll"), "Mainstay.dll");
        assert_eq!(read("mainstay-fsharp-worker.dll"), "mainstay-fsharp-worker.dll");
        assert!(unpacked.join("mainstay-fsharp-worker.runtimeconfig.json").exists());

        // A compiler of other bytes needs a worker of its own.
        tree.write("sdk/8.0.404/FSharp/FSharp.Compiler.Service.dll", "another build of it");
        let before = runs(&tree);
        let compiled = folder_of(&made(&sdk, "other").await);
        assert_eq!(runs(&tree), before + 3);
        assert_eq!(fs::read_to_string(compiled.join("Mainstay.dll")).unwrap(), "");
    }

    #[tokio::test]
    async fn two_builds_at_once_compile_once() {
        let (tree, sdk) = machine(NET_8, COMPILES);
        let (first, second) = tokio::join!(build_in(&tree, &sdk), build_in(&tree, &sdk));
        assert_eq!(first.unwrap(), second.unwrap());
        assert_eq!(runs(&tree), 3);
    }

    #[tokio::test]
    async fn what_the_compiler_says_is_in_the_error_and_in_a_file_that_stays() {
        let (tree, sdk) = machine(NET_8, "echo 'Program.fs(1,1): error FS0039: no such thing'; exit 1");
        let error = build_in(&tree, &sdk).await.unwrap_err();
        assert!(error.to_string().contains("error FS0039: no such thing"), "{error}");
        let BuildError::Compiler { log, .. } = error else { panic!("{error}") };
        assert!(fs::read_to_string(&log).unwrap().contains("FS0039"));
        let left = fs::read_dir(log.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
        assert!(left.into_iter().all(|path| path.is_file()), "no folder is left");
    }

    #[tokio::test]
    async fn without_icu_the_worker_runs_with_the_invariant_culture() {
        let refuses = format!("{COMPILES}\ncase \"$*\" in *--help*) exit 134;; esac");
        let (tree, sdk) = machine(NET_8, &refuses);
        let program = build_in(&tree, &sdk).await.unwrap();
        assert!(program.environment.contains(&("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT".into(), "1".into())));
        assert_eq!(build_in(&tree, &sdk).await.unwrap(), program);
    }

    #[tokio::test]
    async fn an_sdk_without_fsharp_is_refused_with_the_reason() {
        let (tree, sdk) = machine(NET_8, COMPILES);
        tree.remove("sdk/8.0.404/FSharp");
        let message = build_in(&tree, &sdk).await.unwrap_err().to_string();
        assert!(message.contains("it has no F# folder"), "{message}");
    }
}
