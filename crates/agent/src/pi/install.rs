//! Installs pi under Mainstay's own folder, through npm, without running its packages' scripts. The folder gets its final name when
//! everything is in it, and a finished installation of the same version is left as it is.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use mainstay_os::download::{Download, DownloadError, OnProgress, Progress};
use mainstay_os::folder::{FileError, Lock, Staging, failed};
use tokio::process::Command;

use super::locate::{FoundPi, PACKAGE, PINNED, Search};

/// How long fetching it (about 200 MB) may take.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// pi was not installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// Mainstay's own folder could not be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// npm is not there.
    #[error("npm is not on the PATH; it comes with Node.js (20 or newer), which pi needs")]
    NoNpm,
    /// It could not be fetched.
    #[error("npm could not provide {PACKAGE}@{PINNED}: {0}")]
    Download(#[from] DownloadError),
    /// What was fetched is something else.
    #[error("what npm brought is no pi")]
    NotPi,
}

/// Installs pi into [`Search::own_root`], unless it is there. Two processes that install at once get the same one.
///
/// # Errors
/// [`InstallError`].
pub async fn install(search: &Search, progress: OnProgress<'_>) -> Result<FoundPi, InstallError> {
    let place = search.own_root();
    let parent = place.parent().unwrap_or(&search.home);
    fs::create_dir_all(parent).map_err(failed("create", parent))?;
    let _lock = Lock::acquire(&place.with_extension("lock"), || progress(Progress::Waiting)).await?;
    if let Some(found) = search.own().filter(|found| found.version.as_deref() == Some(PINNED)) {
        return Ok(found);
    }
    let npm = search.program("npm").ok_or(InstallError::NoNpm)?;
    let staging = Staging::create(&place.with_extension("staging"))?;
    let folder: PathBuf = staging.folder().to_owned();
    let mut command = Command::new(npm);
    command.current_dir(&folder);
    command.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
    command.args(["--fetch-retries=1", "--prefix"]).arg(&folder).arg(format!("{PACKAGE}@{PINNED}"));
    if let Ok(path) = env::join_paths(&search.path) {
        command.env("PATH", path);
    }
    let download = Download { folder: &folder, limit: LIMIT, stall_limit: None };
    download.run(&mut command, &|elapsed, bytes| progress(Progress::Installing { elapsed, bytes })).await?;
    staging.publish(folder, place).await?;
    search.own().ok_or(InstallError::NotPi)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    /// A machine whose only program is this npm.
    fn machine(folder: &Path, npm: &str) -> Search {
        let bin = folder.join("bin");
        fs::create_dir_all(&bin).unwrap();
        let source = bin.join("npm.source");
        fs::write(&source, format!("#!/bin/sh\nPATH=/usr/bin:/bin\n{npm}\n")).unwrap();
        fs::set_permissions(&source, fs::Permissions::from_mode(0o755)).unwrap();
        // Renamed by another process: a program that this one has just written may still be open in a test that starts one.
        assert!(
            std::process::Command::new("cp").args([&source, &bin.join("npm")]).status().unwrap().success()
        );
        Search { configured: None, path: vec![bin], home: folder.join("home") }
    }

    /// An npm that brings pi, and notes that it ran.
    fn bringing(folder: &Path, version: &str) -> String {
        format!(
            "echo ran >> {runs}\nwhile [ \"$1\" != --prefix ]; do shift; done\ncd \"$2\"\n\
             mkdir -p node_modules/.bin node_modules/{PACKAGE}/dist\n\
             echo '{{\"name\":\"{PACKAGE}\",\"version\":\"{version}\"}}' > node_modules/{PACKAGE}/package.json\n\
             touch node_modules/{PACKAGE}/dist/cli.js\n\
             ln -s ../{PACKAGE}/dist/cli.js node_modules/.bin/pi",
            runs = folder.join("runs").display(),
        )
    }

    #[tokio::test]
    async fn it_is_installed_once() {
        let folder = tempfile::tempdir().unwrap();
        let search = machine(folder.path(), &bringing(folder.path(), PINNED));
        let (first, second) = tokio::join!(install(&search, &|_| {}), install(&search, &|_| {}));
        assert_eq!(first.unwrap(), second.unwrap());
        assert_eq!(super::super::choose(&search).unwrap().version.as_deref(), Some(PINNED));
        assert_eq!(fs::read_to_string(folder.path().join("runs")).unwrap(), "ran\n");
    }

    #[tokio::test]
    async fn what_fails_leaves_nothing_behind_and_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let search = machine(folder.path(), "echo 'error: the registry is away' >&2; exit 1");
        let message = install(&search, &|_| {}).await.unwrap_err().to_string();
        assert!(message.contains("the registry is away"), "{message}");
        assert!(super::super::discover(&search).is_empty());
        let nowhere = Search { path: Vec::new(), ..search };
        assert!(matches!(install(&nowhere, &|_| {}).await, Err(InstallError::NoNpm)));
    }
}
