//! Whether what was built is still what a build would make: told by a file beside what a restore writes, which says what the last build was
//! made of.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::evaluation::Evaluated;

const NAME: &str = "mainstay.build";

/// What one build is made of.
pub(super) struct Stamp<'a> {
    project: &'a Evaluated,
    made_of: String,
}

impl<'a> Stamp<'a> {
    /// Of a project that is compiled with these arguments, and needs these assemblies.
    pub(super) fn new(project: &'a Evaluated, arguments: &[OsString], needs: &[PathBuf]) -> Self {
        let mut made_of = String::new();
        for argument in arguments {
            let _ = writeln!(made_of, "{}", argument.to_string_lossy());
        }
        for input in project.sources.iter().chain(needs) {
            let _ = writeln!(made_of, "{}", state(input));
        }
        Self { project, made_of }
    }

    /// Whether the last build was made of the same, and has been left alone since.
    pub(super) fn is_up_to_date(&self) -> bool {
        self.project.output.is_file()
            && fs::read_to_string(self.path()).is_ok_and(|written| written == self.text())
    }

    /// Notes that it was built of this. Where that cannot be noted, it is built again the next time.
    pub(super) fn write(&self) {
        if fs::create_dir_all(&self.project.restored).is_ok() {
            fs::write(self.path(), self.text()).ok();
        }
    }

    fn path(&self) -> PathBuf {
        self.project.restored.join(NAME)
    }

    fn text(&self) -> String {
        format!("{}{}\n", self.made_of, state(&self.project.output))
    }
}

/// A file as it is: its path, length and time.
fn state(path: &Path) -> String {
    let metadata = path.metadata().ok();
    let length = metadata.as_ref().map(fs::Metadata::len);
    let written = metadata.and_then(|metadata| metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok());
    format!("{} {length:?} {:?}", path.display(), written.map(|time| time.as_nanos()))
}
