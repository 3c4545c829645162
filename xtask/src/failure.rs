//! Everything that can go wrong, with what to do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};

/// Why a task was not done.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line is wrong.
    Usage(String),
    /// A program is not installed.
    Missing {
        /// The name of the program.
        program: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// A program cannot be started.
    NotStarted {
        /// The program and its arguments.
        command: String,
        /// The reason why it did not start.
        source: io::Error,
    },
    /// A program ended with an error, which it has printed itself.
    Failed {
        /// The program and its arguments.
        command: String,
        /// The exit status of the program.
        status: ExitStatus,
    },
    /// A file or folder cannot be used.
    File {
        /// The path of the file.
        path: PathBuf,
        /// The reason why the file failed.
        source: io::Error,
    },
    /// A .NET SDK cannot be used, or none can be installed.
    Sdk {
        /// The reason why there is no SDK.
        reason: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// Something cannot go into a package.
    Unpackable {
        /// What cannot be packed.
        what: String,
        /// The reason why it cannot be packed.
        reason: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// A soak, which has said what it found.
    Unsound {
        /// How many faults were found.
        faults: usize,
        /// The home of the daemon, left as it is.
        home: PathBuf,
    },
}

impl Failure {
    /// A conversion of what the file system says of `path`.
    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { path: path.to_owned(), source }
    }

    /// 2 where the command line is wrong, else 1.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Missing { .. }
            | Self::NotStarted { .. }
            | Self::Failed { .. }
            | Self::File { .. }
            | Self::Sdk { .. }
            | Self::Unpackable { .. }
            | Self::Unsound { .. } => ExitCode::FAILURE,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) => f.write_str(text),
            Self::Missing { program, remedy } => write!(f, "`{program}` is not installed; {remedy}"),
            Self::NotStarted { command, source } => write!(f, "`{command}` cannot be started: {source}"),
            Self::Failed { command, status } => write!(f, "`{command}` failed ({status})"),
            Self::File { path, source } => write!(f, "`{}` cannot be used: {source}", path.display()),
            Self::Unsound { faults, home } => {
                write!(f, "the soak has found faults: {faults}; the home is left in `{}`", home.display())
            }
            Self::Unpackable { what, reason, remedy } => {
                write!(f, "{what} cannot be packed: {reason}; {remedy}")
            }
            Self::Sdk { reason, remedy } => write!(f, "{reason}; {remedy}"),
        }
    }
}
