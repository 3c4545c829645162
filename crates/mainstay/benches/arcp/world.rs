//! A home with the bench's kernel, and a daemon in it.

use std::path::{Path, PathBuf};

use mainstay_client::Client;
use mainstay_model::SessionKind;
use serde_json::json;
use tempfile::TempDir;

use crate::client::Address;
use crate::daemon::{Daemon, create_of_kind};
use crate::kernel;
use crate::memory::Memory;

/// What a user must allow for this many connections and jobs.
const SETTINGS: &str = "[limits]\nconnections = 4096\nconnection-requests = 32768\nlive-sessions = 256\n\
                        lane-commands = 32768\ncommands = 32768\n";

/// A daemon of its own, in a folder of its own on the disk that has the build.
pub(crate) struct World {
    pub(crate) daemon: Daemon,
    folder: TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let target = Path::new(env!("CARGO_BIN_EXE_mainstay")).ancestors().nth(2).unwrap();
        let folder = tempfile::Builder::new().prefix("arcp").tempdir_in(target).unwrap();
        let home = folder.path().join("home");
        install_kernel(&home);
        std::fs::write(home.join("config.toml"), SETTINGS).unwrap();
        Self { daemon: Daemon::start(&home).unwrap(), folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A folder of its own for a session.
    pub(crate) fn sub_folder(&self, name: &str) -> PathBuf {
        let folder = self.folder().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// A session of the bench's kernel that takes code.
    pub(crate) async fn create(&self, client: &Client, name: &str) -> String {
        let kind = SessionKind::new(kernel::KIND).unwrap();
        create_of_kind(client, kind, &self.sub_folder(name)).await.unwrap()
    }

    /// Where ARCP is served, and by which token.
    pub(crate) fn address(&self) -> Address {
        let port = self.daemon.record["port"].as_u64().unwrap().try_into().unwrap();
        Address { port, token: self.daemon.token().unwrap() }
    }

    /// What the daemon alone has in memory, without shims and kernels.
    pub(crate) fn memory(&self) -> Memory {
        Memory::of(self.daemon.record["pid"].as_u64().unwrap())
    }

    /// Stops the daemon; its home stays as long as the folder.
    pub(crate) fn stop(self) -> (PathBuf, TempDir) {
        let Self { daemon, folder } = self;
        (daemon.home.clone(), folder)
    }
}

/// Puts the kernel where one is that Mainstay installed itself, so that the daemon's environment says nothing of it.
fn install_kernel(home: &Path) {
    let environment = home.join("kernels/jupyter/bench");
    let spec = environment.join("share/jupyter/kernels").join(kernel::KIND);
    std::fs::create_dir_all(&spec).unwrap();
    let program = std::env::current_exe().unwrap();
    let written = json!({
        "argv": [program, kernel::COMMAND, "{connection_file}"],
        "display_name": "the bench's kernel", "language": "bench", "interrupt_mode": "message",
    });
    std::fs::write(spec.join("kernel.json"), written.to_string()).unwrap();
    std::fs::write(environment.join("mainstay-finished"), "").unwrap();
}
