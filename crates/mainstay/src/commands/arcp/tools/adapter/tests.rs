use serde_json::{Value, json};

use super::{Adapter, Output};

/// An adapter whose server and client a test plays.
struct Play {
    adapter: Adapter,
    /// What the client was told, without what differs from run to run.
    client: Vec<Value>,
    server: Vec<Value>,
}

impl Play {
    fn begin() -> Self {
        Self { adapter: Adapter::begin(0), client: Vec::new(), server: Vec::new() }.take()
    }

    /// One whose server has the tools `add` and `draw`, and whose client has opened its session.
    fn ready() -> Self {
        let mut play = Self::begin();
        play = play.client_says("session.hello", json!({ "client": { "name": "c", "version": "1" } }));
        assert_eq!(play.client, Vec::<Value>::new(), "nothing is known yet");
        play = play
            .server_says(
                json!({ "id": 1, "result": { "serverInfo": { "name": "maths", "version": "2.1" } } }),
            )
            .server_says(json!({ "id": 2, "result": { "tools": [{ "name": "add" }], "nextCursor": "more" } }))
            .server_says(
                json!({ "id": 3, "result": { "tools": [{ "name": "draw" }, { "name": "no/agent" }] } }),
            );
        play
    }

    fn client_says(mut self, kind: &str, payload: Value) -> Self {
        let envelope = json!({ "arcp": "1.1", "id": "msg_1", "type": kind, "payload": payload });
        self.adapter.hear_client(envelope.to_string().as_bytes());
        self.take()
    }

    fn server_says(mut self, mut message: Value) -> Self {
        message["jsonrpc"] = json!("2.0");
        self.adapter.hear_server(message.to_string().as_bytes());
        self.take()
    }

    fn take(mut self) -> Self {
        for output in self.adapter.take() {
            match output {
                Output::ToClient(line) => {
                    let envelope: Value = serde_json::from_str(&line).unwrap();
                    self.client.push(envelope);
                }
                Output::ToServer(line) => self.server.push(serde_json::from_str(&line).unwrap()),
                other => self.client.push(json!(format!("{other:?}"))),
            }
        }
        self
    }

    /// Calls a tool; gives the job.
    fn call(mut self, agent: &str, input: Value) -> (Self, String) {
        self.client.clear();
        self.server.clear();
        self = self.client_says("job.submit", json!({ "agent": agent, "input": input }));
        let job = self.client[0]["payload"]["job_id"].as_str().unwrap_or_default().to_owned();
        self.client.drain(..1);
        (self, job)
    }

    /// The types of what the client was told, with what they say.
    fn told(&self) -> Vec<(String, Value)> {
        let said = |envelope: &Value| {
            let mut payload = envelope["payload"].clone();
            if let Some(members) = payload.as_object_mut() {
                ["ts", "completed_at"].iter().for_each(|member| drop(members.remove(*member)));
            }
            (envelope["type"].as_str().unwrap_or_default().to_owned(), payload)
        };
        self.client.iter().map(said).collect()
    }
}

#[test]
fn the_tools_of_a_server_are_agents_in_its_version() {
    let play = Play::ready();
    assert_eq!(play.server[0]["method"], "initialize");
    assert_eq!(
        play.server[1],
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized", "params": {} })
    );
    assert_eq!(play.server[3]["params"], json!({ "cursor": "more" }));
    let welcome = &play.client[0]["payload"];
    assert_eq!(welcome["runtime"], json!({ "name": "maths", "version": "2.1" }));
    let agent = |name: &str| json!({ "name": name, "versions": ["2.1"], "default": "2.1", "x-mainstay.input": "object" });
    assert_eq!(welcome["capabilities"]["agents"], json!([agent("add"), agent("draw")]));
}

#[test]
fn what_a_tool_gives_is_the_result_of_its_job() {
    let (play, job) = Play::ready().call("add@2.1", json!({ "a": 1 }));
    let asked = json!({ "name": "add", "arguments": { "a": 1 }, "_meta": { "progressToken": job } });
    assert_eq!((&play.server[0]["method"], &play.server[0]["params"]), (&json!("tools/call"), &asked));
    let play = play
        .server_says(json!({ "method": "notifications/message", "params": { "level": "info", "data": { "a": 1 } } }))
        .server_says(json!({
            "method": "notifications/progress", "params": { "progressToken": job, "progress": 0.5, "total": 2, "message": "half" }
        }))
        .server_says(json!({ "method": "notifications/progress", "params": { "progressToken": "other", "progress": 1 } }))
        .server_says(json!({ "id": 4, "result": { "content": [{ "type": "text", "text": "{\"sum\": 3}" }] } }));
    let numbers: Vec<_> = play.client.iter().map(|envelope| envelope["event_seq"].clone()).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(
        play.told(),
        [
            (
                "job.event".to_owned(),
                json!({ "kind": "log", "body": { "level": "info", "message": "{\"a\":1}" } })
            ),
            (
                "job.event".to_owned(),
                json!({ "kind": "progress", "body": { "current": 0.5, "total": 2, "message": "half" } })
            ),
            ("job.result".to_owned(), json!({ "final_status": "success", "result": { "sum": 3 } })),
        ]
    );
    let result =
        json!({ "content": [{ "type": "text", "text": "no JSON" }, { "type": "image", "data": "AA==" }] });
    let (play, _) = play.call("draw", Value::Null);
    let told = play.server_says(json!({ "id": 5, "result": result })).told();
    assert_eq!(told[0].1, json!({ "kind": "x-mcp.content", "body": { "type": "image", "data": "AA==" } }));
    assert_eq!(told[1].1["result"], "no JSON");
    let (play, _) = Play::ready().call("draw", json!({}));
    let result = json!({ "structuredContent": { "n": 1 }, "content": [{ "type": "text", "text": "one" }] });
    assert_eq!(
        play.server_says(json!({ "id": 4, "result": result })).told()[0].1["result"],
        json!({ "n": 1 })
    );
}

#[test]
fn a_text_stays_as_it_is_unless_it_is_an_object_or_a_list() {
    for (text, value) in [("1.10", json!("1.10")), ("null", json!("null")), ("[1]", json!([1]))] {
        let (play, _) = Play::ready().call("draw", json!({}));
        let result = json!({ "content": [{ "type": "text", "text": text }] });
        let told = play.server_says(json!({ "id": 4, "result": result })).told();
        assert_eq!(told[0].1["result"], value);
    }
}

#[test]
fn what_fails_is_told_with_its_reason_and_what_is_cancelled_is_answered_once() {
    let (play, _) = Play::ready().call("add", json!({}));
    let failed = json!({ "isError": true, "content": [{ "type": "text", "text": "b is missing" }] });
    let play = play.server_says(json!({ "id": 4, "result": failed }));
    let error = &play.told()[0];
    assert_eq!(
        (&*error.0, &error.1["code"], &error.1["message"]),
        ("job.error", &json!("TOOL_FAILED"), &json!("b is missing"))
    );
    let (play, _) = play.call("add", json!({}));
    let play = play.server_says(json!({ "id": 5, "error": { "code": -32602, "message": "bad" } }));
    assert_eq!(play.told()[0].1["code"], "MCP_-32602");
    let (play, job) = play.call("add", json!({}));
    let play = play
        .client_says("job.cancel", json!({ "job_id": job }))
        .client_says("job.cancel", json!({ "job_id": job }));
    assert_eq!(play.client.len(), 1, "the tool may still act");
    let play = play
        .server_says(json!({ "id": 6, "error": { "code": 0, "message": "cancelled" } }))
        .server_says(json!({ "id": 6, "result": { "content": [] } }));
    assert_eq!(
        (&play.server[1]["method"], &play.server[1]["params"]["requestId"]),
        (&json!("notifications/cancelled"), &json!(6))
    );
    let kinds: Vec<_> = play.told().into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, ["job.cancelled", "job.error"]);
    assert_eq!(play.told()[1].1["code"], "CANCELLED");
    // As MCP prefers, nothing is answered: the server has heard of it once it says that it is there.
    let (play, job) = play.call("add", json!({}));
    let play = play.client_says("job.cancel", json!({ "job_id": job }));
    let ping = play.server.iter().find(|said| said["method"] == "ping").unwrap()["id"].clone();
    let play = play.server_says(json!({ "id": ping, "result": {} }));
    assert_eq!(play.told().last().unwrap().1["code"], "CANCELLED");
    let (mut play, _) = play.call("add", json!({}));
    play.adapter.give_up("it wrote too much");
    assert_eq!(play.take().told()[0].1["code"], "PROTOCOL");
    let (play, _) = Play::ready().call("add", json!({}));
    let play = play.server_says(json!({ "id": 4, "result": { "isError": true, "content": [] } }));
    assert_eq!(play.told()[0].1["message"], "the tool does not say why");
}

#[test]
fn what_is_not_there_is_refused_and_what_is_not_understood_is_passed_over() {
    let mut play = Play::ready();
    play.adapter.hear_client(b"no envelope");
    play.adapter.hear_client(b"\xff");
    play.adapter.hear_server(b"[]");
    play.adapter.hear_server(b"{\"id\": 99, \"result\": {}}");
    play = play.take();
    play.client.clear();
    for (agent, input, code) in [
        ("nothing", json!({}), "AGENT_NOT_AVAILABLE"),
        ("add@1", json!({}), "AGENT_VERSION_NOT_AVAILABLE"),
        ("add", json!("a"), "INVALID_REQUEST"),
    ] {
        play = play.client_says("job.submit", json!({ "agent": agent, "input": input }));
        let refused = &play.client.pop().unwrap()["payload"];
        assert_eq!((&refused["code"], &refused["details"]["request_id"]), (&json!(code), &json!("msg_1")));
    }
    play.server.clear();
    let play = play
        .server_says(json!({ "id": "p", "method": "ping" }))
        .server_says(json!({ "id": 7, "method": "sampling/createMessage", "params": {} }))
        .client_says("session.ping", json!({ "nonce": "n", "sent_at": "2026-01-01T00:00:00Z" }));
    assert_eq!(play.client.len(), 0, "the server has not said that it is there");
    let asked = play.server.iter().find(|said| said["method"] == "ping").unwrap()["id"].clone();
    let play = play.server_says(json!({ "id": asked, "result": {} })).client_says("session.close", json!({}));
    assert_eq!(play.server[0], json!({ "jsonrpc": "2.0", "id": "p", "result": {} }));
    assert_eq!(play.server[1]["error"]["code"], -32601);
    let told: Vec<_> =
        play.client.iter().map(|said| said["type"].as_str().unwrap_or("ends").to_owned()).collect();
    assert_eq!(told, ["session.pong", "session.closed", "ends"]);
    let refused =
        Play::begin().server_says(json!({ "id": 1, "error": { "code": -1, "message": "not today" } }));
    assert!(refused.client[0].to_string().contains("not today"), "{:?}", refused.client);
}
