//! The home and folder of a demo, and the commands that are run there.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use mainstay_home::HOME_VARIABLE;
use mainstay_kernel::fsharp::Sdk;
use mainstay_kernel::jupyter::Kernelspec;
use mainstay_terminal::{Paint, Tone};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

/// What runs the demo's code, as the user's own home has it.
pub(super) enum Runtime {
    Fsharp { dotnet: PathBuf },
    Python { kernels: PathBuf },
}

impl Runtime {
    pub(super) fn fsharp(sdk: Sdk) -> Self {
        Self::Fsharp { dotnet: sdk.root }
    }

    pub(super) fn python(spec: Kernelspec) -> Self {
        // A kernelspec is in `kernels/NAME` of a folder that Jupyter's path may name.
        let folder = spec.folder.ancestors().nth(2).unwrap_or(&spec.folder);
        Self::Python { kernels: folder.to_owned() }
    }
}

/// A home, and a folder that code runs in.
pub(super) struct World {
    folder: TempDir,
    program: PathBuf,
    kernels: Option<PathBuf>,
    out: Paint,
}

/// How long an answer is waited for.
const ANSWER: Duration = Duration::from_secs(60);

/// How long to wait before a session is looked at again.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Why the demo cannot go on, for people.
pub(super) struct Failure(pub(super) String);

fn failed(reason: impl ToString) -> Failure {
    Failure(reason.to_string())
}

impl World {
    /// `built` has the workers that the user's own home has built.
    pub(super) fn new(runtime: &Runtime, built: &Path) -> Result<Self, Failure> {
        let folder = tempfile::Builder::new().prefix("mainstay-demo-").tempdir().map_err(failed)?;
        let program = std::env::current_exe().map_err(failed)?;
        let home = folder.path().join("home");
        for made in [&home, &folder.path().join("demo")] {
            std::fs::create_dir(made).map_err(failed)?;
        }
        // What has to be built for it the user's own sessions need as well.
        std::fs::create_dir_all(built).map_err(failed)?;
        std::fs::create_dir(home.join("kernels")).map_err(failed)?;
        symlink(built, home.join("kernels/fsharp")).map_err(failed)?;
        let mut settings = toml_edit::DocumentMut::new();
        settings["daemon"]["port"] = toml_edit::value(0);
        let mut kernels = None;
        match runtime {
            Runtime::Fsharp { dotnet } => {
                settings["fsharp"]["dotnet"] = toml_edit::value(dotnet.display().to_string());
            }
            Runtime::Python { kernels: folder } => kernels = Some(folder.clone()),
        }
        std::fs::write(home.join("config.toml"), settings.to_string()).map_err(failed)?;
        Ok(Self { folder, program, kernels, out: Paint::stdout() })
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// This program, in the demo's home and folder.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(self.folder.path().join("demo")).env(HOME_VARIABLE, self.home());
        if let Some(kernels) = &self.kernels {
            command.env("JUPYTER_PATH", kernels);
        }
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    pub(super) fn say(&self, text: &str) {
        println!("\n{}", self.out.tone(Tone::Good, text));
    }

    fn say_typed(&self, words: &[&str]) {
        let quoted = words.iter().map(|word| match word.contains([' ', '(', '[']) {
            true => format!("'{word}'"),
            false => (*word).to_owned(),
        });
        println!(
            "{} {}",
            self.out.tone(Tone::Faint, "$"),
            self.out.tone(Tone::Name, &quoted.collect::<Vec<_>>().join(" "))
        );
    }

    /// Runs a command; its output must have the answer in it.
    pub(super) async fn run(&self, arguments: &[&str], answer: Option<&str>) -> Result<(), Failure> {
        self.say_typed(&[&["mainstay"], arguments].concat());
        let began = Instant::now();
        // What it is waiting for it says itself.
        let output = self.command(arguments).stderr(Stdio::inherit()).output().await.map_err(failed)?;
        let text = String::from_utf8_lossy(&output.stdout);
        let took = self.out.tone(Tone::Faint, &format!("({:.1} s)", began.elapsed().as_secs_f32()));
        println!("{} {took}", text.trim_end());
        match output.status.success() && answer.is_none_or(|answer| text.contains(answer)) {
            true => Ok(()),
            false => Err(failed(format!("`mainstay {}` did not answer as it should", arguments.join(" ")))),
        }
    }

    async fn worker(&self) -> Result<Pid, Failure> {
        let output = self.command(&["session", "show", "demo", "--json"]).output().await.map_err(failed)?;
        let shown: Value = serde_json::from_slice(&output.stdout).map_err(failed)?;
        pid_in(&shown["worker"])
    }

    fn daemon(&self) -> Result<Pid, Failure> {
        let record = std::fs::read(self.home().join("daemon.json")).map_err(failed)?;
        pid_in(&serde_json::from_slice(&record).map_err(failed)?)
    }

    fn kill(&self, process: Pid) -> Result<(), Failure> {
        self.say_typed(&["kill", "-9", &process.as_raw_nonzero().to_string()]);
        kill_process(process, Signal::KILL).map_err(failed)
    }

    pub(super) async fn kill_worker(&self) -> Result<(), Failure> {
        let process = self.worker().await?;
        self.kill(process)?;
        // Code that comes before the loss is noticed would be cut off by it.
        let noticed = async {
            while self.worker().await.is_ok_and(|worker| worker == process) {
                tokio::time::sleep(BETWEEN_LOOKS).await;
            }
        };
        tokio::time::timeout(ANSWER, noticed).await.map_err(failed)
    }

    pub(super) fn kill_daemon(&self) -> Result<(), Failure> {
        self.kill(self.daemon()?)
    }

    /// Runs code as an agent's client does, over the bridge that agents start.
    pub(super) async fn agent(&self, code: &str, answer: &str) -> Result<(), Failure> {
        self.say_typed(&["mainstay", "mcp"]);
        let mut bridge = self
            .command(&["mcp"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let (Some(mut input), Some(output)) = (bridge.stdin.take(), bridge.stdout.take()) else {
            return Err(failed("the bridge has no input"));
        };
        let client = json!({ "name": "demo", "version": env!("CARGO_PKG_VERSION") });
        let begin = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        let call = json!({ "name": "send_code", "arguments": { "code": code } });
        let messages = [
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": begin }),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call }),
        ];
        for message in messages {
            input.write_all(format!("{message}\n").as_bytes()).await.map_err(failed)?;
        }
        println!("→ tools/call {call}");
        let mut lines = BufReader::new(output).lines();
        let answered = async {
            while let Some(line) = lines.next_line().await.map_err(failed)? {
                let message: Value = serde_json::from_str(&line).map_err(failed)?;
                if message["id"] == 2 {
                    return Ok(message["result"]["content"][0]["text"]
                        .as_str()
                        .unwrap_or_default()
                        .to_owned());
                }
            }
            Err(failed("the bridge ended"))
        };
        let text = tokio::time::timeout(ANSWER, answered).await.map_err(failed)??;
        println!("← {}", text.trim_end());
        match text.contains(answer) {
            true => Ok(()),
            false => Err(failed("the agent's client was not answered as it should be")),
        }
    }

    /// Ends all that was started, and removes the home and the folder.
    pub(super) async fn end(self) -> Result<(), Failure> {
        let stopped = self.command(&["stop"]).stdout(Stdio::null()).stderr(Stdio::null()).status().await;
        let path = self.folder.path().to_owned();
        let removed = self.folder.close();
        stopped.map_err(failed)?;
        removed.map_err(|error| left(&path, &error))
    }
}

fn pid_in(record: &Value) -> Result<Pid, Failure> {
    let pid = record["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
    pid.and_then(Pid::from_raw).ok_or_else(|| failed("no process is running"))
}

fn left(folder: &Path, error: &std::io::Error) -> Failure {
    failed(format!("{} is left: {error}", folder.display()))
}
