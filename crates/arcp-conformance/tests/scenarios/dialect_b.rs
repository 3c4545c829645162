//! A scripted runtime of dialect B, which conforms unless it has a fault.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::server::{Out, Scripted, now, remove, text};

/// How long a session of it can be resumed.
const WINDOW: Duration = Duration::from_secs(1);

/// The runtime, with the name of what is wrong with it.
pub(crate) struct Runtime {
    fault: &'static str,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sessions: BTreeMap<String, Session>,
    jobs: BTreeMap<String, Job>,
    keys: BTreeMap<(String, String), (Value, Value)>,
    seq: i64,
    count: u64,
}

struct Session {
    principal: String,
    features: Vec<String>,
    token: String,
    seq: i64,
    log: Vec<Value>,
    out: Option<Out>,
    left: Option<Instant>,
    resumed: bool,
    seen: BTreeSet<String>,
}

struct Job {
    session: String,
    principal: String,
    status: &'static str,
    created: jiff::Timestamp,
    accepted: Value,
    trace: String,
    observers: Vec<String>,
    log: Vec<Value>,
    last: i64,
    cancel: Arc<Notify>,
}

/// What a connection knows of itself.
#[derive(Default)]
pub(crate) struct Connection {
    session: Option<String>,
    said_bye: bool,
}

type Refused = Result<(), (&'static str, &'static str)>;

impl Runtime {
    pub(crate) fn new(fault: &'static str) -> Arc<Self> {
        Arc::new(Self { fault, state: Mutex::default() })
    }

    fn has(&self, fault: &str) -> bool {
        self.fault == fault
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn id(&self, prefix: &str) -> String {
        let mut state = self.state();
        state.count += 1;
        format!("{prefix}_{:026}", state.count)
    }

    fn token(&self) -> String {
        match self.fault {
            "short-tokens" => self.id("rt").replace("000000000000", ""),
            "same-token" => "rt_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa".to_owned(),
            _ => format!("rt_{}", uuid::Uuid::new_v4().simple()),
        }
    }

    fn message(&self, kind: &str, session: Option<&str>, payload: Value) -> Value {
        let mut message = json!({ "arcp": "1.1", "id": self.id("msg"), "type": kind, "payload": payload });
        if let Some(session) = session {
            message["session_id"] = json!(session);
        }
        message
    }

    fn say(&self, out: &Out, kind: &str, session: Option<&str>, payload: Value) {
        let _ = out.send(Some(self.message(kind, session, payload)));
    }

    fn refuse(&self, out: &Out, session: Option<&str>, (code, why): (&str, &str)) {
        let payload = json!({ "code": code, "message": why, "retryable": code == "INTERNAL_ERROR" });
        self.say(out, "session.error", session, payload);
    }

    fn principal(message: &Value) -> Option<String> {
        match text(message, "/payload/auth/token") {
            "t" => Some("me".to_owned()),
            "u" => Some("other".to_owned()),
            _ => None,
        }
    }

    fn greet(&self, message: &Value, connection: &mut Connection, out: &Out) -> bool {
        let kind = text(message, "/type");
        if self.has("eager") && kind == "job.submit" {
            self.say(out, "job.accepted", None, json!({ "job_id": "job_1", "lease": {} }));
            return true;
        }
        let resume = match kind {
            "session.hello" => message["payload"].get("resume").cloned(),
            "session.resume" => Some(message["payload"].clone()),
            _ => {
                self.refuse(out, None, ("INVALID_REQUEST", "session.hello first"));
                return false;
            }
        };
        if self.has("strict-hello") && message["payload"]["capabilities"].is_null()
            || self.has("strict-fields") && !message["x_conformance"].is_null()
        {
            self.refuse(out, None, ("INVALID_REQUEST", "too strict"));
            return false;
        }
        let principal = Self::principal(message);
        let lenient = resume.is_some() && self.has("no-bearer-on-resume");
        let Some(principal) = principal.or(lenient.then(|| "me".to_owned())) else {
            self.refuse(out, None, ("UNAUTHENTICATED", "who are you?"));
            return self.has("keeps-open");
        };
        let offered: Vec<String> =
            serde_json::from_value(message["payload"]["capabilities"]["features"].clone())
                .unwrap_or_default();
        match self.admit(&principal, offered, resume.as_ref(), out) {
            Ok(session) => {
                connection.session = Some(session);
                true
            }
            Err(refusal) => {
                self.refuse(out, None, refusal);
                false
            }
        }
    }

    /// Opens or resumes a session, and welcomes its client.
    fn admit(
        &self,
        principal: &str,
        offered: Vec<String>,
        resume: Option<&Value>,
        out: &Out,
    ) -> Result<String, (&'static str, &'static str)> {
        let known = [
            "heartbeat",
            "ack",
            "list_jobs",
            "subscribe",
            "lease_expires_at",
            "cost.budget",
            "progress",
            "result_chunk",
            "agent_versions",
            "provisioned_credentials",
        ];
        let features: Vec<_> = offered
            .into_iter()
            .filter(|each| self.has("echoes-features") || known.contains(&each.as_str()))
            .collect();
        let (id, token) = (self.id("sess"), self.token());
        let mut state = self.state();
        let (id, last) = match resume {
            None => (id, None),
            Some(block) => {
                let last = block["last_event_seq"].as_i64().unwrap_or(0);
                (self.check_resume(&mut state, principal, block, last)?, Some(last))
            }
        };
        let session = state.sessions.entry(id.clone()).or_insert_with(|| Session {
            principal: principal.to_owned(),
            features: features.clone(),
            token: token.clone(),
            seq: 0,
            log: Vec::new(),
            out: None,
            left: None,
            resumed: false,
            seen: BTreeSet::new(),
        });
        session.out = Some(out.clone());
        session.left = None;
        session.resumed = last.is_some();
        session.features.clone_from(&features);
        if !self.has("keeps-token") {
            session.token = token;
        }
        let token = session.token.clone();
        let replay = self.replay(session, last);
        drop(state);
        let agents = json!([{ "name": "worker", "versions": ["1.0.0", "2.0.0"], "default": "2.0.0" }]);
        let payload = json!({
            "runtime": { "name": "scripted", "version": "1" }, "resume_token": token,
            "resume_window_sec": WINDOW.as_secs(), "heartbeat_interval_sec": 30,
            "capabilities": { "encodings": ["json"], "features": features, "agents": agents },
        });
        self.say(out, "session.welcome", Some(&id), payload);
        for event in replay {
            let _ = out.send(Some(event));
        }
        Ok(id)
    }

    fn check_resume(
        &self,
        state: &mut State,
        principal: &str,
        block: &Value,
        last: i64,
    ) -> Result<String, (&'static str, &'static str)> {
        let id = text(block, "/session_id").to_owned();
        if self.has("no-resume") {
            return Err(("INVALID_REQUEST", "no resume here"));
        }
        let Some(session) = state.sessions.get(&id) else {
            let anything = self.has("resumes-anything");
            return if anything { Ok(id) } else { Err(("RESUME_WINDOW_EXPIRED", "unknown session")) };
        };
        if session.principal != principal && !self.has("no-bearer-on-resume") {
            return Err(("PERMISSION_DENIED", "not yours"));
        }
        if session.token != text(block, "/resume_token") && !self.has("any-token") {
            if self.has("burns-session") {
                state.sessions.remove(&id);
            }
            return Err(("PERMISSION_DENIED", "wrong token"));
        }
        if session.left.is_some_and(|left| left.elapsed() > WINDOW) {
            return Err(("RESUME_WINDOW_EXPIRED", "too late"));
        }
        if last > session.seq && !self.has("resumes-ahead") {
            return Err(("INVALID_REQUEST", "there is no such event"));
        }
        Ok(id)
    }

    fn replay(&self, session: &mut Session, last: Option<i64>) -> Vec<Value> {
        let Some(last) = last else { return Vec::new() };
        let skipped = usize::from(self.has("loses-first"));
        let after = |event: &&Value| {
            let seq = event["event_seq"].as_i64().unwrap_or(0);
            seq > last || (seq == last && self.has("replays-last"))
        };
        let mut replay: Vec<_> = session.log.iter().filter(after).skip(skipped).cloned().collect();
        if self.has("renames-replay") {
            for event in &mut replay {
                event["id"] = json!(format!("again_{}", event["event_seq"]));
            }
        }
        if self.has("restarts-numbers") {
            session.seq = 0;
        }
        replay
    }

    fn carry_out(self: &Arc<Self>, message: &Value, session: &str, out: &Out) -> Refused {
        let payload = &message["payload"];
        let job =
            Some(text(message, "/job_id")).filter(|id| !id.is_empty()).unwrap_or(text(payload, "/job_id"));
        match text(message, "/type") {
            "session.ping" => {
                let nonce = if self.has("wrong-nonce") { json!("another") } else { payload["nonce"].clone() };
                let answer = json!({ "ping_nonce": nonce, "received_at": now() });
                let mut pong = self.message("session.pong", Some(session), answer);
                if self.has("numbers-pongs") {
                    let mut state = self.state();
                    let session = state.sessions.get_mut(session).unwrap();
                    session.seq += 1;
                    pong["event_seq"] = json!(session.seq);
                }
                let _ = out.send(Some(pong));
                Ok(())
            }
            "session.pong" => Ok(()),
            "session.ack" if self.has("answers-acks") => Err(("INVALID_REQUEST", "no acks")),
            "session.ack" => Ok(()),
            "session.list_jobs" => self.list(message, session, out),
            "job.submit" => self.submit(message, session, out),
            "job.cancel" => self.cancel(job, session, out),
            "job.subscribe" => self.subscribe(job, payload, session, out),
            "job.unsubscribe" => {
                if !self.has("ignores-unsubscribe") {
                    let mut state = self.state();
                    let job = state.jobs.get_mut(job).ok_or(("JOB_NOT_FOUND", "no such job"))?;
                    job.observers.retain(|each| each != session);
                }
                Ok(())
            }
            _ => Err(("INVALID_REQUEST", "unknown type")),
        }
    }

    fn check_submission(&self, message: &Value) -> Result<String, (&'static str, &'static str)> {
        let payload = &message["payload"];
        let agent = payload["agent"].as_str().ok_or(("INVALID_REQUEST", "no agent"))?;
        if self.has("strict-fields") && !message["x_conformance"].is_null() {
            return Err(("INVALID_REQUEST", "too strict"));
        }
        let (name, version) = agent.split_once('@').unwrap_or((agent, "2.0.0"));
        if name != "worker" {
            return Err(("AGENT_NOT_AVAILABLE", "no such agent"));
        }
        if !matches!(version, "1.0.0" | "2.0.0") {
            return Err(("AGENT_VERSION_NOT_AVAILABLE", "no such version"));
        }
        for (capability, patterns) in payload["lease_request"].as_object().into_iter().flatten() {
            let patterns = patterns.as_array().ok_or(("INVALID_REQUEST", "not a list"))?;
            for pattern in patterns {
                let pattern = pattern.as_str().ok_or(("INVALID_REQUEST", "not a text"))?;
                let amount = pattern.split_once(':').and_then(|(_, amount)| amount.parse::<f64>().ok());
                if capability == "cost.budget" && amount.is_none() {
                    return Err(("INVALID_REQUEST", "not an amount"));
                }
            }
        }
        if let Some(at) = payload["lease_constraints"]["expires_at"].as_str() {
            let time: jiff::Timestamp = at.parse().map_err(|_| ("INVALID_REQUEST", "no time"))?;
            if !at.ends_with('Z') || time < jiff::Timestamp::now() {
                return Err(("INVALID_REQUEST", "past, or not UTC"));
            }
        }
        Ok(if self.has("no-versions") { name.to_owned() } else { format!("{name}@{version}") })
    }

    fn submit(self: &Arc<Self>, message: &Value, session: &str, out: &Out) -> Refused {
        let payload = &message["payload"];
        let id = text(message, "/id").to_owned();
        if !self.has("forgets-ids") && !self.state().sessions.get_mut(session).unwrap().seen.insert(id) {
            return Ok(());
        }
        let principal = self.state().sessions[session].principal.clone();
        let owner = if self.has("keys-of-all") { "all".to_owned() } else { principal.clone() };
        let key = (owner, text(payload, "/idempotency_key").to_owned());
        let known = self.state().keys.get(&key).cloned();
        if let Some((first, mut accepted)) = known.filter(|_| !self.has("forgets-keys")) {
            if first != *payload {
                return Err(("DUPLICATE_KEY", "other parameters"));
            }
            if self.has("other-payload") {
                accepted["accepted_at"] = json!(now());
            }
            let job = text(&accepted, "/job_id").to_owned();
            self.say(out, "job.accepted", Some(session), accepted);
            let end = self.state().jobs[&job].log.iter().find(|each| each["type"] != "job.event").cloned();
            if let Some(end) = end.filter(|_| !self.has("no-terminal-again")) {
                self.deliver(session, &job, &end);
            }
            return Ok(());
        }
        let agent = self.check_submission(message)?;
        let accepted = self.accept(message, &agent, session, &principal);
        if !key.1.is_empty() {
            self.state().keys.insert(key, (payload.clone(), accepted.clone()));
        }
        let job = text(&accepted, "/job_id").to_owned();
        self.say(out, "job.accepted", Some(session), accepted);
        tokio::spawn(Arc::clone(self).run(job, payload.clone()));
        Ok(())
    }

    fn accept(&self, message: &Value, agent: &str, session: &str, principal: &str) -> Value {
        let payload = &message["payload"];
        let job = self.id("job");
        let trace = Some(text(message, "/trace_id").to_owned()).filter(|trace| !trace.is_empty());
        let trace = trace.unwrap_or_else(|| uuid::Uuid::new_v4().simple().to_string());
        let mut lease = payload.get("lease_request").cloned().unwrap_or(json!({}));
        if self.has("expands-leases") {
            lease["net.fetch"] = json!(["https://**"]);
        }
        let mut accepted = json!({
            "job_id": job, "agent": agent, "lease": lease, "accepted_at": now(), "trace_id": trace,
        });
        if let Some(constraints) = payload.get("lease_constraints") {
            accepted["lease_constraints"] = constraints.clone();
        }
        for pattern in lease["cost.budget"].as_array().into_iter().flatten() {
            let (currency, amount) = pattern.as_str().unwrap().split_once(':').unwrap();
            accepted["budget"][currency] = json!(amount.parse::<f64>().unwrap());
        }
        let mut state = self.state();
        if state.sessions[session].features.iter().any(|each| each == "provisioned_credentials") {
            accepted["credentials"] = json!([{ "id": "cred_1", "scheme": "bearer", "value": "secret" }]);
        }
        let job_state = Job {
            session: session.to_owned(),
            principal: principal.to_owned(),
            status: "running",
            created: jiff::Timestamp::now(),
            accepted: accepted.clone(),
            trace,
            observers: Vec::new(),
            log: Vec::new(),
            last: 0,
            cancel: Arc::default(),
        };
        state.jobs.insert(job, job_state);
        accepted
    }

    /// Sends one message of a job on in a session, with a number of that session.
    fn deliver(&self, session: &str, job: &str, event: &Value) {
        let id = self.id("msg");
        let mut state = self.state();
        state.seq += 1;
        let (global, foreign) = (state.seq, state.jobs[job].last);
        let Some(to) = state.sessions.get_mut(session) else { return };
        to.seq += 1;
        let mut event = event.clone();
        event["id"] = json!(id);
        event["session_id"] = json!(session);
        event["event_seq"] = json!(if self.has("one-counter") { global } else { to.seq });
        if self.has("foreign-numbers") && foreign > 0 {
            event["event_seq"] = json!(foreign);
        }
        to.log.push(event.clone());
        if let Some(out) = &to.out {
            let _ = out.send(Some(event));
        }
    }

    /// Publishes a message of a job to its session and its observers.
    fn publish(&self, job: &str, kind: &str, payload: Value) {
        let (owner, observers, event) = {
            let mut state = self.state();
            let found = state.jobs.get_mut(job).unwrap();
            let event = json!({
                "arcp": "1.1", "type": kind, "job_id": job, "trace_id": found.trace, "payload": payload,
            });
            found.log.push(event.clone());
            let (owner, observers) = (found.session.clone(), found.observers.clone());
            let next = state.sessions.get(&owner).map_or(0, |session| session.seq + 1);
            state.jobs.get_mut(job).unwrap().last = next;
            (owner, observers, event)
        };
        self.deliver(&owner, job, &event);
        for observer in observers.iter().filter(|each| **each != owner && !self.has("no-live")) {
            self.deliver(observer, job, &event);
        }
    }

    fn event(&self, job: &str, kind: &str, body: Value) {
        self.publish(job, "job.event", json!({ "kind": kind, "ts": now(), "body": body }));
    }

    fn end(&self, job: &str, status: &'static str, kind: &str, mut payload: Value) {
        payload["final_status"] = json!(status);
        self.state().jobs.get_mut(job).unwrap().status = status;
        self.publish(job, kind, payload.clone());
        if self.has("ends-twice") {
            self.publish(job, kind, payload);
        }
        if self.has("event-after-end") {
            self.event(job, "log", json!({ "level": "info", "message": "late" }));
        }
    }

    async fn run(self: Arc<Self>, job: String, payload: Value) {
        let (cancel, features) = {
            let state = self.state();
            let found = &state.jobs[&job];
            (Arc::clone(&found.cancel), state.sessions[&found.session].features.clone())
        };
        let may =
            |feature: &str| features.iter().any(|each| each == feature) || self.has("uses-all-features");
        self.event(&job, "log", json!({ "level": "info", "message": "started" }));
        match text(&payload, "/input/do") {
            "fail" => {
                let error = json!({ "code": "INTERNAL_ERROR", "message": "as asked", "retryable": true });
                return self.end(&job, "error", "job.error", error);
            }
            "slow" | "ask" => {
                let limit = payload["max_runtime_sec"].as_u64().filter(|_| !self.has("no-time-limit"));
                let limit = tokio::time::sleep(Duration::from_secs(limit.unwrap_or(3600)));
                tokio::select! {
                    () = cancel.notified() => self.cancelled(&job),
                    () = limit => {
                        let error = json!({ "code": "TIMEOUT", "message": "too long", "retryable": false });
                        self.end(&job, "timed_out", "job.error", error);
                    }
                }
                return;
            }
            _ => {}
        }
        if text(&payload, "/input/do") == "chatty" {
            for number in 0..5 {
                tokio::task::yield_now().await;
                self.event(&job, "metric", json!({ "name": "lines", "value": number }));
            }
            if may("progress") {
                self.event(&job, "progress", json!({ "current": 1, "total": 2 }));
            }
            if may("result_chunk") {
                return self.chunks(&job);
            }
        }
        self.end(&job, "success", "job.result", json!({ "result": payload["input"] }));
    }

    fn chunks(&self, job: &str) {
        let first = i64::from(self.has("chunks-from-1"));
        for number in [0, 1] {
            self.event(
                job,
                "result_chunk",
                json!({
                    "result_id": "res_1", "chunk_seq": number + first, "data": "x", "encoding": "utf8",
                    "more": number == 0,
                }),
            );
        }
        let mut result = json!({ "result_id": "res_1", "result_size": 2 });
        if self.has("mixes-results") {
            result["result"] = json!("xx");
        }
        self.end(job, "success", "job.result", result);
    }

    fn cancelled(&self, job: &str) {
        let error = json!({ "code": "CANCELLED", "message": "as asked", "retryable": false });
        let kind = if self.has("cancel-as-result") { "job.result" } else { "job.error" };
        self.end(job, "cancelled", kind, error);
    }

    fn cancel(&self, job: &str, session: &str, out: &Out) -> Refused {
        let (owner, status, cancel) = {
            let state = self.state();
            let found = state.jobs.get(job).ok_or(("JOB_NOT_FOUND", "no such job"))?;
            (found.session.clone(), found.status, Arc::clone(&found.cancel))
        };
        let resumed = self.has("resume-loses-authority") && self.state().sessions[session].resumed;
        if resumed || owner != session && !self.has("anybody-cancels") {
            return if self.has("silent-refusal") { Ok(()) } else { Err(("PERMISSION_DENIED", "not yours")) };
        }
        if self.has("closes-on-cancel") {
            let _ = out.send(None);
        }
        if status != "running" {
            if self.has("ends-again") {
                self.cancelled(job);
            }
            return Err(("INVALID_REQUEST", "it has ended"));
        }
        self.say(out, "job.cancelled", Some(session), json!({ "job_id": job }));
        cancel.notify_one();
        Ok(())
    }

    fn subscribe(&self, job: &str, payload: &Value, session: &str, out: &Out) -> Refused {
        let (answer, history) = {
            let mut state = self.state();
            let principal = state.sessions[session].principal.clone();
            let owner = state.jobs.get(job).ok_or(("JOB_NOT_FOUND", "no such job"))?.session.clone();
            // The numbers of the submitting session say where a replay begins.
            let numbers: Vec<i64> = state.sessions[&owner]
                .log
                .iter()
                .filter(|event| text(event, "/job_id") == job)
                .map(|event| event["event_seq"].as_i64().unwrap_or(0))
                .collect();
            let found = state.jobs.get_mut(job).unwrap();
            if found.principal != principal && !self.has("anybody-observes") {
                return Err(("PERMISSION_DENIED", "not yours"));
            }
            found.observers.push(session.to_owned());
            let from =
                if self.has("history-from-0") { 0 } else { payload["from_event_seq"].as_i64().unwrap_or(0) };
            let all = payload["history"] == true || self.has("always-history");
            let history: Vec<_> = found
                .log
                .iter()
                .zip(numbers)
                .filter(|(_, number)| all && *number > from && !self.has("no-history"))
                .map(|(event, _)| event.clone())
                .collect();
            let mut answer = json!({
                "job_id": job, "current_status": found.status, "agent": found.accepted["agent"],
                "lease": found.accepted["lease"], "parent_job_id": null, "trace_id": found.trace,
                "subscribed_from": 0, "replayed": !history.is_empty(),
            });
            if self.has("anybody-observes") {
                answer["credentials"] = found.accepted["credentials"].clone();
            }
            (answer, history)
        };
        self.say(out, "job.subscribed", Some(session), answer);
        for event in history {
            self.deliver(session, job, &event);
        }
        Ok(())
    }

    fn list(&self, message: &Value, session: &str, out: &Out) -> Refused {
        let payload = &message["payload"];
        let limit = match &payload["limit"] {
            Value::Null => 100,
            limit if self.has("lenient-limit") => limit.as_u64().unwrap_or(100),
            limit => limit.as_u64().ok_or(("INVALID_REQUEST", "no number"))?,
        };
        let filter = if self.has("no-filters") { &Value::Null } else { &payload["filter"] };
        let after = text(filter, "/created_after").parse::<jiff::Timestamp>().ok();
        let cursor = text(payload, "/cursor").to_owned();
        let state = self.state();
        let me = &state.sessions[session].principal;
        let wanted = |(id, job): &(&String, &Job)| {
            let mine = job.principal == *me || self.has("lists-everybody");
            let here = job.session == session || !self.has("lists-own-session");
            let status =
                filter["status"].as_array().is_none_or(|each| each.iter().any(|one| one == job.status));
            let agent =
                filter["agent"].as_str().is_none_or(|agent| text(&job.accepted, "/agent").starts_with(agent));
            mine && here && status && agent && after.is_none_or(|after| job.created > after) && **id > cursor
        };
        let entry = |(id, job): (&String, &Job)| {
            let status = if self.has("stale-status") { "pending" } else { job.status };
            json!({
                "job_id": id, "agent": job.accepted["agent"], "status": status,
                "lease": job.accepted["lease"],
                "parent_job_id": null, "created_at": job.created.to_string(), "trace_id": job.trace,
                "last_event_seq": job.last,
            })
        };
        let mut jobs: Vec<_> = state.jobs.iter().filter(wanted).map(entry).collect();
        drop(state);
        let limit = if self.has("no-pages") { jobs.len() } else { usize::try_from(limit).unwrap() };
        let more = jobs.len() > limit;
        jobs.truncate(limit);
        let next = if more { jobs.last().map(|job| job["job_id"].clone()) } else { None };
        let answer = json!({ "request_id": message["id"], "jobs": jobs, "next_cursor": next });
        self.say(out, "session.jobs", Some(session), answer);
        Ok(())
    }

    fn kill_jobs(&self, session: &str) {
        let jobs: Vec<_> = {
            let state = self.state();
            let running =
                state.jobs.iter().filter(|(_, job)| job.session == session && job.status == "running");
            running.map(|(id, _)| id.clone()).collect()
        };
        for job in jobs {
            self.cancelled(&job);
        }
    }
}

impl Scripted for Runtime {
    type Connection = Connection;

    fn receive(self: &Arc<Self>, frame: &str, connection: &mut Connection, out: &Out) -> bool {
        let parsed = serde_json::from_str::<Value>(frame).ok().filter(Value::is_object);
        if connection.said_bye {
            return false;
        }
        let Some(message) = parsed else {
            self.refuse(out, connection.session.as_deref(), ("INVALID_REQUEST", "no envelope"));
            return connection.session.is_some() && !self.has("closes-on-garbage");
        };
        let Some(session) = connection.session.clone() else {
            return self.greet(&message, connection, out);
        };
        match text(&message, "/type") {
            "session.close" => {
                if self.has("kills-jobs-on-close") {
                    self.kill_jobs(&session);
                }
                self.say(out, "session.closed", Some(&session), json!({}));
                return false;
            }
            "session.bye" => {
                connection.said_bye = !self.has("ignores-bye");
                return true;
            }
            "session.ack" if self.has("closes-on-ack-ahead") => {
                let known = self.state().sessions[&session].seq;
                return message["payload"]["last_processed_seq"].as_i64() <= Some(known);
            }
            _ => {}
        }
        let Err(refusal) = self.carry_out(&message, &session, out) else { return true };
        self.refuse(out, Some(&session), refusal);
        let unknown = self.has("closes-on-unknown") && refusal.1 == "unknown type";
        !unknown && !self.has("closes-on-error")
    }

    fn lost(&self, connection: &Connection, out: &Out) {
        let Some(session) = &connection.session else { return };
        if self.has("kills-jobs-on-loss") {
            self.kill_jobs(session);
        }
        let mut state = self.state();
        if let Some(session) = state.sessions.get_mut(session)
            && session.out.as_ref().is_some_and(|known| known.same_channel(out))
        {
            session.out = None;
            session.left = Some(Instant::now());
        }
    }

    fn spoil(&self, mut message: Value) -> Vec<Value> {
        let kind = text(&message, "/type").to_owned();
        match (self.fault, kind.as_str()) {
            ("same-ids", _) => message["id"] = json!("msg_same"),
            ("no-session-id", kind) if kind != "session.welcome" => remove(&mut message, "", "session_id"),
            ("no-trace", _) => remove(&mut message, "", "trace_id"),
            ("wrong-codes", _) if message["payload"]["code"].is_string() => {
                message["payload"]["code"] = json!("INTERNAL_ERROR");
            }
            ("odd-codes", _) if message["payload"]["code"].is_string() => {
                message["payload"]["code"] = json!("OOPS")
            }
            ("bare-errors", _) => remove(&mut message, "/payload", "retryable"),
            ("bare-welcome", "session.welcome") => {
                for field in ["runtime", "resume_window_sec", "heartbeat_interval_sec"] {
                    remove(&mut message, "/payload", field);
                }
                remove(&mut message, "/payload/capabilities/agents/0", "versions");
            }
            ("bare-accepted", "job.accepted") => {
                for field in ["accepted_at", "trace_id", "budget", "lease_constraints"] {
                    remove(&mut message, "/payload", field);
                }
            }
            ("bare-entries", "session.jobs") => remove(&mut message, "/payload/jobs/0", "created_at"),
            ("bare-subscribed", "job.subscribed") => remove(&mut message, "/payload", "lease"),
            ("bare-events", "job.event") => {
                remove(&mut message, "/payload", "body");
                remove(&mut message, "/payload", "ts");
            }
            ("odd-kinds", "job.event") => message["payload"]["kind"] = json!("chatter"),
            ("empty-bodies", "job.event") => message["payload"]["body"] = json!({}),
            ("same-job-ids", "job.accepted") => message["payload"]["job_id"] = json!("job_1"),
            ("gaps", "job.event" | "job.result" | "job.error") => {
                message["event_seq"] = json!(message["event_seq"].as_i64().unwrap_or(0) * 2);
            }
            ("wrong-final-status", "job.result" | "job.error") => {
                message["payload"]["final_status"] = json!("done")
            }
            ("no-closed", "session.closed")
            | ("no-lists", "session.jobs")
            | ("no-cancelled", "job.cancelled")
            | ("loses-ends", "job.result") => return Vec::new(),
            _ => {}
        }
        vec![message]
    }
}
