//! `cargo xtask fuzz`: gives whatever bytes there are to what reads them, and looks for those that break a promise.
//!
//! `fuzz/` has the targets, as cargo-fuzz wants them, and what each begins with. It is compiled on stable: `fuzz/rustc` has only what is
//! fuzzed count its branches, so the rest is compiled as always.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::command::{cargo, run as run_command, step};
use crate::failure::Failure;
use crate::lints;

/// The fuzz targets that are run.
const TARGETS: [&str; 5] = ["pi_frame", "rpc_line", "bare_body", "pi_conversation", "arcp_frame"];
/// How long each is, in seconds, where it is not said.
pub(crate) const SECONDS: u64 = 5;
/// The most bytes that are tried at once.
const LONGEST: usize = 4096;

/// Fuzzes every target for `--seconds N`, what was found to be worth keeping before first. Stops at the first that fails.
pub(crate) fn run(arguments: &[OsString]) -> Result<(), Failure> {
    run_for(seconds_of(arguments)?, lints::OFF)
}

/// The same for this many seconds each.
pub(crate) fn run_for(seconds: u64, lints: lints::Environment) -> Result<(), Failure> {
    let built = crate::root().join("target");
    step("fuzzers", || build(&built, lints))?;
    for target in TARGETS {
        step(&format!("fuzz {target}"), || fuzz(target, &built, seconds))?;
    }
    Ok(())
}

fn seconds_of(arguments: &[OsString]) -> Result<u64, Failure> {
    let words: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    let seconds = match words[..] {
        [] => Some(SECONDS),
        ["--seconds", number] => number.parse().ok().filter(|seconds| *seconds > 0),
        _ => None,
    };
    seconds.ok_or_else(|| {
        Failure::Usage(format!("`{}` is not understood; say `--seconds N`, for each target", words.join(" ")))
    })
}

/// Builds in the folder of the workspace, so that dependencies are compiled once for both. What counts its branches is apart there: our crates
/// since they belong to another workspace, `serde_json` and what depends on it by their profile.
fn build(folder: &Path, lints: lints::Environment) -> Result<(), Failure> {
    let fuzz = crate::root().join("fuzz");
    let mut build = cargo(["build", "--bins", "--target-dir"]);
    build.arg(folder).current_dir(&fuzz).envs(lints.iter().copied()).env("RUSTC_WRAPPER", fuzz.join("rustc"));
    run_command(&mut build, "see the compiler's message above; a compiler of C++ is needed")
}

fn fuzz(target: &str, built: &Path, seconds: u64) -> Result<(), Failure> {
    let folder = built.join("fuzz");
    let (corpus, findings) = (folder.join("corpus").join(target), folder.join("findings"));
    for folder in [&corpus, &findings] {
        std::fs::create_dir_all(folder).map_err(Failure::at(folder))?;
    }
    let mut fuzzer = Command::new(built.join("debug").join(target));
    fuzzer
        .args([
            format!("-max_total_time={seconds}"),
            format!("-max_len={LONGEST}"),
            "-verbosity=0".to_owned(),
        ])
        // Where the bytes go that break a promise.
        .arg(format!("-artifact_prefix={}/{target}-", findings.display()))
        .args([corpus, crate::root().join("fuzz/seeds").join(target)]);
    run_command(&mut fuzzer, "`cargo xtask fuzz` builds it")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn how_long_it_takes_is_said_or_a_few_seconds() {
        assert_eq!(seconds_of(&words("")).unwrap(), SECONDS);
        assert_eq!(seconds_of(&words("--seconds 60")).unwrap(), 60);
        for wrong in ["--seconds", "--seconds 0", "--seconds x", "60", "--seconds 1 2"] {
            assert!(matches!(seconds_of(&words(wrong)), Err(Failure::Usage(_))), "{wrong}");
        }
    }

    #[test]
    fn every_target_has_something_to_begin_with_and_is_a_program() {
        let fuzz = crate::root().join("fuzz");
        let manifest = std::fs::read_to_string(fuzz.join("Cargo.toml")).unwrap();
        let programs = manifest.lines().filter(|line| line.starts_with("path = ")).count();
        assert_eq!(programs, TARGETS.len());
        for target in TARGETS {
            assert!(manifest.contains(&format!("path = \"fuzz_targets/{target}.rs\"")), "{target}");
            assert!(fuzz.join("seeds").join(target).read_dir().unwrap().next().is_some(), "{target}");
        }
    }
}
