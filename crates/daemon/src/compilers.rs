//! The warm compilers: processes of the daemon's that build projects again of which nothing but sources has changed since a build. Whoever
//! builds a project, in the daemon or in a shim, asks them first (`client`), over a socket of the daemon's (`server`). What is kept, for how
//! long, and when it is made is in `keeper`. Nobody waits for one that is not ready: a build is always possible.

pub(crate) mod client;
mod keeper;
mod server;

use std::path::{Path, PathBuf};
use std::time::Duration;

use mainstay_home::config::FsharpConfig;
use mainstay_kernel::fsharp::project::{Built, Resolved};
use mainstay_runner::Environment;
use serde::{Deserialize, Serialize};

pub(crate) use self::server::serve;

/// The name of the socket, in the folder of the daemon's sockets.
const SOCKET: &str = "compilers";

/// When compilers are kept warm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WarmCompilerTerms {
    /// How many there are at most.
    most: usize,
    /// How long nobody may have waited for anything before something is done ahead.
    rest: Duration,
    /// How long one may have nothing to do.
    idle: Duration,
    /// How much memory one may take; none means as much as it takes.
    bytes: Option<u64>,
    /// How much memory the machine must have available.
    memory_bytes: u64,
}

impl WarmCompilerTerms {
    /// Those of the settings; none where no compiler is to be kept.
    pub(crate) fn of(config: &FsharpConfig) -> Option<Self> {
        let most = usize::try_from(config.warm_compilers).unwrap_or(usize::MAX);
        (most > 0 && is_for_compilers()).then(|| Self {
            most,
            rest: Duration::from_millis(config.standby_rest_ms),
            idle: Duration::from_millis(config.warm_compiler_idle_ms),
            bytes: Some(config.warm_compiler_bytes).filter(|&bytes| bytes > 0),
            memory_bytes: config.warm_compiler_memory_bytes,
        })
    }
}

/// Whether this program keeps compilers. While it is tested it does where a test says so: others would share the machine with them.
fn is_for_compilers() -> bool {
    !cfg!(feature = "failpoints") || std::env::var_os("MAINSTAY_TEST_WARM_COMPILERS").is_some()
}

/// A project as somebody builds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BuiltProject {
    /// The `.fsproj`, `.sln` or `.slnx` file.
    pub(crate) path: PathBuf,
    /// What the creator of its session has in its environment.
    pub(crate) environment: Environment,
}

/// Variables of a terminal or a shell, which no build asks for.
const OF_TERMINALS: [&str; 14] = [
    "COLORTERM",
    "COLUMNS",
    "DISPLAY",
    "LINES",
    "OLDPWD",
    "PWD",
    "SHLVL",
    "STY",
    "TERM",
    "TERM_PROGRAM",
    "TMUX",
    "TMUX_PANE",
    "WINDOWID",
    "_",
];

/// How the names of others begin.
const OF_TERMINALS_PREFIXES: [&str; 3] = ["SSH_", "VSCODE_", "XDG_"];

impl BuiltProject {
    pub(crate) fn new(path: &Path, environment: &Environment) -> Self {
        Self { path: path.to_owned(), environment: environment.clone() }
    }

    /// Whether a build of the one is a build of the other.
    fn is_same(&self, other: &Self) -> bool {
        let is_asked_for = |(name, _): &(&str, &str)| {
            !OF_TERMINALS.contains(name) && !OF_TERMINALS_PREFIXES.iter().any(|start| name.starts_with(start))
        };
        let asked_for = |project: &'_ Self| -> Vec<(String, String)> {
            let variables = project.environment.variables().filter(is_asked_for);
            variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
        };
        self.path == other.path && asked_for(self) == asked_for(other)
    }
}

/// What is asked of the warm compilers, as a line of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Question {
    /// Build the project again, where that can be done.
    Recompile(BuiltProject),
    /// What does it consist of, where that is known?
    Resolve(BuiltProject),
    /// It was built now, and is likely to be built again.
    Built(BuiltProject),
    /// It is loaded as it was built, and may be built again.
    Loaded(BuiltProject),
}

/// What the warm compilers say, each a line of JSON. The last ends the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Answer {
    /// This is done next, for people.
    Says(String),
    /// It was built, or has errors.
    Recompiled(Box<Built>),
    /// It consists of this.
    Resolved(Box<Resolved>),
    /// Only a build helps, because of this.
    Unready(String),
    /// It will be seen to.
    Noted,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(path: &str, variables: &[(&str, &str)]) -> BuiltProject {
        let variables = variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
        BuiltProject { path: PathBuf::from(path), environment: variables.collect() }
    }

    #[test]
    fn a_terminal_makes_no_other_build_and_any_other_variable_may() {
        let one = project("/a/A.fsproj", &[("PWD", "/a"), ("Configuration", "Debug")]);
        assert!(one.is_same(&project(
            "/a/A.fsproj",
            &[("PWD", "/b"), ("SSH_TTY", "1"), ("Configuration", "Debug")]
        )));
        assert!(!one.is_same(&project("/a/A.fsproj", &[("PWD", "/a"), ("Configuration", "Release")])));
        assert!(!one.is_same(&project("/b/A.fsproj", &[("PWD", "/a"), ("Configuration", "Debug")])));
    }

    #[test]
    fn none_is_kept_where_the_settings_say_so() {
        let off = FsharpConfig { warm_compilers: 0, ..FsharpConfig::default() };
        assert_eq!(WarmCompilerTerms::of(&off), None);
    }
}
