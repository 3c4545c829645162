//! What others speak MCP with: the protocol's conformance suite, its inspector, and its SDK for JavaScript.

use std::path::PathBuf;
use std::process::Command;

use super::Shelf;
use crate::command::run;
use crate::failure::Failure;

/// Names the folder of its packages, for the tests.
pub(super) const VARIABLE: &str = "MAINSTAY_TEST_MCP";
const PACKAGES: [&str; 3] = [
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/inspector@2.12.0",
    "@modelcontextprotocol/sdk@1.32.2",
];
const NPM_REMEDY: &str =
    "install Node.js 20 or newer, which brings npm; the tests speak MCP through packages from there";

/// Provides the folder with the MCP tools.
pub(super) fn provide(shelf: &Shelf) -> Result<PathBuf, Failure> {
    let packages = PACKAGES.join(" ");
    shelf.provide("mcp", &packages, |folder| {
        eprintln!("installing {packages} from npm (once)");
        let mut npm = Command::new("npm");
        npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]);
        run(npm.arg(folder).args(PACKAGES), NPM_REMEDY)
    })
}
