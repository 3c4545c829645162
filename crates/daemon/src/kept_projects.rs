//! What a session's worker was started with, kept beside the copies of its project's assemblies: a mirror of the session begins with the
//! same. The sources are kept too, since those that are saved later are not what was built.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use mainstay_home::Home;
use mainstay_kernel::{Project, ShadowCopy};
use mainstay_model::SessionId;
use tokio::task::spawn_blocking;

/// The folder below that of the copies.
const FOLDER: &str = ".mainstay";
/// The file with the project, in that folder.
const PROJECT: &str = "project.json";
/// The folder with the sources, in that folder. The worker reads it (`kernels/fsharp/Baselines.fs`).
const SOURCES: &str = "sources";
/// The copies of names that begin so are about to be removed, or not whole yet.
const UNFIT: [&str; 2] = ["old-", "new-"];

/// Keeps what is known of a project that a worker is about to load.
pub(crate) async fn keep(project: Project) {
    let written = spawn_blocking(move || write(&project)).await.unwrap_or_else(|ended| Err(ended.into()));
    if let Err(error) = written {
        tracing::warn!(%error, "what a worker begins with is not kept: its session has no mirror");
    }
}

/// What was kept last below the folder of a session's copies.
pub(crate) async fn kept(copies: PathBuf) -> Option<Project> {
    spawn_blocking(move || read(&copies)).await.ok()?
}

/// The copies of the own assemblies of a session's project, which its worker loads; none where it has no project.
pub async fn assemblies_of(home: &Home, session: SessionId) -> Vec<ShadowCopy> {
    kept(home.copies().join(session.to_string())).await.map(|project| project.own).unwrap_or_default()
}

fn write(project: &Project) -> io::Result<()> {
    let Some(copies) = &project.folder else { return Ok(()) };
    let folder = copies.join(FOLDER);
    fs::create_dir_all(&folder)?;
    let sources = folder.join(SOURCES);
    // Copies that were there already are of an earlier build: the sources may have been saved since.
    if !sources.is_dir() {
        keep_sources(project, &folder, &sources)?;
    }
    let mut file = tempfile::NamedTempFile::new_in(&folder)?;
    serde_json::to_writer(&mut file, project)?;
    file.persist(folder.join(PROJECT))?;
    Ok(())
}

/// Copies the sources, all or none, each under its number and its name.
fn keep_sources(project: &Project, folder: &Path, place: &Path) -> io::Result<()> {
    let staging = tempfile::Builder::new().prefix("new-").tempdir_in(folder)?;
    for (number, source) in project.known.sources.iter().enumerate() {
        let source = Path::new(source);
        let Some(name) = source.file_name().filter(|_| source.extension().is_some_and(|end| end == "fs"))
        else {
            continue;
        };
        let mut numbered = std::ffi::OsString::from(format!("{number}-"));
        numbered.push(name);
        match fs::copy(source, staging.path().join(numbered)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(_) | Err(_) => {}
        }
    }
    fs::rename(staging.path(), place)
}

fn read(copies: &Path) -> Option<Project> {
    let is_fit = |name: &str| !UNFIT.iter().any(|start| name.starts_with(start));
    let kept =
        fs::read_dir(copies).ok()?.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_fit));
    let newest = kept
        .map(|entry| entry.path().join(FOLDER).join(PROJECT))
        .filter_map(|file| Some((file.metadata().and_then(|about| about.modified()).ok()?, file)))
        .max_by_key(|(written, _): &(SystemTime, PathBuf)| *written);
    let text = fs::read(newest?.1).ok()?;
    serde_json::from_slice(&text)
        .inspect_err(|error| tracing::warn!(%error, "a kept project is not read"))
        .ok()
}

#[cfg(test)]
mod tests {
    use mainstay_model::LoadedProject;

    use super::*;

    fn project(folder: &Path, sources: Vec<String>) -> Project {
        let known = LoadedProject { sources, ..LoadedProject::default() };
        Project { known, folder: Some(folder.to_owned()), ..Project::default() }
    }

    #[test]
    fn a_project_is_kept_with_its_sources_as_they_were_when_it_was_copied() {
        let home = tempfile::tempdir().unwrap();
        let (source, copies) = (home.path().join("Cart.fs"), home.path().join("copies"));
        let place = copies.join("0123");
        fs::create_dir_all(&place).unwrap();
        fs::write(&source, "as built").unwrap();
        let made_of = vec![source.display().to_string(), "/gone/Gone.fs".to_owned()];
        write(&project(&place, made_of.clone())).unwrap();
        fs::write(&source, "saved since").unwrap();
        write(&Project { arguments: vec!["--checked".to_owned()], ..project(&place, made_of) }).unwrap();
        let kept = read(&copies).unwrap();
        assert_eq!(
            (kept.folder.as_deref(), kept.arguments),
            (Some(place.as_path()), vec!["--checked".to_owned()])
        );
        let sources = place.join(FOLDER).join(SOURCES);
        assert_eq!(fs::read_to_string(sources.join("0-Cart.fs")).unwrap(), "as built");
    }

    #[test]
    fn copies_that_go_are_not_what_a_mirror_begins_with() {
        let copies = tempfile::tempdir().unwrap();
        assert!(read(copies.path()).is_none());
        let old = copies.path().join("old-0123");
        fs::create_dir_all(&old).unwrap();
        write(&project(&old, Vec::new())).unwrap();
        assert!(read(copies.path()).is_none());
    }
}
