//! What the client says: passed on, kept for the next daemon, or answered.

use mainstay_mcp::{COMMAND, RESULTS};
use mainstay_model::Error;
use serde_json::{Value, json};
use uuid::Uuid;

use super::answers::{INVALID_REQUEST, PARSE_ERROR, failure, refusal};
use super::{Bridge, Kind, Request, To, mark};
use crate::commands::mcp::bridge::message::{Members, Message, line, object, put, value};

impl Bridge {
    /// The client says something; `command` is the id of its command, should it be a call.
    pub(in super::super) fn client_says(&mut self, said: &str, command: Uuid) -> Vec<To> {
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
            deaths: 0,
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
}
