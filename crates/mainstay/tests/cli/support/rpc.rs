//! A client of the local socket that a test speaks with itself: no process of its own, so that it sees the loss of its daemon at once.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::World;

/// How long an answer may take before the test is at an end.
const PATIENCE: Duration = Duration::from_secs(90);

/// A connection that has shown its token.
pub(crate) struct Connection {
    stream: BufReader<UnixStream>,
    last_id: u64,
}

impl Connection {
    /// Attaches to the daemon; none where none serves.
    pub(crate) fn open(world: &World) -> Option<Self> {
        let stream = UnixStream::connect(world.home().join("run/daemon.sock")).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut connection = Self { stream: BufReader::new(stream), last_id: 0 };
        let token = std::fs::read_to_string(world.home().join("token")).ok()?;
        connection.ask("client/attach", &json!({ "token": token.trim(), "name": "test" }))?;
        Some(connection)
    }

    /// The answer; none where the daemon is gone.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Option<Value> {
        self.last_id += 1;
        let id = self.last_id;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(self.stream.get_mut(), "{request}").ok()?;
        loop {
            let message = self.next_message(method)?;
            if message["id"] == id {
                return Some(message);
            }
        }
    }

    fn next_message(&mut self, method: &str) -> Option<Value> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(1..) => serde_json::from_str(&line).ok(),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                panic!("{method} has no answer after {PATIENCE:?}")
            }
            Ok(0) | Err(_) => None,
        }
    }
}
