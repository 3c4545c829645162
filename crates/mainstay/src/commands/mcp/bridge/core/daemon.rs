//! What a daemon says: passed on, and remembered for the next daemon.

use mainstay_mcp::SESSION;
use serde_json::Value;

use super::answers::with_other_tools;
use super::{Bridge, Introduction, Kind, OWN, Own, Request, SUBSCRIPTION, To};
use crate::commands::mcp::bridge::message::{Members, Message, line, object, put, value};

impl Bridge {
    /// The daemon says something.
    pub(in super::super) fn daemon_says(&mut self, said: &str) -> Vec<To> {
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
}

/// The number of one of the bridge's own requests.
fn own_number(id: &Value) -> Option<u64> {
    id.as_str()?.strip_prefix(OWN)?.parse().ok()
}
