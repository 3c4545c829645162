//! The coding agent of the tests: one that the environment names, else the one from npm.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use super::Shelf;
use crate::command::run;
use crate::failure::Failure;

/// Names the program: read here, and set for the tests.
pub(super) const VARIABLE: &str = "MAINSTAY_TEST_PI";
const PACKAGE: &str = "@mariozechner/pi-coding-agent@0.73.1";
const NPM_REMEDY: &str = "install Node.js 20 or newer, which brings it, to have pi installed for the tests; or set \
                          MAINSTAY_TEST_PI to the program of pi 0.73.1";

/// The program to test with.
pub(super) fn provide(shelf: &Shelf) -> Result<PathBuf, Failure> {
    if let Some(program) = env::var_os(VARIABLE).filter(|program| !program.is_empty()) {
        return Ok(PathBuf::from(program));
    }
    let folder = shelf.provide("pi", PACKAGE, |folder| {
        eprintln!("installing {PACKAGE} from npm (once)");
        let mut npm = Command::new("npm");
        npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]);
        run(npm.arg(folder).arg(PACKAGE), NPM_REMEDY)
    })?;
    Ok(folder.join("node_modules/.bin/pi"))
}
