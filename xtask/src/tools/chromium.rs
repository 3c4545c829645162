//! The browser of the tests: one that the environment names or that is installed, else Debian's. And what looks for barriers on its pages.

use std::path::PathBuf;
use std::process::Command;

use super::{Shelf, apt, named};
use crate::command::{run, succeeds};
use crate::failure::Failure;

/// Names the program: read here, and set for the tests.
pub(super) const VARIABLE: &str = "MAINSTAY_TEST_CHROMIUM";
/// Names the script of axe: read here, and set for the tests.
pub(super) const AXE_VARIABLE: &str = "MAINSTAY_TEST_AXE";

const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const REMEDY: &str = "install Chromium to have the page tested in a browser (on Debian and Ubuntu: `sudo apt-get install chromium`); or set \
                      MAINSTAY_TEST_CHROMIUM to its program";
const AXE: &str = "axe-core@4.14.1";
const NPM_REMEDY: &str = "install Node.js 20 or newer, which brings it, to have axe installed for the tests; or set MAINSTAY_TEST_AXE to axe.min.js";

/// The program to test with.
pub(super) fn provide() -> Result<PathBuf, Failure> {
    if let Some(program) = named(VARIABLE).or_else(installed) {
        return Ok(program);
    }
    eprintln!("installing Chromium with apt-get (once)");
    apt::apt_get(&["update"], REMEDY)?;
    apt::apt_get(&["install", "--no-install-recommends", "chromium"], REMEDY)?;
    installed().ok_or_else(|| Failure::Usage(REMEDY.to_owned()))
}

/// The script that looks for barriers.
pub(super) fn provide_axe(shelf: &Shelf) -> Result<PathBuf, Failure> {
    if let Some(script) = named(AXE_VARIABLE) {
        return Ok(script);
    }
    let folder = shelf.provide("axe", AXE, |folder| {
        eprintln!("installing {AXE} from npm (once)");
        let mut npm = Command::new("npm");
        npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]);
        run(npm.arg(folder).arg(AXE), NPM_REMEDY)
    })?;
    Ok(folder.join("node_modules/axe-core/axe.min.js"))
}

fn installed() -> Option<PathBuf> {
    NAMES.into_iter().find(|name| succeeds(Command::new(name).arg("--version"))).map(PathBuf::from)
}
