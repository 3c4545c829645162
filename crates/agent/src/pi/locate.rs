//! Finds pi on this machine. Looks at files only: nothing is run, nothing written.

use std::env;
use std::path::{Path, PathBuf};

use mainstay_runner::Environment;
use serde::{Deserialize, Serialize};

/// The version that Mainstay installs, and is tested with.
pub const PINNED: &str = "0.73.1";
/// The npm package that pi is.
pub(super) const PACKAGE: &str = "@mariozechner/pi-coding-agent";
/// The name of pi's program.
const PROGRAM: &str = "pi";

/// Where to look. Holds the environment as values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// The program that the user's configuration names.
    pub configured: Option<PathBuf>,
    /// The folders of `PATH`, in order.
    pub path: Vec<PathBuf>,
    /// The folder Mainstay keeps its own things in.
    pub home: PathBuf,
}

/// A pi that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FoundPi {
    /// The program that was found.
    pub program: PathBuf,
    /// Its version, where its package tells.
    pub version: Option<String>,
    /// What led to it.
    pub origin: Origin,
}

/// What led to a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Origin {
    /// The path in the user's configuration.
    Configuration,
    /// The installation that Mainstay made itself.
    Mainstay,
    /// It is on the `PATH`.
    Path,
}

impl Origin {
    /// Its name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Mainstay => "Mainstay",
            Self::Path => "PATH",
        }
    }
}

/// No pi can be used. Its text says why, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}; {}", self.what(), self.remedy())]
pub enum NoPi {
    /// The configuration names what is not there. Others are not considered then: what the user chose is not replaced silently.
    Configured {
        /// The path that the configuration names.
        path: PathBuf,
    },
    /// There is none on this machine.
    Nowhere,
}

impl NoPi {
    /// Says what is wrong, for people.
    pub fn what(&self) -> String {
        match self {
            Self::Configured { path } => format!("the configured pi {} is not there", path.display()),
            Self::Nowhere => "pi was not found".to_owned(),
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Configured { .. } => "correct `path` in `[pi]`, or remove it to have pi found",
            Self::Nowhere => "run `mainstay agent install pi`",
        }
    }
}

impl Search {
    /// A search through the environment of this process. `home` is the folder Mainstay keeps its own things in.
    pub fn from_env(home: impl Into<PathBuf>) -> Self {
        let path = env::var_os("PATH").unwrap_or_default();
        Self {
            configured: None,
            path: env::split_paths(&path).filter(|folder| folder.is_absolute()).collect(),
            home: home.into(),
        }
    }

    /// The same search for a session whose creator has this in its environment.
    #[must_use]
    pub fn of_session(&self, session: &Environment) -> Self {
        let mut search = self.clone();
        if let Some(path) = session.variable("PATH") {
            search.path = env::split_paths(path).filter(|folder| folder.is_absolute()).collect();
        }
        search
    }

    /// The folder that Mainstay installs pi into.
    pub fn own_root(&self) -> PathBuf {
        self.home.join("agents/pi/program")
    }

    /// The folder of what pi keeps of its sessions.
    pub fn sessions(&self) -> PathBuf {
        self.home.join("agents/pi/sessions")
    }

    /// The program of this name, found on the `PATH`.
    pub(super) fn program(&self, name: &str) -> Option<PathBuf> {
        self.path.iter().map(|folder| folder.join(name)).find(|path| path.is_file())
    }

    /// Returns the pi that Mainstay installed, if there is one.
    pub(super) fn own(&self) -> Option<FoundPi> {
        found(Origin::Mainstay, self.own_root().join("node_modules/.bin").join(PROGRAM))
    }
}

/// Every pi there is, the most preferred first.
pub fn discover(search: &Search) -> Vec<FoundPi> {
    let configured = search.configured.clone().and_then(|path| found(Origin::Configuration, path));
    let on_path = search.path.iter().filter_map(|folder| found(Origin::Path, folder.join(PROGRAM)));
    configured.into_iter().chain(search.own()).chain(on_path).collect()
}

/// The pi to use. What the configuration names must be there.
///
/// # Errors
/// [`NoPi`].
pub fn choose(search: &Search) -> Result<FoundPi, NoPi> {
    let first = discover(search).into_iter().next();
    match (&search.configured, first) {
        (Some(path), first) => first
            .filter(|found| found.origin == Origin::Configuration)
            .ok_or_else(|| NoPi::Configured { path: path.clone() }),
        (None, first) => first.ok_or(NoPi::Nowhere),
    }
}

fn found(origin: Origin, program: PathBuf) -> Option<FoundPi> {
    let version = version_of(&program.canonicalize().ok().filter(|program| program.is_file())?);
    Some(FoundPi { program, version, origin })
}

#[derive(Deserialize)]
struct Manifest {
    name: String,
    version: String,
}

/// What the package says that a program is of.
fn version_of(program: &Path) -> Option<String> {
    let manifests = program.ancestors().skip(1).map(|folder| folder.join("package.json"));
    let texts = manifests.filter_map(|manifest| std::fs::read(manifest).ok());
    let mut packages = texts.filter_map(|text| serde_json::from_slice::<Manifest>(&text).ok());
    packages.find(|manifest| manifest.name == PACKAGE).map(|manifest| manifest.version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn touch(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn search(folder: &Path) -> Search {
        Search { configured: None, path: vec![folder.join("bin")], home: folder.join("home") }
    }

    #[test]
    fn the_own_installation_is_preferred_to_the_path_and_a_configured_one_to_both() {
        let folder = tempfile::tempdir().unwrap();
        let mut search = search(folder.path());
        assert_eq!(choose(&search), Err(NoPi::Nowhere));
        touch(&folder.path().join("bin/pi"), "");
        assert_eq!(choose(&search).unwrap().origin, Origin::Path);
        touch(&search.own_root().join("node_modules/.bin/pi"), "");
        assert_eq!(choose(&search).unwrap().origin, Origin::Mainstay);
        search.configured = Some(folder.path().join("mine"));
        insta::assert_snapshot!(
            choose(&search).unwrap_err().to_string().replace(&folder.path().display().to_string(), "FOLDER"),
            @"the configured pi FOLDER/mine is not there; correct `path` in `[pi]`, or remove it to have pi found"
        );
        touch(&folder.path().join("mine"), "");
        assert_eq!(choose(&search).unwrap().origin, Origin::Configuration);
        assert_eq!(discover(&search).len(), 3);
    }

    #[test]
    fn its_version_is_that_of_its_package() {
        let folder = tempfile::tempdir().unwrap();
        let modules = folder.path().join("node_modules");
        touch(
            &modules.join(PACKAGE).join("package.json"),
            &format!(r#"{{"name":"{PACKAGE}","version":"1.2.3"}}"#),
        );
        touch(&modules.join(PACKAGE).join("dist/package.json"), r#"{"name":"other","version":"9"}"#);
        touch(&modules.join(PACKAGE).join("dist/cli.js"), "");
        fs::create_dir(folder.path().join("bin")).unwrap();
        std::os::unix::fs::symlink(modules.join(PACKAGE).join("dist/cli.js"), folder.path().join("bin/pi"))
            .unwrap();
        assert_eq!(choose(&search(folder.path())).unwrap().version.as_deref(), Some("1.2.3"));
    }
}
