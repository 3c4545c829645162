//! The peer: `dotnet fsi` of the same SDK, fed through its standard input as somebody types into it.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::Failure;

/// A session of `dotnet fsi`.
pub(super) struct Fsi {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Fsi {
    /// Starts it, and waits for the value of a first submission.
    pub(super) fn start(host: &Path, folder: &Path) -> Result<Self, Failure> {
        let mut child = Command::new(host)
            .args(["fsi", "--nologo", "--gui-", "--readline-"])
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let input = child.stdin.take().ok_or("no input")?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut fsi = Self { child, input, output };
        fsi.eval("1+1")?;
        Ok(fsi)
    }

    /// Runs a submission that defines one name or gives one value, until that is printed.
    pub(super) fn eval(&mut self, code: &str) -> Result<(), Failure> {
        writeln!(self.input, "{code};;")?;
        let mut line = String::new();
        while !line.contains("val ") {
            line.clear();
            if self.output.read_line(&mut line)? == 0 {
                return Err("fsi ended".into());
            }
        }
        Ok(())
    }

    /// What its processes hold in memory, in bytes: the command of the SDK, and fsi itself.
    pub(super) fn resident_bytes(&self) -> Result<u64, Failure> {
        let pid = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
        let children = children.split_whitespace().map(str::parse);
        let processes = std::iter::once(Ok(pid)).chain(children);
        processes.map(|pid| resident(pid?)).sum()
    }
}

fn resident(pid: u32) -> Result<u64, Failure> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no memory")?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes * 1024)
}

impl Drop for Fsi {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
