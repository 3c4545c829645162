//! Clients of streamable HTTP that lose a connection, or the daemon.

use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::http::Served;

/// A client that reads its streams itself.
struct Raw {
    address: String,
    session: String,
}

/// A stream of events.
struct Events {
    response: Response,
    read: Vec<u8>,
    /// All events until now, as they came.
    heard: String,
}

/// An event: its id, and what it says.
type Event = (Option<String>, Option<Value>);

impl Raw {
    async fn begin(served: &Served) -> Self {
        Self::begin_in(served, "2025-06-18").await.0
    }

    /// A client of a version of the protocol, and the bytes that answer its first request.
    async fn begin_in(served: &Served, version: &str) -> (Self, String) {
        let address = format!("http://127.0.0.1:{}/mcp", served.port);
        let mut raw = Self { address, session: String::new() };
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "raw", "version": "1" } } });
        let answer = raw.request(Method::POST).json(&hello).send().await.unwrap();
        raw.session = answer.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        let answer = answer.text().await.unwrap();
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(raw.request(Method::POST).json(&ready).send().await.unwrap().status(), 202);
        (raw, answer)
    }

    fn request(&self, method: Method) -> RequestBuilder {
        let request = reqwest::Client::new().request(method, &self.address).bearer_auth("secret");
        let request = request.header("Accept", "application/json, text/event-stream");
        match self.session.is_empty() {
            true => request,
            false => request.header("Mcp-Session-Id", &self.session),
        }
    }

    async fn post(&self, method: &str, params: Value) -> Response {
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        self.request(Method::POST).json(&body).send().await.unwrap()
    }

    /// Runs code, and gives its stream.
    async fn send(&self, code: &str) -> Events {
        let arguments = json!({ "code": code });
        let params = json!({ "name": "send_code", "arguments": arguments, "_meta": { "progressToken": 7 } });
        Events::of(self.post("tools/call", params).await)
    }

    async fn get(&self, after: Option<&str>) -> Events {
        let request = self.request(Method::GET);
        let request = match after {
            Some(id) => request.header("Last-Event-ID", id),
            None => request,
        };
        Events::of(request.send().await.unwrap())
    }
}

impl Events {
    fn of(response: Response) -> Self {
        assert_eq!(response.status(), 200);
        Self { response, read: Vec::new(), heard: String::new() }
    }

    /// The next event; none at the end.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.read.windows(2).position(|pair| pair == b"\n\n") {
                let event: Vec<u8> = self.read.drain(..end + 2).collect();
                let event = String::from_utf8(event).unwrap();
                self.heard.push_str(&event);
                let field = |name| event.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
                let said = field("data:").filter(|data| !data.is_empty());
                if field("id:").is_some() || said.is_some() {
                    return Some((
                        field("id:").map(str::to_owned),
                        said.map(|said| serde_json::from_str(said).unwrap()),
                    ));
                }
            } else {
                let more = timeout(Duration::from_secs(30), self.response.chunk()).await.unwrap();
                self.read.extend_from_slice(&more.ok()??);
            }
        }
    }

    /// The next event that says something, with its id.
    async fn hear(&mut self) -> (String, Value) {
        loop {
            if let (Some(id), Some(said)) = self.next().await.unwrap() {
                return (id, said);
            }
        }
    }

    /// All that is said until the end.
    async fn rest(mut self) -> Vec<Value> {
        let mut all = Vec::new();
        while let Some((_, said)) = self.next().await {
            all.extend(said);
        }
        all
    }
}

#[tokio::test]
async fn who_comes_back_to_code_that_runs_hears_its_end_once() {
    let served = Served::start().await;
    let (raw, other) = (Raw::begin(&served).await, served.agent().await);
    other.send("1 + 1").await;
    let mut lost = raw.send("wait").await;
    served.home.reaches("Evaluating").await;
    let (id, progress) = lost.hear().await;
    assert_eq!(progress["method"], "notifications/progress");
    drop(lost);

    let back = raw.get(Some(&id)).await;
    other.call("cancel_eval", json!({})).await;
    let heard = back.rest().await;
    let [answer] = heard.as_slice() else { panic!("{heard:?}") };
    assert_eq!(answer["id"], 7, "{answer}");

    // Code that has ended meanwhile.
    assert_eq!(raw.get(Some(&id)).await.rest().await, heard);
}

#[tokio::test]
async fn who_loses_the_stream_of_changes_misses_none() {
    let served = Served::start().await;
    let (raw, other) = (Raw::begin(&served).await, served.agent().await);
    let session = other.send("1 + 1").await.session();
    let uri = format!("mainstay://session/{session}/transcript");
    Events::of(raw.post("resources/subscribe", json!({ "uri": uri })).await).rest().await;

    // What happens before the first stream is there waits for it.
    other.send("let x = 1").await;
    let mut changes = raw.get(None).await;
    let (id, change) = changes.hear().await;
    assert_eq!(change["params"]["uri"], uri);
    drop(changes);

    other.send("let x = 2").await;
    let mut back = raw.get(Some(&id)).await;
    let (next, change) = back.hear().await;
    assert_eq!(change["params"]["uri"], uri);
    assert_ne!(next, id);
}

#[tokio::test]
async fn who_comes_back_with_what_was_never_told_is_told_nothing() {
    let served = Served::start().await;
    let raw = Raw::begin(&served).await;
    for id in ["nonsense", "0/0", "9f1b/3"] {
        assert_eq!(raw.get(Some(id)).await.rest().await, [] as [Value; 0], "{id}");
    }
}

#[tokio::test]
async fn a_session_that_is_not_known_is_said_to_be_gone_and_the_work_is_found_again_by_its_key() {
    let served = Served::start().await;
    let mut raw = Raw::begin(&served).await;
    let known = raw.session.clone();
    let call = json!({ "name": "send_code", "arguments": { "code": "1 + 1", "idempotencyKey": "once" } });
    let first = Events::of(raw.post("tools/call", call.clone()).await).rest().await;

    // As after a restart: the sessions of the transport are gone, and all else is there.
    assert_eq!(raw.request(Method::DELETE).send().await.unwrap().status(), 204);
    for method in [Method::POST, Method::GET] {
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call });
        assert_eq!(raw.request(method).json(&body).send().await.unwrap().status(), 404);
    }
    raw = Raw::begin(&served).await;
    assert_ne!(raw.session, known);
    let again = Events::of(raw.post("tools/call", call).await).rest().await;
    assert_eq!(again[0]["result"]["structuredContent"], first[0]["result"]["structuredContent"]);
}

/// Whether a stream has an event whose data is empty.
fn says_nothing(stream: &str) -> bool {
    stream.lines().any(|line| line.strip_prefix("data:").is_some_and(|data| data.trim().is_empty()))
}

#[tokio::test]
async fn events_without_data_are_for_versions_that_know_them() {
    let served = Served::start().await;
    for (version, is_primed) in [("2025-03-26", false), ("2025-06-18", false), ("2025-11-25", true)] {
        let (raw, greeting) = Raw::begin_in(&served, version).await;
        assert!(greeting.contains(version) && !says_nothing(&greeting), "{version}: {greeting}");
        let listed = raw.post("tools/list", json!({})).await.text().await.unwrap();
        assert!(listed.contains("\"tools\""), "{version}: {listed}");
        assert_eq!(says_nothing(&listed), is_primed, "{version}");

        // Nothing but that is told on a stream of changes, until something changes.
        let session = served.agent().await.send("1 + 1").await.session();
        let uri = format!("mainstay://session/{session}/transcript");
        Events::of(raw.post("resources/subscribe", json!({ "uri": uri })).await).rest().await;
        let mut changes = raw.get(None).await;
        let code = format!("let x = \"{version}\"");
        served.agent().await.call("send_fsharp_code", json!({ "code": code, "sessionId": session })).await;
        let (id, _) = changes.hear().await;
        assert_eq!(says_nothing(&changes.heard), is_primed, "{version}: {}", changes.heard);
        drop(changes);

        // Nor is it told to one that comes back.
        let mut back = raw.send("1 + 2").await;
        while back.next().await.is_some() {}
        let first = back.heard.lines().find_map(|line| line.strip_prefix("id:")).unwrap().trim().to_owned();
        let mut again = raw.get(Some(&first)).await;
        while again.next().await.is_some() {}
        assert!(!says_nothing(&again.heard), "{version}: {}", again.heard);
        assert_ne!(id, first);
    }
}
