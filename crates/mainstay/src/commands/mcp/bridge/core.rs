//! The bridge as a state machine: what the client and the daemons say goes in, and what is to be said to whom comes out. It does no I/O.
//!
//! It remembers what a new daemon has to be told so that the client notices nothing of the change: how it introduced itself, what it follows,
//! which session it used, and what it still waits for. A call carries the id of its command from the first time it is seen, so that another daemon that is
//! sent it again answers with the stored outcome, and nothing runs twice ([`mainstay_mcp::COMMAND`]).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use mainstay_mcp::{AGAIN, COMMAND, RESULTS, Results, SESSION, command_id};
use mainstay_model::{Error, SessionId};
use serde_json::{Value, json};
use uuid::Uuid;

use super::message::{Members, Message, line, object, put, value};

/// How many daemons may be lost under one request before it is answered without an outcome: it may be what they die of.
const MOST_LOSSES: u32 = 5;
/// How the ids of the bridge's own requests begin.
const OWN: &str = "mainstay/bridge/";
/// The member of `_meta` by which the newest protocol says which request a notification belongs to.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
/// The member of `_meta` that only requests of the newest protocol have.
const PROTOCOL: &str = "io.modelcontextprotocol/protocolVersion";
/// JSON-RPC's codes of errors.
const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const INTERNAL_ERROR: i64 = -32603;

/// What is accepted at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// The longest line that a daemon takes, in bytes.
    pub(super) line_bytes: usize,
    /// How many requests wait while there is no daemon.
    pub(super) requests: usize,
}

/// A line, and whom it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum To {
    /// The message goes to the client.
    Client(String),
    /// The daemon that is connected.
    Daemon(String),
}

/// What the bridge knows.
#[derive(Debug)]
pub(super) struct Bridge {
    bounds: Bounds,
    /// The form of results that is asked for.
    results: Option<Results>,
    /// Whether a daemon is connected.
    is_connected: bool,
    /// The version of the daemon that was connected last.
    version: Option<String>,
    /// How the client introduced itself, once a daemon has accepted that.
    introduction: Option<Introduction>,
    /// The notification by which it said that it is ready.
    initialized: Option<String>,
    /// The parameters of the last `logging/setLevel`.
    log_level: Option<Value>,
    /// The resources that it follows.
    followed: BTreeSet<String>,
    /// Whether it has asked for the resources, and is told of others since.
    knows_resources: bool,
    /// The session that it used last.
    session: Option<SessionId>,
    /// What it waits for, in the order in which it asked.
    requests: VecDeque<Request>,
    /// What the daemon has asked the client: the daemon's ids by ours.
    asked: BTreeMap<u64, Value>,
    last_asked: u64,
    /// What the bridge itself has asked the daemon, by number.
    own: BTreeMap<u64, Own>,
    last_own: u64,
    /// Whether the daemon has said nothing since it was asked whether it is there.
    is_doubted: bool,
}

/// What is to be done about a daemon that has been silent for too long.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// Ask it whether it is there.
    Ask(To),
    /// It was asked and has not answered: it hangs.
    Hang,
}

/// An `initialize` that was accepted.
#[derive(Debug)]
struct Introduction {
    /// Its parameters, with the version that was agreed on.
    params: Members,
}

/// A request that the client waits for.
#[derive(Debug)]
struct Request {
    id: Value,
    /// All of it, as daemons are sent it.
    members: Members,
    kind: Kind,
    /// How many daemons had it and were lost.
    losses: u32,
    /// The token by which it is told of progress.
    token: Option<Value>,
    /// How far it was told to be, and how far that was when the last daemon was lost: progress never goes back.
    progress: f64,
    progress_before: f64,
}

/// What the bridge does about a request.
#[derive(Debug)]
enum Kind {
    Initialize,
    Call {
        /// The id of its command.
        command: Uuid,
    },
    SetLevel,
    Subscribe(String),
    /// It stays open, and tells of changes.
    Listen {
        resources: Vec<String>,
        /// Whether its acknowledgement was heard.
        is_acknowledged: bool,
    },
    ListResources,
    Other,
}

/// A request of the bridge itself.
#[derive(Debug)]
enum Own {
    /// It repeats what the client has said.
    Repeated,
    /// It asks whether the daemon is there.
    Ping,
    /// It follows a resource again.
    Follow(String),
}

impl Request {
    fn is_listening(&self) -> bool {
        matches!(self.kind, Kind::Listen { .. })
    }

    /// Whether it came by the newest protocol, whose answers say of what type they are.
    fn is_of_newest(&self) -> bool {
        object(&self.members, "params")
            .and_then(|params| object(&params, "_meta"))
            .is_some_and(|meta| meta.contains_key(PROTOCOL))
    }
}

impl Bridge {
    /// One whose client has said nothing yet.
    pub(super) fn new(bounds: Bounds, results: Option<Results>) -> Self {
        Self {
            bounds,
            results,
            is_connected: false,
            version: None,
            introduction: None,
            initialized: None,
            log_level: None,
            followed: BTreeSet::new(),
            knows_resources: false,
            session: None,
            requests: VecDeque::new(),
            asked: BTreeMap::new(),
            last_asked: 0,
            own: BTreeMap::new(),
            last_own: 0,
            is_doubted: false,
        }
    }

    /// The session that the client used last.
    pub(super) fn session(&self) -> Option<SessionId> {
        self.session
    }

    /// Whether a request waits that wants a daemon now. One that only listens for changes does not once it has begun: a daemon that somebody stopped stays
    /// stopped until it is needed.
    pub(super) fn wants_daemon(&self) -> bool {
        self.requests.iter().any(|request| !request.is_listening() || request.losses == 0)
    }

    /// Whether an answer is owed that will come by itself.
    pub(super) fn owes_answers(&self) -> bool {
        self.requests.iter().any(|request| !request.is_listening())
    }

    /// Whether the daemon is to say something: to be silent for long is a bad sign then.
    pub(super) fn awaits_daemon(&self) -> bool {
        self.is_connected && (self.owes_answers() || !self.own.is_empty())
    }

    /// The daemon, which is to say something, has been silent for as long as it may.
    pub(super) fn heard_nothing(&mut self) -> Silence {
        if std::mem::replace(&mut self.is_doubted, true) {
            return Silence::Hang;
        }
        Silence::Ask(self.ask("ping", json!({}), Own::Ping))
    }

    /// The client says something; `command` is the id of its command, should it be a call.
    pub(super) fn client_says(&mut self, said: &str, command: Uuid) -> Vec<To> {
        match Message::read(said) {
            Message::Request { id, method, members } => self.client_asks(id, &method, members, command),
            Message::Notification { method, members } => self.client_notifies(&method, &members, said),
            Message::Answer { id, members } => self.client_answers(&id, members).into_iter().collect(),
            Message::Other if self.is_connected => vec![To::Daemon(said.to_owned())],
            Message::Other if said.trim().is_empty() => Vec::new(),
            Message::Other => {
                vec![To::Client(failure(
                    &Value::Null,
                    PARSE_ERROR,
                    "the line is no message of JSON-RPC",
                    None,
                ))]
            }
        }
    }

    fn client_asks(&mut self, id: Value, method: &str, members: Members, command: Uuid) -> Vec<To> {
        let mut members = members;
        if let (Some(form), "tools/list" | "tools/call") = (self.results, method) {
            mark(&mut members, RESULTS, &form.name());
        }
        let params = object(&members, "params").unwrap_or_default();
        let text = |name| match value(&params, name) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        let kind = match method {
            // A daemon is not started to say that the bridge is there.
            "ping" if !self.is_connected => {
                return vec![To::Client(json!({ "jsonrpc": "2.0", "id": id, "result": {} }).to_string())];
            }
            "initialize" => Kind::Initialize,
            "tools/call" => {
                mark(&mut members, COMMAND, &command);
                Kind::Call { command }
            }
            "logging/setLevel" => Kind::SetLevel,
            "resources/subscribe" => Kind::Subscribe(text("uri")),
            "resources/unsubscribe" => {
                self.followed.remove(&text("uri"));
                Kind::Other
            }
            "resources/list" => Kind::ListResources,
            "subscriptions/listen" => {
                let filter = object(&params, "notifications").unwrap_or_default();
                let resources = value(&filter, "resourceSubscriptions");
                let resources = resources.and_then(|uris| serde_json::from_value(uris).ok());
                Kind::Listen { resources: resources.unwrap_or_default(), is_acknowledged: false }
            }
            _ => Kind::Other,
        };
        let meta = object(&params, "_meta").unwrap_or_default();
        let request = Request {
            id,
            members,
            kind,
            losses: 0,
            token: value(&meta, "progressToken"),
            progress: 0.0,
            progress_before: 0.0,
        };
        let text = line(&request.members);
        if text.len() > self.bounds.line_bytes {
            let limit = "the message is longer than `message-bytes` allows";
            return vec![To::Client(failure(&request.id, INVALID_REQUEST, limit, None))];
        }
        if !self.is_connected && self.requests.len() >= self.bounds.requests {
            let limit = self.bounds.requests;
            return vec![refusal(&request, &Error::TooManyRequests { what: "requests".to_owned(), limit })];
        }
        self.requests.push_back(request);
        self.to_daemon(text)
    }

    fn client_notifies(&mut self, method: &str, members: &Members, said: &str) -> Vec<To> {
        match method {
            "notifications/initialized" => self.initialized = Some(said.to_owned()),
            "notifications/cancelled" => {
                let cancelled = object(members, "params").and_then(|params| value(&params, "requestId"));
                self.requests.retain(|request| Some(&request.id) != cancelled.as_ref());
            }
            _ => {}
        }
        self.to_daemon(said.to_owned())
    }

    /// The client answers what a daemon has asked. An answer for a daemon that is gone is for nobody.
    fn client_answers(&mut self, id: &Value, members: Members) -> Option<To> {
        let asked = self.asked.remove(&id.as_u64()?)?;
        let mut members = members;
        put(&mut members, "id", &asked);
        Some(To::Daemon(line(&members)))
    }

    /// The daemon says something.
    pub(super) fn daemon_says(&mut self, said: &str) -> Vec<To> {
        self.is_doubted = false;
        match Message::read(said) {
            Message::Request { id, members, .. } => {
                self.last_asked += 1;
                self.asked.insert(self.last_asked, id);
                let mut members = members;
                put(&mut members, "id", &self.last_asked);
                vec![To::Client(line(&members))]
            }
            Message::Notification { method, members } => {
                self.daemon_notifies(&method, members, said).into_iter().collect()
            }
            Message::Answer { id, members } => self.daemon_answers(&id, members, said).into_iter().collect(),
            Message::Other => vec![To::Client(said.to_owned())],
        }
    }

    fn daemon_notifies(&mut self, method: &str, members: Members, said: &str) -> Option<To> {
        let mut members = members;
        let mut params = object(&members, "params").unwrap_or_default();
        match method {
            "notifications/cancelled" => {
                let theirs = value(&params, "requestId")?;
                let ours = *self.asked.iter().find(|(_, asked)| **asked == theirs)?.0;
                self.asked.remove(&ours);
                put(&mut params, "requestId", &ours);
            }
            "notifications/progress" => {
                let (token, progress) = (value(&params, "progressToken"), value(&params, "progress"));
                let request = self.requests.iter_mut().find(|request| request.token == token);
                let (Some(request), Some(progress)) = (request, progress.and_then(|said| said.as_f64()))
                else {
                    return Some(To::Client(said.to_owned()));
                };
                request.progress = request.progress_before + progress;
                if request.losses == 0 {
                    return Some(To::Client(said.to_owned()));
                }
                put(&mut params, "progress", &request.progress);
            }
            "notifications/subscriptions/acknowledged" => {
                let of = object(&params, "_meta").and_then(|meta| value(&meta, SUBSCRIPTION));
                let listening = self.requests.iter_mut().find(|request| Some(&request.id) == of.as_ref());
                if let Some(Request { kind: Kind::Listen { is_acknowledged, .. }, .. }) = listening {
                    // The client has heard it from an earlier daemon.
                    if *is_acknowledged {
                        return None;
                    }
                    *is_acknowledged = true;
                }
                return Some(To::Client(said.to_owned()));
            }
            _ => return Some(To::Client(said.to_owned())),
        }
        put(&mut members, "params", &params);
        Some(To::Client(line(&members)))
    }

    fn daemon_answers(&mut self, id: &Value, members: Members, said: &str) -> Option<To> {
        if let Some(number) = own_number(id)
            && let Some(own) = self.own.remove(&number)
        {
            if let (Own::Follow(uri), true) = (own, members.contains_key("error")) {
                self.followed.remove(&uri);
            }
            return None;
        }
        let at = self.requests.iter().position(|request| request.id == *id);
        if let Some(request) = at.and_then(|at| self.requests.remove(at))
            && members.contains_key("result")
        {
            let is_introduced = matches!(request.kind, Kind::Initialize);
            self.learn(request, &members);
            if is_introduced {
                return Some(To::Client(with_other_tools(members)));
            }
        }
        Some(To::Client(self.without_session(members, said)))
    }

    /// Remembers what a request has brought about.
    fn learn(&mut self, request: Request, members: &Members) {
        let params = object(&request.members, "params").unwrap_or_default();
        match request.kind {
            Kind::Initialize => {
                let mut params = params;
                // A later daemon is asked for the version that the client now speaks.
                if let Some(agreed) =
                    object(members, "result").and_then(|result| result.get("protocolVersion").cloned())
                {
                    params.insert("protocolVersion".to_owned(), agreed);
                }
                self.introduction = Some(Introduction { params });
            }
            Kind::SetLevel => self.log_level = value(&request.members, "params"),
            Kind::Subscribe(uri) => {
                self.followed.insert(uri);
            }
            Kind::ListResources => self.knows_resources = true,
            Kind::Call { .. } | Kind::Listen { .. } | Kind::Other => {}
        }
    }

    /// An answer as the client gets it: the session that it names is for the bridge alone.
    fn without_session(&mut self, members: Members, said: &str) -> String {
        // Most answers are not searched any further.
        let names = members.get("result").filter(|result| result.get().contains(SESSION));
        let Some(mut result) = names.and_then(|_| object(&members, "result")) else { return said.to_owned() };
        let Some(mut meta) = object(&result, "_meta") else { return said.to_owned() };
        let Some(session) = meta.remove(SESSION) else { return said.to_owned() };
        self.session = serde_json::from_str(session.get()).ok().or(self.session);
        match meta.is_empty() {
            true => drop(result.remove("_meta")),
            false => put(&mut result, "_meta", &meta),
        }
        let mut members = members;
        put(&mut members, "result", &result);
        line(&members)
    }

    /// A daemon is connected, of this version.
    pub(super) fn connected(&mut self, version: &str) -> Vec<To> {
        self.is_connected = true;
        let before = self.version.replace(version.to_owned());
        let mut said = self.introduced();
        let others = self.requests.iter().filter(|request| !matches!(request.kind, Kind::Initialize));
        said.extend(others.map(|request| To::Daemon(line(&request.members))));
        // A client that is not ready yet is told nothing.
        if let Some(before) = before
            && (self.initialized.is_some() || self.introduction.is_none())
        {
            said.extend(self.changes(before != version));
        }
        said
    }

    /// What a daemon is told of the client before it is asked anything else.
    fn introduced(&mut self) -> Vec<To> {
        let mut said = Vec::new();
        if let Some(Introduction { params }) = &self.introduction {
            let params = json!(params);
            said.push(self.ask("initialize", params, Own::Repeated));
        } else if let Some(first) = self.requests.iter().find(|it| matches!(it.kind, Kind::Initialize)) {
            said.push(To::Daemon(line(&first.members)));
        }
        said.extend(self.initialized.clone().map(To::Daemon));
        if let Some(level) = self.log_level.clone() {
            said.push(self.ask("logging/setLevel", level, Own::Repeated));
        }
        for uri in self.followed.clone() {
            said.push(self.ask("resources/subscribe", json!({ "uri": uri }), Own::Follow(uri.clone())));
        }
        said
    }

    fn ask(&mut self, method: &str, params: Value, own: Own) -> To {
        self.last_own += 1;
        self.own.insert(self.last_own, own);
        let id = format!("{OWN}{}", self.last_own);
        To::Daemon(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string())
    }

    /// What may be otherwise than the client knows it, since another daemon is there.
    fn changes(&self, is_of_another_version: bool) -> Vec<To> {
        let mut changed: Vec<(&str, Value)> = Vec::new();
        if self.initialized.is_some() {
            if is_of_another_version {
                changed.push(("tools/list_changed", json!({})));
                changed.push(("prompts/list_changed", json!({})));
            }
            if is_of_another_version || self.knows_resources {
                changed.push(("resources/list_changed", json!({})));
            }
        }
        changed.extend(self.followed.iter().map(|uri| ("resources/updated", json!({ "uri": uri }))));
        for request in &self.requests {
            let Kind::Listen { resources, .. } = &request.kind else { continue };
            let of = json!({ SUBSCRIPTION: request.id });
            let filter =
                object(&request.members, "params").and_then(|params| object(&params, "notifications"));
            let wants = |name| filter.as_ref().and_then(|filter| value(filter, name)) == Some(json!(true));
            if is_of_another_version && wants("toolsListChanged") {
                changed.push(("tools/list_changed", json!({ "_meta": of })));
            }
            if wants("resourcesListChanged") {
                changed.push(("resources/list_changed", json!({ "_meta": of })));
            }
            let updated = |uri| ("resources/updated", json!({ "uri": uri, "_meta": of }));
            changed.extend(resources.iter().map(updated));
        }
        changed.into_iter().map(|(what, params)| notification(what, params)).collect()
    }

    /// The daemon hangs, and the connection to it is given up: who waits is told so, and nothing is sent again, since the daemon may go on with what
    /// it has.
    pub(super) fn hangs(&mut self, error: &Error) -> Vec<To> {
        let mut said = self.lost();
        said.extend(self.unavailable(error));
        said
    }

    /// The daemon is gone. What it asked is void, and what it was asked waits for the next one.
    pub(super) fn lost(&mut self) -> Vec<To> {
        (self.is_connected, self.is_doubted) = (false, false);
        self.own.clear();
        let void = |id| json!({ "requestId": id, "reason": "the daemon that asked is gone" });
        let mut said: Vec<To> = std::mem::take(&mut self.asked)
            .into_keys()
            .map(|ours| notification("cancelled", void(ours)))
            .collect();
        for request in &mut self.requests {
            request.losses += 1;
            request.progress_before = request.progress;
            if matches!(request.kind, Kind::Call { .. }) {
                mark(&mut request.members, AGAIN, &true);
            }
        }
        let deadly = |request: &Request| request.losses >= MOST_LOSSES && !request.is_listening();
        let reason = format!("it ended each of the {MOST_LOSSES} times that it had this request");
        said.extend(self.refuse(deadly, &Error::DaemonFailed { reason }));
        said
    }

    /// There is no daemon to be had, for this reason: whoever waits is told so.
    pub(super) fn unavailable(&mut self, error: &Error) -> Vec<To> {
        self.refuse(|request| !request.is_listening() || request.losses == 0, error)
    }

    fn refuse(&mut self, which: impl Fn(&Request) -> bool, error: &Error) -> Vec<To> {
        let (refused, kept): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.requests).into_iter().partition(which);
        self.requests = kept;
        refused.iter().map(|request| refusal(request, error)).collect()
    }

    fn to_daemon(&self, text: String) -> Vec<To> {
        if self.is_connected { vec![To::Daemon(text)] } else { Vec::new() }
    }
}

/// Adds to what a request says of itself.
fn mark(members: &mut Members, name: &str, said: &impl serde::Serialize) {
    let mut params = object(members, "params").unwrap_or_default();
    let mut meta = object(&params, "_meta").unwrap_or_default();
    put(&mut meta, name, said);
    put(&mut params, "_meta", &meta);
    put(members, "params", &params);
}

/// The answer to `initialize`, which says that the tools may become others: a daemon's never do, but one of another version has its own.
fn with_other_tools(mut members: Members) -> String {
    let mut result = object(&members, "result").unwrap_or_default();
    let mut capabilities = object(&result, "capabilities").unwrap_or_default();
    let mut tools = object(&capabilities, "tools").unwrap_or_default();
    put(&mut tools, "listChanged", &true);
    put(&mut capabilities, "tools", &tools);
    put(&mut result, "capabilities", &capabilities);
    put(&mut members, "result", &result);
    line(&members)
}

/// The number of one of the bridge's own requests.
fn own_number(id: &Value) -> Option<u64> {
    id.as_str()?.strip_prefix(OWN)?.parse().ok()
}

fn notification(what: &str, params: Value) -> To {
    let method = format!("notifications/{what}");
    To::Client(json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string())
}

/// Answers a request with an error: a call as a tool would, since the model reads that.
fn refusal(request: &Request, error: &Error) -> To {
    let mut words = format!("{}: {error}. {}", error.code(), crate::terminal::next_step(error));
    let Kind::Call { command } = &request.kind else {
        let data = json!({ "code": error.code().to_string() });
        return To::Client(failure(&request.id, INTERNAL_ERROR, &words, Some(data)));
    };
    if request.losses > 0 {
        let id = command_id(*command);
        words.push_str(&format!(
            "\nA daemon had this call, and what became of it is not known. Do not send it again: once a daemon answers, get_result with the id {id} \
             tells. Where it is not found, ask once more in a moment: only then it has not run."
        ));
    }
    let mut result = json!({ "content": [{ "type": "text", "text": words }], "isError": true });
    if request.is_of_newest() {
        result["resultType"] = json!("complete");
    }
    To::Client(json!({ "jsonrpc": "2.0", "id": request.id, "result": result }).to_string())
}

fn failure(id: &Value, code: i64, message: &str, data: Option<Value>) -> String {
    let mut error = json!({ "code": code, "message": message });
    if let Some(data) = data {
        error["data"] = data;
    }
    json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()
}
