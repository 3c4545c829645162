//! The packages, made once for all tests, and homes that have never seen Mainstay.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::SystemTime;

/// The version of the workspace, and so of the packages.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The target triple of the packages.
pub(crate) const TRIPLE: &str = PLATFORM.triple;

/// This machine in the words of registries.
pub(crate) struct Platform {
    pub(crate) triple: &'static str,
    pub(crate) npm: &'static str,
    pub(crate) deb: &'static str,
    pub(crate) rid: &'static str,
}

/// The platform of this machine, for which the tests have a program.
pub(crate) const PLATFORM: Platform = if cfg!(target_arch = "aarch64") {
    Platform { triple: "aarch64-unknown-linux-gnu", npm: "linux-arm64", deb: "arm64", rid: "linux-arm64" }
} else {
    Platform { triple: "x86_64-unknown-linux-gnu", npm: "linux-x64", deb: "amd64", rid: "linux-x64" }
};

/// Says that a test cannot run here. In CI nothing is left out.
pub(crate) fn skip(reason: &str) {
    assert!(std::env::var_os("CI").is_none(), "{reason}");
    eprintln!("skipped: {reason}");
}

/// Returns the folder with the packages of the program that the tests were built with; nothing where it was not built.
pub(crate) fn packages() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_BIN_EXE_xtask")).with_file_name("mainstay");
    let Ok(modified) = modified(&program) else {
        skip("the program is not built; run `cargo build -p mainstay`");
        return None;
    };
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages");
    fs::create_dir_all(&place).unwrap();
    let lock = File::create(place.join("lock")).unwrap();
    lock.lock().unwrap();
    let out = place.join("dist");
    let done = place.join("made-from");
    let made_from =
        format!("{modified:?} {:?}", self::modified(Path::new(env!("CARGO_BIN_EXE_xtask"))).unwrap());
    if fs::read_to_string(&done).is_ok_and(|earlier| earlier == made_from) {
        return Some(out);
    }
    let stripped = place.join("mainstay");
    succeed(Command::new("strip").arg("-o").arg(&stripped).arg(&program));
    succeed(dist(&out).arg(format!("--binary={TRIPLE}={}", stripped.display())));
    fs::write(&done, made_from).unwrap();
    Some(out)
}

/// `cargo xtask dist` with packages in a folder, which are not compressed much.
pub(crate) fn dist(out: &Path) -> Command {
    let mut dist = Command::new(env!("CARGO_BIN_EXE_xtask"));
    dist.args(["dist", "--level=1"]).arg(format!("--out={}", out.display())).env_remove("SOURCE_DATE_EPOCH");
    dist
}

/// Whether the machine has a program.
pub(crate) fn is_here(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn modified(path: &Path) -> std::io::Result<SystemTime> {
    fs::metadata(path)?.modified()
}

/// Runs a command to its end; what it printed, which is shown where it fails.
pub(crate) fn succeed(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.stdin(Stdio::null()).output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?} ended with {status}:\n{stdout}\n{stderr}");
    stdout.into_owned()
}

/// A path that `cargo xtask test` provides; nothing where the tests were started without it.
pub(crate) fn provided(variable: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).map(PathBuf::from);
    if path.is_none() {
        skip(&format!("{variable} is not set; run `cargo xtask test`"));
    }
    path
}

/// A user who has never had Mainstay: an empty home, and of the environment the search path alone.
pub(crate) struct Newcomer {
    root: tempfile::TempDir,
    /// What the user's shell sets besides.
    environment: Vec<(String, PathBuf)>,
}

impl Newcomer {
    pub(crate) fn new() -> Self {
        let root = tempfile::Builder::new().prefix("ms").tempdir_in("/tmp").unwrap();
        let user = Self { root, environment: Vec::new() };
        for folder in ["home", "work", "home/.codex"] {
            fs::create_dir(user.folder(folder)).unwrap();
        }
        user
    }

    /// The same with a variable in the environment.
    pub(crate) fn with(mut self, variable: &str, value: impl Into<PathBuf>) -> Self {
        self.environment.push((variable.to_owned(), value.into()));
        self
    }

    /// The same with the F# worker that other tests have compiled with this SDK.
    pub(crate) fn with_fsharp(self, sdk: &Path) -> Self {
        let target = Path::new(env!("CARGO_BIN_EXE_xtask")).ancestors().nth(2).unwrap();
        let (shared, own) = (target.join("test-tools/kernels/fsharp"), self.folder("home/.mainstay/kernels"));
        fs::create_dir_all(&shared).unwrap();
        fs::create_dir_all(&own).unwrap();
        symlink(shared, own.join("fsharp")).unwrap();
        self.with("DOTNET_ROOT", sdk)
    }

    /// A folder of the user's.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// A program as the user would start it.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.folder("home"));
        // Asking a login shell takes time.
        command.env("MAINSTAY_ENVIRONMENT", "inherited").envs(self.environment.iter().cloned());
        command.current_dir(self.folder("work"));
        command
    }

    /// Runs a program; what it prints.
    pub(crate) fn run<S: AsRef<OsStr>>(
        &self,
        program: impl AsRef<OsStr>,
        arguments: impl IntoIterator<Item = S>,
    ) -> String {
        succeed(self.command(program).args(arguments))
    }

    /// Tries what is installed: its version, code of a kind, and what an agent is told to start, which is returned.
    pub(crate) fn try_out(&self, program: &Path, kind: &str, sum: &str) -> PathBuf {
        assert_eq!(self.run(program, ["--version"]), format!("mainstay {VERSION}\n"));
        let _daemon = StopAtEnd { user: self, program };
        assert_eq!(self.run(program, ["eval", "--kind", kind, "6 * 7"]), sum);
        self.run(program, ["mcp", "install", "codex", "--yes"]);
        let settings = fs::read_to_string(self.folder("home/.codex/config.toml")).unwrap();
        let started =
            settings.lines().find_map(|line| line.strip_prefix("command = \"")?.strip_suffix('"')).unwrap();
        assert_eq!(self.run(started, ["--version"]), format!("mainstay {VERSION}\n"), "{settings}");
        self.run(started, ["mcp", "uninstall", "codex", "--yes"]);
        PathBuf::from(started)
    }

    /// The files below one of the user's folders, sorted.
    pub(crate) fn files(&self, folder: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![self.folder(folder)];
        while let Some(next) = folders.pop() {
            for entry in fs::read_dir(next).into_iter().flatten().map(Result::unwrap) {
                match entry.file_type().unwrap().is_dir() {
                    true => folders.push(entry.path()),
                    false => found
                        .push(entry.path().strip_prefix(self.folder(folder)).unwrap().display().to_string()),
                }
            }
        }
        found.sort();
        found
    }
}

/// Stops the daemon, also where a test fails.
struct StopAtEnd<'a> {
    user: &'a Newcomer,
    program: &'a Path,
}

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        let stopped = self.user.command(self.program).arg("stop").output();
        assert!(std::thread::panicking() || stopped.unwrap().status.success(), "the daemon did not stop");
    }
}
