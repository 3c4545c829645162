//! Calls of ARCP's dialect B as calls of MCP's tools, and what comes of them. Pure: lines come in and go out. Source: draft-arcp-1.1, 7 and 8;
//! MCP 2025-06-18, "Tools".

use std::collections::{BTreeMap, VecDeque};

use mainstay_arcp_protocol::b::{
    Accepted, AgentRef, Cancelled, Capabilities, Closed, Envelope, ErrorCode, ErrorPayload, Event, EventKind,
    FinalStatus, Implementation, InventoryEntry, JobError, JobResult, Message, Pong, Submit, Welcome, decode,
};
use mainstay_arcp_protocol::ids::ulid_text;
use mainstay_model::Timestamp;
use serde_json::{Map, Value, json};

/// The version of MCP that is asked for.
const PROTOCOL: &str = "2025-06-18";
/// What is used of ARCP beside what every session has.
const FEATURES: [&str; 3] = ["heartbeat", "progress", "agent_versions"];
/// How often the client is to be heard of, in seconds.
const HEARTBEAT_SEC: u64 = 30;
/// The code of a call whose tool says that it failed.
const TOOL_FAILED: &str = "TOOL_FAILED";
/// The code of a call whose server says what cannot be read.
const UNREADABLE: &str = "PROTOCOL";
/// The code of MCP for a method that is not there.
const METHOD_NOT_FOUND: i64 = -32601;
/// The kind of the events that carry what a tool gives beside text.
const CONTENT: &str = "x-mcp.content";

/// What follows of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// The client of ARCP is told this line.
    ToClient(String),
    /// The MCP server is told this line.
    ToServer(String),
    /// The client has closed its session.
    Closed,
    /// The server cannot be used, and says why.
    Refused(String),
}

/// What the server was asked, and has not answered.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    /// That the conversation begins.
    Initialize,
    /// Which tools it has.
    Tools,
    /// To run a tool, for this job.
    Call { job: String, is_cancelled: bool },
    /// Whether it is there, as the client asked with this nonce.
    Ping(String),
    /// Whether it has heard that the call of this job was cancelled.
    Cancel(String),
}

/// An MCP server, and the client of ARCP that calls its tools.
pub(super) struct Adapter {
    next_id: u128,
    last_request: u64,
    asked: BTreeMap<u64, Asked>,
    server: Implementation,
    tools: Vec<String>,
    /// Whether it is known which tools there are.
    is_ready: bool,
    /// What the client wanted before that.
    early: VecDeque<Envelope>,
    session: Option<String>,
    event_seq: u64,
    outputs: Vec<Output>,
}

impl Adapter {
    /// Begins with the server. Messages are numbered from `first_id` on.
    pub(super) fn begin(first_id: u128) -> Self {
        let mut adapter = Self {
            next_id: first_id,
            last_request: 0,
            asked: BTreeMap::new(),
            server: Implementation::default(),
            tools: Vec::new(),
            is_ready: false,
            early: VecDeque::new(),
            session: None,
            event_seq: 0,
            outputs: Vec::new(),
        };
        let client = json!({ "name": "mainstay", "version": env!("CARGO_PKG_VERSION") });
        let begin = json!({ "protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client });
        adapter.ask("initialize", begin, Asked::Initialize);
        adapter
    }

    /// Whether the server has said which tools it has.
    pub(super) fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// What has followed since it was asked last.
    pub(super) fn take(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }

    /// Hears the client of ARCP. What it says that is no message of the protocol is passed over.
    pub(super) fn hear_client(&mut self, line: &[u8]) {
        let Some(envelope) = std::str::from_utf8(line).ok().and_then(|line| decode(line).ok()) else {
            return;
        };
        if self.is_ready {
            self.serve(envelope);
        } else {
            self.early.push_back(envelope);
        }
    }

    fn serve(&mut self, Envelope { id, job_id, message, .. }: Envelope) {
        match message {
            Message::SessionHello(_) => self.welcome(),
            // A server that hangs must not seem to be there.
            Message::SessionPing(ping) => self.ask("ping", json!({}), Asked::Ping(ping.nonce)),
            Message::SessionClose(_) => {
                self.tell(None, Message::SessionClosed(Closed {}));
                self.outputs.push(Output::Closed);
            }
            Message::JobSubmit(submit) => self.submit(id, submit),
            Message::JobCancel(cancel) => {
                if let Some(job) = job_id.or(cancel.job_id) {
                    self.cancel(&job);
                }
            }
            Message::SessionAck(_) | Message::SessionPong(_) => {}
            other => {
                let message = format!("{} is not served here", other.kind());
                self.refuse(&id, ErrorCode::InvalidRequest, message);
            }
        }
    }

    fn welcome(&mut self) {
        let session = format!("sess_{}", self.new_id());
        self.session = Some(session.clone());
        let version = Some(self.server.version.clone()).filter(|version| !version.is_empty());
        let entry = |name: &String| InventoryEntry {
            name: name.clone(),
            versions: version.iter().cloned().collect(),
            default: version.clone(),
        };
        let takes_objects = |entry: InventoryEntry| {
            let mut entry = json!(entry);
            // A task that is a text is none for it: that is said to whoever gives it one before a call is made.
            entry["x-mainstay.input"] = json!("object");
            entry
        };
        let agents: Vec<_> = self.tools.iter().map(entry).map(takes_objects).collect();
        let welcome = Welcome {
            runtime: self.server.clone(),
            session_id: session,
            resume_token: self.new_id(),
            resume_window_sec: 0,
            heartbeat_interval_sec: Some(HEARTBEAT_SEC),
            capabilities: Capabilities {
                encodings: vec!["json".to_owned()],
                features: FEATURES.map(str::to_owned).to_vec(),
                agents: Some(json!(agents)),
            },
            accepted_at: Some(Timestamp::now()),
        };
        self.tell(None, Message::SessionWelcome(welcome));
    }

    fn submit(&mut self, request: String, Submit { agent, input, .. }: Submit) {
        let (name, version) = (agent.name(), agent.version());
        if !self.tools.iter().any(|tool| tool == name) {
            return self.refuse(&request, ErrorCode::AgentNotAvailable, format!("there is no tool {name}"));
        }
        if version.is_some_and(|version| version != self.server.version) {
            let message = format!("{name} is there in version {} alone", self.server.version);
            return self.refuse(&request, ErrorCode::AgentVersionNotAvailable, message);
        }
        let arguments = match input {
            Value::Null => json!({}),
            Value::Object(_) => input,
            _ => {
                let message = "the input of an MCP tool is an object".to_owned();
                return self.refuse(&request, ErrorCode::InvalidRequest, message);
            }
        };
        let job = format!("job_{}", self.new_id());
        let accepted = Accepted {
            job_id: job.clone(),
            agent: agent.to_string(),
            lease: BTreeMap::new(),
            lease_constraints: None,
            budget: None,
            credentials: None,
            accepted_at: Some(Timestamp::now()),
            trace_id: None,
            parent_job_id: None,
            delegate_id: None,
            request_id: Some(request),
        };
        self.tell(Some(&job), Message::JobAccepted(accepted));
        let call = json!({ "name": name, "arguments": arguments, "_meta": { "progressToken": job } });
        self.ask("tools/call", call, Asked::Call { job, is_cancelled: false });
    }

    /// MCP wants no answer to a call that was cancelled, so the server is asked whether it is there: its answer says that it has heard of it. One
    /// that does one thing after the other answers once the tool has ended; one that hangs is killed with this process.
    fn cancel(&mut self, job: &str) {
        let request = self.asked.iter_mut().find_map(|(request, asked)| match asked {
            Asked::Call { job: of, is_cancelled: is_cancelled @ false } if of == job => {
                *is_cancelled = true;
                Some(*request)
            }
            _ => None,
        });
        let Some(request) = request else { return };
        let cancelled = json!({ "requestId": request, "reason": "the call was cancelled" });
        self.notify("notifications/cancelled", cancelled);
        self.tell(Some(job), Message::JobCancelled(Cancelled { reason: None }));
        self.ask("ping", json!({}), Asked::Cancel(job.to_owned()));
    }

    /// The server has heard that a call was cancelled. Where the call has not ended, no answer to it comes.
    fn cancel_heard(&mut self, job: &str) {
        let is_open = self.runs(job);
        self.asked.retain(|_, asked| !matches!(asked, Asked::Call { job: of, .. } if of == job));
        if is_open {
            self.cancelled(job);
        }
    }

    /// Ends what runs, since the server said something that cannot be taken.
    pub(super) fn give_up(&mut self, message: &str) {
        for (_, asked) in std::mem::take(&mut self.asked) {
            if let Asked::Call { job, .. } = asked {
                self.tell(Some(&job), Message::JobError(job_error(FinalStatus::Error, UNREADABLE, message)));
            }
        }
    }

    /// Hears the server. What it says that is no message of its protocol is passed over.
    pub(super) fn hear_server(&mut self, line: &[u8]) {
        let Ok(Value::Object(message)) = serde_json::from_slice(line) else { return };
        match (message.get("method").and_then(Value::as_str), message.get("id")) {
            (Some("ping"), Some(id)) => self.answer(json!({ "id": id, "result": {} })),
            (Some(method), Some(id)) => {
                let error =
                    json!({ "code": METHOD_NOT_FOUND, "message": format!("{method} is not served here") });
                self.answer(json!({ "id": id, "error": error }));
            }
            (Some(method), None) => self.notified(method, message.get("params").unwrap_or(&Value::Null)),
            (None, Some(id)) => {
                let asked = id.as_u64().and_then(|request| self.asked.remove(&request));
                match (asked, message.get("error")) {
                    (Some(asked), Some(error)) => self.failed(asked, error),
                    (Some(asked), None) => {
                        self.answered(asked, message.get("result").unwrap_or(&Value::Null))
                    }
                    // Nobody asked for it.
                    (None, _) => {}
                }
            }
            (None, None) => {}
        }
    }

    fn notified(&mut self, method: &str, params: &Value) {
        match method {
            "notifications/progress" => {
                let job = params["progressToken"].as_str().filter(|job| self.runs(job)).map(str::to_owned);
                if let (Some(job), Some(current)) = (job, params["progress"].as_number()) {
                    let kind = EventKind::Progress {
                        current: current.clone(),
                        total: params["total"].as_number().cloned(),
                        units: None,
                        message: params["message"].as_str().map(str::to_owned),
                    };
                    self.event(&job, kind);
                }
            }
            "notifications/message" => {
                // MCP does not say which call it is of; a worker runs one.
                if let Some(job) = self.running() {
                    let level = params["level"].as_str().unwrap_or("info").to_owned();
                    let message =
                        params["data"].as_str().map_or_else(|| params["data"].to_string(), str::to_owned);
                    self.event(&job, EventKind::Log { level, message });
                }
            }
            _ => {}
        }
    }

    fn answered(&mut self, asked: Asked, result: &Value) {
        match asked {
            Asked::Initialize => {
                let said = |name: &str| result["serverInfo"][name].as_str().unwrap_or_default().to_owned();
                self.server = Implementation { name: said("name"), version: version_of(&said("version")) };
                self.notify("notifications/initialized", json!({}));
                self.ask("tools/list", json!({}), Asked::Tools);
            }
            Asked::Tools => {
                let names = result["tools"].as_array().into_iter().flatten();
                let names = names.filter_map(|tool| tool["name"].as_str()).map(str::to_owned);
                // Names that are none in ARCP could not be called.
                self.tools.extend(names.filter(|name| AgentRef::try_from(name.clone()).is_ok()));
                match result["nextCursor"].as_str() {
                    Some(cursor) => self.ask("tools/list", json!({ "cursor": cursor }), Asked::Tools),
                    None => {
                        self.is_ready = true;
                        std::mem::take(&mut self.early).into_iter().for_each(|early| self.serve(early));
                    }
                }
            }
            Asked::Call { job, is_cancelled: true } if result["isError"] == true => self.cancelled(&job),
            Asked::Call { job, .. } => self.call_ended(&job, result),
            Asked::Ping(nonce) => self.pong(nonce),
            Asked::Cancel(job) => self.cancel_heard(&job),
        }
    }

    /// What a tool gave: what it structures itself, else its text, as JSON where it is that. All else is told before the end.
    fn call_ended(&mut self, job: &str, result: &Value) {
        let content = result["content"].as_array().cloned().unwrap_or_default();
        let (texts, others): (Vec<_>, Vec<_>) = content.into_iter().partition(|part| part["type"] == "text");
        for body in others {
            self.event(job, EventKind::Vendor { kind: CONTENT.to_owned(), body });
        }
        let text = texts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n");
        if result["isError"] == true {
            let text = if text.is_empty() { "the tool does not say why".to_owned() } else { text };
            return self
                .tell(Some(job), Message::JobError(job_error(FinalStatus::Error, TOOL_FAILED, &text)));
        }
        let structured = result.get("structuredContent").filter(|value| !value.is_null()).cloned();
        let value = structured.or_else(|| composite(&text)).unwrap_or(Value::String(text));
        let ended = JobResult {
            final_status: FinalStatus::Success,
            result: Some(value),
            result_id: None,
            result_size: None,
            summary: None,
            completed_at: Some(Timestamp::now()),
        };
        self.tell(Some(job), Message::JobResult(ended));
    }

    fn failed(&mut self, asked: Asked, error: &Value) {
        let message = error["message"].as_str().unwrap_or("it gives no reason").to_owned();
        match asked {
            Asked::Call { job, is_cancelled: true } => self.cancelled(&job),
            Asked::Call { job, .. } => {
                let code = format!("MCP_{}", error["code"]);
                self.tell(Some(&job), Message::JobError(job_error(FinalStatus::Error, &code, &message)));
            }
            Asked::Ping(nonce) => self.pong(nonce),
            Asked::Cancel(job) => self.cancel_heard(&job),
            Asked::Initialize | Asked::Tools => self.outputs.push(Output::Refused(message)),
        }
    }

    fn cancelled(&mut self, job: &str) {
        let error =
            job_error(FinalStatus::Cancelled, ErrorCode::Cancelled.as_str(), "the call was cancelled");
        self.tell(Some(job), Message::JobError(error));
    }

    fn pong(&mut self, ping_nonce: String) {
        self.tell(None, Message::SessionPong(Pong { ping_nonce, received_at: Timestamp::now() }));
    }

    fn runs(&self, job: &str) -> bool {
        self.asked.values().any(|asked| matches!(asked, Asked::Call { job: of, .. } if of == job))
    }

    fn running(&self) -> Option<String> {
        self.asked.values().find_map(|asked| match asked {
            Asked::Call { job, .. } => Some(job.clone()),
            Asked::Initialize | Asked::Tools | Asked::Ping(_) | Asked::Cancel(_) => None,
        })
    }

    fn event(&mut self, job: &str, kind: EventKind) {
        self.tell(Some(job), Message::JobEvent(Event { kind, ts: Timestamp::now() }));
    }

    fn refuse(&mut self, request: &str, code: ErrorCode, message: String) {
        let details = Some(json!({ "request_id": request }));
        let payload = ErrorPayload { details, ..ErrorPayload::new(code, message) };
        self.tell(None, Message::SessionError(payload));
    }

    fn tell(&mut self, job: Option<&str>, message: Message) {
        let is_counted = job.is_some() && !matches!(message, Message::JobAccepted(_));
        self.event_seq += u64::from(is_counted);
        let envelope = Envelope {
            id: self.new_id(),
            session_id: self.session.clone(),
            trace_id: None,
            job_id: job.map(str::to_owned),
            event_seq: is_counted.then_some(self.event_seq),
            message,
        };
        self.outputs.push(Output::ToClient(envelope.encode() + "\n"));
    }

    fn ask(&mut self, method: &str, params: Value, asked: Asked) {
        self.last_request += 1;
        self.asked.insert(self.last_request, asked);
        self.answer(json!({ "id": self.last_request, "method": method, "params": params }));
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.answer(json!({ "method": method, "params": params }));
    }

    fn answer(&mut self, message: Value) {
        let mut written = Map::from_iter([("jsonrpc".to_owned(), json!("2.0"))]);
        written.extend(message.as_object().cloned().unwrap_or_default());
        self.outputs.push(Output::ToServer(format!("{}\n", Value::Object(written))));
    }

    fn new_id(&mut self) -> String {
        self.next_id = self.next_id.wrapping_add(1);
        ulid_text(self.next_id)
    }
}

/// A server's version as that of its tools: a version of an agent has none of the characters that separate it from its name.
fn version_of(version: &str) -> String {
    version
        .chars()
        .filter(|character| character.is_ascii_alphanumeric() || ".-_+".contains(*character))
        .collect()
}

/// A text that is an object or a list in JSON. Any other text stays as it is: as JSON a number would lose digits.
fn composite(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().filter(|value: &Value| value.is_object() || value.is_array())
}

fn job_error(final_status: FinalStatus, code: &str, message: &str) -> JobError {
    JobError {
        final_status,
        code: code.to_owned(),
        message: message.to_owned(),
        retryable: false,
        details: None,
        completed_at: Some(Timestamp::now()),
    }
}

#[cfg(test)]
mod tests;
