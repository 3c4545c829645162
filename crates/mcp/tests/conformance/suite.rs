//! The suite itself: a program of Node.js, which writes what it found as files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

/// What its scenarios of one version of the protocol came to.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Found {
    /// Scenarios in which nothing failed, and nothing was warned of.
    pub(crate) passed: usize,
    /// Those of the others that are expected to fail.
    pub(crate) expected: usize,
    /// Scenarios that did not run as expected, with what the suite said.
    pub(crate) unexpected: Vec<String>,
}

/// One thing that a scenario looked at.
#[derive(Deserialize)]
struct Check {
    status: String,
}

/// Runs everything that the suite has for a version of the protocol against a server; extensions of it are named one by one.
pub(crate) fn run(version: &str, url: &str, extensions: &[&str]) -> Found {
    let baseline =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/conformance/expected/{version}.yml"));
    let results = tempfile::tempdir().unwrap();
    let server = |selection: &[&str]| {
        let mut suite = node();
        suite.arg(package("@modelcontextprotocol/conformance/dist/index.js"));
        suite.args(["server", "--url", url, "--spec-version", version]).args(selection);
        suite.arg("--expected-failures").arg(&baseline).arg("--output-dir").arg(results.path());
        let output = suite.output().unwrap();
        let said =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        (!output.status.success()).then_some(said)
    };
    let whole = server(&["--suite", "all"]);
    let others = extensions.iter().filter_map(|scenario| server(&["--scenario", scenario, "--force"]));
    let unexpected: Vec<String> = whole.into_iter().chain(others).collect();
    let failed = failures(results.path());
    let passed = failed.values().filter(|has_failed| !**has_failed).count();
    Found { passed, expected: failed.len() - passed, unexpected }
}

/// Of each scenario, by the folder of its results, whether something in it failed.
fn failures(results: &Path) -> BTreeMap<PathBuf, bool> {
    let folders = std::fs::read_dir(results).unwrap().map(|folder| folder.unwrap().path());
    let has_failed = |folder: PathBuf| {
        let checks: Vec<Check> =
            serde_json::from_slice(&std::fs::read(folder.join("checks.json")).unwrap()).unwrap();
        let has_failed = checks.iter().any(|check| ["FAILURE", "WARNING"].contains(&check.status.as_str()));
        (folder, has_failed)
    };
    folders.map(has_failed).collect()
}

fn node() -> Command {
    Command::new(provided("MAINSTAY_TEST_NODE"))
}

fn package(path: &str) -> PathBuf {
    Path::new(&provided("MAINSTAY_TEST_MCP")).join("node_modules").join(path)
}

fn provided(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| panic!("{variable} must be set; `cargo xtask test` sets it"))
}
