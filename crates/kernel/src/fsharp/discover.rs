//! Finds the SDKs of this machine, wherever `dotnet --list-sdks` finds them, and says which one to use. Nothing is written, and nothing run but a
//! `dotnet` on the `PATH` that has no SDK beside it (`host`).

use std::collections::HashSet;
use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use mainstay_runner::Environment;
use serde::Serialize;

use super::feed::FEED;
use super::host::roots_listed_by;
use super::sdk::{HOST, Origin, Sdk, Unusable, versions_in};

/// Where to look for SDKs and for the programs that install them. Holds the environment as values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// The SDK that the user's configuration names: its root, or the `dotnet` executable in it.
    pub configured: Option<PathBuf>,
    /// The value of `DOTNET_ROOT`.
    pub dotnet_root: Option<PathBuf>,
    /// The folders of `PATH`, in order.
    pub path: Vec<PathBuf>,
    /// Where installers and package managers put SDKs, in order.
    pub usual: Vec<PathBuf>,
    /// Where the release metadata lies that an SDK is installed by.
    pub feed: String,
    /// The folder Mainstay keeps its own things in.
    pub home: PathBuf,
}

/// Where the installers of Microsoft, Linux distributions, Homebrew and snap put SDKs, from the root of the file system.
const USUAL_ROOTS: [&str; 8] = [
    "/usr/lib/dotnet",
    "/usr/share/dotnet",
    "/usr/lib64/dotnet",
    "/usr/local/share/dotnet",
    "/opt/homebrew/opt/dotnet/libexec",
    "/usr/local/opt/dotnet/libexec",
    "/snap/dotnet-sdk/current",
    "/var/snap/dotnet/common/dotnet",
];
/// Files in which an installer says where it has put SDKs.
const INSTALL_LOCATIONS: [&str; 3] = [
    "/etc/dotnet/install_location_x64",
    "/etc/dotnet/install_location_arm64",
    "/etc/dotnet/install_location",
];

/// The usual places of a machine whose files begin at `root`, for a user with this home.
fn usual_places(root: &Path, user: Option<&Path>) -> Vec<PathBuf> {
    let below = |path: &str| root.join(path.trim_start_matches('/'));
    let own = user.map(|home| home.join(".dotnet"));
    let told = INSTALL_LOCATIONS.iter().filter_map(|file| fs::read_to_string(below(file)).ok());
    let told = told.map(|text| PathBuf::from(text.trim())).filter(|path| path.is_absolute());
    own.into_iter().chain(told).chain(USUAL_ROOTS.iter().map(|path| below(path))).collect()
}

/// An SDK that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FoundSdk {
    /// The SDK that was found.
    #[serde(flatten)]
    pub sdk: Sdk,
    /// Why it cannot run F# kernels; absent when it can.
    pub unusable: Option<Unusable>,
}

/// No SDK can be used. Its text says why, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoSdk {
    /// The configuration names a place that has no SDK that can be used. Others are not considered then: what the user
    /// chose is not replaced silently.
    Configured {
        /// What the configuration names.
        path: PathBuf,
        /// Why it cannot be used.
        reason: String,
    },
    /// There is none on this machine.
    Nowhere {
        /// Those that were found and cannot be used.
        unusable: Vec<FoundSdk>,
    },
}

impl NoSdk {
    /// Says what is wrong, for people.
    pub fn what(&self) -> String {
        match self {
            Self::Configured { path, reason } => {
                format!("the configured .NET SDK {} cannot be used: {reason}", path.display())
            }
            Self::Nowhere { unusable } => {
                format!("no .NET SDK with F# was found{}", unusable.iter().map(rejected).collect::<String>())
            }
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Configured { .. } => "correct that setting, or remove it to have an SDK found",
            Self::Nowhere { .. } => {
                "run `mainstay kernel install fsharp`, or install one with `apt install dotnet-sdk-10.0`, `brew install dotnet`, \
                 `winget install Microsoft.DotNet.SDK.10` or https://dot.net/v1/dotnet-install.sh"
            }
        }
    }
}

impl fmt::Display for NoSdk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what(), self.remedy())
    }
}

impl std::error::Error for NoSdk {}

/// The folders of a `PATH`.
fn folders_of(path: &OsStr) -> Vec<PathBuf> {
    env::split_paths(path).filter(|folder| folder.is_absolute()).collect()
}

impl Search {
    /// A search through the environment of this process. `home` is the folder Mainstay keeps its own things in.
    pub fn from_env(home: impl Into<PathBuf>) -> Self {
        let root = env::var_os("DOTNET_ROOT").filter(|root| !root.is_empty());
        Self {
            configured: None,
            dotnet_root: root.map(PathBuf::from),
            path: folders_of(&env::var_os("PATH").unwrap_or_default()),
            usual: usual_places(Path::new("/"), env::var_os("HOME").map(PathBuf::from).as_deref()),
            feed: FEED.to_owned(),
            home: home.into(),
        }
    }

    /// The same search for a session whose creator has this in its environment.
    #[must_use]
    pub fn of_session(&self, session: &Environment) -> Self {
        let mut search = self.clone();
        if let Some(root) = session.variable("DOTNET_ROOT") {
            search.dotnet_root = Some(PathBuf::from(root));
        }
        if let Some(path) = session.variable("PATH") {
            search.path = folders_of(OsStr::new(path));
        }
        search
    }

    /// The root that Mainstay installs an SDK into.
    pub fn own_root(&self) -> PathBuf {
        self.home.join("dotnet")
    }

    /// The program of this name, found on the `PATH`.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        self.path.iter().map(|folder| folder.join(name)).find(|path| path.is_file())
    }

    /// Every place an SDK may be rooted at, the most preferred first.
    fn roots(&self) -> Vec<(Origin, PathBuf)> {
        let configured =
            self.configured.as_deref().and_then(root_at).map(|root| (Origin::Configuration, root));
        let dotnet_root =
            self.dotnet_root.as_deref().and_then(root_at).map(|root| (Origin::DotnetRoot, root));
        let on_path = self.path.iter().map(|folder| folder.join(HOST));
        let on_path = on_path.flat_map(|host| roots_of_host(&host)).map(|root| (Origin::Path, root));
        let usual = self.usual.iter().filter_map(|place| root_at(place)).map(|root| (Origin::Usual, root));
        let own = root_at(&self.own_root()).map(|root| (Origin::Mainstay, root));
        configured.into_iter().chain(dotnet_root).chain(on_path).chain(usual).chain(own).collect()
    }
}

/// Every SDK, usable or not: in the order of origins, and the newest first within one. An SDK that several origins
/// lead to is listed once, under the first.
pub fn discover(search: &Search) -> Vec<FoundSdk> {
    let mut seen = HashSet::new();
    let roots = search.roots().into_iter().filter(|(_, root)| seen.insert(root.clone()));
    let mut found: Vec<FoundSdk> = roots.flat_map(|(origin, root)| sdks_at(origin, &root)).collect();
    found.sort_by(|a, b| a.sdk.origin.cmp(&b.sdk.origin).then_with(|| b.sdk.version.cmp(&a.sdk.version)));
    found
}

/// The SDK to use: the first usable one. What the configuration names must be usable.
///
/// # Errors
/// [`NoSdk`] when there is none; its text says what to do.
pub fn choose(search: &Search) -> Result<Sdk, NoSdk> {
    pick(search, &discover(search))
}

/// [`choose`] among what [`discover`] found.
pub(super) fn pick(search: &Search, found: &[FoundSdk]) -> Result<Sdk, NoSdk> {
    let first = found.iter().find(|found| found.unusable.is_none()).map(|found| found.sdk.clone());
    match (&search.configured, first) {
        (Some(path), first) => first
            .filter(|sdk| sdk.origin == Origin::Configuration)
            .ok_or_else(|| NoSdk::Configured { path: path.clone(), reason: configured_reason(path, found) }),
        (None, Some(sdk)) => Ok(sdk),
        (None, None) => Err(NoSdk::Nowhere { unusable: found.to_vec() }),
    }
}

fn configured_reason(path: &Path, found: &[FoundSdk]) -> String {
    let reasons: Vec<_> = found
        .iter()
        .filter(|found| found.sdk.origin == Origin::Configuration)
        .filter_map(|found| Some(format!("SDK {}: {}", found.sdk.version, found.unusable.as_ref()?)))
        .collect();
    if !reasons.is_empty() {
        reasons.join("; ")
    } else if path.exists() {
        "it has no `sdk` folder with an SDK in it".to_owned()
    } else {
        "it does not exist".to_owned()
    }
}

fn rejected(found: &FoundSdk) -> String {
    let FoundSdk { sdk, unusable } = found;
    let reason = unusable.as_ref().map(ToString::to_string).unwrap_or_default();
    format!(" (not {} in {}: {reason})", sdk.version, sdk.root.display())
}

/// The root that a path means: the path itself, or the folder of the executable it leads to.
/// Package managers put a link on the `PATH` (`/usr/bin/dotnet` → `/usr/lib/dotnet/dotnet`), so links are followed.
fn root_at(path: &Path) -> Option<PathBuf> {
    let real = path.canonicalize().ok()?;
    if real.is_dir() { Some(real) } else { real.parent().map(Path::to_owned) }
}

/// The roots that a `dotnet` on the `PATH` stands for: the folder it lies in where that has SDKs, else those it lists.
fn roots_of_host(host: &Path) -> Vec<PathBuf> {
    match root_at(host) {
        Some(root) if root.join("sdk").is_dir() => vec![root],
        Some(_) => roots_listed_by(host).iter().filter_map(|root| root_at(root)).collect(),
        None => Vec::new(),
    }
}

/// The SDKs rooted at `root`, oldest first.
pub(super) fn sdks_at(origin: Origin, root: &Path) -> Vec<FoundSdk> {
    let found = |version| {
        let sdk = Sdk { root: root.to_owned(), version, origin };
        FoundSdk { unusable: sdk.parts().err(), sdk }
    };
    versions_in(&root.join("sdk")).into_iter().map(|(version, _)| found(version)).collect()
}

/// The newest usable SDK rooted at `root`.
pub(super) fn newest_at(origin: Origin, root: &Path) -> Option<Sdk> {
    let root = root.canonicalize().ok()?;
    let mut usable = sdks_at(origin, &root).into_iter().filter(|found| found.unusable.is_none());
    usable.next_back().map(|found| found.sdk)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fsharp::testing::{NET_3_1, NET_8, Tree, search_in};

    fn listed(search: &Search) -> Vec<(Origin, String)> {
        discover(search).into_iter().map(|found| (found.sdk.origin, found.sdk.version.to_string())).collect()
    }

    fn under(folder: &str, files: &str) -> String {
        files.replace("    ", &format!("    {folder}/"))
    }

    /// SDK 3.1 in `old` and in Mainstay's home, 8 in `new`.
    fn machine() -> (Tree, Search) {
        let tree =
            Tree::of(&[under("old", NET_3_1), under("new", NET_8), under("home/dotnet", NET_3_1)].concat());
        let search = search_in(&tree.path("home"));
        (tree, search)
    }

    #[test]
    fn origins_come_in_their_order_whatever_the_versions() {
        let (tree, mut search) = machine();
        assert_eq!(listed(&search), [(Origin::Mainstay, "3.1.102".into())]);
        search.path = vec![tree.path("new")];
        search.dotnet_root = Some(tree.path("old"));
        let expected = [Origin::DotnetRoot, Origin::Path, Origin::Mainstay];
        assert_eq!(listed(&search).into_iter().map(|(origin, _)| origin).collect::<Vec<_>>(), expected);
        assert_eq!(choose(&search).unwrap().origin, Origin::DotnetRoot);
        search.configured = Some(tree.path("new"));
        assert_eq!(choose(&search).unwrap().origin, Origin::Configuration);
    }

    #[test]
    fn the_newest_sdk_of_an_origin_comes_first_also_across_roots() {
        let (tree, mut search) = machine();
        tree.write("new/sdk/8.0.404-rc.1/FSharp/fsc.dll", "");
        search.path = vec![tree.path("old"), tree.path("new")];
        let versions: Vec<_> = listed(&search).into_iter().take(3).map(|(_, version)| version).collect();
        assert_eq!(versions, ["8.0.404", "8.0.404-rc.1", "3.1.102"]);
    }

    #[test]
    fn a_link_on_the_path_leads_to_the_root_it_points_into() {
        let (tree, mut search) = machine();
        tree.link("bin/dotnet", &tree.path("alternatives/dotnet"));
        tree.link("alternatives/dotnet", &tree.path("new/dotnet"));
        search.path = vec![tree.path("empty"), tree.path("bin")];
        assert_eq!(choose(&search).unwrap().root, tree.path("new"));
    }

    #[test]
    fn a_script_on_the_path_is_asked_for_its_sdks() {
        let (tree, mut search) = machine();
        let list = format!("echo '8.0.404 [{}/sdk]'", tree.path("new").display());
        tree.script("shims/dotnet", &list);
        search.path = vec![tree.path("shims")];
        let sdk = choose(&search).unwrap();
        assert_eq!((sdk.root, sdk.origin), (tree.path("new"), Origin::Path));
    }

    #[test]
    fn the_places_of_installers_are_looked_at_before_mainstays_own() {
        let tree = Tree::of(
            &[under("usr/share/dotnet", NET_8), under("me/.dotnet", NET_3_1), under("own/dotnet", NET_3_1)]
                .concat(),
        );
        let mut search = search_in(&tree.path("own"));
        search.usual = usual_places(&tree.root(), None);
        assert_eq!(choose(&search).unwrap().root, tree.path("usr/share/dotnet"));
        tree.write("etc/dotnet/install_location", &format!("{}\n", tree.path("opt/dotnet").display()));
        let places = usual_places(&tree.root(), Some(&tree.path("me")));
        assert_eq!(places[..2], [tree.path("me/.dotnet"), tree.path("opt/dotnet")]);
    }

    #[test]
    fn one_root_reached_twice_is_listed_once_under_the_first_origin() {
        let (tree, mut search) = machine();
        tree.link("link", &tree.path("new"));
        search.dotnet_root = Some(tree.path("link"));
        search.path = vec![tree.path("new"), tree.path("new")];
        let expected = [(Origin::DotnetRoot, "8.0.404".into()), (Origin::Mainstay, "3.1.102".into())];
        assert_eq!(listed(&search), expected);
    }

    #[test]
    fn an_unusable_sdk_is_listed_with_its_reason_and_passed_over() {
        let (tree, mut search) = machine();
        tree.remove("new/sdk/8.0.404/FSharp");
        search.path = vec![tree.path("new")];
        let found = discover(&search);
        let reason = found[0].unusable.as_ref().map(ToString::to_string).unwrap_or_default();
        assert!(reason.starts_with("it has no F# folder"), "{reason}");
        assert_eq!(choose(&search).unwrap().origin, Origin::Mainstay);
    }

    #[test]
    fn what_is_configured_is_never_replaced_silently() {
        let (tree, mut search) = machine();
        search.configured = Some(tree.path("nowhere"));
        let message = choose(&search).unwrap_err().to_string();
        assert!(message.contains("nowhere cannot be used: it does not exist"), "{message}");
        tree.remove("new/shared");
        search.configured = Some(tree.path("new/dotnet"));
        let message = choose(&search).unwrap_err().to_string();
        assert!(message.contains("SDK 8.0.404: it has no shared runtime"), "{message}");
    }

    #[test]
    fn without_any_sdk_the_error_says_how_to_get_one() {
        let tree = Tree::of("sdk/9.0.100/README");
        let mut search = search_in(&tree.path("home"));
        search.dotnet_root = Some(tree.root());
        let message = choose(&search).unwrap_err().to_string();
        assert!(message.contains("(not 9.0.100 in"), "{message}");
        assert!(
            message.contains("; run `mainstay kernel install fsharp`, or install one with `apt "),
            "{message}"
        );
    }
}
