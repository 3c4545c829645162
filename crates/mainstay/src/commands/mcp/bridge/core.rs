//! The bridge as a state machine: what the client and the daemons say goes in, and what is to be said to whom comes out. It does no I/O.
//!
//! It remembers what a new daemon has to be told so that the client notices nothing of the change: how it introduced itself, what it follows,
//! which session it used, and what it still waits for. A call carries the id of its command from the first time it is seen, so that another daemon that is
//! sent it again answers with the stored outcome, and nothing runs twice ([`mainstay_mcp::COMMAND`]).
//!
//! What the client says is in [`client`], what a daemon says in [`daemon`], and what comes of daemons that come and go in [`connection`].

mod answers;
mod client;
mod connection;
mod daemon;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use mainstay_mcp::Results;
use mainstay_model::SessionId;
use serde_json::{Value, json};
use uuid::Uuid;

use super::message::{Members, object, put};

/// How the ids of the bridge's own requests begin.
const OWN: &str = "mainstay/bridge/";
/// The member of `_meta` by which the newest protocol says which request a notification belongs to.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
/// The member of `_meta` that only requests of the newest protocol have.
const PROTOCOL: &str = "io.modelcontextprotocol/protocolVersion";
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

/// How a daemon has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DaemonEnd {
    /// It begins anew, as it was told to.
    BeginsAnew,
    /// It was killed, has crashed, was stopped or hangs.
    Lost,
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
    /// How many daemons had it and were lost, or have begun anew.
    losses: u32,
    /// How many of them were lost: it may be what they end of.
    deaths: u32,
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

    fn ask(&mut self, method: &str, params: Value, own: Own) -> To {
        self.last_own += 1;
        self.own.insert(self.last_own, own);
        let id = format!("{OWN}{}", self.last_own);
        To::Daemon(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string())
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
