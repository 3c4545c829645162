//! Examines whether F# kernels can run on this machine, and says what to do where they cannot. Data only, for people
//! and programs alike; nothing is run or changed.

use std::path::{Path, PathBuf, absolute};

use serde::Serialize;

use super::cache::{Cache, WorkerState};
use super::discover::{FoundSdk, NoSdk, Search, discover};
use super::recipe::Recipe;
use super::sdk::Sdk;
use super::selection::{Code, Selected, select_among};
use super::sources::Sources;
use crate::kernel_files::KernelFiles;

/// The programs an installation can need.
const TOOLS: [&str; 3] = ["curl", "tar", "npm"];

/// The findings of the examination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Every SDK, the most preferred first.
    pub sdks: Vec<FoundSdk>,
    /// The one that is used in the folder.
    pub chosen: Option<Sdk>,
    /// Why that is not the one that the folder's `global.json` asks for; absent where it is, or there is no such file.
    pub note: Option<String>,
    /// Whether the worker is built for the chosen one.
    pub worker: Option<WorkerState>,
    /// The programs an installation can need.
    pub tools: Vec<Tool>,
    /// What stands in the way; empty when F# kernels can run.
    pub problems: Vec<Problem>,
}

/// A program on the `PATH`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// The name of the tool.
    pub name: &'static str,
    /// Where it is; absent when it is not installed.
    pub path: Option<PathBuf>,
}

/// Something that stands in the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// What is wrong, for people.
    pub what: String,
    /// The command that mends it, or what to do where no command can.
    pub remedy: String,
}

/// Examines this machine, for code in `folder`. `files` has the sources of the worker.
pub fn examine(search: &Search, folder: &Path, files: KernelFiles) -> Report {
    let sdks = discover(search);
    let choice = select_among(search, Code::In(folder), &sdks);
    let tools: Vec<_> = TOOLS.map(|name| Tool { name, path: search.program(name) }).into();
    let problems = choice.as_ref().err().map(|error| problems(error, &tools)).unwrap_or_default();
    let (chosen, note) = choice.map_or((None, None), |Selected { sdk, note }| (Some(sdk), note));
    let worker = chosen.as_ref().and_then(|sdk| worker_state(&search.home, sdk, files));
    Report { sdks, chosen, note, worker, tools, problems }
}

/// Whether the programs are on the `PATH` that download an SDK.
pub fn can_download(search: &Search) -> bool {
    can_download_with(|name| search.program(name).is_some())
}

fn can_download_with(has: impl Fn(&str) -> bool) -> bool {
    has("npm") || (has("curl") && has("tar"))
}

fn worker_state(home: &Path, sdk: &Sdk, files: KernelFiles) -> Option<WorkerState> {
    let home = absolute(home).unwrap_or_else(|_| home.to_owned());
    let recipe = Recipe::of(sdk, sdk.parts().ok()?);
    Some(Cache::of(&home, &recipe, &Sources::read(files).ok()?).state())
}

fn problems(error: &NoSdk, tools: &[Tool]) -> Vec<Problem> {
    let mut problems = vec![Problem { what: error.what(), remedy: error.remedy().to_owned() }];
    let has = |name: &str| tools.iter().any(|tool| tool.name == name && tool.path.is_some());
    if matches!(error, NoSdk::Nowhere { .. }) && !can_download_with(has) {
        problems.push(Problem {
            what: "an SDK cannot be installed: neither curl with tar, nor npm, is on the PATH".to_owned(),
            remedy: "install curl and tar (or Node.js, which brings npm) with the system's package manager"
                .to_owned(),
        });
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fsharp::sdk::Origin;
    use crate::fsharp::testing::{NET_8, Tree, search_in};

    #[test]
    fn a_machine_with_an_sdk_has_no_problems() {
        let tree = Tree::of(NET_8);
        let mut search = search_in(&tree.path("home"));
        search.path = vec![tree.root()];
        let report = examine(&search, &tree.root(), mainstay_embedded::kernel_file);
        let sdk = Sdk { root: tree.root(), version: "8.0.404".parse().unwrap(), origin: Origin::Path };
        assert_eq!(report.chosen, Some(sdk));
        assert_eq!((report.worker, report.problems), (Some(WorkerState::NotBuilt), Vec::new()));
    }

    #[test]
    fn each_problem_comes_with_its_remedy() {
        let tree = Tree::of("");
        let mut search = search_in(&tree.path("home"));
        let remedies = |search: &Search| -> Vec<String> {
            examine(search, &tree.root(), mainstay_embedded::kernel_file)
                .problems
                .into_iter()
                .map(|it| it.remedy)
                .collect()
        };
        let install = NoSdk::Nowhere { unusable: Vec::new() }.remedy();
        assert!(
            matches!(&remedies(&search)[..], [first, second] if first == install && second.contains("curl"))
        );
        tree.write("bin/npm", "");
        search.path = vec![tree.path("bin")];
        assert_eq!(remedies(&search), [install]);
        search.configured = Some(tree.path("gone"));
        assert!(matches!(&remedies(&search)[..], [only] if only.starts_with("correct that setting")));
    }

    #[test]
    fn a_report_is_plain_data() {
        let tree = Tree::of("sdk/9.0.100/README");
        let mut search = search_in(&tree.path("home"));
        search.dotnet_root = Some(tree.root());
        let report = serde_json::to_value(examine(&search, &tree.root(), |_| None)).unwrap();
        let sdk = &report["sdks"][0];
        assert_eq!((&sdk["version"], &sdk["origin"]), (&"9.0.100".into(), &"dotnetRoot".into()));
        assert!(sdk["unusable"].as_str().unwrap().contains("dotnet executable"), "{report}");
    }
}
