//! Starts a kernel, and waits until it takes code.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use mainstay_model::{Error, Language, RunnerInfo, RunnerNotice};
use mainstay_runner::{Environment, Runner, StartedRunner};
use serde_json::json;
use tokio::process::Child;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use zeromq::{ReqSocket, SocketRecv};

use super::connection::Connection;
use super::content::KernelInfo;
use super::handle::Handle;
use super::keeper::{Keeper, SnapshotPlace};
use super::kernelspec::Kernelspec;
use super::line::{Line, Senders, new_id};
use super::python;
use super::reader::{Reader, Sources, Traits};
use super::sockets::{Sockets, failed};
use super::wire::{Key, Message};
use crate::kernel_files::{KernelFiles, text};
use crate::runner_process::{died_early, exit_of, unavailable};
use mainstay_os::output_pipe::OutputPipe;
use mainstay_os::process::{Group, Launch, Unready, drain, last_words};

/// Notices on their way to the session.
const NOTICES: usize = 64;
/// What a kernel says of itself where it can answer while it runs code. Source: JEP 91.
const SUBSHELLS: &str = "kernel subshells";
/// How often a kernel is asked again whether it is there.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// Becomes the program it is given. Beside it a shell waits for the end of its input, which is that of the daemon, and then ends them all.
const WITH_LIFELINE: &str = r#"exec 3<&0
( trap '' INT TERM; while read -r _ <&3; do :; done; kill -KILL 0 ) </dev/null >/dev/null 2>&1 &
exec "$@" </dev/null 3<&-"#;
/// How ipykernel calls itself. xeus-python may stop to answer once a process was forked off it, so its values are not kept.
const FORKS: &str = "ipython";
/// What makes the standard input of a Deno kernel ask, in the folder `kernels`.
const DENO_INPUT: &str = "deno/mainstay_kernel.js";

/// How a kernel is started.
#[derive(Clone, Debug)]
pub struct Start {
    /// The kernelspec that is to be started.
    pub kernelspec: Kernelspec,
    /// The folder its code runs in.
    pub working_directory: PathBuf,
    /// Where its sockets and its connection file are made; the user's alone.
    pub sockets: PathBuf,
    /// What it finds in its environment over the daemon's own, besides what its kernelspec says.
    pub environment: Environment,
    /// What kernels are given.
    pub files: KernelFiles,
    /// Where what its session has is kept; none where nothing is.
    pub snapshots: Option<SnapshotPlace>,
}

/// A kernel process that takes code.
pub(super) struct StartedKernel {
    pub(super) line: Arc<Line>,
    pub(super) info: RunnerInfo,
    pub(super) group: Group,
    pub(super) has_helper: bool,
    pub(super) heartbeat: ReqSocket,
    pub(super) reader: ReaderTask,
    pub(super) keeper: Option<Arc<Keeper>>,
}

/// Its reader, which ends with it.
pub(super) struct ReaderTask {
    pub(super) task: JoinHandle<()>,
    pub(super) is_replaced: Arc<AtomicBool>,
}

/// Starts a kernel.
///
/// # Errors
/// [`Error::KernelUnavailable`] where its program cannot be started, [`Error::WorkerFailed`] where it does not get ready.
pub async fn launch(start: Start) -> Result<StartedRunner, Error> {
    let (notices_in, notices) = mpsc::channel(NOTICES);
    let started = begin(&start, &notices_in).await?;
    let handle = Handle::new(start, started, &notices_in);
    Ok(StartedRunner::new(Runner::Kernel(Arc::new(handle)), notices))
}

/// Starts one process: over sockets in a folder, and over ports where the kernel does not know those.
pub(super) async fn begin(
    start: &Start,
    notices: &mpsc::Sender<RunnerNotice>,
) -> Result<StartedKernel, Error> {
    match attempt(start, Connection::ipc(&start.sockets), notices).await {
        Err(Attempt::Died(error)) => {
            tracing::info!(%error, kernel = start.kernelspec.name, "a kernel is started again with ports");
            let ports =
                Connection::tcp().map_err(|error| failed(&format!("no port is to be had: {error}")))?;
            attempt(start, ports, notices).await.map_err(Attempt::error)
        }
        other => other.map_err(Attempt::error),
    }
}

/// Why a kernel did not get ready.
enum Attempt {
    /// It ended by itself.
    Died(Error),
    /// Another way would not help.
    Failed(Error),
}

impl Attempt {
    fn error(self) -> Error {
        match self {
            Self::Died(error) | Self::Failed(error) => error,
        }
    }
}

async fn attempt(
    start: &Start,
    connection: Connection,
    notices: &mpsc::Sender<RunnerNotice>,
) -> Result<StartedKernel, Attempt> {
    let file = Files::write(&start.sockets, connection.clone()).map_err(Attempt::Failed)?;
    let (mut child, group) = spawn(start, &file.path).map_err(Attempt::Failed)?;
    // Who waits for a child closes its input first.
    let lifeline = child.stdin.take();
    let unready = Unready::new(&group);
    let session = new_id();
    let ready = tokio::select! {
        ready = ready(&connection, &session) => ready,
        status = child.wait() => return Err(Attempt::Died(died_early(exit_of(status), &last_words(child)))),
    };
    let (sockets, info) = ready.map_err(Attempt::Failed)?;
    let Sockets { shell, published, stdin, control, heartbeat } = sockets;
    let ((shell_in, shell), (stdin_in, stdin), (control_in, control)) =
        (shell.split(), stdin.split(), control.split());
    let senders = Senders { shell: shell_in, control: control_in, stdin: stdin_in };
    let line = Arc::new(Line::new(Key::new(&connection.key), session, senders));
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(Attempt::Failed(failed("its output is not captured")));
    };
    // What a kernel says of itself while it comes up belongs to no code.
    for said in [drain(&stdout), drain(&stderr)] {
        tracing::debug!(said = %String::from_utf8_lossy(&said), "a kernel comes up");
    }
    let pid = child.id().unwrap_or_default();
    let sources = Sources {
        published,
        shell,
        stdin,
        control,
        stdout: OutputPipe::new(stdout),
        stderr: OutputPipe::new(stderr),
        held: (lifeline, file),
        child,
    };
    let is_replaced = Arc::new(AtomicBool::new(false));
    let is_python = info.language_info.name == "python";
    let is_deno = info.implementation.starts_with("Deno");
    let interrupt = start.kernelspec.interrupt;
    let traits = Traits { has_helper: is_python, is_idle_early: is_deno, interrupt };
    let keeper = start.snapshots.clone().filter(|_| info.implementation == FORKS).map(Keeper::new);
    let reader = Reader::new(
        sources,
        Arc::clone(&line),
        group.clone(),
        notices.clone(),
        Arc::clone(&is_replaced),
        traits,
        keeper.clone(),
    );
    let reader = ReaderTask { task: tokio::spawn(reader.run()), is_replaced };
    let has_helper = is_python && equip(&line, &info, start.files).await;
    let keeper = match keeper {
        Some(keeper) if has_helper && keeps_values(&line, start.files).await => Some(keeper),
        Some(_) | None => None,
    };
    if is_deno
        && let Some(code) = text(start.files, DENO_INPUT)
        && let Err(error) = line.run_silently(&code).await
    {
        tracing::info!(%error, "the standard input of a Deno kernel stays empty");
    }
    unready.is_ready();
    let info = RunnerInfo {
        kernel: named(&info.implementation, &info.implementation_version),
        runtime: named(&info.language_info.name, &info.language_info.version),
        language: Some(Language::named(&info.language_info.name))
            .filter(|language| !language.as_str().is_empty()),
        pid: Some(pid),
        references: None,
        startup: None,
    };
    Ok(StartedKernel { line, info, group, has_helper, heartbeat, reader, keeper })
}

/// Gives a Python kernel its helper, and asks for a part of it that answers while code runs.
async fn equip(line: &Line, info: &KernelInfo, files: KernelFiles) -> bool {
    let installed = match python::installation(files) {
        Some(code) => line.run_silently(&code).await,
        None => Err(failed("this program does not carry its helper")),
    };
    if let Err(error) = &installed {
        tracing::info!(%error, "a Python kernel goes without a helper");
    }
    if info.supported_features.iter().any(|feature| feature == SUBSHELLS)
        && let Ok(reply) = line.command("create_subshell_request", &json!({})).await
        && let Ok(content) = reply.read::<serde_json::Value>()
        && let Some(subshell) = content["subshell_id"].as_str()
    {
        line.answers_beside(subshell.to_owned());
    }
    installed.is_ok()
}

/// Has a kernel's helper note what a snapshot needs.
async fn keeps_values(line: &Line, files: KernelFiles) -> bool {
    let begun = match python::snapshots(files) {
        Some(code) => line.run_silently(&code).await,
        None => Err(failed("this program does not carry what keeps them")),
    };
    if let Err(error) = &begun {
        tracing::info!(%error, "the values of a Python kernel are not kept");
    }
    begun.is_ok()
}

fn named(name: &str, version: &str) -> String {
    format!("{name} {version}").trim().to_owned()
}

fn spawn(start: &Start, connection_file: &Path) -> Result<(Child, Group), Error> {
    let (program, arguments) = start.kernelspec.command(connection_file)?;
    let shell = ["-c", WITH_LIFELINE, "sh"].map(OsString::from);
    let launch = Launch {
        program: PathBuf::from("/bin/sh"),
        arguments: shell.into_iter().chain([program.into_os_string()]).chain(arguments).collect(),
        environment: start.kernelspec.environment(&start.environment),
    };
    mainstay_os::process::start(&launch, &start.working_directory, &[], Stdio::piped()).map_err(unavailable)
}

/// Connects, and waits until the kernel answers and is heard on the channel on which it publishes: what it publishes before is lost.
async fn ready(connection: &Connection, session: &str) -> Result<(Sockets, KernelInfo), Error> {
    let mut sockets = Sockets::connect(connection, session).await?;
    let key = Key::new(&connection.key);
    let (mut info, mut is_heard) = (None, false);
    let mut asks_at = Instant::now();
    loop {
        tokio::select! {
            () = sleep_until(asks_at) => {
                if let Err(error) = super::line::ask_for_info(&mut sockets.shell, &key, session).await {
                    // A kernel that comes up may drop a connection that it has taken. Who waits says when it has been long enough.
                    tracing::debug!(%error, "a kernel has dropped its connections, and is connected to again");
                    sockets = Sockets::connect(connection, session).await?;
                    is_heard = false;
                }
                asks_at = Instant::now() + ASK_AGAIN;
            }
            frames = sockets.shell.recv() => {
                let message = frames.ok().and_then(|frames| Message::decode(frames, &key).ok());
                let told = message.filter(|message| message.header.msg_type == "kernel_info_reply");
                info = info.or(told.and_then(|message| message.read::<KernelInfo>().ok()));
            }
            frames = sockets.published.next() => is_heard |= frames.is_some(),
        }
        if is_heard && let Some(info) = info.take_if(|_| is_heard) {
            return Ok((sockets, info));
        }
    }
}

/// What lies in the folder for one kernel, and goes with it.
#[derive(Debug)]
pub(super) struct Files {
    path: PathBuf,
    connection: Connection,
}

impl Files {
    fn write(folder: &Path, connection: Connection) -> Result<Self, Error> {
        let path = folder.join(format!("{}.json", new_id()));
        connection.write(&path).map_err(|error| {
            failed(&format!("the connection file `{}` cannot be written: {error}", path.display()))
        })?;
        Ok(Self { path, connection })
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // What stays behind does no harm; the folder goes with the daemon.
        for path in self.connection.sockets().into_iter().chain([self.path.clone()]) {
            std::fs::remove_file(path).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_a_kernel_started_ends_with_the_line_to_the_daemon() {
        let sh = |script: &str| ["-c", script].map(OsString::from);
        let arguments = sh(WITH_LIFELINE)
            .into_iter()
            .chain(["sh".into(), "/bin/sh".into()])
            .chain(sh("sleep 1000 & wait"));
        let launch =
            Launch { program: "/bin/sh".into(), arguments: arguments.collect(), environment: Vec::new() };
        let (mut child, _group) =
            mainstay_os::process::start(&launch, Path::new("/"), &[], Stdio::piped()).unwrap();
        drop(child.stdin.take());
        assert_eq!(exit_of(child.wait().await), mainstay_model::WorkerExit::Signal(9));
    }
}
