//! A configuration on the disk: read, shown as a change, and written whole or not at all, with what was there beside it.

use std::fs::Permissions;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use mainstay_model::Error;
use mainstay_terminal::{Paint, Tone, printable};

use super::clients::Scope;

/// Lines around a change that are shown with it.
const AROUND: usize = 3;
/// Who may do what with a file of the user's that is new: others may have a look at nothing of theirs.
const OWN_MODE: u32 = 0o600;
/// With one of a project: what the user's mask lets files have.
const SHARED_MODE: u32 = 0o666;

/// A configuration as it is.
#[derive(Debug)]
pub(super) struct File {
    /// Where it lies, links followed: they are the user's way to keep it elsewhere.
    path: PathBuf,
    /// What it says; nothing where it is not there.
    text: Option<String>,
}

impl File {
    /// Reads it.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it is there and cannot be read as text.
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(unusable(&path, &error)),
        };
        Ok(Self { path, text })
    }

    /// Returns the path of the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the text of the file.
    pub(super) fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// Has it say something else, and gives the copy of what it said.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it cannot be written, or was changed since it was read.
    pub(super) fn write(&self, text: &str, scope: Scope) -> Result<Option<PathBuf>, Error> {
        if Self::read(&self.path)?.text != self.text {
            let changed = io::Error::other("it was changed meanwhile; run this again");
            return Err(unusable(&self.path, &changed));
        }
        self.replace(text, scope).map_err(|error| unusable(&self.path, &error))
    }

    fn replace(&self, text: &str, scope: Scope) -> io::Result<Option<PathBuf>> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        std::fs::create_dir_all(folder)?;
        let mode = match scope {
            Scope::User => OWN_MODE,
            Scope::Project => SHARED_MODE,
        };
        let mut staged =
            tempfile::Builder::new().permissions(Permissions::from_mode(mode)).tempfile_in(folder)?;
        staged.write_all(text.as_bytes())?;
        let backup = match &self.text {
            Some(old) => {
                let permissions = std::fs::metadata(&self.path)?.permissions();
                staged.as_file().set_permissions(permissions.clone())?;
                Some(keep(&self.path, old, &permissions)?)
            }
            None => None,
        };
        staged.as_file().sync_all()?;
        staged.persist(&self.path)?;
        std::fs::File::open(folder)?.sync_all()?;
        Ok(backup)
    }
}

/// Keeps what a file said beside it, over nothing that is kept already.
fn keep(path: &Path, text: &str, permissions: &Permissions) -> io::Result<PathBuf> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut staged = tempfile::NamedTempFile::new_in(folder)?;
    staged.write_all(text.as_bytes())?;
    staged.as_file().set_permissions(permissions.clone())?;
    staged.as_file().sync_all()?;
    for count in 1_u32.. {
        let backup = folder.join(format!("{name}.backup-{count}"));
        match staged.persist_noclobber(&backup) {
            Ok(_) => return Ok(backup),
            Err(taken) if taken.error.kind() == ErrorKind::AlreadyExists => staged = taken.file,
            Err(failed) => return Err(failed.error),
        }
    }
    Err(io::Error::other("there are too many backups beside it"))
}

/// The lines of a text that a change takes out and puts in, and those around them.
pub(super) fn difference(before: &str, after: &str, paint: Paint) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let head = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let shortest = old.len().min(new.len()) - head;
    let tail =
        old.iter().rev().zip(new.iter().rev()).take(shortest).take_while(|(old, new)| old == new).count();
    let (gone, come) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let shown = |sign: &str, lines: &[&str]| -> String {
        lines.iter().map(|line| format!("{sign} {}\n", printable(line))).collect()
    };
    let toned = |tone: Tone, text: String| -> String {
        text.lines().map(|line| format!("{}\n", paint.tone(tone, line))).collect()
    };
    let end = old.len() - tail;
    [
        shown(" ", &old[head.saturating_sub(AROUND)..head]),
        toned(Tone::Faint, shown("-", gone)),
        toned(Tone::Good, shown("+", come)),
        shown(" ", &old[end..old.len().min(end + AROUND)]),
    ]
    .concat()
}

fn unusable(path: &Path, error: &io::Error) -> Error {
    Error::InvalidArgument { argument: path.display().to_string(), reason: error.to_string() }
}
