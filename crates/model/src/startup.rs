//! What a worker brought in before the session's own code: the assemblies of its project, and the scripts that its user has run in
//! every session. Nothing of it that fails keeps a session from being Ready. Source: seed 000, warm-up and startup profile.

use std::fmt::{self, Display};

use serde::{Deserialize, Serialize};

use crate::diagnostic::{Diagnostic, Severity};

/// How many things of each kind are kept of a startup.
const ITEMS: usize = 1_000;

/// All that was brought in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Startup {
    /// What people should know of the tools it runs on, such as an SDK that is not the one its folder asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The project, where the session is for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<LoadedProject>,
    /// The scripts that ran, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<ProfileRun>,
}

/// What became of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadedProject {
    /// The path of the project file.
    pub path: String,
    /// How it was found out what it consists of; none where it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub road: Option<ProjectRoad>,
    /// The framework it is for: `net10.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framework: Option<String>,
    /// Its own assemblies, in the order in which they were loaded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assemblies: Vec<LoadedAssembly>,
    /// What it is made of: its source files, and the project files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// Those of them that were written after it was built.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unbuilt: Vec<String>,
    /// How many others it refers to.
    #[serde(default)]
    pub references: u32,
    /// Those of the others that could not be loaded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<LoadedAssembly>,
    /// The namespaces and modules that were opened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opened: Vec<String>,
    /// Those that were not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unopened: Vec<Unopened>,
    /// What people should know of how it was found out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Why nothing of it could be brought in, where that is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// How it was found out what a project consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ProjectRoad {
    /// MSBuild of the SDK evaluated it.
    Msbuild,
    /// MSBuild does not work here: its file was read, and what a build had left.
    Fallback,
}

/// An assembly that was to be loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadedAssembly {
    /// Where a build puts it; what is loaded is a copy.
    pub path: String,
    /// Why it was not loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A namespace or module that was not opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unopened {
    /// The full name of the namespace or module.
    pub name: String,
    /// The reason why it was not opened.
    pub reason: String,
    /// Whether it is not meant to be opened: that is no fault.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_meant: bool,
}

/// A script of the user's that ran before the session's own code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProfileRun {
    /// The path of the profile file.
    pub path: String,
    /// What the compiler said of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
    /// Why it did not run to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The text that the profile printed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
}

impl Startup {
    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.notes.is_empty() && self.project.is_none() && self.profiles.is_empty()
    }

    /// With no more of each kind than is kept.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.notes.truncate(ITEMS);
        if let Some(project) = &mut self.project {
            project.assemblies.truncate(ITEMS);
            project.sources.truncate(ITEMS);
            project.unbuilt.truncate(ITEMS);
            project.missing.truncate(ITEMS);
            project.opened.truncate(ITEMS);
            project.unopened.truncate(ITEMS);
            project.notes.truncate(ITEMS);
        }
        for profile in &mut self.profiles {
            profile.diagnostics.truncate(ITEMS);
        }
        self
    }

    /// Whether all of it is there that was meant to be; there may be something to note all the same.
    pub fn is_whole(&self) -> bool {
        let project = self.project.as_ref().is_none_or(LoadedProject::is_whole);
        project && self.profiles.iter().all(|profile| profile.fault().is_none())
    }

    /// What did not go as it was meant to, and what is to be known, a line each.
    pub fn faults(&self) -> Vec<String> {
        let notes = self.notes.iter().cloned();
        let project = self.project.iter().flat_map(LoadedProject::faults);
        let profiles = self.profiles.iter().filter_map(ProfileRun::fault);
        notes.chain(project).chain(profiles).collect()
    }
}

impl LoadedProject {
    /// A project of which nothing could be brought in.
    pub fn failed(path: String, problem: String) -> Self {
        Self { path, problem: Some(problem), ..Self::default() }
    }

    /// Returns the name of the project file.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// How many of its own assemblies were loaded.
    pub fn loaded(&self) -> usize {
        self.assemblies.iter().filter(|assembly| assembly.error.is_none()).count()
    }

    /// Whether all of it is there that was meant to be.
    pub fn is_whole(&self) -> bool {
        let mut assemblies = self.assemblies.iter().chain(&self.missing);
        self.loaded() > 0
            && assemblies.all(|assembly| assembly.error.is_none())
            && self.unopened.iter().all(|one| one.is_meant)
    }

    /// What did not go as it was meant to, and what is to be known of it, a line each.
    pub fn faults(&self) -> Vec<String> {
        let problem = self.problem.iter().map(|problem| format!("{}: {problem}", self.name()));
        let assembly = |assembly: &LoadedAssembly| {
            let error = assembly.error.as_ref()?;
            Some(format!("{} was not loaded: {error}", assembly.path))
        };
        let assemblies = self.assemblies.iter().chain(&self.missing).filter_map(assembly);
        let unopened = self.unopened.iter().filter(|one| !one.is_meant);
        let unopened =
            unopened.map(|Unopened { name, reason, .. }| format!("{name} was not opened: {reason}"));
        problem.chain(assemblies).chain(unopened).chain(self.notes.iter().cloned()).collect()
    }
}

impl ProfileRun {
    /// Why it did not run to its end, where it did not.
    pub fn fault(&self) -> Option<String> {
        let is_error = |diagnostic: &&Diagnostic| diagnostic.severity == Severity::Error;
        let reason = match (&self.error, self.diagnostics.iter().find(is_error)) {
            (Some(error), _) => error,
            (None, Some(diagnostic)) => &diagnostic.message,
            (None, None) => return None,
        };
        Some(format!("{} did not run to its end: {reason}", self.path))
    }
}

impl Display for Startup {
    /// In a line: what was loaded and opened, and what ran. Nothing where there was neither.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let project = self.project.as_ref().map(|project| match &project.problem {
            Some(_) => format!("{} was not loaded", project.name()),
            None => {
                let count = |count: usize, one: &str, many: &str| match count {
                    1 => format!("1 {one}"),
                    count => format!("{count} {many}"),
                };
                let loaded = count(project.loaded(), "assembly", "assemblies");
                let opened = count(project.opened.len(), "namespace or module", "namespaces and modules");
                format!("{}: {loaded} loaded, {opened} opened", project.name())
            }
        });
        let profiles = self.profiles.iter().map(|profile| match profile.fault() {
            Some(_) => format!("{} failed", profile.path),
            None => format!("{} ran", profile.path),
        });
        f.write_str(&project.into_iter().chain(profiles).collect::<Vec<_>>().join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shop() -> LoadedProject {
        let loaded = |path: &str| LoadedAssembly { path: path.to_owned(), error: None };
        let unopened =
            |name: &str, is_meant| Unopened { name: name.to_owned(), reason: "why".to_owned(), is_meant };
        LoadedProject {
            path: "/code/Shop.fsproj".to_owned(),
            road: Some(ProjectRoad::Msbuild),
            assemblies: vec![loaded("/code/bin/Core.dll"), loaded("/code/bin/Shop.dll")],
            opened: vec!["Shop".to_owned()],
            unopened: vec![unopened("Shop.Money", true), unopened("Shop.Odd", false)],
            ..LoadedProject::default()
        }
    }

    #[test]
    fn a_startup_is_said_in_a_line() {
        let ran = ProfileRun {
            path: "~/init.fsx".to_owned(),
            diagnostics: vec![],
            error: None,
            output: String::new(),
            duration_ms: 3,
        };
        let startup = Startup { project: Some(shop()), profiles: vec![ran], ..Startup::default() };
        let line = "Shop.fsproj: 2 assemblies loaded, 1 namespace or module opened; ~/init.fsx ran";
        assert_eq!(startup.to_string(), line);
        let gone = LoadedProject::failed("/code/Shop.fsproj".to_owned(), "it is not there".to_owned());
        let startup = Startup { project: Some(gone), profiles: vec![], ..Startup::default() };
        assert_eq!(startup.to_string(), "Shop.fsproj was not loaded");
        assert_eq!(startup.faults(), ["Shop.fsproj: it is not there"]);
        let startup = Startup { notes: vec!["another SDK".to_owned()], ..Startup::default() };
        assert_eq!((startup.to_string(), startup.faults()), (String::new(), vec!["another SDK".to_owned()]));
        assert!(startup.is_whole() && !startup.is_empty());
    }

    #[test]
    fn what_is_not_meant_to_be_opened_is_no_fault() {
        let mut project = shop();
        let broken = LoadedAssembly { path: "/code/x.dll".to_owned(), error: Some("bad image".to_owned()) };
        project.missing.push(broken);
        let failed = ProfileRun {
            path: "a.fsx".to_owned(),
            diagnostics: vec![],
            error: Some("boom".to_owned()),
            output: String::new(),
            duration_ms: 0,
        };
        let startup = Startup { project: Some(project), profiles: vec![failed], ..Startup::default() };
        let faults = [
            "/code/x.dll was not loaded: bad image",
            "Shop.Odd was not opened: why",
            "a.fsx did not run to its end: boom",
        ];
        assert_eq!(startup.faults(), faults);
        assert!(!startup.is_whole());
        let mut shop = shop();
        shop.unopened.pop();
        assert!(Startup { project: Some(shop), profiles: vec![], ..Startup::default() }.is_whole());
    }
}
