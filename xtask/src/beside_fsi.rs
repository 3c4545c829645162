//! `cargo xtask beside-fsi FOLDER`: runs every F# script of a folder with `dotnet fsi` and with `mainstay run`, and says where the two
//! differ. The outputs stay in `target/beside-fsi`; docs/fsharp-beside-fsi.md has a table that was made so.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::command::{cargo, run as run_command, succeeds};
use crate::failure::Failure;

/// How long a script may take, in seconds, and what `timeout` exits with then.
const SECONDS: &str = "60";
const TIMED_OUT: i32 = 124;

const CARGO_REMEDY: &str = "install Rust from https://rustup.rs";
const TIMEOUT_REMEDY: &str = "install coreutils, which have it";

/// Runs the scripts below a folder, at most so many below each folder in it, which may be a repository: evenly spread, in the order of
/// their names.
pub(crate) fn run(arguments: &[OsString]) -> Result<(), Failure> {
    let (folder, most) = options(arguments)?;
    let results = crate::root().join("target/beside-fsi");
    run_command(&mut cargo(["build", "--package", "mainstay"]), CARGO_REMEDY)?;
    let mainstay =
        Mainstay { program: crate::root().join("target/debug/mainstay"), home: results.join("home") };

    // What a run that was ended has left would be in the way.
    succeeds(&mut mainstay.command(["stop"]));
    match fs::remove_dir_all(&results) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(Failure::at(&results)(error)),
        _ => {}
    }

    let mut summary = String::new();
    for (part, scripts) in parts(&folder)? {
        let [mut same, mut differing] = [0, 0];
        let chosen = scripts.iter().step_by(scripts.len().div_ceil(most));
        for script in chosen {
            let name = script.strip_prefix(&folder).unwrap_or(script);
            let fsi = output(
                Command::new("timeout").args([SECONDS, "dotnet", "fsi", "--quiet"]).arg(script),
                script,
            )?;
            let ours = mainstay.run_script(script)?;
            keep(&results.join("outputs").join(name), &fsi, &ours)?;
            let differences = differences(&fsi, &ours);
            *if differences.is_empty() { &mut same } else { &mut differing } += 1;
            let verdict = if differences.is_empty() { "same".to_owned() } else { differences.join(", ") };
            println!("{}: {verdict}", name.display());
        }
        summary.push_str(&format!("{}: {same} same, {differing} differing\n", part.display()));
    }
    succeeds(&mut mainstay.command(["stop"]));
    print!("\n{summary}");
    Ok(())
}

/// The folder, and how many scripts to run of each folder in it.
fn options(arguments: &[OsString]) -> Result<(PathBuf, usize), Failure> {
    let usage = || {
        Failure::Usage(
            "`beside-fsi` takes a folder, and how many scripts to run of each folder in it".to_owned(),
        )
    };
    let (folder, most) = match arguments {
        [folder] => (folder, usize::MAX),
        [folder, most] => (
            folder,
            most.to_str().and_then(|most| most.parse().ok()).filter(|most| *most > 0).ok_or_else(usage)?,
        ),
        _ => return Err(usage()),
    };
    Ok((fs::canonicalize(folder).map_err(Failure::at(Path::new(folder)))?, most))
}

/// The scripts of a folder by what it has directly in it: other folders, or scripts.
fn parts(folder: &Path) -> Result<BTreeMap<OsString, Vec<PathBuf>>, Failure> {
    let mut parts: BTreeMap<OsString, Vec<PathBuf>> = BTreeMap::new();
    for script in scripts(folder)? {
        let part = script.strip_prefix(folder).unwrap_or(&script).iter().next().unwrap_or_default();
        parts.entry(part.to_owned()).or_default().push(script);
    }
    Ok(parts)
}

/// The program under test, with a daemon of its own.
struct Mainstay {
    program: PathBuf,
    home: PathBuf,
}

impl Mainstay {
    fn command<const N: usize>(&self, arguments: [&str; N]) -> Command {
        let mut command = Command::new("timeout");
        command.arg(SECONDS).arg(&self.program).args(arguments).env("MAINSTAY_HOME", &self.home);
        command.env("MAINSTAY_ENVIRONMENT", "inherited");
        command
    }

    /// What comes of a script in a new session, which is deleted then.
    fn run_script(&self, script: &Path) -> Result<Output, Failure> {
        let name = "beside-fsi";
        output(
            &mut self.command(["session", "new", "--kind", "fsharp", "--no-project", "--name", name]),
            script,
        )?;
        let ran = output(self.command(["run", "--session", name]).arg(script), script)?;
        output(&mut self.command(["session", "delete", name, "--yes"]), script)?;
        Ok(ran)
    }
}

/// Runs a command in the folder of a script, without input.
fn output(command: &mut Command, script: &Path) -> Result<Output, Failure> {
    command.stdin(Stdio::null()).current_dir(script.parent().unwrap_or(script));
    command.output().map_err(|_| Failure::Missing { program: "timeout".to_owned(), remedy: TIMEOUT_REMEDY })
}

/// All scripts below a folder, in order.
fn scripts(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(Failure::at(folder))?.flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(scripts(&path)?);
        } else if path.extension() == Some(OsStr::new("fsx")) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// In what a run by Mainstay differs from that by fsi: exit code, standard output, standard error.
fn differences(fsi: &Output, ours: &Output) -> Vec<String> {
    let [fsi_code, our_code] = [fsi, ours].map(|output| output.status.code());
    let [fsi_out, our_out] = [fsi, ours].map(|output| String::from_utf8_lossy(&output.stdout));
    let [fsi_err, our_err] = [fsi, ours].map(|output| String::from_utf8_lossy(&output.stderr));
    let mut found = Vec::new();
    if fsi_code != our_code {
        found.push(format!("exit code {} instead of {}", code(our_code), code(fsi_code)));
    }
    // What is cut off by the time limit is cut off anywhere.
    if fsi_code == Some(TIMED_OUT) && our_code == fsi_code {
        return found;
    }
    // Values come behind what the script prints, and fsi shows none.
    if !our_out.starts_with(&*fsi_out) {
        found.push("standard output".to_owned());
    }
    let ours: Vec<&str> = our_err.lines().map(str::trim).collect();
    let fsis: Vec<String> = fsi_err.lines().filter_map(comparable).collect();
    let more = |line: &&&str| is_diagnostic(line) && !fsis.iter().any(|other| other == **line);
    let missing = fsis.iter().filter(|line| !ours.contains(&line.as_str())).count();
    let additional = ours.iter().filter(more).count();
    if missing + additional > 0 {
        found.push(format!("standard error ({missing} lines missing, {additional} diagnostics more)"));
    }
    found
}

fn code(code: Option<i32>) -> String {
    code.map_or_else(|| "of a signal".to_owned(), |code| code.to_string())
}

/// A line of fsi's standard error as Mainstay has it: `error FS0039 (1,9): …` for `/a/b.fsx(1,9): error FS0039: …`. There is none for
/// frames of the stack, which are cut to the script's own in Mainstay, and for fsi's last words.
fn comparable(line: &str) -> Option<String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with("at ") || line == "Stopped due to error" {
        return None;
    }
    let as_diagnostic = || {
        let (place, rest) = line.split_once("): ")?;
        let (_, position) = place.rsplit_once('(')?;
        let (what, message) = rest.split_once(": ")?;
        is_diagnostic(what).then(|| format!("{what} ({position}): {message}"))
    };
    Some(as_diagnostic().unwrap_or_else(|| line.to_owned()))
}

fn is_diagnostic(line: &str) -> bool {
    ["error FS", "warning FS"].iter().any(|start| line.starts_with(start))
}

/// Writes both outputs into a folder.
fn keep(folder: &Path, fsi: &Output, ours: &Output) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(Failure::at(folder))?;
    let files = [
        ("fsi.out", &fsi.stdout),
        ("fsi.err", &fsi.stderr),
        ("mainstay.out", &ours.stdout),
        ("mainstay.err", &ours.stderr),
    ];
    files.iter().try_for_each(|(name, bytes)| {
        let path = folder.join(name);
        fs::write(&path, bytes).map_err(Failure::at(&path))
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    fn ended(code: i32, stdout: &str, stderr: &str) -> Output {
        Output { status: ExitStatus::from_raw(code << 8), stdout: stdout.into(), stderr: stderr.into() }
    }

    #[test]
    fn values_and_the_form_of_diagnostics_and_stacks_make_no_difference() {
        let fsi = ended(
            1,
            "hi\n",
            "\n\n/a b/c(1).fsx(1,9): warning FS0025: Incomplete (x): y\n\nSystem.Exception: boom\n   at A.b() in c:line 1\nStopped due to error\n",
        );
        let ours = ended(
            1,
            "hi\nval x: int = 1\n",
            "warning FS0025 (1,9): Incomplete (x): y\n1 | x\nSystem.Exception: boom\ncell 1 (line 1) did not run to its end\n",
        );
        assert_eq!(differences(&fsi, &ours), Vec::<String>::new());
    }

    #[test]
    fn each_thing_that_differs_is_named() {
        let fsi = ended(0, "hi\n", "mine\n");
        let ours = ended(1, "ho\n", "error FS0001 (1,1): no\n");
        let expected = [
            "exit code 1 instead of 0",
            "standard output",
            "standard error (1 lines missing, 1 diagnostics more)",
        ];
        assert_eq!(differences(&fsi, &ours), expected);
        let endless = ended(TIMED_OUT, "a\n", "");
        assert_eq!(differences(&endless, &ended(TIMED_OUT, "b\n", "")), Vec::<String>::new());
    }
}
