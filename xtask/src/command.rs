//! Running programs in view of the user: everything they print is shown, and each step says how long it took.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::failure::Failure;

/// How many arguments of a command are shown.
const SHOWN_ARGUMENTS: usize = 8;

/// Does one step of a task; says when it begins and how long it took.
pub(crate) fn step<T>(name: &str, work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    eprintln!("── {name}");
    let began = Instant::now();
    let done = work();
    eprintln!("── {name}: {:.1} s", began.elapsed().as_secs_f64());
    done
}

/// The cargo that runs this program, at the root of the repository.
pub(crate) fn cargo<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut cargo = Command::new(program);
    cargo.args(arguments).current_dir(crate::root());
    cargo
}

/// Runs a program to its end; `remedy` says what to do where it is not installed.
pub(crate) fn run(command: &mut Command, remedy: &'static str) -> Result<(), Failure> {
    let status =
        command.stdin(Stdio::null()).status().map_err(|error| not_started(command, error, remedy))?;
    if status.success() { Ok(()) } else { Err(Failure::Failed { command: shown(command), status }) }
}

/// What a program prints, as text without the blanks around it; `remedy` says what to do where it is not installed.
pub(crate) fn output(command: &mut Command, remedy: &'static str) -> Result<String, Failure> {
    output_bytes(command, remedy).map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// What a program prints; `remedy` says what to do where it is not installed.
pub(crate) fn output_bytes(command: &mut Command, remedy: &'static str) -> Result<Vec<u8>, Failure> {
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().map_err(|error| not_started(command, error, remedy))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(Failure::Failed { command: shown(command), status: output.status })
    }
}

/// Whether a program is there and ends well. What it prints is not shown.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

fn not_started(command: &Command, source: io::Error, remedy: &'static str) -> Failure {
    if source.kind() == io::ErrorKind::NotFound {
        Failure::Missing { program: program_name(command), remedy }
    } else {
        Failure::NotStarted { command: shown(command), source }
    }
}

fn shown(command: &Command) -> String {
    let mut words = vec![program_name(command)];
    words.extend(command.get_args().take(SHOWN_ARGUMENTS).map(|argument| argument.display().to_string()));
    if command.get_args().len() > SHOWN_ARGUMENTS {
        words.push("…".to_owned());
    }
    words.join(" ")
}

/// What people call the program, wherever it is.
fn program_name(command: &Command) -> String {
    let program = Path::new(command.get_program());
    program.file_name().unwrap_or(program.as_os_str()).display().to_string()
}
