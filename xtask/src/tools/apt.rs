//! Debian's packages: installed, where the tests need a program, or only taken apart.

use std::path::Path;
use std::process::Command;

use crate::command::{run, succeeds};
use crate::failure::Failure;

/// Runs apt-get as root. Who is not root is asked for nothing: where sudo wants a password, this fails and says what to do.
pub(super) fn apt_get(arguments: &[&str], remedy: &'static str) -> Result<(), Failure> {
    let is_root = is_root();
    let mut apt = Command::new(if is_root { "apt-get" } else { "sudo" });
    if !is_root {
        apt.args(["-n", "apt-get"]);
    }
    run(apt.args(["-q", "-y"]).args(arguments).env("DEBIAN_FRONTEND", "noninteractive"), remedy)
}

/// The files of a package, in a folder: nothing is installed.
pub(super) fn unpack(package: &str, folder: &Path, remedy: &'static str) -> Result<(), Failure> {
    let download = || {
        let mut apt = Command::new("apt-get");
        apt.args(["-q", "download", package]).current_dir(folder);
        apt
    };
    if !succeeds(&mut download()) {
        apt_get(&["update"], remedy)?;
        run(&mut download(), remedy)?;
    }
    run(Command::new("sh").args(["-c", "dpkg-deb -x *.deb ."]).current_dir(folder), remedy)
}

fn is_root() -> bool {
    succeeds(Command::new("sh").args(["-c", "test \"$(id -u)\" = 0"]))
}
