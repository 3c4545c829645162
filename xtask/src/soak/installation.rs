//! The program under test, in a home of its own: started under its supervisor, stopped, killed and examined as a user would.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::failure::Failure;

/// The paths of the installed program and its home.
pub(super) struct Installation {
    program: PathBuf,
    dotnet: PathBuf,
    root: PathBuf,
}

/// The daemon that says it runs.
pub(super) struct DaemonRecord {
    pub(super) pid: u32,
    pub(super) port: u64,
    pub(super) socket: PathBuf,
}

impl Installation {
    /// Makes an empty home; a daemon that an earlier soak left in it is stopped first. All homes share the compiled worker.
    pub(super) fn prepare(target: &Path, program: PathBuf, dotnet: &Path) -> Result<Self, Failure> {
        let root = target.join("soak");
        let installation = Self { program, dotnet: dotnet.to_owned(), root: root.clone() };
        if installation.home().is_dir() {
            // It fails where none runs.
            installation.run(["stop"]).ok();
            fs::remove_dir_all(&root).map_err(Failure::at(&root))?;
        }
        let kernels = target.join("test-tools/kernels");
        for folder in [&kernels, &installation.home(), &installation.work(), &installation.temporary()] {
            fs::create_dir_all(folder).map_err(Failure::at(folder))?;
        }
        let link = installation.home().join("kernels");
        symlink(kernels, &link).map_err(Failure::at(&link))?;
        let config = installation.home().join("config.toml");
        fs::write(&config, "[daemon]\nport = 0\n").map_err(Failure::at(&config))?;
        Ok(installation)
    }

    /// Returns the home folder of Mainstay.
    pub(super) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// The folder that sessions run in.
    pub(super) fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// The temporary folder of the daemon and its workers.
    pub(super) fn temporary(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// The program with arguments, not started yet.
    fn command<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .env("MAINSTAY_HOME", self.home())
            .env("MAINSTAY_ENVIRONMENT", "inherited")
            .env("DOTNET_ROOT", &self.dotnet)
            .env("TMPDIR", self.temporary())
            .env("NO_COLOR", "1")
            .current_dir(self.work())
            .stdin(Stdio::null())
            // Ctrl-C is for the soak, which ends what it began.
            .process_group(0);
        command
    }

    /// Runs the program to its end.
    pub(super) fn run<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> io::Result<Output> {
        self.command(arguments).output()
    }

    /// Runs the program to its end; where it fails, says what it said.
    pub(super) fn require<const N: usize>(&self, arguments: [&str; N]) -> Result<String, String> {
        let said = |text: &[u8]| String::from_utf8_lossy(text).trim().to_owned();
        match self.run(arguments) {
            Ok(output) if output.status.success() => Ok(said(&output.stdout)),
            Ok(output) => Err(format!(
                "`mainstay {}` ended with {}: {} {}",
                arguments.join(" "),
                output.status,
                said(&output.stderr),
                said(&output.stdout)
            )),
            Err(error) => Err(format!("`mainstay {}` cannot be started: {error}", arguments.join(" "))),
        }
    }

    /// The daemon that says it runs; only a connection tells whether it does.
    pub(super) fn daemon(&self) -> Option<DaemonRecord> {
        let record: Value = serde_json::from_slice(&fs::read(self.home().join("daemon.json")).ok()?).ok()?;
        Some(DaemonRecord {
            pid: u32::try_from(record["pid"].as_u64()?).ok()?,
            port: record["port"].as_u64()?,
            socket: PathBuf::from(record["socket"].as_str()?),
        })
    }

    /// The secret that clients show.
    pub(super) fn token(&self) -> Option<String> {
        Some(fs::read_to_string(self.home().join("token")).ok()?.trim().to_owned())
    }

    /// The names of what lies in the daemon's folder of sockets.
    pub(super) fn sockets(&self) -> Vec<String> {
        let inside = self.home().join("run");
        let folder =
            self.daemon().and_then(|daemon| Some(daemon.socket.parent()?.to_owned())).unwrap_or(inside);
        names(&folder)
    }

    /// What the daemons have logged as errors: none has a reason to, but that a client on the command line has started one in the meantime.
    pub(super) fn logged_errors(&self) -> Vec<String> {
        let logs = ["daemon.log.1", "daemon.log"].map(|name| self.home().join("logs").join(name));
        let text = logs.iter().filter_map(|log| fs::read_to_string(log).ok()).collect::<String>();
        let is_error = |line: &&str| {
            (line.contains(" ERROR ") || line.contains("panicked"))
                && !line.contains("another daemon has the store open")
        };
        text.lines().filter(is_error).map(str::to_owned).collect()
    }

    /// The names of what lies in the temporary folder, without what F# Interactive leaves: it removes the folder of its symbols where its
    /// process exits, and workers are killed.
    pub(super) fn temporary_files(&self) -> Vec<String> {
        let is_of_symbols = |name: &String| {
            // A time and a number of 32 digits.
            let is_symbols = |file: &String| file.starts_with("FSI-ASSEMBLY");
            name.len() == 52 && names(&self.temporary().join(name)).iter().all(is_symbols)
        };
        names(&self.temporary()).into_iter().filter(|name| !is_of_symbols(name)).collect()
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Kills a process as nothing can refuse. One that is gone already is as good.
pub(super) fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        kill_process(pid, Signal::KILL).ok();
    }
}
