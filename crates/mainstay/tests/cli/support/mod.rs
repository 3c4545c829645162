//! A home of its own for each test, with the real program, the real compiler and real processes.
#![allow(unreachable_pub, reason = "nothing outside of the tests uses it")]

pub(crate) mod agents;
pub(crate) mod bridged;
pub(crate) mod collector;
pub(crate) mod rpc;
pub(crate) mod terminal;
pub(crate) mod tool_call;

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mainstay_test_support::short_folder::short_folder;
use serde_json::Value;

pub(crate) use mainstay_test_support::provided::{
    dotnet, jupyter, mcp_packages, node, nunit, openapi_packages, openapi_python, pi, provided, python,
};

/// F# code that no interrupt ends: .NET aborts no thread within a `finally`, and SDK 3.1's none at all.
pub const NEVER_YIELDS: &str = "try () finally (while true do ())";

/// A version that was never released.
pub const OTHER_VERSION: &str = "0.0.9";

/// A home folder, a working folder, and the program to run in them. Everything it started ends with it.
pub struct World {
    root: tempfile::TempDir,
    /// Where kernelspecs are, where there are any.
    jupyter: Option<PathBuf>,
    /// What runs in the place of F#'s worker, where it is another.
    worker: Option<PathBuf>,
    /// Whether its daemon starts workers ahead.
    stands_by: bool,
    warms_compilers: bool,
}

/// What a finished command left.
#[derive(Debug)]
pub struct Finished {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl World {
    pub fn new() -> Self {
        let root = short_folder();
        for folder in ["home", "work"] {
            std::fs::create_dir(root.path().join(folder)).unwrap();
        }
        let world = Self { root, jupyter: None, worker: None, stands_by: false, warms_compilers: false };
        // All tests share the compiled worker; building it is tested where it is built.
        let (shared, own) = (tools().join("kernels/fsharp"), world.home().join("kernels"));
        std::fs::create_dir_all(&shared).unwrap();
        std::fs::create_dir(&own).unwrap();
        std::os::unix::fs::symlink(shared, own.join("fsharp")).unwrap();
        world
    }

    /// One whose F# sessions have `tests/scripted/worker.py` as their worker: it starts at once and knows a few forms of F#.
    pub fn scripted() -> Self {
        let mut world = Self::new();
        world.worker = Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripted/worker.py"));
        world
    }

    /// The same with a daemon that starts a worker ahead as soon as nobody waits for anything, whatever memory there is.
    #[must_use]
    pub fn standing_by(mut self) -> Self {
        self.stands_by = true;
        let settings = "[fsharp]\nstandby-rest-ms = 0\nstandby-memory-bytes = 0\n";
        std::fs::write(self.home().join("config.toml"), settings).unwrap();
        self
    }

    /// The same with a daemon that warms a compiler as soon as nobody waits for anything, whatever memory there is.
    #[must_use]
    pub fn with_warm_compilers(mut self) -> Self {
        self.warms_compilers = true;
        let settings = "[fsharp]\nwatch = \"mark\"\nstandby-rest-ms = 0\nwarm-compiler-memory-bytes = 0\n";
        std::fs::write(self.home().join("config.toml"), settings).unwrap();
        self
    }

    /// One with the Jupyter kernels that `cargo xtask test` provides.
    pub fn with_jupyter() -> Self {
        let mut world = Self::new();
        world.jupyter = Some(jupyter().join("share/jupyter"));
        world
    }

    /// The same with F# sessions as [`Self::scripted`] has them.
    pub fn scripted_with_jupyter() -> Self {
        let mut world = Self::scripted();
        world.jupyter = Some(jupyter().join("share/jupyter"));
        world
    }

    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    pub fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// The files of its home that have this in them, in whatever encoding a store has texts.
    pub fn files_with(&self, text: &str) -> Vec<PathBuf> {
        let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let mut found = Vec::new();
        let mut folders = vec![self.home()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                // The compiled workers are a link to a folder that tests share.
                let kind = entry.file_type().unwrap();
                if kind.is_dir() {
                    folders.push(entry.path());
                } else if kind.is_file() {
                    let bytes = std::fs::read(entry.path()).unwrap();
                    let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
                    if has(text.as_bytes()) || has(&wide) {
                        found.push(entry.path());
                    }
                }
            }
        }
        found
    }

    /// The program, ready to be given arguments.
    pub fn command(&self) -> Command {
        self.command_of(Path::new(env!("CARGO_BIN_EXE_mainstay")))
    }

    /// The same of another build of the program.
    pub fn command_of(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env("MAINSTAY_HOME", self.home())
            .env("DOTNET_ROOT", dotnet())
            .env("NO_COLOR", "1")
            // Whatever terminal the tests are run in.
            .env("MAINSTAY_IMAGES", "off")
            // Asking a login shell takes time; tests of that say so.
            .env("MAINSTAY_ENVIRONMENT", "inherited")
            .env_remove("MAINSTAY_LOG")
            .env_remove("JUPYTER_PATH")
            .current_dir(self.work());
        if let Some(path) = &self.jupyter {
            command.env("JUPYTER_PATH", path);
        }
        if let Some(worker) = &self.worker {
            command.env("MAINSTAY_TEST_WORKER", worker);
        }
        if self.warms_compilers {
            command.env("MAINSTAY_TEST_WARM_COMPILERS", "1");
        }
        if self.stands_by {
            command.env("MAINSTAY_TEST_STANDBY", "1");
        }
        command
    }

    pub fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Finished {
        self.run_with_input(arguments, b"")
    }

    pub fn run_with_input<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
        input: &[u8],
    ) -> Finished {
        let mut child = self
            .command()
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        // A program that refuses its input early closes it.
        let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        Finished {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: without_progress(&String::from_utf8_lossy(&output.stderr)),
        }
    }

    /// Runs code, which may fail, and gives what `--json` prints.
    pub fn eval(&self, code: &str) -> Value {
        let finished = self.run_with_input(["eval", "--json", "-"], code.as_bytes());
        finished.json()
    }

    /// Starts an eval and does not wait for it. Its input is silent until the end is waited for.
    pub fn start_eval(&self, code: &str) -> Child {
        self.start_eval_with(&[], code)
    }

    /// The same, with further arguments.
    pub fn start_eval_with(&self, arguments: &[&str], code: &str) -> Child {
        self.command()
            .args(["eval", "--json"])
            .args(arguments)
            .arg(code)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Follows the session's events from the one after `since`.
    pub fn follow(&self, since: u64) -> Follower {
        self.follow_with(&["--since", &since.to_string()])
    }

    /// Follows the events that these arguments choose.
    pub fn follow_with(&self, arguments: &[&str]) -> Follower {
        self.follow_lines(&[&["events", "--json", "--follow"], arguments].concat())
    }

    /// Follows what a command prints, a line of JSON each.
    pub fn follow_lines(&self, arguments: &[&str]) -> Follower {
        let mut child = self
            .command()
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Follower { child, lines }
    }

    /// All events of the session.
    pub fn events(&self) -> Vec<Value> {
        let finished = self.run(["events", "--json"]);
        assert_eq!(finished.code, 0, "{finished:?}");
        finished.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The session of the working folder.
    pub fn session(&self) -> Value {
        self.run(["session", "show", "--json"]).json()
    }

    /// The daemon's process id.
    pub fn daemon_pid(&self) -> Option<i32> {
        let record: Value =
            serde_json::from_slice(&std::fs::read(self.home().join("daemon.json")).ok()?).ok()?;
        i32::try_from(record["pid"].as_i64()?).ok()
    }

    /// Kills the daemon as a crash would.
    pub fn kill_daemon(&self) {
        kill(self.daemon_pid().expect("a daemon runs"));
    }

    /// Kills the daemon, and starts the next one.
    pub fn replace_daemon(&self) {
        self.kill_daemon();
        assert_eq!(self.run(["-d", "--port", "0"]).code, 0);
    }

    /// Kills the daemon, the shims and what runs in them at once, as a restart of the machine does.
    pub fn kill_everything(&self) {
        let shims = self.shim_pids();
        let workers: Vec<i32> = shims.iter().flat_map(|shim| descendants(*shim)).collect();
        kill_at_once(self.daemon_pid().into_iter().chain(shims).chain(workers));
    }

    /// This program as one of another version, [`OTHER_VERSION`]: a copy with another number, of the same length, in all places.
    pub fn other_version(&self) -> PathBuf {
        let own = env!("CARGO_PKG_VERSION");
        assert_eq!(own.len(), OTHER_VERSION.len());
        let other = self.root.path().join("mainstay-of-another-version");
        let script = format!("s/{}/{OTHER_VERSION}/g", own.replace('.', "\\."));
        std::fs::copy(env!("CARGO_BIN_EXE_mainstay"), &other).unwrap();
        let mut change = Command::new("sed");
        change.env("LC_ALL", "C").args(["-i", &script]).arg(&other);
        assert!(change.status().unwrap().success());
        other
    }

    /// The process ids of the shims that the home has.
    pub fn shim_pids(&self) -> Vec<i32> {
        let Ok(folders) = std::fs::read_dir(self.home().join("shims")) else { return Vec::new() };
        let records =
            folders.filter_map(|folder| std::fs::read(folder.unwrap().path().join("shim.json")).ok());
        let pid = |record: Vec<u8>| serde_json::from_slice::<Value>(&record).unwrap()["pid"].as_i64();
        records.map(|record| i32::try_from(pid(record).unwrap()).unwrap()).collect()
    }

    /// The process id of the session's worker.
    pub fn worker_pid(&self) -> i32 {
        i32::try_from(self.session()["worker"]["pid"].as_i64().expect("a worker runs")).unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.run(["stop"]);
    }
}

/// Progress shows only where the machine is slow.
fn without_progress(stderr: &str) -> String {
    let is_progress = |line: &&str| line.ends_with(" warms up …") || line.starts_with("waits for its turn …");
    stderr.lines().filter(|line| !is_progress(line)).map(|line| format!("{line}\n")).collect()
}

impl Finished {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// The events of a session as they come.
pub struct Follower {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Follower {
    /// Waits for the next event of this kind.
    pub fn wait_for(&mut self, kind: &str) -> Value {
        self.wait_until(|event| event["kind"] == kind)
    }

    /// Waits for the next line, whatever it says.
    pub fn next(&mut self) -> Value {
        self.wait_until(|_| true)
    }

    /// Ends it as Ctrl-C does; gives its exit code.
    pub fn interrupt(mut self) -> Option<i32> {
        interrupt(&self.child);
        self.child.wait().unwrap().code()
    }

    /// Waits for the next event that fits.
    pub fn wait_until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "the events ended");
            let event: Value = serde_json::from_str(&line).unwrap();
            if fits(&event) {
                return event;
            }
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Kills a process as nothing can refuse, and waits until it is gone.
pub fn kill(pid: i32) {
    kill_at_once([pid]);
}

/// Kills these processes, none of which learns of the end of another before its own, and waits until they are gone.
pub fn kill_at_once(pids: impl IntoIterator<Item = i32>) {
    let watches: Vec<_> = pids.into_iter().map(watch).collect();
    for watch in &watches {
        rustix::process::pidfd_send_signal(watch, rustix::process::Signal::STOP).unwrap();
    }
    for watch in &watches {
        rustix::process::pidfd_send_signal(watch, rustix::process::Signal::KILL).unwrap();
    }
    watches.iter().for_each(wait_for_end);
}

/// The processes that a process started, and those that they did.
fn descendants(pid: i32) -> Vec<i32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let started =
        threads.filter_map(|thread| std::fs::read_to_string(thread.unwrap().path().join("children")).ok());
    let children: Vec<i32> = started
        .flat_map(|line| line.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>())
        .collect();
    children.iter().flat_map(|child| descendants(*child).into_iter().chain([*child])).collect()
}

/// Does to a process what Ctrl-C does.
pub fn interrupt(child: &Child) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
}

/// Whether something that nothing announces comes true in time.
pub fn within(limit: Duration, mut is_true: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + limit;
    while Instant::now() < until {
        if is_true() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

/// Keeps an eye on a process, whoever its parent is.
pub fn watch(pid: i32) -> std::os::fd::OwnedFd {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap()
}

/// Whether the process is gone now.
pub fn is_gone(watch: &impl std::os::fd::AsFd) -> bool {
    let mut poll = [rustix::event::PollFd::new(watch, rustix::event::PollFlags::IN)];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut poll, Some(&now)).unwrap() > 0
}

/// Waits until the process is gone.
pub fn wait_for_end(watch: &impl std::os::fd::AsFd) {
    let mut poll = [rustix::event::PollFd::new(watch, rustix::event::PollFlags::IN)];
    rustix::event::poll(&mut poll, None).unwrap();
}

/// The folder of what tests share between runs.
fn tools() -> PathBuf {
    let executable = Path::new(env!("CARGO_BIN_EXE_mainstay"));
    let target = executable.ancestors().nth(2).unwrap();
    target.join("test-tools")
}
