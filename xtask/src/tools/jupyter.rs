//! Jupyter kernels of several languages, and what runs notebooks on them: an environment of Python's, whose kernelspecs include that of
//! the Deno that npm has.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Shelf;
use super::python::{interpreter, make_environment};
use crate::command::run;
use crate::failure::Failure;

/// Names the environment, for the tests.
pub(super) const VARIABLE: &str = "MAINSTAY_TEST_JUPYTER";
const REQUIREMENTS: [&str; 9] = [
    "ipykernel==7.4.0",
    "xeus-python==0.19.0",
    "bash_kernel==0.10.0",
    "nbclient==0.11.0",
    "jupyter_kernel_test==0.7.0",
    "ipywidgets==8.1.9",
    "pandas==3.1.1",
    "matplotlib==3.11.2",
    "cloudpickle==3.1.3",
];
const DENO: &str = "deno@2.9.6";
const BASH_REMEDY: &str = "the tests run Bash through bash_kernel from PyPI";
const NPM_REMEDY: &str =
    "install Node.js 20 or newer, which brings npm; the tests run TypeScript through Deno from there";

/// Provides the environment with Jupyter.
pub(super) fn provide(shelf: &Shelf) -> Result<PathBuf, Failure> {
    shelf.provide("jupyter", &format!("{} {DENO}", REQUIREMENTS.join(" ")), |folder| {
        make_environment(folder, &REQUIREMENTS)?;
        let mut bash = Command::new(interpreter(folder));
        run(bash.args(["-m", "bash_kernel.install", "--prefix"]).arg(folder), BASH_REMEDY)?;
        add_deno(folder)
    })
}

fn add_deno(folder: &Path) -> Result<(), Failure> {
    eprintln!("installing {DENO} from npm (once)");
    let packages = folder.join("deno");
    let mut npm = Command::new("npm");
    npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]);
    run(npm.arg(&packages).arg(DENO), NPM_REMEDY)?;
    let program = program_in(&packages.join("node_modules/@deno"))?;
    // Deno's own `jupyter --install` writes into the user's home.
    let argv = format!("[{program:?}, \"jupyter\", \"--kernel\", \"--conn\", \"{{connection_file}}\"]");
    let spec = format!("{{ \"argv\": {argv}, \"display_name\": \"Deno\", \"language\": \"typescript\" }}\n");
    let place = folder.join("share/jupyter/kernels/deno");
    fs::create_dir_all(&place).map_err(Failure::at(&place))?;
    fs::write(place.join("kernel.json"), spec).map_err(Failure::at(&place))
}

/// Its only package for this machine has the program.
fn program_in(packages: &Path) -> Result<PathBuf, Failure> {
    let entries = fs::read_dir(packages).map_err(Failure::at(packages))?;
    let programs = entries.filter_map(Result::ok).map(|entry| entry.path().join("deno"));
    let found = programs.into_iter().find(|program| program.is_file());
    found.ok_or_else(|| {
        Failure::Usage(format!("there is no Deno for this machine under {}", packages.display()))
    })
}
