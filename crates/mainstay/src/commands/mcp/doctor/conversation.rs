//! One conversation over MCP, as a client holds it when it starts: the handshake, the list of tools, and a call of the status.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines, Take};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::identity::Identity;

/// What is read of a server at most, in bytes.
const MOST_READ: u64 = 16 << 20;
/// What is kept at most of what a server writes to its standard error, in bytes.
const MOST_TOLD: u64 = 64 << 10;
/// How long a server may take to end once its input has.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
/// The names under which the status can be asked for, the usual one first.
const STATUS: [&str; 2] = ["get_status", "get_fsi_status"];

/// How a server is started.
pub(super) struct Start {
    /// The program to be started.
    pub(super) program: PathBuf,
    /// What it is called with.
    pub(super) arguments: Vec<String>,
    /// All of its environment.
    pub(super) environment: Vec<(OsString, OsString)>,
    /// The folder in which it runs.
    pub(super) folder: PathBuf,
}

/// What a client sees of a server.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServerReport {
    /// What the server calls itself.
    pub(super) server: String,
    /// The version of the protocol that was agreed on.
    pub(super) protocol: String,
    /// The names of the tools.
    pub(super) tools: Vec<String>,
    /// Those that a careful client asks its user about, since they may lose something or reach beyond this machine.
    pub(super) asking: Vec<String>,
    /// What the status says of the session that calls would be for.
    pub(super) status: String,
    /// How long all of it took.
    pub(super) milliseconds: u64,
}

/// Why a conversation did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The program cannot be started.
    NotStarted(String),
    /// It ended, having written this to its standard error.
    Ended(String),
    /// It did not answer a request in time.
    Late(&'static str),
    /// It refused a request, with these words.
    Refused(&'static str, String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotStarted(reason) => write!(f, "it cannot be started: {reason}"),
            Self::Ended(told) if told.is_empty() => f.write_str("it ended without an answer"),
            Self::Ended(told) => write!(f, "it ended without an answer: {told}"),
            Self::Late(method) => write!(f, "it did not answer `{method}` in time"),
            Self::Refused(method, reason) => write!(f, "it refused `{method}`: {reason}"),
        }
    }
}

/// Holds the conversation. Each request may take as long as `limit`.
pub(super) async fn converse(
    start: Start,
    as_client: &Identity,
    limit: Duration,
) -> Result<ServerReport, Failure> {
    let began = Instant::now();
    let mut child = Command::new(&start.program)
        .args(&start.arguments)
        .env_clear()
        .envs(start.environment)
        .current_dir(&start.folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| Failure::NotStarted(error.to_string()))?;
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(Failure::NotStarted("its standard streams are not there".to_owned()));
    };
    let told = tokio::spawn(read_told(stderr));
    let lines = BufReader::new(stdout.take(MOST_READ)).lines();
    let mut server = Server { to: stdin, from: lines, last_id: 0, limit, of_request: as_client.of_request() };
    let seen = server.look(as_client, began).await;
    drop(server);
    end(child).await;
    match seen {
        Err(Failure::Ended(_)) => Err(Failure::Ended(told.await.unwrap_or_default())),
        seen => seen,
    }
}

async fn read_told(stderr: ChildStderr) -> String {
    let mut told = Vec::new();
    // What was read until it failed is told all the same.
    stderr.take(MOST_TOLD).read_to_end(&mut told).await.ok();
    String::from_utf8_lossy(&told).trim().to_owned()
}

/// A server ends when its input does; one that does not is killed.
async fn end(mut child: Child) {
    if timeout(ENDS_WITHIN, child.wait()).await.is_err() {
        child.kill().await.ok();
    }
}

/// A server that is spoken to.
struct Server {
    to: ChildStdin,
    from: Lines<BufReader<Take<ChildStdout>>>,
    last_id: u64,
    limit: Duration,
    /// What goes along with each request, in versions that have no handshake.
    of_request: Option<Value>,
}

impl Server {
    async fn look(&mut self, client: &Identity, began: Instant) -> Result<ServerReport, Failure> {
        let (server, protocol) = self.meet(client).await?;
        let tools = self.tools().await?;
        let names: Vec<String> = tools.iter().map(|tool| text(tool, "/name")).collect();
        let status = match STATUS.into_iter().find(|name| names.iter().any(|tool| tool == name)) {
            Some(name) => self.ask("tools/call", json!({ "name": name, "arguments": {} })).await?,
            None => Value::Null,
        };
        let asking = tools.iter().filter(|tool| is_asked_about(tool)).map(|tool| text(tool, "/name"));
        Ok(ServerReport {
            server,
            protocol,
            asking: asking.collect(),
            tools: names,
            status: text(&status, "/content/0/text"),
            milliseconds: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// What the server calls itself, and the version of the protocol that both go by.
    async fn meet(&mut self, client: &Identity) -> Result<(String, String), Failure> {
        let named = |info: Option<&Value>| {
            let info = info.unwrap_or(&Value::Null);
            format!("{} {}", text(info, "/name"), text(info, "/version"))
        };
        if self.of_request.is_some() {
            let found = self.ask("server/discover", json!({})).await?;
            let of_server =
                found.get("_meta").and_then(|meta| meta.get("io.modelcontextprotocol/serverInfo"));
            return Ok((named(of_server), client.protocol.to_owned()));
        }
        let hello = json!({
            "protocolVersion": client.protocol,
            "capabilities": client.capabilities,
            "clientInfo": client.info(),
        });
        let greeted = self.ask("initialize", hello).await?;
        self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await?;
        Ok((named(greeted.get("serverInfo")), text(&greeted, "/protocolVersion")))
    }

    /// All tools, page by page.
    async fn tools(&mut self) -> Result<Vec<Value>, Failure> {
        let mut all = Vec::new();
        let mut cursor = Value::Null;
        loop {
            let params = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
            let mut page = self.ask("tools/list", params).await?;
            if let Some(Value::Array(tools)) = page.get_mut("tools").map(Value::take) {
                all.extend(tools);
            }
            cursor = page.get_mut("nextCursor").map(Value::take).unwrap_or_default();
            if cursor.is_null() {
                return Ok(all);
            }
        }
    }

    async fn ask(&mut self, method: &'static str, mut params: Value) -> Result<Value, Failure> {
        if let (Some(of_request), Some(params)) = (&self.of_request, params.as_object_mut()) {
            params.insert("_meta".to_owned(), of_request.clone());
        }
        self.last_id += 1;
        let id = self.last_id;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await?;
        let limit = self.limit;
        timeout(limit, self.answer(method, id)).await.unwrap_or(Err(Failure::Late(method)))
    }

    /// The answer to a request of ours. Requests of the server are answered meanwhile, its notifications passed over.
    async fn answer(&mut self, method: &'static str, id: u64) -> Result<Value, Failure> {
        loop {
            let line = self.from.next_line().await.ok().flatten().ok_or_else(ended)?;
            let Ok(mut message) = serde_json::from_str::<Value>(&line) else { continue };
            if let Some(theirs) = message.get("method").and_then(Value::as_str) {
                let (Some(their_id), theirs) = (message.get("id").cloned(), theirs.to_owned()) else {
                    continue;
                };
                let answer = match theirs.as_str() {
                    "ping" => json!({ "jsonrpc": "2.0", "id": their_id, "result": {} }),
                    _ => json!({ "jsonrpc": "2.0", "id": their_id,
                                 "error": { "code": -32601, "message": "this client only looks" } }),
                };
                self.say(&answer).await?;
            } else if message.get("id") == Some(&id.into()) {
                return match message.get("error") {
                    Some(error) => Err(Failure::Refused(method, text(error, "/message"))),
                    None => Ok(message.get_mut("result").map(Value::take).unwrap_or_default()),
                };
            }
        }
    }

    async fn say(&mut self, message: &Value) -> Result<(), Failure> {
        self.to.write_all(format!("{message}\n").as_bytes()).await.map_err(|_| ended())
    }
}

fn ended() -> Failure {
    Failure::Ended(String::new())
}

fn text(of: &Value, pointer: &str) -> String {
    of.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Whether a client that goes by the hints of a tool asks its user: what is left out counts as the worse.
fn is_asked_about(tool: &Value) -> bool {
    let hint = |name: &str| tool.get("annotations").and_then(|hints| hints.get(name)?.as_bool());
    hint("readOnlyHint") != Some(true)
        && (hint("destructiveHint") != Some(false) || hint("openWorldHint") != Some(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_asked_about_unless_their_hints_say_that_they_are_harmless() {
        let asks = |hints: Value| is_asked_about(&json!({ "name": "x", "annotations": hints }));
        assert!(!asks(json!({ "readOnlyHint": true })));
        assert!(!asks(json!({ "destructiveHint": false, "openWorldHint": false })));
        assert!(asks(json!({ "destructiveHint": false })));
        assert!(asks(json!({ "destructiveHint": true, "openWorldHint": false })));
        assert!(is_asked_about(&json!({ "name": "x" })));
    }
}
