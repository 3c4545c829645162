//! Generators of clients of the HTTP API, which the tests run on its document: one for TypeScript from npm, with its compiler, and one for Python
//! from PyPI, with a type checker.

use std::path::PathBuf;
use std::process::Command;

use super::{Shelf, python};
use crate::command::run;
use crate::failure::Failure;

/// Names the folder of the packages from npm, for the tests.
pub(super) const NPM_VARIABLE: &str = "MAINSTAY_TEST_OPENAPI_NPM";
/// Names the interpreter that has the packages from PyPI, for the tests.
pub(super) const PYTHON_VARIABLE: &str = "MAINSTAY_TEST_OPENAPI_PYTHON";
const PACKAGES: [&str; 3] = ["openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3"];
const REQUIREMENTS: [&str; 2] = ["openapi-python-client==0.29.1", "mypy==2.4.1"];
const NPM_REMEDY: &str = "install Node.js 20 or newer, which brings npm; the tests generate a client with openapi-typescript from there";

/// The folder of the packages from npm.
pub(super) fn provide_npm(shelf: &Shelf) -> Result<PathBuf, Failure> {
    let packages = PACKAGES.join(" ");
    shelf.provide("openapi-npm", &packages, |folder| {
        eprintln!("installing {packages} from npm (once)");
        let mut npm = Command::new("npm");
        npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]);
        run(npm.arg(folder).args(PACKAGES), NPM_REMEDY)
    })
}

/// The interpreter that has the packages from PyPI.
pub(super) fn provide_python(shelf: &Shelf) -> Result<PathBuf, Failure> {
    let folder = shelf.provide("openapi-python", &REQUIREMENTS.join(" "), |folder| {
        python::make_environment(folder, &REQUIREMENTS)
    })?;
    Ok(python::interpreter(&folder))
}
