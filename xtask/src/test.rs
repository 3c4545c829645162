//! `cargo xtask test`: installs what the tests need, then runs them.

use std::ffi::{OsStr, OsString};
use std::process::Command;

use crate::command::{cargo, run as run_command, step, succeeds};
use crate::failure::Failure;
use crate::tools::{self, Tools, clients};

/// The profile of the test runner that leaves out what needs a current .NET SDK.
const PROFILE_3_1: &str = "sdk-3-1";

pub(crate) const CARGO_REMEDY: &str = "install Rust from https://rustup.rs";

/// Tests for which crates are compiled in another way: what they are called, and what selects them.
const APART: [(&str, &[&str]); 4] = [
    ("crashes at failpoints", &["-p", "mainstay-log", "--features", "failpoints", "--test", "crash"]),
    ("crashes of the daemon", &["-p", "mainstay", "--features", "failpoints", "--test", "crash"]),
    ("what people see of agents", &["-p", "mainstay", "--features", "failpoints", "--test", "agents"]),
    (
        "interleavings",
        &[
            "-p",
            "mainstay-log",
            "-p",
            "mainstay-engine",
            "--features",
            "mainstay-log/shuttle,mainstay-engine/shuttle",
            "--lib",
            "interleavings",
        ],
    ),
];

/// Runs the tests that the arguments after `--` select, all of them where there are none.
///
/// The doc tests and those that are compiled apart come first and only when all tests run: they take no filters of the
/// runner, and its summary is to stand last.
pub(crate) fn run(arguments: &[OsString]) -> Result<(), Failure> {
    let for_runner = after_dashes(arguments)?;
    let in_every_run: Vec<_> = clients::IN_EVERY_RUN.iter().filter_map(|name| clients::named(name)).collect();
    let tools = step("what the tests need", || tools::provide(&in_every_run))?;
    if for_runner.is_empty() {
        step("doc tests", || run_command(&mut cargo(["test", "--doc", "--workspace"]), CARGO_REMEDY))?;
        for (name, selection) in APART {
            let selection: Vec<OsString> = selection.iter().map(OsString::from).collect();
            step(name, || run_command(&mut runner(&tools, &selection), CARGO_REMEDY))?;
        }
    }
    step("tests", || run_command(&mut runner(&tools, for_runner), CARGO_REMEDY))
}

fn after_dashes(arguments: &[OsString]) -> Result<&[OsString], Failure> {
    match arguments.split_first() {
        None => Ok(&[]),
        Some((dashes, rest)) if dashes == "--" => Ok(rest),
        Some((other, _)) => Err(Failure::Usage(format!(
            "`{}` is not understood; what is for the test runner follows `--`, as in `cargo xtask test -- -p xtask`",
            other.display()
        ))),
    }
}

/// cargo-nextest where it is installed, else `cargo test`.
pub(crate) fn runner(tools: &Tools, arguments: &[OsString]) -> Command {
    let has_nextest = succeeds(&mut cargo(["nextest", "--version"]));
    let mut runner = cargo(if has_nextest { &["nextest", "run"][..] } else { &["test", "--no-fail-fast"] });
    if !arguments.iter().any(|argument| selects_packages(argument)) {
        runner.arg("--workspace");
    }
    if has_nextest && !tools.has_current_sdk() {
        eprintln!("the only .NET SDK here is npm's 3.1: of F# only the smoke suite runs");
        runner.args(["--profile", PROFILE_3_1, "--no-tests", "pass"]);
    }
    if !has_nextest && arguments.is_empty() {
        runner.args(["--lib", "--bins", "--tests"]);
    }
    runner.args(arguments).envs(tools.environment());
    // Asking a login shell takes time; tests of that say so.
    runner.env("MAINSTAY_ENVIRONMENT", "inherited");
    runner
}

/// Whether an argument says which packages to test. Beside `--workspace`, cargo would ignore it.
fn selects_packages(argument: &OsStr) -> bool {
    let argument = argument.to_string_lossy();
    let is_short = argument.starts_with("-p");
    is_short
        || ["--package", "--workspace", "--all"].contains(&argument.split('=').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn only_what_follows_the_dashes_goes_to_the_runner() {
        assert_eq!(after_dashes(&words("")).unwrap(), words(""));
        assert_eq!(after_dashes(&words("-- -p xtask")).unwrap(), words("-p xtask"));
        assert!(matches!(after_dashes(&words("-p xtask")), Err(Failure::Usage(_))));
    }

    #[test]
    fn a_selection_of_packages_is_recognised_in_every_spelling() {
        for argument in ["-p", "-pxtask", "--package", "--package=xtask", "--workspace"] {
            assert!(selects_packages(OsStr::new(argument)), "{argument}");
        }
        for argument in ["--profile", "-E", "some_test", "--all-features"] {
            assert!(!selects_packages(OsStr::new(argument)), "{argument}");
        }
    }
}
