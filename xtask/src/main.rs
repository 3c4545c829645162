//! Build chores of Mainstay. `cargo xtask` lists them.
//!
//! [`TASKS`] names every task; each has a module. [`tools`] installs what the tests need, [`command`] runs programs,
//! [`failure`] is everything that can go wrong.

mod bench;
mod beside_fsi;
mod ci;
mod clients;
mod command;
mod dist;
mod failure;
mod fuzz;
mod kills;
mod lints;
mod scratch;
mod soak;
mod test;
mod tools;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use failure::Failure;

/// Something `cargo xtask` can do.
struct Task {
    name: &'static str,
    purpose: &'static str,
    run: fn(&[OsString]) -> Result<(), Failure>,
}

/// Every task, in the order in which they are listed.
const TASKS: &[Task] = &[
    Task {
        name: "bench",
        purpose: "measure the daemon, the store and the folds with the release build, as in docs/benchmarks.md",
        run: bench::run,
    },
    Task {
        name: "beside-fsi",
        purpose: "run the F# scripts of a folder with `dotnet fsi` and with Mainstay, and say where they differ",
        run: beside_fsi::run,
    },
    Task {
        name: "ci",
        purpose: "check formatting and lints, then run every test, as .ci/run does",
        run: ci::run,
    },
    Task {
        name: "clients",
        purpose: "run the stories in the real coding agents (codex, claude, opencode, gemini, qwen), all or those that are named",
        run: clients::run,
    },
    Task {
        name: "dist",
        purpose: "make the packages of a release in target/dist, of a release build or of each --binary TRIPLE=PATH",
        run: dist::run,
    },
    Task {
        name: "fuzz",
        purpose: "give whatever bytes there are to what reads them, for --seconds N each, and say which break a promise",
        run: fuzz::run,
    },
    Task {
        name: "kills",
        purpose: "kill daemons at --moments N seeded moments of stories in each kind of session, and say what is lost or told twice",
        run: kills::run,
    },
    Task {
        name: "soak",
        purpose: "load the daemon for --minutes N while it and its workers are killed, and say whether anything is lost or left",
        run: soak::run,
    },
    Task {
        name: "test",
        purpose: "install what the tests need and run them all; what follows -- goes to the test runner",
        run: test::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let Some((name, rest)) = arguments.split_first().filter(|(name, _)| !is_plea_for_help(name)) else {
        print!("{}", usage());
        return ExitCode::SUCCESS;
    };
    let done = match TASKS.iter().find(|task| name == task.name) {
        Some(task) => (task.run)(rest),
        None => {
            Err(Failure::Usage(format!("there is no task `{}`; `cargo xtask` lists them", name.display())))
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            failure.exit_code()
        }
    }
}

fn is_plea_for_help(argument: &OsString) -> bool {
    ["help", "--help", "-h"].iter().any(|plea| argument == plea)
}

fn usage() -> String {
    let mut text = String::from("Usage: cargo xtask <task> [-- arguments]\n\n");
    for Task { name, purpose, .. } in TASKS {
        text.push_str(&format!("  {name:<10} {purpose}\n"));
    }
    text
}

/// The root of the repository.
fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}
