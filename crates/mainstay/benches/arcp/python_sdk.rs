//! The runtime of the public Python SDK, whose agent `echo` gives back what it is given. It keeps everything in memory.

use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::client::Address;
use crate::figures::Server;

/// The agent that the SDK's command serves.
pub(crate) const AGENT: &str = "echo";
const TOKEN: &str = "bench";

/// A runtime, which ends with the value.
pub(crate) struct PythonRuntime {
    _server: Server,
    pub(crate) address: Address,
}

impl PythonRuntime {
    /// Starts it; none where `ARCP_PYTHON` names no Python that has it.
    pub(crate) fn start() -> Option<Self> {
        let Ok(python) = std::env::var("ARCP_PYTHON") else {
            println!("ARCP_PYTHON names no Python with the SDK, so its runtime is not measured\n");
            return None;
        };
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new(python)
            .args(["-m", "arcp", "serve", "--token", TOKEN, "--port", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut server = Server(child);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(server.0.try_wait().unwrap().is_none(), "the SDK's runtime ended: is it installed?");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(Self { _server: server, address: Address { port, token: TOKEN.to_owned() } })
    }
}
