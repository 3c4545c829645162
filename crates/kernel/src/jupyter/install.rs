//! Installs Python kernels under Mainstay's own folder, for people who have none: a virtual environment for each, with packages from
//! PyPI. An environment cannot be moved, so it is made in its place; only one that was finished counts.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mainstay_model::SessionKind;
use tokio::process::Command;

use super::kernelspec::{FINISHED, Kernelspec, Places};
use mainstay_os::command::{self, CommandError};
use mainstay_os::download::{Download, DownloadError, OnProgress, Progress};
use mainstay_os::folder::{FileError, Lock, failed, remove};

/// The kinds of session whose kernels can be installed, and from which package of PyPI each comes.
pub const INSTALLABLE: [(&str, &str); 2] = [("python", "ipykernel<8"), ("xpython", "xeus-python<1")];
/// With it more of a session's values can be kept.
const VALUES: &str = "cloudpickle<4";
/// How long fetching packages may take.
const LIMIT: Duration = Duration::from_secs(30 * 60);
/// How long making an empty environment may take.
const SHORT_LIMIT: Duration = Duration::from_secs(120);
const PIP: [&str; 5] = ["-m", "pip", "install", "--disable-pip-version-check", "--no-input"];

/// No kernel was installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// No kernel of this kind is known here.
    #[error("kernels of kind `{0}` are not known here: {known} are", known = known())]
    Unknown(SessionKind),
    /// There is no Python.
    #[error("python3 is not on the PATH; install Python 3.10 or newer with the system's package manager")]
    NoPython,
    /// There is a Python that cannot install packages.
    #[error(
        "python3 has neither `ensurepip` nor `pip`; install the package `python3-venv` (Debian, Ubuntu) or `python3-pip`"
    )]
    NoPip,
    /// Mainstay's own folder could not be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The environment could not be made.
    #[error("no virtual environment could be made: {0}")]
    Environment(#[from] CommandError),
    /// The packages could not be fetched.
    #[error("pip could not provide {packages}: {source}")]
    Download {
        /// The packages that were to be downloaded.
        packages: String,
        /// The reason why the download failed.
        source: DownloadError,
    },
    /// What was fetched is something else.
    #[error("what pip brought has no kernel")]
    NoKernel,
}

fn known() -> String {
    INSTALLABLE.map(|(kind, _)| format!("`{kind}`")).join(" and ")
}

/// Whether a kernel for sessions of this kind can be installed.
pub fn is_installable(kind: &SessionKind) -> bool {
    INSTALLABLE.iter().any(|(name, _)| *name == kind.as_str())
}

/// Installs a kernel into a folder of `own`, unless it is there, and more packages beside it. Two processes that install at once
/// wait for each other.
///
/// # Errors
/// [`InstallError`].
pub async fn install(
    own: &Path,
    kind: &SessionKind,
    more: &[String],
    progress: OnProgress<'_>,
) -> Result<Kernelspec, InstallError> {
    let package = INSTALLABLE.iter().find(|(name, _)| *name == kind.as_str()).map(|(_, package)| *package);
    let package = package.ok_or_else(|| InstallError::Unknown(kind.clone()))?;
    fs::create_dir_all(own).map_err(failed("create", own))?;
    let place = own.join(kind.as_str());
    let _lock = Lock::acquire(&place.with_extension("lock"), || progress(Progress::Waiting)).await?;
    let environment = Environment { place: &place, python: python().ok_or(InstallError::NoPython)? };
    if !place.join(FINISHED).is_file() {
        remove(&place)?;
        environment.make().await?;
        environment.fetch(&[package.to_owned(), VALUES.to_owned()], progress).await?;
    }
    if !more.is_empty() {
        environment.fetch(more, progress).await?;
    }
    let marker = place.join(FINISHED);
    fs::write(&marker, package).map_err(failed("write", &marker))?;
    let found = Places::of_environment(&place).kernelspecs().found;
    found.into_iter().find(|spec| spec.language == "python").ok_or(InstallError::NoKernel)
}

/// Whether there is a Python that a kernel can be installed for.
pub fn has_python() -> bool {
    python().is_some()
}

/// The interpreter on the `PATH`, else that of the environment that this program is installed in: of those who have uv it may be the only one.
fn python() -> Option<PathBuf> {
    let own = env::current_exe().ok().and_then(|program| Some(program.parent()?.to_owned()));
    first_python(&env::var_os("PATH").unwrap_or_default(), own)
}

fn first_python(path: &OsStr, own: Option<PathBuf>) -> Option<PathBuf> {
    env::split_paths(path).chain(own).map(|folder| folder.join("python3")).find(|program| program.is_file())
}

/// A virtual environment in the making.
struct Environment<'a> {
    place: &'a Path,
    /// The path of the machine's interpreter.
    python: PathBuf,
}

impl Environment<'_> {
    async fn make(&self) -> Result<(), InstallError> {
        fs::create_dir_all(self.place).map_err(failed("create", self.place))?;
        let mut venv = Command::new(&self.python);
        venv.args(["-m", "venv"]);
        // Some distributions pack pip apart from Python: an environment made there has none.
        if !self.can(&self.python, "import ensurepip").await {
            if !self.can(&self.python, "import pip").await {
                return Err(InstallError::NoPip);
            }
            venv.arg("--without-pip");
        }
        Ok(command::run(venv.arg(self.place), &self.place.join("log"), SHORT_LIMIT).await?)
    }

    async fn fetch(&self, packages: &[String], progress: OnProgress<'_>) -> Result<(), InstallError> {
        let own = self.place.join("bin/python");
        let has_pip = self.can(&own, "import pip").await;
        let library = self.library().await;
        let mut pip = Command::new(if has_pip { &own } else { &self.python });
        pip.args(PIP);
        if !has_pip {
            pip.arg("--upgrade").arg("--target").arg(&library);
        }
        let download = Download { folder: self.place, limit: LIMIT, stall_limit: None };
        let told = |elapsed, bytes| progress(Progress::Installing { elapsed, bytes });
        let fetched = download.run(pip.args(packages), &told).await;
        fetched.map_err(|source| InstallError::Download { packages: packages.join(", "), source })?;
        // What packages bring for the environment lies among them then.
        let (brought, share) = (library.join("share"), self.place.join("share"));
        if brought.is_dir() && !share.exists() {
            std::os::unix::fs::symlink(&brought, &share).map_err(failed("create", &share))?;
        }
        Ok(())
    }

    /// Where its packages lie.
    async fn library(&self) -> PathBuf {
        let script = "import sysconfig; print(sysconfig.get_path('purelib'), end='')";
        let asked = Command::new(self.place.join("bin/python")).args(["-c", script]).output().await;
        let path =
            asked.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        PathBuf::from(path)
    }

    async fn can(&self, python: &Path, statement: &str) -> bool {
        let tried = Command::new(python).args(["-c", statement]).output().await;
        tried.is_ok_and(|output| output.status.success())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_python_of_the_programs_own_environment_will_do_where_the_path_has_none() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for file in ["usr/python3", "own/python3"] {
            fs::create_dir_all(at(file).parent().unwrap()).unwrap();
            fs::write(at(file), "").unwrap();
        }
        let found = |folder: &str| first_python(at(folder).as_os_str(), Some(at("own")));
        assert_eq!(found("usr"), Some(at("usr/python3")));
        assert_eq!(found("none"), Some(at("own/python3")));
        assert_eq!(first_python(at("none").as_os_str(), None), None);
    }
}
