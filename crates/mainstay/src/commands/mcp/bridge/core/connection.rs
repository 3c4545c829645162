//! Daemons that come, hang and go: what the next one is told, and what the client hears.

use std::collections::VecDeque;

use mainstay_mcp::AGAIN;
use mainstay_model::Error;
use mainstay_terminal_client::connect::MOST_LOSSES;
use serde_json::{Value, json};

use super::answers::{notification, refusal};
use super::{Bridge, DaemonEnd, Introduction, Kind, Own, Request, SUBSCRIPTION, To, mark};
use crate::commands::mcp::bridge::message::{line, object, value};

impl Bridge {
    /// A daemon is connected, of this version.
    pub(in super::super) fn connected(&mut self, version: &str) -> Vec<To> {
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
    pub(in super::super) fn hangs(&mut self, error: &Error) -> Vec<To> {
        let mut said = self.lost(DaemonEnd::Lost);
        said.extend(self.unavailable(error));
        said
    }

    /// The daemon is gone. What it asked is void, and what it was asked waits for the next one.
    pub(in super::super) fn lost(&mut self, end: DaemonEnd) -> Vec<To> {
        (self.is_connected, self.is_doubted) = (false, false);
        self.own.clear();
        let void = |id| json!({ "requestId": id, "reason": "the daemon that asked is gone" });
        let mut said: Vec<To> = std::mem::take(&mut self.asked)
            .into_keys()
            .map(|ours| notification("cancelled", void(ours)))
            .collect();
        for request in &mut self.requests {
            request.losses += 1;
            request.deaths += u32::from(end == DaemonEnd::Lost);
            request.progress_before = request.progress;
            if matches!(request.kind, Kind::Call { .. }) {
                mark(&mut request.members, AGAIN, &true);
            }
        }
        let deadly = |request: &Request| request.deaths >= MOST_LOSSES && !request.is_listening();
        said.extend(self.refuse(deadly, &Error::DaemonNotRunning));
        said
    }

    /// There is no daemon to be had, for this reason: whoever waits is told so.
    pub(in super::super) fn unavailable(&mut self, error: &Error) -> Vec<To> {
        self.refuse(|request| !request.is_listening() || request.losses == 0, error)
    }

    fn refuse(&mut self, which: impl Fn(&Request) -> bool, error: &Error) -> Vec<To> {
        let (refused, kept): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.requests).into_iter().partition(which);
        self.requests = kept;
        refused.iter().map(|request| refusal(request, error)).collect()
    }
}
