//! The F# kernel, found, installed and built with a real SDK. `MAINSTAY_TEST_DOTNET` names its root.

use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::Duration;

use crate::support::search;
use futures::StreamExt;
use mainstay_embedded::kernel_file;
use mainstay_kernel::fsharp::{
    Origin, Progress, Search, WorkerProgram, WorkerState, build, examine, install, prepare,
};
use tokio::net::UnixListener;
use tokio::process::Command;
use tokio::time::sleep;
use tokio_util::codec::{Framed, LengthDelimitedCodec};

/// More than a worker takes to start on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a worker and returns the first frame it sends.
async fn first_frame(worker: &WorkerProgram, home: &Path) -> serde_json::Value {
    let socket = home.join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let mut started = Command::new(&worker.program);
    started.args(&worker.arguments).envs(worker.environment.iter().map(|(name, value)| (name, value)));
    started.env("MAINSTAY_WORKER_ADDRESS", format!("unix:{}", socket.display()));
    started.env("MAINSTAY_WORKER_TOKEN", "secret").current_dir("/").stdin(Stdio::null()).kill_on_drop(true);
    let mut started = started.spawn().unwrap();
    let channel = tokio::select! {
        accepted = listener.accept() => accepted.unwrap().0,
        ended = started.wait() => panic!("the worker ended by itself: {ended:?}"),
        () = sleep(PATIENCE) => panic!("the worker did not connect"),
    };
    let frame = Framed::new(channel, LengthDelimitedCodec::new()).next().await.unwrap().unwrap();
    serde_json::from_slice(&frame).unwrap()
}

#[tokio::test]
async fn a_worker_is_built_starts_and_is_recognised_the_next_time() {
    let home = tempfile::tempdir().unwrap();
    let search = search(home.path());
    let seen = Mutex::new(Vec::new());
    let progress = |step| seen.lock().unwrap().push(step);
    assert_eq!(examine(&search, home.path(), kernel_file).worker, Some(WorkerState::NotBuilt));

    let worker = prepare(&search, kernel_file, &progress).await.unwrap();
    let frame = first_frame(&worker, home.path()).await;
    assert_eq!(frame, serde_json::json!({ "type": "attach", "token": "secret", "protocol": 1 }));
    assert!(matches!(seen.lock().unwrap().last(), Some(Progress::Built { .. })));
    assert_eq!(examine(&search, home.path(), kernel_file).worker, Some(WorkerState::Built));

    seen.lock().unwrap().clear();
    assert_eq!(prepare(&search, kernel_file, &progress).await.unwrap(), worker);
    assert_eq!(*seen.lock().unwrap(), []);
}

#[tokio::test]
#[ignore = "downloads an SDK of some 300 MB"]
async fn an_sdk_is_installed_and_builds_a_worker() {
    let home = tempfile::tempdir().unwrap();
    let search =
        Search { configured: None, dotnet_root: None, usual: Vec::new(), ..Search::from_env(home.path()) };
    let installed = install(&search, None, &|step| eprintln!("{step:?}")).await.unwrap();
    assert_eq!(installed.origin, Origin::Mainstay);
    assert_eq!(install(&search, None, &|_| ()).await.unwrap(), installed);

    let worker = build(home.path(), &installed, kernel_file, &|_| ()).await.unwrap();
    assert_eq!(first_frame(&worker, home.path()).await["type"], "attach");
}
