//! What tests with a real SDK share.

use std::env;
use std::path::{Path, PathBuf};

use mainstay_kernel::fsharp::Search;

/// The SDK under test, chosen by configuration, and what is built with it under `home`.
pub(crate) fn search(home: &Path) -> Search {
    let root = env::var_os("MAINSTAY_TEST_DOTNET").expect(
        "MAINSTAY_TEST_DOTNET must name the root of a .NET SDK; `cargo xtask test` sets it, and \
         `mainstay kernel install fsharp` installs one",
    );
    Search { configured: Some(PathBuf::from(root)), ..Search::from_env(home) }
}
