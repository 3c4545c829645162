//! A scripted runtime of dialect A, which conforms unless it has a fault.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::Notify;

use crate::server::{BYTES, Out, Scripted, now, remove, text};

/// The runtime, with the name of what is wrong with it.
pub(crate) struct Runtime {
    fault: &'static str,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sessions: BTreeMap<String, Session>,
    jobs: BTreeMap<String, Job>,
    keys: BTreeMap<(String, String), String>,
    artifacts: BTreeMap<String, (String, Vec<u8>)>,
    requests: BTreeMap<String, String>,
    /// How often each lease was given or extended.
    leases: BTreeMap<String, u64>,
    observers: BTreeMap<String, (Out, Value)>,
    count: u64,
    has_lost_a_chunk: bool,
}

struct Session {
    principal: String,
    human_input: bool,
    sidecar: bool,
    log: Vec<Value>,
    out: Option<Out>,
    seen: BTreeSet<String>,
}

#[derive(Clone)]
struct Job {
    session: String,
    command: String,
    trace: Option<String>,
    running: bool,
    cancel: Arc<Notify>,
    answered: Arc<Notify>,
    end: Option<(String, Value)>,
}

/// What a connection knows of itself.
#[derive(Default)]
pub(crate) struct Connection {
    session: Option<String>,
    challenged: Option<Value>,
    closed: bool,
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
        format!("{prefix}_{:06}", state.count)
    }

    fn message(&self, kind: &str, session: Option<&str>, payload: Value) -> Value {
        let mut message = json!({
            "arcp": "1.0", "id": self.id("msg"), "type": kind, "timestamp": now(), "payload": payload,
        });
        if let Some(session) = session {
            message["session_id"] = json!(session);
        }
        message
    }

    fn answer(&self, out: &Out, session: Option<&str>, to: &str, kind: &str, payload: Value) {
        let mut message = self.message(kind, session, payload);
        message["correlation_id"] = json!(to);
        let _ = out.send(Some(message));
    }

    fn nack(&self, out: &Out, session: Option<&str>, to: &str, (code, why): (&str, &str)) {
        self.answer(out, session, to, "nack", json!({ "code": code, "message": why }));
    }

    fn authenticate(&self, open: &Value, auth: &Value, connection: &mut Connection, out: &Out) -> bool {
        let id = text(open, "/id").to_owned();
        let any =
            self.has("any-scheme") || (self.has("lenient-challenge") && connection.challenged.is_some());
        let principal = match (text(auth, "/scheme"), text(auth, "/token")) {
            ("bearer", "t") => "me",
            ("bearer", "u") => "other",
            ("bearer", "") if connection.challenged.is_none() => {
                connection.challenged = Some(open.clone());
                self.answer(out, None, &id, "session.challenge", json!({ "nonce": "n" }));
                return true;
            }
            _ if any => "me",
            _ => {
                let payload = json!({ "code": "UNAUTHENTICATED", "message": "who are you?" });
                self.answer(out, None, &id, "session.rejected", payload);
                return self.has("eager");
            }
        };
        let offered = &open["payload"]["capabilities"];
        if !offered["required"].is_null() && !self.has("accepts-anything") {
            let payload = json!({ "code": "UNIMPLEMENTED", "message": "not here" });
            self.answer(out, None, &id, "session.rejected", payload);
            return false;
        }
        let session = if self.has("one-session") { "sess_1".to_owned() } else { self.id("sess") };
        let known = Session {
            principal: principal.to_owned(),
            human_input: offered["human_input"] == true || self.has("always-asks"),
            sidecar: offered["binary_encoding"].to_string().contains("sidecar"),
            log: Vec::new(),
            out: Some(out.clone()),
            seen: BTreeSet::new(),
        };
        self.state().sessions.insert(session.clone(), known);
        let mut capabilities = json!({
            "streaming": true, "durable_jobs": true, "human_input": true, "artifacts": true,
            "subscriptions": true,
            "scheduled_jobs": !matches!(self.fault, "hides-schedule" | "refuses-schedule"),
            "interrupt": !matches!(self.fault, "hides-interrupt" | "refuses-interrupt"),
            "binary_streams": true, "binary_encoding": ["base64", "sidecar"], "heartbeat_interval_seconds": 1,
            "heartbeat_recovery": "fail", "artifact_retention": { "default_seconds": 60, "max_seconds": 600 },
        });
        if self.has("echoes-extensions") {
            capabilities["extensions"] = offered["extensions"].clone();
        }
        let payload = json!({
            "session_id": session, "capabilities": capabilities,
            "runtime": { "kind": "scripted", "version": "1", "trust_level": "constrained" },
        });
        self.answer(out, Some(&session), &id, "session.accepted", payload);
        connection.session = Some(session);
        true
    }

    fn check_envelope(&self, message: &Value) -> Refused {
        if self.has("lenient-envelope") {
            return Ok(());
        }
        if message.get("payload").is_none() || text(message, "/id").is_empty() {
            return Err(("INVALID_ARGUMENT", "a field is missing"));
        }
        if text(message, "/timestamp").parse::<jiff::Timestamp>().is_err() {
            return Err(("INVALID_ARGUMENT", "no time"));
        }
        let priorities = ["", "low", "normal", "high", "critical"];
        if !priorities.contains(&text(message, "/priority")) {
            return Err(("INVALID_ARGUMENT", "no such priority"));
        }
        let extended = message["extensions"].as_object().is_some_and(|each| !each.contains_key("optional"));
        if extended && self.has("strict-fields") {
            return Err(("INVALID_ARGUMENT", "too strict"));
        }
        Ok(())
    }

    fn carry_out(self: &Arc<Self>, message: &Value, session: &str, out: &Out) -> Refused {
        let (id, payload) = (text(message, "/id"), &message["payload"]);
        let answer = |kind: &str, payload: Value| self.answer(out, Some(session), id, kind, payload);
        match text(message, "/type") {
            "ping" => answer("pong", json!({})),
            "tool.invoke" => return self.invoke(message, payload, session, out),
            "cancel" => self.cancel(text(payload, "/target_id"), id, session, out),
            "interrupt" if self.has("refuses-interrupt") => return Err(("UNIMPLEMENTED", "no interrupts")),
            "job.schedule" if self.has("refuses-schedule") => return Err(("UNIMPLEMENTED", "no schedule")),
            "interrupt" => return self.interrupt(text(payload, "/target_id"), id, session, out),
            "job.schedule" => return self.schedule(message, session, out),
            "human.input.response" => return self.respond(message),
            "permission.grant" | "permission.deny" => return self.permit(message, session, out),
            "lease.refresh" => return self.refresh(message, session, out),
            "subscribe" => return self.subscribe(message, session, out),
            "unsubscribe" => {
                let known = self.state().observers.contains_key(text(payload, "/subscription_id"));
                if known && !self.has("ignores-unsubscribe") {
                    self.state().observers.remove(text(payload, "/subscription_id"));
                } else if !known {
                    return Err(("NOT_FOUND", "no such subscription"));
                }
            }
            "backpressure" if self.has("refuses-backpressure") => {
                return Err(("UNIMPLEMENTED", "no backpressure"));
            }
            "backpressure" => answer("ack", json!({})),
            "artifact.put" => return self.put(message, session, out),
            "artifact.fetch" => {
                let me = self.state().sessions[session].principal.clone();
                let found = self.state().artifacts.get(text(payload, "/artifact_id")).cloned();
                let found = found.filter(|(owner, _)| *owner == me || self.has("anybody-fetches"));
                let (_, bytes) = found.ok_or(("NOT_FOUND", "no such artifact"))?;
                answer("artifact.ref", json!({ "data": STANDARD.encode(bytes), "uri": "arcp://artifact" }));
            }
            "artifact.release" if self.has("no-release") => return Err(("UNIMPLEMENTED", "kept for ever")),
            "artifact.release" => answer("ack", json!({})),
            "resume" => return self.resume(payload, session, out),
            _ => return Err(("UNIMPLEMENTED", "unknown type")),
        }
        Ok(())
    }

    fn invoke(self: &Arc<Self>, message: &Value, payload: &Value, session: &str, out: &Out) -> Refused {
        let tool = payload["tool"].as_str().ok_or(("INVALID_ARGUMENT", "no tool"))?;
        if tool != "worker" {
            return Err(("NOT_FOUND", "no such tool"));
        }
        let id = text(message, "/id");
        let owner = self.state().sessions[session].principal.clone();
        let key = (owner, text(message, "/idempotency_key").to_owned());
        let known = self.state().keys.get(&key).cloned();
        if let Some(job) = known.filter(|_| !self.has("forgets-keys")) {
            let end = self.state().jobs[&job].end.clone();
            for (kind, payload) in
                [("job.accepted".to_owned(), json!({ "job_id": job }))].into_iter().chain(end)
            {
                let mut again = self.message(&kind, Some(session), payload);
                again["correlation_id"] = json!(id);
                again["job_id"] = json!(job);
                let _ = out.send(Some(again));
            }
            return Ok(());
        }
        let job = self.id("job");
        if !key.1.is_empty() {
            self.state().keys.insert(key, job.clone());
        }
        self.start(&job, id, message["trace_id"].as_str(), session, payload["arguments"].clone());
        Ok(())
    }

    fn start(
        self: &Arc<Self>,
        job: &str,
        command: &str,
        trace: Option<&str>,
        session: &str,
        arguments: Value,
    ) {
        let known = Job {
            session: session.to_owned(),
            command: command.to_owned(),
            trace: trace.map(str::to_owned),
            running: true,
            cancel: Arc::default(),
            answered: Arc::default(),
            end: None,
        };
        self.state().jobs.insert(job.to_owned(), known);
        self.publish(job, "job.accepted", json!({ "job_id": job }));
        tokio::spawn(Arc::clone(self).run(job.to_owned(), arguments));
    }

    /// Publishes a message of a job to its session and to the observers whose filter lets it through.
    fn publish(&self, job: &str, kind: &str, payload: Value) -> Value {
        let known = self.state().jobs[job].clone();
        let mut message = self.message(kind, Some(&known.session), payload);
        message["job_id"] = json!(job);
        message["correlation_id"] = json!(known.command);
        if let Some(trace) = &known.trace {
            message["trace_id"] = json!(trace);
        }
        if kind.starts_with("stream.") {
            let is_binary = message["payload"]["content_type"] == "image/png";
            message["stream_id"] = json!(format!("str_{job}{}", if is_binary { "_bytes" } else { "" }));
        }
        let mut state = self.state();
        let session = state.sessions.get_mut(&known.session).unwrap();
        if session.out.is_some() || !self.has("forgets-away") {
            session.log.push(message.clone());
        }
        if let Some(out) = &session.out {
            let _ = out.send(Some(message.clone()));
        }
        let observers: Vec<_> = state.observers.iter().map(|(id, each)| (id.clone(), each.clone())).collect();
        drop(state);
        for (id, (out, filter)) in observers {
            if self.passes(&filter, &message) && !self.has("no-events") {
                self.tell(&id, &out, &message);
            }
        }
        message
    }

    fn tell(&self, subscription: &str, out: &Out, event: &Value) {
        let mut message =
            self.message("subscribe.event", event["session_id"].as_str(), json!({ "event": event }));
        message["subscription_id"] = json!(subscription);
        let _ = out.send(Some(message));
    }

    fn passes(&self, filter: &Value, message: &Value) -> bool {
        let fields =
            [("session_id", "session_id"), ("job_id", "job_id"), ("trace_id", "trace_id"), ("types", "type")];
        fields.iter().all(|(field, of)| {
            let lenient = *field != "session_id" && self.has("no-filters");
            filter[*field].as_array().is_none_or(|each| lenient || each.contains(&message[*of]))
        })
    }

    fn end(&self, job: &str, kind: &str, payload: Value) {
        {
            let mut state = self.state();
            let known = state.jobs.get_mut(job).unwrap();
            known.running = false;
            known.end = Some((kind.to_owned(), payload.clone()));
        }
        self.publish(job, kind, payload.clone());
        if self.has("ends-twice") {
            self.publish(job, kind, payload);
        }
    }

    fn ask(&self, job: &str, prompt: &str) {
        let schema = json!({
            "type": "object", "required": ["branch"], "properties": { "branch": { "type": "string" } },
        });
        let payload =
            json!({ "prompt": prompt, "response_schema": schema, "expires_at": "2099-01-01T00:00:00Z" });
        let request = self.publish(job, "human.input.request", payload);
        self.state().requests.insert(text(&request, "/id").to_owned(), job.to_owned());
    }

    async fn run(self: Arc<Self>, job: String, arguments: Value) {
        let known = self.state().jobs[&job].clone();
        self.publish(&job, "job.started", json!({}));
        match text(&arguments, "/do") {
            "fail" => {
                return self.end(&job, "job.failed", json!({ "code": "INTERNAL", "message": "as asked" }));
            }
            "slow" => return self.slow(&job, &known).await,
            "ask" => {
                if !self.state().sessions[&known.session].human_input {
                    let payload = json!({ "code": "FAILED_PRECONDITION", "message": "nobody to ask" });
                    return self.end(&job, "job.failed", payload);
                }
                self.ask(&job, "Which branch?");
                tokio::select! {
                    () = known.cancel.notified() => return self.end(&job, "job.cancelled", json!({})),
                    () = known.answered.notified() => {}
                }
            }
            "permission" => return self.ask_permissions(&job, &known).await,
            "chatty" => {
                self.publish(&job, "stream.open", json!({ "kind": "text", "content_type": "text/plain" }));
                for number in 0..5 {
                    tokio::task::yield_now().await;
                    self.publish(&job, "job.progress", json!({ "percent": number * 20 }));
                }
                self.publish(&job, "metric", json!({ "name": "tokens.used", "value": 1, "unit": "tokens" }));
                self.publish(&job, "stream.close", json!({}));
                self.show(&job);
            }
            _ => {}
        }
        let result = self.result(&known.session, &arguments);
        self.end(&job, "job.completed", json!({ "result_ref": result }));
    }

    /// Publishes the bytes of a picture.
    fn show(&self, job: &str) {
        let content_type = "image/png";
        let session = self.state().jobs[job].session.clone();
        let sidecar = self.state().sessions[&session].sidecar;
        self.publish(job, "stream.open", json!({ "kind": "binary", "content_type": content_type }));
        for (sequence, bytes) in [b"one", b"two"].into_iter().enumerate() {
            let sha256: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            let mut chunk = json!({ "sequence": sequence, "content_type": content_type, "sha256": sha256 });
            let field = if sidecar { BYTES } else { "data" };
            chunk[field] = json!(STANDARD.encode(bytes));
            self.publish(job, "stream.chunk", chunk);
        }
        self.publish(job, "stream.close", json!({ "content_type": content_type }));
    }

    /// Asks for a permission twice, unless a lease covers it, and for another one.
    async fn ask_permissions(&self, job: &str, known: &Job) {
        for resource in ["file:a", "file:a", "file:b"] {
            if self.state().leases.contains_key(resource) && !self.has("asks-again") {
                continue;
            }
            let permission = if self.has("bare-permissions") { json!({}) } else { json!("file.write") };
            let payload = json!({ "permission": permission, "resource": resource });
            let request = self.publish(job, "permission.request", payload);
            self.state().requests.insert(text(&request, "/id").to_owned(), job.to_owned());
            tokio::select! {
                () = known.cancel.notified() => return self.end(job, "job.cancelled", json!({})),
                () = known.answered.notified() => {}
            }
        }
        self.end(job, "job.completed", json!({}));
    }

    fn permit(&self, message: &Value, session: &str, out: &Out) -> Refused {
        let request = text(message, "/correlation_id");
        let job = self.state().requests.get(request).cloned().ok_or(("NOT_FOUND", "no such request"))?;
        let (kind, payload) = (text(message, "/type"), &message["payload"]);
        if kind == "permission.grant" && payload["lease_seconds"].is_u64() {
            let resource = text(payload, "/resource").to_owned();
            self.state().leases.insert(resource, 1);
            let mut lease =
                json!({ "lease_id": text(payload, "/resource"), "permission": payload["permission"] });
            if !self.has("bare-leases") {
                lease["expires_at"] = json!("2099-01-01T00:00:01Z");
            }
            self.publish(&job, "lease.granted", lease);
        }
        self.answer(out, Some(session), text(message, "/id"), "ack", json!({}));
        let is_deaf = match kind {
            "permission.grant" => self.has("deaf-to-grants"),
            _ => self.has("deaf-to-denials"),
        };
        if !is_deaf {
            self.state().jobs[&job].answered.notify_one();
        }
        Ok(())
    }

    fn refresh(&self, message: &Value, session: &str, out: &Out) -> Refused {
        let lease = text(message, "/payload/lease_id").to_owned();
        let mut state = self.state();
        let times = state.leases.get_mut(&lease).ok_or(("NOT_FOUND", "no such lease"))?;
        *times += u64::from(!self.has("never-extends"));
        let expires_at = format!("2099-01-01T00:00:{times:02}Z");
        drop(state);
        let payload = json!({ "lease_id": lease, "expires_at": expires_at });
        self.answer(out, Some(session), text(message, "/id"), "lease.extended", payload);
        Ok(())
    }

    async fn slow(&self, job: &str, known: &Job) {
        for sequence in 0_u32.. {
            let payload = json!({ "sequence": sequence, "deadline_ms": 2000, "state": "running" });
            self.publish(job, "job.heartbeat", payload);
            tokio::select! {
                () = known.cancel.notified() => break,
                () = tokio::time::sleep(Duration::from_millis(200)) => {}
            }
        }
        let kind = if self.has("cancel-completes") { "job.completed" } else { "job.cancelled" };
        self.end(job, kind, json!({}));
    }

    fn cancel(&self, job: &str, id: &str, session: &str, out: &Out) {
        let known = self.state().jobs.get(job).cloned();
        let mine = |known: &Job| {
            let state = self.state();
            state.sessions[&known.session].principal == state.sessions[session].principal
        };
        let may = known.filter(|known| known.running && (self.has("anybody-cancels") || mine(known)));
        if may.is_some() || self.has("accepts-every-cancel") {
            self.answer(out, Some(session), id, "cancel.accepted", json!({}));
        } else {
            self.answer(out, Some(session), id, "cancel.refused", json!({ "reason": "not_cancellable" }));
        }
        if let Some(known) = may {
            known.cancel.notify_one();
        }
    }

    fn interrupt(&self, job: &str, id: &str, session: &str, out: &Out) -> Refused {
        let known = self.state().jobs.get(job).cloned().ok_or(("NOT_FOUND", "no such job"))?;
        if self.has("interrupt-kills") {
            known.cancel.notify_one();
        }
        if !self.has("ignores-interrupt") {
            self.answer(out, Some(session), id, "ack", json!({}));
            self.ask(job, "What now?");
        }
        Ok(())
    }

    fn schedule(self: &Arc<Self>, message: &Value, session: &str, out: &Out) -> Refused {
        let when = message["payload"]["when"].as_object().ok_or(("INVALID_ARGUMENT", "when?"))?;
        let rule = when.get("every").is_none_or(|rule| rule.as_str().unwrap_or("").contains("FREQ="));
        if (when.len() != 1 || !rule) && !self.has("lenient-schedule") {
            return Err(("INVALID_ARGUMENT", "when?"));
        }
        let id = text(message, "/id").to_owned();
        self.answer(out, Some(session), &id, "ack", json!({}));
        if !self.has("never-runs") {
            let arguments = message["payload"]["job"]["payload"]["arguments"].clone();
            let (runtime, session, job) = (Arc::clone(self), session.to_owned(), self.id("job"));
            tokio::spawn(async move { runtime.start(&job, &id, None, &session, arguments) });
        }
        Ok(())
    }

    fn respond(&self, message: &Value) -> Refused {
        let request = text(message, "/correlation_id");
        let job = self.state().requests.get(request).cloned().ok_or(("NOT_FOUND", "no such request"))?;
        let valid = message["payload"]["value"]["branch"].is_string();
        if !valid && !self.has("lenient-answers") {
            return Err(("INVALID_ARGUMENT", "not what was asked for"));
        }
        let known = self.state().jobs[&job].clone();
        if known.running && !self.has("deaf") {
            known.answered.notify_one();
        } else if self.has("answers-again") {
            self.publish(&job, "job.completed", json!({}));
        }
        Ok(())
    }

    fn subscribe(&self, message: &Value, session: &str, out: &Out) -> Refused {
        let filter = message["payload"]["filter"].clone();
        let (wanted, backlog) = {
            let state = self.state();
            let wanted = text(&filter, "/session_id/0");
            let watched = state.sessions.get(wanted).ok_or(("NOT_FOUND", "no such session"))?;
            if watched.principal != state.sessions[session].principal && !self.has("anybody-observes") {
                return Err(("PERMISSION_DENIED", "not yours"));
            }
            (wanted.to_owned(), watched.log.clone())
        };
        let subscription = self.id("sub");
        let payload = json!({ "subscription_id": subscription });
        self.answer(out, Some(session), text(message, "/id"), "subscribe.accepted", payload);
        let complete = || {
            let payload = json!({ "name": "subscription.backfill_complete" });
            let event = self.message("event.emit", Some(&wanted), payload);
            self.tell(&subscription, out, &event);
        };
        if self.has("early-complete") {
            complete();
        }
        let after = text(message, "/payload/since/after_message_id");
        let old = backlog.iter().skip_while(|event| text(event, "/id") != after).skip(1);
        for event in old.filter(|event| self.passes(&filter, event) && !self.has("no-backfill")) {
            self.tell(&subscription, out, event);
        }
        if !self.has("early-complete") {
            complete();
        }
        self.state().observers.insert(subscription, (out.clone(), filter));
        Ok(())
    }

    /// Stores the result of a job, and refers to it.
    fn result(&self, session: &str, result: &Value) -> Value {
        let bytes = result.to_string().into_bytes();
        let artifact = self.id("art");
        let sha256: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let reference = json!({
            "artifact_id": artifact, "uri": format!("arcp://session/{session}/artifact/{artifact}"),
            "media_type": "application/json", "size": bytes.len(), "sha256": sha256,
        });
        let mut state = self.state();
        let owner = state.sessions[session].principal.clone();
        state.artifacts.insert(artifact, (owner, bytes));
        reference
    }

    fn put(&self, message: &Value, session: &str, out: &Out) -> Refused {
        let data = text(message, "/payload/data");
        let bytes = STANDARD.decode(data).map_err(|_| ("INVALID_ARGUMENT", "no base64"))?;
        let artifact = self.id("art");
        let hash: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let payload = json!({
            "artifact_id": artifact, "uri": format!("arcp://session/{session}/artifact/{artifact}"),
            "media_type": message["payload"]["media_type"], "size": bytes.len(), "sha256": hash,
        });
        let mut state = self.state();
        let owner = state.sessions[session].principal.clone();
        state.artifacts.insert(artifact, (owner, bytes));
        drop(state);
        self.answer(out, Some(session), text(message, "/id"), "artifact.ref", payload);
        Ok(())
    }

    fn resume(&self, payload: &Value, session: &str, out: &Out) -> Refused {
        let (old, after) = (text(payload, "/session_id"), text(payload, "/after_message_id"));
        let renamed = self.id("again");
        let mut state = self.state();
        let me = state.sessions[session].principal.clone();
        let lost = state.sessions.get_mut(old).ok_or(("NOT_FOUND", "no such session"))?;
        if lost.principal != me && !self.has("anybody-resumes") {
            return Err(("PERMISSION_DENIED", "not yours"));
        }
        let Some(place) = lost.log.iter().position(|event| text(event, "/id") == after) else {
            return Err(("DATA_LOSS", "no such message"));
        };
        lost.out = Some(out.clone());
        let from = match self.fault {
            "loses-first" => place + 2,
            "replays-last" => place,
            _ => place + 1,
        };
        for event in lost.log.iter().skip(from) {
            let mut event = event.clone();
            if self.has("renames-replay") {
                event["id"] = json!(format!("{renamed}_{}", text(&event, "/id")));
            }
            let _ = out.send(Some(event));
        }
        Ok(())
    }
}

impl Scripted for Runtime {
    type Connection = Connection;

    fn receive(self: &Arc<Self>, frame: &str, connection: &mut Connection, out: &Out) -> bool {
        let session = connection.session.clone();
        let Ok(message) = serde_json::from_str::<Value>(frame) else {
            self.nack(out, session.as_deref(), "", ("INVALID_ARGUMENT", "no JSON"));
            return !self.has("closes-on-garbage");
        };
        let (id, kind) = (text(&message, "/id"), text(&message, "/type"));
        let Some(session) = session else {
            return match (kind, connection.challenged.clone()) {
                ("session.open", _) => {
                    self.authenticate(&message, &message["payload"]["auth"], connection, out)
                }
                ("session.authenticate", Some(open)) => {
                    self.authenticate(&open, &message["payload"]["auth"], connection, out)
                }
                ("tool.invoke", _) if self.has("eager") => {
                    self.answer(out, None, id, "job.accepted", json!({ "job_id": "job_1" }));
                    true
                }
                _ => true,
            };
        };
        if kind == "session.close" && !self.has("ignores-close") {
            connection.closed = true;
        }
        if connection.closed {
            return false;
        }
        let fresh = self.state().sessions.get_mut(&session).unwrap().seen.insert(id.to_owned());
        if !fresh && !self.has("forgets-ids") {
            return true;
        }
        let refusal = match self.check_envelope(&message) {
            Ok(()) => self.carry_out(&message, &session, out).err(),
            Err(refusal) => Some(refusal),
        };
        let Some(refusal) = refusal else { return true };
        let optional = message["extensions"]["optional"] == true;
        let dropped =
            optional && (kind.contains('.') && kind.starts_with("arcpx.") || self.has("drops-optional"));
        let silent = self.has("silent-unknown") && matches!(refusal.0, "UNIMPLEMENTED" | "NOT_FOUND");
        if !silent && (!dropped || self.has("nacks-optional")) {
            self.nack(out, Some(&session), id, refusal);
        }
        !self.has("closes-on-unknown")
    }

    fn lost(&self, connection: &Connection, out: &Out) {
        if connection.session.is_none() {
            return;
        }
        let mut state = self.state();
        for session in state.sessions.values_mut() {
            if session.out.as_ref().is_some_and(|known| known.same_channel(out)) {
                session.out = None;
            }
        }
        state.observers.retain(|_, (known, _)| !known.same_channel(out));
    }

    fn closes_on_bytes(&self) -> bool {
        self.has("closes-on-bytes")
    }

    fn spoil(&self, mut message: Value) -> Vec<Value> {
        let kind = text(&message, "/type").to_owned();
        match (self.fault, kind.as_str()) {
            ("same-ids", _) => message["id"] = json!("msg_same"),
            ("no-timestamp", _) => remove(&mut message, "", "timestamp"),
            ("no-trace", _) => remove(&mut message, "", "trace_id"),
            ("no-correlation", "job.accepted") => remove(&mut message, "", "correlation_id"),
            ("no-job-ids", "job.progress") => remove(&mut message, "", "job_id"),
            ("no-session", "session.accepted") => {
                remove(&mut message, "", "session_id");
                remove(&mut message, "/payload", "session_id");
            }
            ("bare-accepted", "session.accepted") => {
                remove(&mut message, "/payload", "capabilities");
                remove(&mut message, "/payload", "runtime");
            }
            ("bare-capabilities", "session.accepted") => {
                for field in ["heartbeat_recovery", "binary_encoding", "artifact_retention"] {
                    remove(&mut message, "/payload/capabilities", field);
                }
            }
            ("wrong-codes", _) if message["payload"]["code"].is_string() => {
                message["payload"]["code"] = json!("OOPS")
            }
            ("bare-errors", _) if message["payload"]["code"].is_string() => {
                remove(&mut message, "/payload", "message");
            }
            ("bare-heartbeats", "job.heartbeat") => remove(&mut message, "/payload", "deadline_ms"),
            ("bare-streams", "stream.open") => remove(&mut message, "/payload", "kind"),
            ("bare-chunks", "stream.chunk") => {
                remove(&mut message, "/payload", "content_type");
                remove(&mut message, "/payload", "sequence");
            }
            ("loses-chunks", "stream.chunk")
                if !std::mem::replace(&mut self.state().has_lost_a_chunk, true) =>
            {
                return Vec::new();
            }
            ("no-frames", "stream.chunk") => remove(&mut message, "/payload", BYTES),
            ("wrong-chunk-hash", "stream.chunk") => message["payload"]["sha256"] = json!("00"),
            ("bare-requests", "human.input.request") => {
                remove(&mut message, "/payload", "prompt");
                remove(&mut message, "/payload", "expires_at");
            }
            ("bare-subscribed", "subscribe.accepted") => remove(&mut message, "/payload", "subscription_id"),
            ("bare-refs", "artifact.ref") => remove(&mut message, "/payload", "uri"),
            ("wrong-hash", "job.completed") => message["payload"]["result_ref"]["sha256"] = json!("00"),
            ("wrong-hash", "artifact.ref") => message["payload"]["sha256"] = json!("00"),
            ("empty-artifacts", "artifact.ref") if message["payload"]["data"].is_string() => {
                message["payload"]["data"] = json!("");
            }
            ("odd-units", "metric") => message["payload"]["unit"] = json!("words"),
            ("no-pong", "pong")
            | ("no-started", "job.started")
            | ("no-heartbeats", "job.heartbeat")
            | ("silent-cancel", "cancel.accepted")
            | ("open-streams", "stream.close") => return Vec::new(),
            _ => {}
        }
        vec![message]
    }
}
