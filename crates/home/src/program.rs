//! The path of this program, for starting it again.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// By this path a process of Linux starts its own program again, also where the file was removed.
const RUNNING: &str = "/proc/self/exe";

/// Returns the path by which this process starts its program again: what is there now, where the program was replaced while it ran, and what
/// runs, where nothing is. Package managers have a folder for each version, and remove that of the old one while its daemon runs.
///
/// The path means another program to other processes; [`program_for_others`] is for them.
///
/// # Errors
/// The system does not say which program this is.
pub fn program() -> std::io::Result<PathBuf> {
    let file = program_file()?;
    Ok(startable(file, Path::new(RUNNING)))
}

/// Returns the path by which other processes start this program while this process runs.
///
/// # Errors
/// The system does not say which program this is.
pub fn program_for_others() -> std::io::Result<PathBuf> {
    let running = format!("/proc/{}/exe", std::process::id());
    Ok(startable(program_file()?, Path::new(&running)))
}

/// Returns the path of this program's file, which need not be there any more.
///
/// # Errors
/// The system does not say which program this is.
pub fn program_file() -> std::io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    // Linux marks the path of a file that is not there any more so.
    let replaced = program.to_str().and_then(|path| path.strip_suffix(" (deleted)")).map(PathBuf::from);
    Ok(replaced.unwrap_or(program))
}

fn startable(file: PathBuf, running: &Path) -> PathBuf {
    if file.is_file() || !running.exists() { file } else { running.to_owned() }
}

/// Returns the path of this program for the configuration of other programs: that by which it was started, where a package manager has put
/// a link there. The link leads to the next version too, and the file behind it goes with its version.
///
/// # Errors
/// The system does not say which program this is.
pub fn lasting_program() -> std::io::Result<PathBuf> {
    let program = program_file()?;
    let started = std::env::args_os().next().unwrap_or_default();
    let link = started_by(Path::new(&started), &std::env::var_os("PATH").unwrap_or_default());
    Ok(link.filter(|link| leads_to(link, &program)).unwrap_or(program))
}

/// Returns the path that a shell starts for a name.
fn started_by(name: &Path, searched: &OsStr) -> Option<PathBuf> {
    if name.components().count() > 1 {
        return std::path::absolute(name).ok();
    }
    std::env::split_paths(searched).map(|folder| folder.join(name)).find(|path| path.is_file())
}

fn leads_to(link: &Path, program: &Path) -> bool {
    link.is_absolute()
        && link.canonicalize().is_ok_and(|target| program.canonicalize().is_ok_and(|own| own == target))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_whose_file_is_gone_is_started_by_what_runs() {
        let folder = tempfile::tempdir().unwrap();
        let (file, running) = (folder.path().join("1.0/mainstay"), folder.path().join("exe"));
        assert_eq!(startable(file.clone(), &running), file, "a system that has no such path");
        std::fs::write(&running, "").unwrap();
        assert_eq!(startable(file.clone(), &running), running);
        std::fs::create_dir(folder.path().join("1.0")).unwrap();
        std::fs::write(&file, "").unwrap();
        assert_eq!(startable(file.clone(), &running), file);
    }

    #[test]
    fn a_link_by_which_the_program_was_started_is_found_by_path_and_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let (store, bin) = (folder.path().join("store/1.0"), folder.path().join("bin"));
        std::fs::create_dir_all(&store).unwrap();
        std::fs::create_dir(&bin).unwrap();
        let (program, link) = (store.join("mainstay"), bin.join("mainstay"));
        std::fs::write(&program, "").unwrap();
        std::os::unix::fs::symlink(&program, &link).unwrap();
        let searched = std::env::join_paths([folder.path(), &bin]).unwrap();
        assert_eq!(started_by(Path::new("mainstay"), &searched), Some(link.clone()));
        assert_eq!(started_by(&link, OsStr::new("")), Some(link.clone()));
        assert!(leads_to(&link, &program));

        let other = folder.path().join("other");
        std::fs::write(&other, "").unwrap();
        assert!(!leads_to(&other, &program), "another program of the same name");
        assert!(!leads_to(&bin.join("gone"), &program));
    }
}
