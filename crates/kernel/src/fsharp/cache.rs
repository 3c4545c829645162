//! Where a built worker lies, and whether it is still whole. Only files are looked at: a finished worker is recognised
//! without running anything.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::icu::{Cultures, installed_versions};
use super::recipe::{self, Recipe};
use super::sources::Sources;
use super::version::SdkVersion;
use mainstay_os::folder::{FileError, failed};

/// How many digits of the hash a folder's name has.
const DIGITS: usize = 12;
const MANIFEST: &str = "worker.json";

/// Everything needed to start the worker, besides the channel's own variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerProgram {
    /// The path of the executable.
    pub program: PathBuf,
    /// The arguments of the executable.
    pub arguments: Vec<OsString>,
    /// What to add to the inherited environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The SDK that built it and that it runs on.
    pub sdk: SdkVersion,
}

/// Whether the worker is ready to be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum WorkerState {
    /// It is built and whole.
    Built,
    /// It was built, but what it was built for has changed. The next start builds it anew.
    Stale,
    /// It was never built for this SDK and this version of Mainstay. The next start builds it.
    NotBuilt,
}

/// The place of the worker that an SDK builds from given sources.
#[derive(Debug)]
pub(super) struct Cache {
    folder: PathBuf,
}

/// What a built worker was built for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    cultures: Cultures,
    /// The ICU libraries `cultures` was found with.
    icu: Vec<u32>,
    /// The files in the folder with their lengths.
    files: BTreeMap<PathBuf, u64>,
    /// What must be there besides to start it.
    needs: BTreeSet<PathBuf>,
    /// What a worker is known by that is made of the same on another machine, where a release can carry it.
    #[serde(default)]
    prebuilt: Option<String>,
}

impl Cache {
    /// `home` is Mainstay's own folder. SDKs of one version at two places have a worker each, and so has an SDK whose files
    /// were replaced in place: a worker fits only the compiler that it was compiled against.
    pub(super) fn of(home: &Path, recipe: &Recipe, sources: &Sources) -> Self {
        let sdk = &recipe.sdk;
        let mut hasher = blake3::Hasher::new();
        let mut add = |part: &[u8]| {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        };
        add(&recipe::VERSION.to_le_bytes());
        add(sdk.root.as_os_str().as_encoded_bytes());
        for file in recipe.determining_files() {
            add(file.as_os_str().as_encoded_bytes());
            add(&stamp_of(&file));
        }
        for source in sources.display.iter().chain(&sources.worker) {
            add(source.name.as_bytes());
            add(source.text.as_bytes());
        }
        let hash = hasher.finalize().to_hex();
        Self { folder: home.join("kernels/fsharp").join(format!("{}-{}", sdk.version, &hash[..DIGITS])) }
    }

    /// The folder of the finished worker.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A place beside it: the same name with `.suffix`.
    pub(super) fn beside(&self, suffix: &str) -> PathBuf {
        let mut path = self.folder.clone().into_os_string();
        path.push(".");
        path.push(suffix);
        path.into()
    }

    pub(super) fn state(&self) -> WorkerState {
        match self.whole() {
            Some(_) => WorkerState::Built,
            None if self.folder.exists() => WorkerState::Stale,
            None => WorkerState::NotBuilt,
        }
    }

    /// How to start the worker, if it is built and whole.
    pub(super) fn program(&self, recipe: &Recipe) -> Option<WorkerProgram> {
        self.whole().map(|manifest| self.start(recipe, &manifest.cultures))
    }

    /// How to start the worker once it is built.
    pub(super) fn start(&self, recipe: &Recipe, cultures: &Cultures) -> WorkerProgram {
        WorkerProgram {
            program: recipe.parts.host.clone(),
            arguments: vec!["exec".into(), self.folder.join(format!("{}.dll", recipe::WORKER)).into()],
            environment: recipe.environment(cultures),
            sdk: recipe.sdk.version.clone(),
        }
    }

    fn whole(&self) -> Option<Manifest> {
        let manifest: Manifest = serde_json::from_slice(&fs::read(self.folder.join(MANIFEST)).ok()?).ok()?;
        let has = |(name, length): (&PathBuf, &u64)| length_of(&self.folder.join(name)) == Some(*length);
        let is_whole = manifest.files.iter().all(has) && manifest.needs.iter().all(|need| need.exists());
        (is_whole && manifest.icu == installed_versions()).then_some(manifest)
    }
}

fn length_of(file: &Path) -> Option<u64> {
    Some(fs::metadata(file).ok()?.len())
}

/// The length and modification time of a file, as bytes; nothing where there is no such file.
fn stamp_of(file: &Path) -> Vec<u8> {
    let Ok(about) = fs::metadata(file) else { return Vec::new() };
    let modified = about.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let nanoseconds = modified.unwrap_or_default().as_nanos();
    [about.len().to_le_bytes().to_vec(), nanoseconds.to_le_bytes().to_vec()].concat()
}

/// Writes what [`Cache`] recognises a finished worker by into the folder it was made in.
///
/// # Errors
/// [`FileError`] when the folder cannot be read or written.
pub(super) fn describe(
    folder: &Path,
    recipe: &Recipe,
    cultures: &Cultures,
    prebuilt: Option<String>,
) -> Result<(), FileError> {
    let entries = fs::read_dir(folder).map_err(failed("read", folder))?.flatten();
    let file = |entry: fs::DirEntry| Some((entry.file_name().into(), length_of(&entry.path())?));
    let files = entries.filter_map(file).collect();
    let needs = BTreeSet::from([recipe.parts.host.clone(), recipe.parts.runtime.folder.clone()]);
    let manifest = Manifest { cultures: cultures.clone(), icu: installed_versions(), files, needs, prebuilt };
    let manifest = serde_json::json!(manifest);
    let path = folder.join(MANIFEST);
    fs::write(&path, format!("{manifest:#}\n")).map_err(failed("write", &path))
}
