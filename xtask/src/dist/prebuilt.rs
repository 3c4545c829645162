//! The F# workers that a release carries: each is compiled with an SDK by the program itself, as it would do it on a user's machine.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{cargo, run};
use crate::failure::Failure;
use crate::test::CARGO_REMEDY;

/// The files of a worker that are carried.
const ASSEMBLIES: [&str; 2] = ["Mainstay.dll", "mainstay-fsharp-worker.dll"];
const SDK_REMEDY: &str = "name the folder of a .NET SDK: `--sdk FOLDER`";

/// Compiles a worker with each of these SDKs; returns the folder that has them, none where there is no SDK.
pub(super) fn build(name: &str, sdks: &[PathBuf]) -> Result<Option<PathBuf>, Failure> {
    if sdks.is_empty() {
        return Ok(None);
    }
    let target = crate::root().join("target");
    run(cargo(["build", "--locked", "--package", name, "--target-dir"]).arg(&target), CARGO_REMEDY)?;
    let program = target.join("debug").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    let folder = target.join("prebuilt");
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(Failure::at(&folder))?;
    }
    for sdk in sdks {
        let scratch = std::env::temp_dir();
        let home = tempfile::tempdir().map_err(Failure::at(&scratch))?;
        let mut install = Command::new(&program);
        install.args(["kernel", "install", "fsharp", "--yes"]);
        run(install.env("MAINSTAY_HOME", home.path()).env("DOTNET_ROOT", sdk), SDK_REMEDY)?;
        let worker = built(home.path(), sdk)?;
        let place = folder.join(&worker.key);
        fs::create_dir_all(&place).map_err(Failure::at(&place))?;
        for assembly in ASSEMBLIES {
            let from = worker.folder.join(assembly);
            fs::copy(&from, place.join(assembly)).map_err(Failure::at(&from))?;
        }
        eprintln!("the F# worker of {} is carried", worker.folder.file_name().unwrap_or_default().display());
    }
    Ok(Some(folder))
}

/// A worker that the program has compiled in a home.
struct Built {
    folder: PathBuf,
    key: String,
}

fn built(home: &Path, sdk: &Path) -> Result<Built, Failure> {
    let refused = |reason: &str| Failure::Unpackable {
        what: sdk.display().to_string(),
        reason: reason.to_owned(),
        remedy: SDK_REMEDY,
    };
    let workers = home.join("kernels/fsharp");
    let entries = fs::read_dir(&workers).map_err(Failure::at(&workers))?.flatten().map(|entry| entry.path());
    let folder = entries
        .filter(|path| path.is_dir() && path.extension() != Some(OsStr::new("staging")))
        .find(|path| path.join("worker.json").is_file())
        .ok_or_else(|| refused("no worker was compiled with it"))?;
    let path = folder.join("worker.json");
    let manifest = fs::read(&path).map_err(Failure::at(&path))?;
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap_or_default();
    // Another SDK may have been found in the place of one that cannot be used.
    let root = sdk.canonicalize().map_err(Failure::at(sdk))?;
    let needs = manifest["needs"].as_array().into_iter().flatten().filter_map(|path| path.as_str());
    if !needs
        .map(|path| Path::new(path).canonicalize().unwrap_or_default())
        .all(|path| path.starts_with(&root))
    {
        return Err(refused("the worker was compiled with another SDK"));
    }
    let key = manifest["prebuilt"].as_str().ok_or_else(|| refused("a worker of it cannot be carried"))?;
    Ok(Built { key: key.to_owned(), folder })
}
