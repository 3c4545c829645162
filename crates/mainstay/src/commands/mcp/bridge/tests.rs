//! The state machine: conversations by hand. Any conversation at all is in [`any_conversation`].

mod any_conversation;

use mainstay_mcp::Results;
use mainstay_model::Error;
use mainstay_terminal_client::connect::MOST_LOSSES;
use serde_json::{Value, json};
use uuid::Uuid;

use super::core::{Bounds, Bridge, DaemonEnd, Silence, To};

/// A bridge between a client and daemons that are this test.
struct BridgeTest {
    bridge: Bridge,
    calls: u128,
}

/// What was said to whom.
#[derive(Debug, PartialEq)]
enum Delivered {
    Client(Value),
    Daemon(Value),
}

use Delivered::{Client, Daemon};

fn heard(said: Vec<To>) -> Vec<Delivered> {
    let read = |line: String| serde_json::from_str(&line).unwrap_or(Value::String(line));
    said.into_iter()
        .map(|to| match to {
            To::Client(line) => Client(read(line)),
            To::Daemon(line) => Daemon(read(line)),
        })
        .collect()
}

impl BridgeTest {
    fn new() -> Self {
        Self::with(None)
    }

    fn with(results: Option<Results>) -> Self {
        Self { bridge: Bridge::new(Bounds { line_bytes: 1000, requests: 4 }, results), calls: 0 }
    }

    /// One that is connected, and whose client has introduced itself.
    fn begun() -> Self {
        let mut talk = Self::new();
        talk.connected("1");
        talk.client(initialize());
        talk.daemon(json!({ "jsonrpc": "2.0", "id": 0, "result": { "protocolVersion": "2025-06-18" } }));
        talk.client(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        talk
    }

    fn client(&mut self, said: Value) -> Vec<Delivered> {
        self.client_line(&said.to_string())
    }

    fn client_line(&mut self, said: &str) -> Vec<Delivered> {
        self.calls += 1;
        heard(self.bridge.client_says(said, Uuid::from_u128(self.calls)))
    }

    fn daemon(&mut self, said: Value) -> Vec<Delivered> {
        heard(self.bridge.daemon_says(&said.to_string()))
    }

    fn connected(&mut self, version: &str) -> Vec<Delivered> {
        heard(self.bridge.connected(version))
    }

    fn lost(&mut self) -> Vec<Delivered> {
        heard(self.bridge.lost(DaemonEnd::Lost))
    }

    fn begins_anew(&mut self) -> Vec<Delivered> {
        heard(self.bridge.lost(DaemonEnd::BeginsAnew))
    }
}

fn initialize() -> Value {
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": { "protocolVersion": "2099-01-01", "clientInfo": { "name": "it", "version": "1" } } })
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn answer(id: impl Into<Value>) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "result": {} })
}

fn call(id: u64) -> Value {
    request(id, "tools/call", json!({ "name": "send_code", "arguments": { "code": "1" } }))
}

/// The call as daemons get it.
fn sent(id: u64, meta: Value) -> Value {
    let params = json!({ "name": "send_code", "arguments": { "code": "1" }, "_meta": meta });
    request(id, "tools/call", params)
}

fn told(method: &str, params: Value) -> Delivered {
    Client(json!({ "jsonrpc": "2.0", "method": format!("notifications/{method}"), "params": params }))
}

#[test]
fn a_call_is_sent_again_under_its_id_once_the_client_is_introduced_again() {
    let mut talk = BridgeTest::begun();
    let command = Uuid::from_u128(3).to_string();
    assert_eq!(talk.client(call(7)), [Daemon(sent(7, json!({ "mainstay/command": command })))]);
    assert_eq!(talk.lost(), []);
    assert!(talk.bridge.wants_daemon());

    let again = sent(7, json!({ "mainstay/again": true, "mainstay/command": command }));
    let introduction = json!({ "jsonrpc": "2.0", "id": "mainstay/bridge/1", "method": "initialize",
        "params": { "protocolVersion": "2025-06-18", "clientInfo": { "name": "it", "version": "1" } } });
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(talk.connected("1"), [Daemon(introduction), Daemon(ready), Daemon(again)]);
    assert_eq!(talk.daemon(answer("mainstay/bridge/1")), [], "the client knows it");
    assert_eq!(talk.daemon(answer(7)), [Client(answer(7))]);
    assert!(!talk.bridge.wants_daemon());
}

#[test]
fn what_the_client_said_of_itself_and_follows_is_said_again() {
    let mut talk = BridgeTest::begun();
    talk.client(request(1, "logging/setLevel", json!({ "level": "info" })));
    talk.daemon(answer(1));
    for (id, uri) in [(2, "mainstay://a"), (3, "mainstay://b"), (4, "mainstay://refused")] {
        talk.client(request(id, "resources/subscribe", json!({ "uri": uri })));
    }
    talk.daemon(answer(2));
    talk.daemon(answer(3));
    talk.daemon(json!({ "jsonrpc": "2.0", "id": 4, "error": { "code": 1, "message": "no" } }));
    talk.client(request(5, "resources/unsubscribe", json!({ "uri": "mainstay://b" })));
    talk.daemon(answer(5));

    talk.lost();
    assert!(!talk.bridge.wants_daemon(), "a daemon that was stopped stays stopped until it is needed");
    let said = talk.connected("1");
    let own = |id: u64, method: &str, params: Value| {
        let id = format!("mainstay/bridge/{id}");
        Daemon(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
    };
    assert_eq!(
        said[2..],
        [
            own(2, "logging/setLevel", json!({ "level": "info" })),
            own(3, "resources/subscribe", json!({ "uri": "mainstay://a" })),
            told("resources/updated", json!({ "uri": "mainstay://a" })),
        ]
    );
    let gone =
        json!({ "jsonrpc": "2.0", "id": "mainstay/bridge/3", "error": { "code": 1, "message": "gone" } });
    assert_eq!(talk.daemon(gone), []);
    talk.lost();
    assert_eq!(talk.connected("1").len(), 3, "it follows nothing any more");
}

#[test]
fn of_a_daemon_of_another_version_everything_listed_may_be_another() {
    let mut talk = BridgeTest::begun();
    talk.lost();
    let said = talk.connected("2");
    let lists = ["tools", "prompts", "resources"];
    assert_eq!(said[2..], lists.map(|list| told(&format!("{list}/list_changed"), json!({}))));
    talk.client(request(1, "resources/list", json!({})));
    talk.daemon(answer(1));
    talk.lost();
    assert_eq!(talk.connected("2")[2..], [told("resources/list_changed", json!({}))]);
}

#[test]
fn the_form_of_results_is_asked_for_with_what_has_results() {
    let mut talk = BridgeTest::with(Some(Results::Structured));
    talk.connected("1");
    let meta = json!({ "_meta": { "mainstay/results": "structured" } });
    let asked = |method| Daemon(request(1, method, meta.clone()));
    assert_eq!(talk.client(request(1, "tools/list", json!({}))), [asked("tools/list")]);
    assert_eq!(
        talk.client(request(2, "resources/list", json!({}))),
        [Daemon(request(2, "resources/list", json!({})))]
    );
}

#[test]
fn who_introduces_itself_is_told_that_the_tools_may_become_others() {
    let mut talk = BridgeTest::new();
    talk.connected("1");
    talk.client(initialize());
    let answer = |capabilities: Value| json!({ "jsonrpc": "2.0", "id": 0, "result": { "capabilities": capabilities } });
    let told = talk.daemon(answer(json!({ "tools": {}, "prompts": {} })));
    assert_eq!(told, [Client(answer(json!({ "tools": { "listChanged": true }, "prompts": {} })))]);
}

#[test]
fn a_client_that_was_not_answered_yet_introduces_itself_once() {
    let mut talk = BridgeTest::new();
    assert_eq!(talk.client(initialize()), []);
    talk.client(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    talk.client(request(1, "tools/list", json!({})));
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let expected = [initialize(), ready, request(1, "tools/list", json!({}))].map(Daemon);
    for _ in 0..2 {
        assert_eq!(talk.connected("1"), expected);
        talk.lost();
    }
}

#[test]
fn what_a_daemon_asked_dies_with_it() {
    let mut talk = BridgeTest::begun();
    let ask = |id: u64| request(id, "elicitation/create", json!({ "message": "?" }));
    assert_eq!(talk.daemon(ask(1)), [Client(ask(1))]);
    assert_eq!(talk.daemon(ask(2)), [Client(ask(2))]);
    assert_eq!(talk.client(answer(2)), [Daemon(answer(2))]);
    let void =
        |id: u64| told("cancelled", json!({ "requestId": id, "reason": "the daemon that asked is gone" }));
    assert_eq!(talk.lost(), [void(1)]);
    talk.connected("1");
    assert_eq!(talk.daemon(ask(1)), [Client(ask(3))], "its ids begin anew, the client's do not");
    assert_eq!(talk.client(answer(1)), [], "nobody waits for that any more");
    assert_eq!(talk.client(answer(3)), [Daemon(answer(1))]);
    talk.daemon(ask(2));
    let cancelled =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } });
    assert_eq!(talk.daemon(cancelled), [told("cancelled", json!({ "requestId": 4 }))]);
    assert_eq!(talk.client(answer(4)), []);
}

#[test]
fn the_session_of_an_answer_is_for_the_bridge_alone() {
    let mut talk = BridgeTest::begun();
    let session = "01890a5d-ac96-774b-bcce-b302099a8057";
    for (meta, shown) in [
        (json!({ "mainstay/session": session }), json!({ "content": [] })),
        (json!({ "a": 1, "mainstay/session": session }), json!({ "content": [], "_meta": { "a": 1 } })),
    ] {
        talk.client(call(1));
        let said = json!({ "jsonrpc": "2.0", "id": 1, "result": { "content": [], "_meta": meta } });
        assert_eq!(talk.daemon(said), [Client(json!({ "jsonrpc": "2.0", "id": 1, "result": shown }))]);
    }
    assert_eq!(talk.bridge.session().map(|session| session.to_string()).as_deref(), Some(session));
}

#[test]
fn without_a_daemon_who_waits_is_told_why() {
    let mut talk = BridgeTest::new();
    talk.client(request(1, "tools/list", json!({})));
    talk.client(call(2));
    let newest = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } });
    talk.client(request(3, "tools/call", newest));
    let said = heard(talk.bridge.unavailable(&Error::DaemonNotRunning));
    let words = "daemon_not_running: no daemon runs. Start it with `mainstay -d`.";
    let result = json!({ "content": [{ "type": "text", "text": words }], "isError": true });
    let mut typed = result.clone();
    typed["resultType"] = json!("complete");
    let refused = json!({ "code": -32603, "message": words, "data": { "code": "daemon_not_running" } });
    assert_eq!(
        said,
        [
            Client(json!({ "jsonrpc": "2.0", "id": 1, "error": refused })),
            Client(json!({ "jsonrpc": "2.0", "id": 2, "result": result })),
            Client(json!({ "jsonrpc": "2.0", "id": 3, "result": typed })),
        ]
    );
    assert_eq!(talk.connected("1"), [], "it was answered");
}

#[test]
fn a_call_that_had_begun_is_not_to_be_repeated_blindly() {
    let mut talk = BridgeTest::begun();
    talk.client(call(1));
    talk.lost();
    let said = heard(talk.bridge.unavailable(&Error::DaemonNotRunning));
    let [Client(refused)] = said.as_slice() else { panic!("{said:?}") };
    let text = refused["result"]["content"][0]["text"].as_str().unwrap();
    let id = Uuid::from_u128(3).simple();
    assert!(
        text.contains(&format!(
            "Do not send it again: once a daemon answers, get_result with the id mcp:{id} tells"
        )),
        "{text}"
    );
}

fn ping(number: u64) -> Value {
    let id = format!("mainstay/bridge/{number}");
    json!({ "jsonrpc": "2.0", "id": id, "method": "ping", "params": {} })
}

#[test]
fn a_daemon_that_answers_a_ping_or_says_anything_does_not_hang() {
    let mut talk = BridgeTest::begun();
    assert!(!talk.bridge.awaits_daemon(), "it owes nothing");
    talk.client(call(1));
    for (number, said) in [(1, answer("mainstay/bridge/1")), (2, answer(7))] {
        assert!(talk.bridge.awaits_daemon());
        let Silence::Ask(asked) = talk.bridge.heard_nothing() else { panic!("it hangs") };
        assert_eq!(heard(vec![asked]), [Daemon(ping(number))]);
        talk.daemon(said);
    }
    talk.daemon(answer("mainstay/bridge/2"));
    assert_eq!(talk.daemon(answer(1)), [Client(answer(1))]);
    assert!(!talk.bridge.awaits_daemon());
}

#[test]
fn who_waits_for_a_daemon_that_hangs_is_answered_and_nothing_is_sent_again() {
    let mut talk = BridgeTest::begun();
    talk.client(call(1));
    talk.client(request(2, "resources/list", json!({})));
    assert!(matches!(talk.bridge.heard_nothing(), Silence::Ask(_)));
    assert_eq!(talk.bridge.heard_nothing(), Silence::Hang);
    let said = heard(talk.bridge.hangs(&Error::DaemonSilent { pid: 7, limit_ms: 20_000 }));
    let [Client(called), Client(listed)] = said.as_slice() else { panic!("{said:?}") };
    let text = called["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("daemon_silent: the daemon (process 7) has not answered"), "{text}");
    assert!(text.contains("mainstay stop --force") && text.contains("get_result"), "{text}");
    assert_eq!(listed["error"]["data"]["code"], json!("daemon_silent"));
    assert!(!talk.bridge.wants_daemon() && !talk.bridge.awaits_daemon());
    assert_eq!(talk.connected("1").len(), 2, "the introduction");
    assert!(talk.bridge.awaits_daemon(), "it is to answer that");
    assert!(matches!(talk.bridge.heard_nothing(), Silence::Ask(_)), "it is asked anew");
}

#[test]
fn a_request_under_which_every_daemon_ends_is_answered_in_the_end() {
    let mut talk = BridgeTest::begun();
    talk.client(call(1));
    for _ in 1..MOST_LOSSES {
        assert_eq!(talk.begins_anew(), [], "one that begins anew does not count");
        talk.connected("1");
        assert_eq!(talk.lost(), []);
        talk.connected("1");
    }
    let said = talk.lost();
    let [Client(refused)] = said.as_slice() else { panic!("{said:?}") };
    let text = refused["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("daemon_not_running: "), "{text}");
    assert!(text.contains(&format!("{MOST_LOSSES} daemons ended while they had this request")), "{text}");
}

#[test]
fn a_listening_request_waits_for_a_daemon_that_somebody_else_needs() {
    let mut talk = BridgeTest::new();
    talk.connected("1");
    let filter =
        json!({ "notifications": { "resourceSubscriptions": ["mainstay://a"], "toolsListChanged": true } });
    let listen = request(1, "subscriptions/listen", filter);
    assert_eq!(talk.client(listen.clone()), [Daemon(listen.clone())]);
    let of = json!({ "io.modelcontextprotocol/subscriptionId": 1 });
    let acknowledged = json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
        "params": { "_meta": of, "notifications": {} } });
    assert_eq!(talk.daemon(acknowledged.clone()), [Client(acknowledged.clone())]);
    talk.lost();
    assert!(!talk.bridge.wants_daemon());
    assert_eq!(heard(talk.bridge.unavailable(&Error::DaemonNotRunning)), []);
    let tools = told("tools/list_changed", json!({ "_meta": of }));
    let updated = told("resources/updated", json!({ "uri": "mainstay://a", "_meta": of }));
    assert_eq!(talk.connected("2"), [Daemon(listen), tools, updated]);
    assert_eq!(talk.daemon(acknowledged), [], "the client knows it");
}

#[test]
fn progress_never_goes_back() {
    let mut talk = BridgeTest::begun();
    let with_token = json!({ "name": "send_code", "_meta": { "progressToken": "p" } });
    talk.client(request(1, "tools/call", with_token));
    let progress = |nth: f64| {
        json!({ "jsonrpc": "2.0", "method": "notifications/progress",
            "params": { "progressToken": "p", "progress": nth } })
    };
    assert_eq!(talk.daemon(progress(3.0)), [Client(progress(3.0))]);
    talk.lost();
    talk.connected("1");
    assert_eq!(talk.daemon(progress(1.0)), [Client(progress(4.0))]);
}

#[test]
fn what_the_client_gave_up_is_not_sent_again() {
    let mut talk = BridgeTest::begun();
    talk.client(call(1));
    talk.lost();
    let cancelled =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    assert_eq!(talk.client(cancelled), []);
    assert_eq!(talk.connected("1").len(), 2, "the introduction");
}

#[test]
fn without_a_daemon_the_bridge_answers_what_needs_none() {
    let mut talk = BridgeTest::new();
    assert_eq!(talk.client(request(1, "ping", json!({}))), [Client(answer(1))]);
    assert!(!talk.bridge.wants_daemon());
    assert_eq!(talk.client_line("  "), []);
    let said = talk.client_line("{nonsense");
    let [Client(refused)] = said.as_slice() else { panic!("{said:?}") };
    assert_eq!(refused["error"]["code"], json!(-32700));
    talk.connected("1");
    assert_eq!(talk.client_line("{nonsense"), [Daemon(json!("{nonsense"))], "a daemon judges it itself");
}

#[test]
fn no_more_is_kept_than_a_daemon_would_take() {
    let mut talk = BridgeTest::new();
    for id in 0..4 {
        assert_eq!(talk.client(call(id)), []);
    }
    let said = talk.client(call(4));
    let [Client(refused)] = said.as_slice() else { panic!("{said:?}") };
    assert_eq!(refused["result"]["isError"], json!(true));
    talk.connected("1");
    let long = request(5, "tools/call", json!({ "name": "x".repeat(1000) }));
    let said = talk.client(long);
    let [Client(refused)] = said.as_slice() else { panic!("{said:?}") };
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(5), &json!(-32600)));
}
