//! A client of the daemon's socket: JSON-RPC 2.0, a message a line. It knows the wire and nothing of the product's types, so that what
//! it sees is what any client sees.

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::installation::Installation;

/// How long an answer may take. Commands wait for workers that come back after half a minute, and for each other.
const PATIENCE: Duration = Duration::from_secs(150);
/// How often a read looks whether it has waited long enough.
const TICK: Duration = Duration::from_millis(100);

/// Why a call has no result.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The connection ended, or there is none.
    Lost,
    /// No answer came in time.
    Silent,
    /// The daemon's answer is an error.
    Refused {
        /// The stable code of the error.
        code: String,
        /// All of it, in the product's form.
        error: Value,
    },
}

impl From<io::Error> for Trouble {
    fn from(_: io::Error) -> Self {
        Self::Lost
    }
}

/// A connection that has shown its token.
pub(super) struct Connection {
    reader: BufReader<UnixStream>,
    line: Vec<u8>,
    events: VecDeque<Value>,
    answers: HashMap<u64, Value>,
    last_id: u64,
}

impl Connection {
    /// Attaches to the daemon that runs.
    pub(super) fn open(installation: &Installation) -> Result<Self, Trouble> {
        let mut connection = Self::unattached(installation)?;
        let token = installation.token().ok_or(Trouble::Lost)?;
        connection.call("client/attach", json!({ "token": token, "name": "soak" }))?;
        Ok(connection)
    }

    /// Attaches as an agent that speaks MCP.
    pub(super) fn open_mcp(installation: &Installation) -> Result<Self, Trouble> {
        let mut connection = Self::unattached(installation)?;
        let token = installation.token().ok_or(Trouble::Lost)?;
        connection.call("mcp/attach", json!({ "token": token, "workingDirectory": installation.work() }))?;
        Ok(connection)
    }

    fn unattached(installation: &Installation) -> Result<Self, Trouble> {
        let daemon = installation.daemon().ok_or(Trouble::Lost)?;
        let stream = UnixStream::connect(daemon.socket)?;
        stream.set_read_timeout(Some(TICK))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let (events, answers) = (VecDeque::new(), HashMap::new());
        Ok(Self { reader: BufReader::new(stream), line: Vec::new(), events, answers, last_id: 0 })
    }

    /// Calls a method and waits for its answer.
    pub(super) fn call(&mut self, method: &str, params: Value) -> Result<Value, Trouble> {
        let id = self.send(method, params)?;
        self.answer(id)
    }

    /// Sends a request; its id is what [`Connection::answer`] waits for.
    pub(super) fn send(&mut self, method: &str, params: Value) -> Result<u64, Trouble> {
        self.last_id += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params });
        self.write(&request)?;
        Ok(self.last_id)
    }

    /// Sends what has no answer.
    pub(super) fn notify(&mut self, method: &str) -> Result<(), Trouble> {
        self.write(&json!({ "jsonrpc": "2.0", "method": method }))
    }

    fn write(&mut self, message: &Value) -> Result<(), Trouble> {
        Ok(self.reader.get_mut().write_all(format!("{message}\n").as_bytes())?)
    }

    /// Waits for the answer to one request. Answers to others and events are kept.
    pub(super) fn answer(&mut self, id: u64) -> Result<Value, Trouble> {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(mut message) = self.answers.remove(&id) {
                return match message.get_mut("error") {
                    Some(error) => Err(refused(error.take())),
                    None => Ok(message["result"].take()),
                };
            }
            let Some(message) = self.read(until)? else { return Err(Trouble::Silent) };
            self.keep(message);
        }
    }

    /// The next event of a subscription, if one comes within the time.
    pub(super) fn event(&mut self, within: Duration) -> Result<Option<Value>, Trouble> {
        let until = Instant::now() + within;
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            let Some(message) = self.read(until)? else { return Ok(None) };
            self.keep(message);
        }
    }

    fn keep(&mut self, mut message: Value) {
        if message["method"] == "session/event" {
            self.events.push_back(message["params"].take());
        } else if let Some(id) = message["id"].as_u64() {
            self.answers.insert(id, message);
        }
    }

    fn read(&mut self, until: Instant) -> Result<Option<Value>, Trouble> {
        loop {
            match self.reader.read_until(b'\n', &mut self.line) {
                Ok(_) if self.line.last() == Some(&b'\n') => {
                    let message = serde_json::from_slice(&self.line).map_err(|_| Trouble::Lost);
                    self.line.clear();
                    return message.map(Some);
                }
                Ok(_) => return Err(Trouble::Lost),
                Err(error) if is_tick(&error) && Instant::now() < until => {}
                Err(error) if is_tick(&error) => return Ok(None),
                Err(_) => return Err(Trouble::Lost),
            }
        }
    }
}

/// What was read before the time was up is kept in the line, and reading goes on there.
fn is_tick(error: &io::Error) -> bool {
    [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut, io::ErrorKind::Interrupted].contains(&error.kind())
}

fn refused(error: Value) -> Trouble {
    let data = &error["data"];
    match data["code"].as_str() {
        Some(code) => Trouble::Refused { code: code.to_owned(), error: data["error"].clone() },
        None => Trouble::Refused { code: format!("JSON-RPC {}", error["code"]), error },
    }
}
