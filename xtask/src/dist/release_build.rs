//! The release build of the program for this machine, made so that its bytes depend on the sources and the compiler alone.

use std::env;
use std::path::{Path, PathBuf};

use super::platform::Platform;
use crate::command::{cargo, run};
use crate::failure::Failure;
use crate::test::CARGO_REMEDY;

/// Names the folder of the workers to the build script of `crates/embedded`.
const PREBUILT: &str = "MAINSTAY_PREBUILT";

/// Separates the flags in the variable that cargo reads.
const SEPARATOR: &str = "\u{1f}";

/// Builds the program, which carries the F# workers of a folder; returns the path of the executable file.
///
/// The folder of the build is not that of `cargo build --release`, whose flags differ.
pub(crate) fn build(name: &str, platform: &Platform, workers: Option<&Path>) -> Result<PathBuf, Failure> {
    let target = crate::root().join("target/release-build");
    let (rust_flags, c_flags) = flags();
    let arguments = ["build", "--release", "--locked", "--package", name, "--target", platform.triple];
    let mut cargo = cargo(arguments);
    cargo.arg("--target-dir").arg(&target);
    cargo
        .env("CARGO_ENCODED_RUSTFLAGS", rust_flags.join(SEPARATOR))
        .env("CFLAGS", &c_flags)
        .env("CXXFLAGS", c_flags);
    match workers {
        Some(folder) => cargo.env(PREBUILT, folder),
        None => cargo.env_remove(PREBUILT),
    };
    cargo.env("CARGO_PROFILE_RELEASE_STRIP", "symbols").env("CARGO_INCREMENTAL", "0");
    run(&mut cargo, CARGO_REMEDY)?;
    Ok(target.join(platform.triple).join("release").join(platform.executable(name)))
}

/// Returns the flags of the compilers of Rust and of C that keep this machine's folders out of the program.
fn flags() -> (Vec<String>, String) {
    let cargo_home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.or_else(|| Some(env::home_dir()?.join(".cargo")));
    let folders = [(Some(crate::root().to_owned()), "/mainstay"), (cargo_home, "/cargo")];
    let folders: Vec<_> = folders
        .into_iter()
        .filter_map(|(folder, name)| Some((folder?.display().to_string(), name)))
        .collect();
    let mut rust: Vec<_> =
        folders.iter().map(|(folder, name)| format!("--remap-path-prefix={folder}={name}")).collect();
    let mut c: Vec<_> =
        folders.iter().map(|(folder, name)| format!("-ffile-prefix-map={folder}={name}")).collect();
    if cfg!(target_os = "linux") {
        rust.push("-Clink-arg=-Wl,--build-id=none".to_owned());
        c.push("-g0".to_owned());
    }
    (rust, c.join(" "))
}
