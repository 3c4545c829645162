//! The F# kernel, found, installed and built with a real SDK. `MAINSTAY_TEST_DOTNET` names its root.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests, which may panic"
)]

mod support;

use std::io::Read;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};

use mainstay_kernel::fsharp::{
    Origin, Progress, Search, WorkerProgram, WorkerState, build, examine, install, prepare,
};
use support::search;

/// Starts a worker and returns the first frame it sends.
fn first_frame(worker: &WorkerProgram, home: &Path) -> serde_json::Value {
    let socket = home.join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let mut started = Command::new(&worker.program);
    started.args(&worker.arguments).envs(worker.environment.iter().map(|(name, value)| (name, value)));
    started.env("MAINSTAY_WORKER_ADDRESS", format!("unix:{}", socket.display()));
    started.env("MAINSTAY_WORKER_TOKEN", "secret").current_dir("/").stdin(Stdio::null());
    let mut started = Ended(started.spawn().unwrap());
    let mut channel = accepted(&listener, &mut started.0);
    let mut length = [0; 4];
    channel.read_exact(&mut length).unwrap();
    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
    channel.read_exact(&mut frame).unwrap();
    serde_json::from_slice(&frame).unwrap()
}

/// The connection of a worker, which must not end before it makes one.
fn accepted(listener: &UnixListener, worker: &mut Child) -> UnixStream {
    listener.set_nonblocking(true).unwrap();
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(60) {
        if let Ok((channel, _)) = listener.accept() {
            channel.set_nonblocking(false).unwrap();
            return channel;
        }
        assert_eq!(worker.try_wait().unwrap(), None, "the worker ended by itself");
        sleep(Duration::from_millis(10));
    }
    panic!("the worker did not connect within a minute");
}

/// A process that is ended on drop.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_worker_is_built_starts_and_is_recognised_the_next_time() {
    let home = tempfile::tempdir().unwrap();
    let search = search(home.path());
    let seen = Mutex::new(Vec::new());
    let progress = |step| seen.lock().unwrap().push(step);
    assert_eq!(examine(&search).worker, Some(WorkerState::NotBuilt));

    let worker = prepare(&search, &progress).await.unwrap();
    let frame = first_frame(&worker, home.path());
    assert_eq!(frame, serde_json::json!({ "type": "attach", "token": "secret", "protocol": 1 }));
    assert!(matches!(seen.lock().unwrap().last(), Some(Progress::Built { .. })));
    assert_eq!(examine(&search).worker, Some(WorkerState::Built));

    seen.lock().unwrap().clear();
    assert_eq!(prepare(&search, &progress).await.unwrap(), worker);
    assert_eq!(*seen.lock().unwrap(), []);
}

#[tokio::test]
#[ignore = "downloads an SDK of some 300 MB"]
async fn an_sdk_is_installed_and_builds_a_worker() {
    let home = tempfile::tempdir().unwrap();
    let search = Search {
        path: Search::from_env("").path,
        configured: None,
        dotnet_root: None,
        home: home.path().into(),
    };
    let installed = install(&search, &|step| eprintln!("{step:?}")).await.unwrap();
    assert_eq!(installed.origin, Origin::Mainstay);
    assert_eq!(install(&search, &|_| ()).await.unwrap(), installed);

    let worker = build(home.path(), &installed, &|_| ()).await.unwrap();
    assert_eq!(first_frame(&worker, home.path())["type"], "attach");
}
