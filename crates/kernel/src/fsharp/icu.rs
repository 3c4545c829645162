//! Cultures: .NET takes them from the ICU library and refuses to start without one that it knows. This finds out what a
//! program of an SDK must be told to start here.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::process::Command;

use super::diagnostics;
use super::sdk::Parts;
use mainstay_os::command;

/// Where Linux distributions keep shared libraries.
const LIBRARY_FOLDERS: [&str; 8] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/lib64",
    "/lib",
    "/usr/local/lib64",
    "/usr/local/lib",
];

/// How long the compiler may take to print its help. It takes a fifth of a second.
const LIMIT: Duration = Duration::from_secs(30);

/// How programs of an SDK get their cultures on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Cultures {
    /// They find the ICU library by themselves.
    Found,
    /// They must be told the version of an ICU library that is newer than they are.
    Version(u32),
    /// They have the invariant culture only.
    Invariant,
}

impl Cultures {
    /// The environment variable that makes it so, if one is needed.
    pub(super) fn variable(&self) -> Option<(&'static str, String)> {
        match self {
            Self::Found => None,
            Self::Version(major) => Some(("CLR_ICU_VERSION_OVERRIDE", major.to_string())),
            Self::Invariant => Some(("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1".to_owned())),
        }
    }

    /// The best that works, tried with the SDK's compiler. `log` is a file for its output.
    pub(super) async fn probe(parts: &Parts, log: &Path) -> Self {
        let newest = installed_versions().last().copied().map(Self::Version);
        for cultures in [Some(Self::Found), newest].into_iter().flatten() {
            let mut help = Command::new(&parts.host);
            help.arg("exec").arg(&parts.compiler).arg("--help");
            help.env_remove("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT").env_remove("CLR_ICU_VERSION_OVERRIDE");
            help.envs(cultures.variable()).envs(diagnostics::shut(|name| env::var_os(name)));
            if command::run(&mut help, log, LIMIT).await.is_ok() {
                return cultures;
            }
        }
        Self::Invariant
    }
}

/// The major versions of the ICU libraries on this machine, oldest first.
pub(super) fn installed_versions() -> Vec<u32> {
    versions_among(LIBRARY_FOLDERS.iter().map(Path::new))
}

fn versions_among<'a>(folders: impl Iterator<Item = &'a Path>) -> Vec<u32> {
    let names = folders.filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let version =
        |entry: fs::DirEntry| entry.file_name().to_str()?.strip_prefix("libicuuc.so.")?.parse().ok();
    names.filter_map(version).collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fsharp::testing::Tree;

    #[test]
    fn installed_versions_are_those_a_program_can_link_to() {
        let tree = Tree::of(
            "a/libicuuc.so\na/libicuuc.so.72\na/libicuuc.so.72.1\nb/libicuuc.so.67\nb/libicui18n.so.67",
        );
        let folders = [tree.path("a"), tree.path("b"), tree.path("missing")];
        assert_eq!(versions_among(folders.iter().map(|folder| folder.as_path())), [67, 72]);
    }
}
