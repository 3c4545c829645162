//! `cargo xtask test`: installs what the tests need, then runs them.

use std::ffi::{OsStr, OsString};
use std::process::Command;

use crate::command::{cargo, run as run_command, step, succeeds};
use crate::failure::Failure;
use crate::lints;
use crate::scratch;
use crate::tools::{self, Tools, clients};

/// The profile of the test runner that leaves out what needs a current .NET SDK.
const PROFILE_3_1: &str = "sdk-3-1";

pub(crate) const CARGO_REMEDY: &str = "install Rust from https://rustup.rs";

/// The feature of every build of tests: with one set of features, crates and their dependencies are compiled once for all tests.
pub(crate) const FAILPOINTS: &str = "mainstay/failpoints";

/// The feature of tests of the store alone, where the program is not compiled.
const FAILPOINTS_OF_STORE: &str = "mainstay-log/failpoints";

/// The feature of tests of the daemon without the program.
const FAILPOINTS_OF_DAEMON: &str = "mainstay-daemon/failpoints";

/// Settings of .NET for the tests. Compilers, builds and workers live for seconds there, so what the runtime compiles again to make it
/// faster costs more than it saves. One test, `agent_task` of the program, runs without these settings, as users do.
const DOTNET_SETTINGS: [(&str, &str); 2] = [("DOTNET_TC_CallCounting", "0"), ("DOTNET_TieredPGO", "0")];

/// Has an F# worker run nothing beforehand in its first silence: most workers of tests end before anything would have to wait for that.
const NO_WARM_UP: (&str, &str) = ("MAINSTAY_TEST_WARM_UP", "0");

/// The tests that schedule threads themselves. They are compiled apart: with their feature nothing else works.
const INTERLEAVINGS: [&str; 8] = [
    "-p",
    "mainstay-log",
    "-p",
    "mainstay-engine",
    "--features",
    "mainstay-log/shuttle,mainstay-engine/shuttle",
    "--lib",
    "interleavings",
];

/// Runs the tests that the arguments after `--` select, all of them where there are none.
///
/// The interleavings come first and only when all tests run: they take no filters of the runner, and its summary is to stand last.
pub(crate) fn run(arguments: &[OsString]) -> Result<(), Failure> {
    run_linted(after_dashes(arguments)?, lints::OFF)
}

/// The same for what is for the runner.
pub(crate) fn run_linted(for_runner: &[OsString], lints: lints::Environment) -> Result<(), Failure> {
    let tools = tools()?;
    let folder = scratch::in_memory()?;
    let runner = |arguments: &[OsString]| {
        let mut runner = runner(&tools, arguments);
        runner.envs(scratch::environment(folder.as_ref())).envs(lints.iter().copied());
        runner
    };
    if for_runner.is_empty() {
        let interleavings = INTERLEAVINGS.map(OsString::from);
        step("interleavings", || run_command(&mut runner(&interleavings), CARGO_REMEDY))?;
    }
    step("tests", || run_command(&mut runner(for_runner), CARGO_REMEDY))
}

/// Installs what the tests need, where it is not there.
pub(crate) fn tools() -> Result<Tools, Failure> {
    let in_every_run: Vec<_> = clients::IN_EVERY_RUN.iter().filter_map(|name| clients::named(name)).collect();
    step("what the tests need", || tools::provide(&in_every_run))
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

/// The features for the packages that these arguments select, in cargo's words. None where the arguments have their own.
fn features<A: AsRef<OsStr>>(arguments: &[A]) -> Vec<&'static str> {
    let words: Vec<_> = arguments.iter().map(|argument| argument.as_ref().to_string_lossy()).collect();
    let selects = |package: &str| {
        words.windows(2).any(|pair| ["-p", "--package"].contains(&&*pair[0]) && pair[1] == package)
            || words
                .iter()
                .any(|word| *word == format!("-p{package}") || *word == format!("--package={package}"))
    };
    let has_own = words.iter().any(|word| word.contains("features"));
    let all = !arguments.iter().any(|argument| selects_packages(argument.as_ref()))
        || words.iter().any(|word| word == "--workspace" || word == "--all");
    match () {
        () if has_own => Vec::new(),
        () if all || selects("mainstay") => vec!["--features", FAILPOINTS],
        () if selects("mainstay-daemon") => vec!["--features", FAILPOINTS_OF_DAEMON],
        () if selects("mainstay-log") => vec!["--features", FAILPOINTS_OF_STORE],
        () => Vec::new(),
    }
}

/// cargo-nextest where it is installed, else `cargo test`.
pub(crate) fn runner<A: AsRef<OsStr>>(tools: &Tools, arguments: &[A]) -> Command {
    let has_nextest = succeeds(&mut cargo(["nextest", "--version"]));
    let mut runner = cargo(if has_nextest { &["nextest", "run"][..] } else { &["test", "--no-fail-fast"] });
    if !arguments.iter().any(|argument| selects_packages(argument.as_ref())) {
        runner.arg("--workspace");
    }
    if has_nextest && !tools.has_current_sdk() {
        eprintln!("the only .NET SDK here is npm's 3.1: of F# only the smoke suite runs");
        runner.args(["--profile", PROFILE_3_1, "--no-tests", "pass"]);
    }
    if !has_nextest && arguments.is_empty() {
        runner.args(["--lib", "--bins", "--tests"]);
    }
    runner.args(features(arguments)).args(arguments).envs(tools.environment());
    runner.envs(DOTNET_SETTINGS).env(NO_WARM_UP.0, NO_WARM_UP.1);
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
    fn places_that_kill_are_compiled_wherever_the_store_is_tested() {
        let features = |text: &str| features(&words(text)).join(" ");
        for all in [
            "",
            "-E test(x)",
            "--workspace",
            "-p mainstay",
            "-p mainstay-log -pmainstay",
            "--package=mainstay",
        ] {
            assert_eq!(features(all), "--features mainstay/failpoints", "{all}");
        }
        assert_eq!(features("-p mainstay-log --lib"), "--features mainstay-log/failpoints");
        assert_eq!(features("-p mainstay-daemon -p mainstay-log"), "--features mainstay-daemon/failpoints");
        assert_eq!(features("-p mainstay-model"), "");
        assert_eq!(features("-p mainstay-log --features mainstay-log/shuttle"), "");
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
