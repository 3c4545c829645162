//! A Python with the packages that tests speak to the daemon with, in a virtual environment.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, iter};

use super::Shelf;
use crate::command::{output, run, succeeds};
use crate::failure::Failure;

/// The official clients of MCP and ARCP, what tries the document of the HTTP API, and the peer that benchmarks run beside.
const REQUIREMENTS: [&str; 5] = [
    "mcp==2.3.0",
    "agentruntimecontrolprotocol==1.1.3",
    "schemathesis==4.32.5",
    "jupyter_server==2.21.0",
    "ipykernel==7.4.0",
];
const PYTHON_REMEDY: &str = "install Python 3.10 or newer with its package manager pip; the tests speak MCP and HTTP through its clients";
const PIP: &[&str] = &["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"];

/// The `PATH` with the folder of the interpreter that `python3` starts, where that is on none of it: pyenv's `python3` is a script, which starts
/// dozens of processes each time, and tests start Python a thousand times.
pub(super) fn path_with_interpreter() -> Result<Option<OsString>, Failure> {
    let executable =
        PathBuf::from(output(python3().args(["-c", "import sys; print(sys.executable)"]), PYTHON_REMEDY)?);
    let path = env::var_os("PATH").unwrap_or_default();
    let with = executable.parent().and_then(|folder| with_first(folder, &path));
    Ok(with)
}

/// The `PATH` with a folder before all others, where it does not have it.
fn with_first(folder: &Path, path: &OsStr) -> Option<OsString> {
    let folders: Vec<_> = env::split_paths(path).collect();
    match folders.iter().any(|other| other == folder) {
        true => None,
        false => env::join_paths(iter::once(folder.to_owned()).chain(folders)).ok(),
    }
}

/// The interpreter to test with.
pub(super) fn provide(shelf: &Shelf) -> Result<PathBuf, Failure> {
    let base = output(
        python3().args(["-c", "import sys; print(sys.version_info[:3], sys.base_prefix)"]),
        PYTHON_REMEDY,
    )?;
    let folder = shelf.provide("python", &format!("{} {base}", REQUIREMENTS.join(" ")), |folder| {
        make_environment(folder, &REQUIREMENTS)
    })?;
    Ok(interpreter(&folder))
}

/// Makes a virtual environment with these packages.
pub(super) fn make_environment(folder: &Path, requirements: &[&str]) -> Result<(), Failure> {
    eprintln!("installing {} from PyPI (once)", requirements.join(" and "));
    match succeeds(python3().args(["-c", "import ensurepip"])) {
        true => install_with_own_pip(folder, requirements),
        false => install_with_pip_of_system(folder, requirements),
    }
}

fn install_with_own_pip(folder: &Path, requirements: &[&str]) -> Result<(), Failure> {
    run(python3().args(["-m", "venv"]).arg(folder), PYTHON_REMEDY)?;
    run(Command::new(interpreter(folder)).args(PIP).args(requirements), PYTHON_REMEDY)
}

/// Some distributions pack pip apart from Python: an environment made there has none.
fn install_with_pip_of_system(folder: &Path, requirements: &[&str]) -> Result<(), Failure> {
    run(python3().args(["-m", "venv", "--without-pip"]).arg(folder), PYTHON_REMEDY)?;
    let script = "import sysconfig; print(sysconfig.get_path('purelib'))";
    let packages =
        PathBuf::from(output(Command::new(interpreter(folder)).args(["-c", script]), PYTHON_REMEDY)?);
    run(python3().args(PIP).arg("--target").arg(&packages).args(requirements), PYTHON_REMEDY)?;
    // What packages bring for the environment lies among them then.
    let (brought, share) = (packages.join("share"), folder.join("share"));
    match brought.is_dir() && !share.exists() {
        true => std::os::unix::fs::symlink(&brought, &share).map_err(Failure::at(&share)),
        false => Ok(()),
    }
}

/// `pip install`, by an interpreter that may have a pip where the system's has none.
pub(super) fn pip(python: &Path) -> Command {
    let has_pip = succeeds(Command::new(python).args(["-m", "pip", "--version"]));
    let mut pip = if has_pip { Command::new(python) } else { python3() };
    pip.args(PIP);
    pip
}

fn python3() -> Command {
    Command::new("python3")
}

pub(super) fn interpreter(environment: &Path) -> PathBuf {
    environment.join("bin/python")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interpreters_folder_comes_first_where_the_path_does_not_have_it() {
        let with_first = |folder: &str, path: &str| with_first(Path::new(folder), OsStr::new(path));
        assert_eq!(
            with_first("/versions/3.11/bin", "/shims:/usr/bin"),
            Some("/versions/3.11/bin:/shims:/usr/bin".into())
        );
        assert_eq!(with_first("/usr/bin", "/shims:/usr/bin"), None);
    }
}
