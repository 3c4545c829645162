//! A kernel as the engine has it.

use std::env;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use mainstay_embedded::kernel_file;
use mainstay_kernel::fsharp::{WorkerProgram, prepare};
use mainstay_kernel::jupyter::{Kernelspecs, Places, SnapshotPlace, Start, launch};
use mainstay_kernel::{StartupContext, worker};
use mainstay_model::{
    AskId, Display, JobId, JobReport, LastWords, OutputStream, Question, RunnerNotice, SessionKind,
    WorkerExit,
};
use mainstay_os::process::Launch;
use mainstay_runner::{Kernel, StartedRunner, Submission};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tempfile::TempDir;

use crate::jupyter::tongue::Tongue;
use crate::support;

/// More than anything here takes on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("it takes too long")
}

/// The kernels under test, chosen by configuration.
pub(crate) fn kernelspecs() -> Kernelspecs {
    let prefix = env::var_os("MAINSTAY_TEST_JUPYTER").expect(
        "MAINSTAY_TEST_JUPYTER must name an environment with kernelspecs; `cargo xtask test` makes one and sets it",
    );
    Places::of_environment(Path::new(&prefix)).kernelspecs()
}

async fn jupyter(kind: &SessionKind, sockets: &Path, snapshots: Option<SnapshotPlace>) -> StartedRunner {
    let kernelspec = kernelspecs().choose(kind).unwrap().clone();
    launch(Start {
        kernelspec,
        working_directory: "/".into(),
        sockets: sockets.to_owned(),
        environment: mainstay_runner::Environment::default(),
        files: kernel_file,
        snapshots,
    })
    .await
    .unwrap()
}

async fn fsharp(sockets: &Path) -> StartedRunner {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let program = prepare(&support::search(&target.join("test-tools")), kernel_file, &|_| ()).await.unwrap();
    let WorkerProgram { program, arguments, environment, .. } = program;
    let launch = Launch { program, arguments, environment };
    worker::launch(&launch, StartupContext::in_folder(Path::new("/")), None, sockets).await.unwrap()
}

/// Keeps an eye on a process, whoever its parent is.
pub(crate) fn watch(pid: u32) -> OwnedFd {
    let pid = Pid::from_raw(pid.try_into().unwrap()).unwrap();
    pidfd_open(pid, PidfdFlags::empty()).unwrap()
}

pub(crate) fn has_ended(watch: &OwnedFd) -> bool {
    poll(&mut [PollFd::new(watch, PollFlags::IN)], Some(&PATIENCE.try_into().unwrap())).unwrap() == 1
}

/// A kernel of this name.
pub(crate) struct Session {
    pub(crate) worker: StartedRunner,
    /// What was told and belongs to no job that was waited for.
    pub(crate) aside: Vec<RunnerNotice>,
    pub(crate) sockets: TempDir,
}

/// What a job printed and showed, and its end.
pub(crate) struct Ran {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// Both, as they came.
    pub(crate) printed: String,
    pub(crate) displays: Vec<Display>,
    pub(crate) report: JobReport,
}

impl Session {
    pub(crate) async fn start(tongue: &Tongue) -> Self {
        let kind = SessionKind::new(tongue.kind).unwrap();
        let sockets = tempfile::tempdir().unwrap();
        let worker = match kind.is_fsharp() {
            true => soon(fsharp(sockets.path())).await,
            false => soon(jupyter(&kind, sockets.path(), None)).await,
        };
        Self { worker, aside: Vec::new(), sockets }
    }

    /// A kernel that keeps its values there.
    pub(crate) async fn start_with(tongue: &Tongue, snapshots: SnapshotPlace) -> Self {
        let kind = SessionKind::new(tongue.kind).unwrap();
        let sockets = tempfile::tempdir().unwrap();
        let worker = soon(jupyter(&kind, sockets.path(), Some(snapshots))).await;
        Self { worker, aside: Vec::new(), sockets }
    }

    pub(crate) fn kernel(&self) -> &dyn Kernel {
        self.worker.runner.kernel().unwrap().as_ref()
    }

    pub(crate) async fn submit(&self, code: &str) -> JobId {
        let job = JobId::from_uuid(uuid::Uuid::now_v7());
        self.submit_as(job, code).await;
        job
    }

    pub(crate) async fn submit_as(&self, job: JobId, code: &str) {
        self.kernel()
            .run(Submission {
                job,
                code: code.to_owned(),
                file: None,
                command_line: None,
                is_withheld: false,
            })
            .await;
    }

    pub(crate) async fn next(&mut self) -> RunnerNotice {
        soon(self.worker.notices.recv()).await.expect("the kernel is gone")
    }

    pub(crate) async fn end_of(&mut self, wanted: JobId) -> Ran {
        let (mut stdout, mut stderr, mut displays) = (String::new(), String::new(), Vec::new());
        let mut printed = String::new();
        loop {
            match self.next().await {
                RunnerNotice::Output { job: Some(job), stream, text } if job == wanted => {
                    printed.push_str(&text);
                    match stream {
                        OutputStream::Stdout => stdout.push_str(&text),
                        OutputStream::Stderr => stderr.push_str(&text),
                    }
                }
                RunnerNotice::Display { job: Some(job), display } if job == wanted => displays.push(*display),
                RunnerNotice::Finished { job, report } if job == wanted => {
                    return Ran { stdout, stderr, printed, displays, report };
                }
                RunnerNotice::Exited { exit, .. } => panic!("the kernel ended with {exit}"),
                other => self.aside.push(other),
            }
        }
    }

    pub(crate) async fn eval(&mut self, code: &str) -> Ran {
        let job = self.submit(code).await;
        self.end_of(job).await
    }

    /// Waits until something is printed that has this in it.
    pub(crate) async fn prints(&mut self, wanted: &str) {
        let mut printed = String::new();
        while !printed.contains(wanted) {
            if let RunnerNotice::Output { text, .. } = self.next().await {
                printed.push_str(&text);
            }
        }
    }

    /// The next ask of a job, and what it asks.
    pub(crate) async fn asks(&mut self, wanted: JobId) -> (AskId, Question) {
        loop {
            match self.next().await {
                RunnerNotice::Asks { job, ask, question, timeout_ms: None } if job == wanted => {
                    return (ask, question);
                }
                RunnerNotice::Output { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }

    pub(crate) async fn exit(&mut self) -> (WorkerExit, Option<LastWords>) {
        loop {
            if let RunnerNotice::Exited { exit, last_words } = self.next().await {
                return (exit, last_words);
            }
        }
    }
}
