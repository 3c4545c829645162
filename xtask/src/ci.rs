//! `cargo xtask ci`: everything a change must pass.

use std::ffi::OsString;

use crate::command::{cargo, run as run_command, step};
use crate::failure::Failure;
use crate::{fuzz, test};

const FORMAT: &[&str] = &["fmt", "--all", "--check"];
const LINT: &[&str] = &[
    "clippy",
    "--workspace",
    "--all-targets",
    "--features",
    "mainstay/failpoints,mainstay-log/shuttle,mainstay-engine/shuttle,mainstay-agent/fuzzing,mainstay-http/fuzzing,mainstay-pi-protocol/fuzzing,mainstay-protocol/fuzzing",
    "--",
    "-D",
    "warnings",
];

/// Checks formatting and lints, fuzzes a little, then runs every test. Stops at the first that fails.
pub(crate) fn run(arguments: &[OsString]) -> Result<(), Failure> {
    if let Some(argument) = arguments.first() {
        return Err(Failure::Usage(format!(
            "`cargo xtask ci` takes no arguments, not `{}`",
            argument.display()
        )));
    }
    check(FORMAT, "install it with `rustup component add rustfmt`")?;
    check(LINT, "install it with `rustup component add clippy`")?;
    fuzz::run(&[])?;
    test::run(&[])
}

fn check(arguments: &[&str], remedy: &'static str) -> Result<(), Failure> {
    step(&format!("cargo {}", arguments.join(" ")), || run_command(&mut cargo(arguments), remedy))
}
