//! What of an SDK works on this machine, tried once for each SDK while this program runs: how its programs get their cultures, and
//! whether its msbuild runs. That of SDK 3.1 does not where OpenSSL 1.1 is missing.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use mainstay_model::Error;
use mainstay_runner::Environment;
use tempfile::TempDir;
use tokio::process::Command;

use crate::fsharp::icu::Cultures;
use crate::fsharp::recipe::Recipe;
use crate::fsharp::sdk::{Parts, Sdk};
use crate::fsharp::version::SdkVersion;
use mainstay_os::command::{self, CommandError};

/// How long msbuild may take to do nothing. It takes half a second.
const TRIAL_LIMIT: Duration = Duration::from_secs(60);
/// A project of which msbuild has to do nothing.
const NOTHING: &str = "<Project><Target Name=\"Nothing\" /></Project>";

/// An SDK, and what of it works here.
#[derive(Clone, Debug)]
pub(super) struct Toolchain {
    pub(super) sdk: Sdk,
    pub(super) parts: Parts,
    pub(super) msbuild: Msbuild,
    environment: Vec<(OsString, OsString)>,
    /// What the creator of the session that it is for has in its environment.
    creators: Environment,
}

/// Whether an SDK's msbuild runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Msbuild {
    Works,
    /// What happened when it was tried.
    Fails(String),
}

type ToolchainCache = HashMap<(PathBuf, SdkVersion), Arc<Toolchain>>;
static TRIED: LazyLock<Mutex<ToolchainCache>> = LazyLock::new(Mutex::default);

impl Toolchain {
    /// Returns the toolchain of the SDK.
    pub(super) async fn of(sdk: &Sdk) -> Result<Arc<Self>, Error> {
        let key = (sdk.root.clone(), sdk.version.clone());
        let tried = || TRIED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = tried().get(&key) {
            return Ok(Arc::clone(known));
        }
        let parts = sdk.parts().map_err(unavailable)?;
        let folder = scratch()?;
        let cultures = Cultures::probe(&parts, &folder.path().join("cultures.log")).await;
        let environment = Recipe::of(sdk, parts.clone()).environment(&cultures);
        let mut toolchain = Self {
            sdk: sdk.clone(),
            parts,
            msbuild: Msbuild::Works,
            environment,
            creators: Environment::default(),
        };
        let trial = toolchain.try_msbuild(&folder).await;
        let is_final = !matches!(trial, Err(CommandError::Start { .. } | CommandError::TimedOut { .. }));
        if let Err(reason) = trial {
            toolchain.msbuild = Msbuild::Fails(reason.to_string());
        }
        let toolchain = Arc::new(toolchain);
        if is_final {
            tried().insert(key, Arc::clone(&toolchain));
        }
        Ok(toolchain)
    }

    /// The same for a session whose creator has this in its environment.
    pub(super) async fn for_creator(sdk: &Sdk, creators: &Environment) -> Result<Self, Error> {
        let of_daemon = Self::of(sdk).await?;
        Ok(Self { creators: creators.clone(), ..(*of_daemon).clone() })
    }

    /// A variable as its programs find it.
    pub(super) fn variable(&self, name: &str) -> Option<OsString> {
        let creators = self.creators.variable(name).map(OsString::from);
        creators.or_else(|| std::env::var_os(name).filter(|value| !value.is_empty()))
    }

    async fn try_msbuild(&self, folder: &TempDir) -> Result<(), CommandError> {
        let project = folder.path().join("nothing.proj");
        let log = folder.path().join("nothing.log");
        let failed = |source| CommandError::Start { program: self.parts.host.clone(), source };
        fs::write(&project, NOTHING).map_err(failed)?;
        command::run(self.msbuild(folder.path()).arg(&project), &log, TRIAL_LIMIT).await
    }

    /// The start of a command line of msbuild, in `folder`. All it starts is of its process group and ends with it: no node of it
    /// stays for later.
    pub(super) fn msbuild(&self, folder: &Path) -> Command {
        let home = self.sdk.root.join("sdk").join(self.sdk.version.to_string());
        let mut command = self.host(folder);
        command.arg(home.join("MSBuild.dll"));
        command.args(["-nologo", "-nodeReuse:false", "-maxCpuCount:1", "-verbosity:minimal"]);
        // What the SDK's own `dotnet msbuild` sets.
        command.env("MSBuildSDKsPath", home.join("Sdks"));
        command.env("MSBuildExtensionsPath", home.join(""));
        command.env("DOTNET_HOST_PATH", &self.parts.host);
        command.env("MSBUILDDISABLENODEREUSE", "1");
        command.env("DOTNET_CLI_UI_LANGUAGE", "en");
        command
    }

    /// The start of a command line of the F# compiler, in `folder`.
    pub(super) fn compiler(&self, folder: &Path) -> Command {
        let mut command = self.host(folder);
        command.arg(&self.parts.compiler);
        command
    }

    fn host(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.parts.host);
        command.arg("exec").current_dir(folder).envs(self.creators.variables());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// A folder for what a program is told and tells. It goes when it is dropped.
pub(super) fn scratch() -> Result<TempDir, Error> {
    tempfile::Builder::new().prefix("mainstay-project").tempdir().map_err(unavailable)
}

/// What is said where the SDK or the machine does not let a project be read.
pub(super) fn unavailable(reason: impl ToString) -> Error {
    Error::KernelUnavailable { reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fsharp::sdk::Origin;
    use crate::fsharp::testing::{NET_3_1, NET_8, Tree};

    /// Notes that it ran, and what of msbuild's environment it had.
    const HOST: &str = r#"echo "$MSBuildExtensionsPath $*" >> "$(dirname "$0")/runs""#;

    fn machine(files: &str, version: &str, host: &str) -> (Tree, Sdk) {
        let tree = Tree::of(files);
        tree.script("dotnet", host);
        let sdk = Sdk { root: tree.root(), version: version.parse().unwrap(), origin: Origin::Path };
        (tree, sdk)
    }

    #[tokio::test]
    async fn an_sdk_is_tried_once() {
        let (tree, sdk) = machine(NET_8, "8.0.404", HOST);
        let first = Toolchain::of(&sdk).await.unwrap();
        assert_eq!(first.msbuild, Msbuild::Works);
        let runs = fs::read_to_string(tree.path("runs")).unwrap();
        let home = tree.path("sdk/8.0.404");
        let home = home.display();
        assert!(runs.contains(&format!("{home}/ exec {home}/MSBuild.dll")), "{runs}");
        assert!(Arc::ptr_eq(&first, &Toolchain::of(&sdk).await.unwrap()));
        assert_eq!(fs::read_to_string(tree.path("runs")).unwrap(), runs);
    }

    #[tokio::test]
    async fn an_msbuild_that_ends_with_an_error_does_not_work() {
        let host = "case \"$*\" in *MSBuild.dll*) echo 'No usable version of libssl'; exit 134;; esac";
        let (_tree, sdk) = machine(NET_3_1, "3.1.102", host);
        match &Toolchain::of(&sdk).await.unwrap().msbuild {
            Msbuild::Fails(reason) => assert!(reason.ends_with("No usable version of libssl"), "{reason}"),
            Msbuild::Works => panic!("it does not"),
        }
    }

    #[tokio::test]
    async fn an_sdk_that_cannot_be_used_is_told() {
        let (tree, sdk) = machine(NET_8, "8.0.404", HOST);
        tree.remove("sdk/8.0.404/FSharp");
        assert!(matches!(Toolchain::of(&sdk).await, Err(Error::KernelUnavailable { .. })));
    }
}
