//! `cargo xtask ci`: everything a change must pass.

use std::ffi::OsString;
use std::{panic, thread};

use crate::command::{cargo, run as run_command, step};
use crate::failure::Failure;
use crate::{fuzz, lints, test};

const FORMAT: &[&str] = &["fmt", "--all", "--check"];

/// Compiles also what no test runs, such as benchmarks, for its lints.
const ALL_TARGETS: &[&str] = &["build", "--workspace", "--all-targets", "--features", test::FAILPOINTS];

/// Checks formatting, then fuzzes and compiles, with clippy, while the tests' tools are installed; runs every test. Stops at the first failure.
pub(crate) fn run(arguments: &[OsString]) -> Result<(), Failure> {
    if let Some(argument) = arguments.first() {
        return Err(Failure::Usage(format!(
            "`cargo xtask ci` takes no arguments, not `{}`",
            argument.display()
        )));
    }
    check(FORMAT, "install it with `rustup component add rustfmt`", lints::OFF)?;
    check(&["clippy", "--version"], "install it with `rustup component add clippy`", lints::OFF)?;
    thread::scope(|scope| {
        // Installing waits for the network, and uses one processor.
        let tools = scope.spawn(test::tools);
        fuzz::run_for(fuzz::SECONDS, lints::ON)?;
        check(ALL_TARGETS, "see the compiler's message above", lints::ON)?;
        tools.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked)).map(drop)
    })?;
    test::run_linted(&[], lints::ON)
}

fn check(arguments: &[&str], remedy: &'static str, lints: lints::Environment) -> Result<(), Failure> {
    let mut command = cargo(arguments);
    command.envs(lints.iter().copied());
    step(&format!("cargo {}", arguments.join(" ")), || run_command(&mut command, remedy))
}
