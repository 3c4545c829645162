//! Another implementation of BARE, which the tests read with what Mainstay writes.

use std::path::PathBuf;
use std::process::Command;

use super::Shelf;
use crate::command::run;
use crate::failure::Failure;

/// Names the folder of its packages, for the tests.
pub(super) const VARIABLE: &str = "MAINSTAY_TEST_BARE";
const PACKAGES: [&str; 2] = ["@bare-ts/tools@0.16.0", "@bare-ts/lib@0.4.0"];
const NPM_REMEDY: &str =
    "install Node.js 20 or newer, which brings npm; the tests read BARE with @bare-ts/tools from there";

/// Provides the folder with the BARE tools.
pub(super) fn provide(shelf: &Shelf) -> Result<PathBuf, Failure> {
    let packages = PACKAGES.join(" ");
    shelf.provide("bare", &packages, |folder| {
        eprintln!("installing {packages} from npm (once)");
        let mut npm = Command::new("npm");
        npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]);
        run(npm.arg(folder).args(PACKAGES), NPM_REMEDY)
    })
}
