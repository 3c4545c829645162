//! What the tests need beside Rust, under `target/test-tools`. Installed on first use and when it changes; a run that
//! finds everything there takes no second.

mod apt;
mod bare;
mod chromium;
pub(crate) mod clients;
mod dotnet;
mod jupyter;
mod mcp;
mod node;
mod nunit;
mod openapi;
mod openssl;
mod pi;
mod pricing;
mod python;

use std::env;
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// What the tests are told of.
pub(crate) struct Tools {
    axe: PathBuf,
    bare: PathBuf,
    chromium: PathBuf,
    clients: Vec<(&'static str, PathBuf)>,
    dotnet: dotnet::Sdks,
    jupyter: PathBuf,
    mcp: PathBuf,
    node: PathBuf,
    nunit: PathBuf,
    openapi_npm: PathBuf,
    openapi_python: PathBuf,
    openssl: PathBuf,
    path: Option<OsString>,
    pi: PathBuf,
    python: PathBuf,
}

impl Tools {
    /// The .NET SDK's folder.
    pub(crate) fn dotnet(&self) -> &Path {
        &self.dotnet.main.root
    }

    /// Whether the whole F# suite can run, or only its smoke suite.
    pub(crate) fn has_current_sdk(&self) -> bool {
        !self.dotnet.main.is_3_1()
    }

    /// The environment variables that tell them.
    pub(crate) fn environment(&self) -> Vec<(OsString, OsString)> {
        let named = [
            (chromium::AXE_VARIABLE, &self.axe),
            (bare::VARIABLE, &self.bare),
            (chromium::VARIABLE, &self.chromium),
            (dotnet::VARIABLE, &self.dotnet.main.root),
            (jupyter::VARIABLE, &self.jupyter),
            (mcp::VARIABLE, &self.mcp),
            (node::VARIABLE, &self.node),
            (nunit::VARIABLE, &self.nunit),
            (openapi::NPM_VARIABLE, &self.openapi_npm),
            (openapi::PYTHON_VARIABLE, &self.openapi_python),
            (openssl::VARIABLE, &self.openssl),
            (pi::VARIABLE, &self.pi),
            ("MAINSTAY_TEST_PYTHON", &self.python),
        ];
        let named = named.map(|(name, path)| (name, Some(path)));
        let smoke = [
            (dotnet::VARIABLE_3_1, self.dotnet.sdk_3_1.as_ref()),
            (dotnet::VARIABLE_FSHARP_11, self.dotnet.fsharp_11.as_ref()),
        ];
        let clients = self.clients.iter().map(|(variable, program)| (*variable, Some(program)));
        let of_tools = named.into_iter().chain(smoke).chain(clients);
        let of_tools = of_tools.filter_map(|(name, path)| Some((name.into(), path?.into())));
        let path = self.path.iter().map(|path| ("PATH".into(), path.clone()));
        self.dotnet.environment.iter().cloned().chain(of_tools).chain(path).collect()
    }
}

/// Installs what is not there yet, and of the coding agents these.
pub(crate) fn provide(chosen: &[&clients::Client]) -> Result<Tools, Failure> {
    let shelf = Shelf::open(crate::root().join("target/test-tools"))?;
    let dotnet = dotnet::provide(&shelf)?;
    let python = python::provide(&shelf)?;
    let jupyter = jupyter::provide(&shelf)?;
    let openssl = openssl::provide(&shelf, &python)?;
    let node = node::provide(&shelf, &python)?;
    let mcp = mcp::provide(&shelf)?;
    let pi = pi::provide(&shelf)?;
    let bare = bare::provide(&shelf)?;
    let nunit = nunit::provide(&shelf)?;
    let openapi_npm = openapi::provide_npm(&shelf)?;
    let openapi_python = openapi::provide_python(&shelf)?;
    pricing::provide(&shelf, &dotnet.main)?;
    let install = |client: &&clients::Client| Ok((client.variable, clients::provide(&shelf, client)?));
    let clients = chosen.iter().map(install).collect::<Result<_, Failure>>()?;
    let chromium = chromium::provide()?;
    let axe = chromium::provide_axe(&shelf)?;
    Ok(Tools {
        axe,
        bare,
        chromium,
        clients,
        dotnet,
        jupyter,
        mcp,
        node,
        nunit,
        openapi_npm,
        openapi_python,
        openssl,
        path: python::path_with_interpreter()?,
        pi,
        python,
    })
}

/// The folder of everything that was installed, used by one process at a time.
struct Shelf {
    folder: PathBuf,
    _lock: File,
}

impl Shelf {
    /// Opens the folder, waiting for another process that uses it.
    fn open(folder: PathBuf) -> Result<Self, Failure> {
        fs::create_dir_all(&folder).map_err(Failure::at(&folder))?;
        let path = folder.join("lock");
        let lock = File::create(&path).map_err(Failure::at(&path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                eprintln!("waiting for another `cargo xtask` …");
                lock.lock().map_err(Failure::at(&path))?;
            }
            Err(TryLockError::Error(error)) => return Err(Failure::at(&path)(error)),
        }
        Ok(Self { folder, _lock: lock })
    }

    /// The folder `name`, filled unless it was filled before from the same `recipe`.
    fn provide(
        &self,
        name: &str,
        recipe: &str,
        fill: impl FnOnce(&Path) -> Result<(), Failure>,
    ) -> Result<PathBuf, Failure> {
        let folder = self.folder.join(name);
        let done = self.folder.join(format!("{name}.done"));
        if folder.is_dir() && fs::read_to_string(&done).is_ok_and(|filled_from| filled_from == recipe) {
            return Ok(folder);
        }
        for stale in [&done, &folder] {
            remove(stale)?;
        }
        fs::create_dir(&folder).map_err(Failure::at(&folder))?;
        fill(&folder)?;
        // Written last: a folder without it was not finished.
        fs::write(&done, recipe).map_err(Failure::at(&done))?;
        Ok(folder)
    }
}

/// What the environment names, where it names something.
fn named(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from)
}

fn remove(path: &Path) -> Result<(), Failure> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Failure::at(path)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_filled_once_for_each_recipe_and_again_where_filling_failed() {
        let place = tempfile::tempdir().unwrap();
        let shelf = Shelf::open(place.path().join("tools")).unwrap();
        let provide = |recipe: &str, fails: bool| {
            let mut was_filled = false;
            let provided = shelf.provide("tool", recipe, |folder| {
                was_filled = true;
                assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
                fs::write(folder.join("file"), recipe).unwrap();
                if fails { Err(Failure::Usage("no".to_owned())) } else { Ok(()) }
            });
            (provided.is_ok(), was_filled)
        };
        assert_eq!(provide("one", true), (false, true));
        assert_eq!(provide("one", false), (true, true));
        assert_eq!(provide("one", false), (true, false));
        assert_eq!(provide("two", false), (true, true));
        fs::remove_dir_all(place.path().join("tools/tool")).unwrap();
        assert_eq!(provide("two", false), (true, true));
    }
}
