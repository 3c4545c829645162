//! Where SDKs, Jupyter kernels and agents are looked for: by the home folder, the settings and this process's environment.

use std::path::{Path, PathBuf};

use mainstay_agent::pi;
use mainstay_kernel::fsharp;
use mainstay_kernel::jupyter::Places;

use crate::Home;
use crate::config::FsharpConfig;

/// Returns where F# SDKs are looked for, and downloaded from.
pub fn fsharp_sdks(home: &Home, config: FsharpConfig) -> fsharp::Search {
    let FsharpConfig { dotnet, feed, .. } = config;
    fsharp::Search { configured: dotnet, feed, ..fsharp::Search::from_env(home.folder()) }
}

/// Returns where kernelspecs are looked for, for a user who works in this folder.
pub fn jupyter_kernels(home: &Home, folder: Option<&Path>) -> Places {
    Places::new(&home.jupyter(), folder)
}

/// Returns where pi is looked for.
pub fn pi_programs(home: &Home, path: Option<PathBuf>) -> pi::Search {
    pi::Search { configured: path, ..pi::Search::from_env(home.folder()) }
}
