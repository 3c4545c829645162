//! Whole conversations of the pi protocol, frame by frame: the real daemon and the real pi with a scripted model, spoken to over `mainstay
//! pi`. Their shapes and order are pi-server's, which was run with the same commands (docs/conformance.md). A snapshot says what is sent
//! (`>`) and what comes back (`<`); left out is what differs from run to run, and the `seq` that pi-server does not have.

use crate::support::agents::{Agents, PiClient};
use mainstay_test_support::model::{Step, call, say};
use serde_json::{Value, json};

/// A client, and all that was said so far.
struct Conversation {
    client: PiClient,
    /// What was sent, and what came, in order.
    said: Vec<(char, Value)>,
}

impl Conversation {
    fn begin(agents: &Agents) -> Self {
        Self { client: agents.client(), said: Vec::new() }
    }

    fn send(&mut self, frame: &Value) {
        self.said.push(('>', frame.clone()));
        self.client.send(frame);
    }

    /// Sends a command of the session `main`, with what it says besides.
    fn command(&mut self, id: &str, kind: &str, more: &Value) {
        let mut frame = json!({ "id": id, "type": kind, "sessionId": "main" });
        frame.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.send(&frame);
    }

    fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        let heard = self.client.all_until(fits);
        let last = heard.last().unwrap().clone();
        self.said.extend(heard.into_iter().map(|frame| ('<', frame)));
        last
    }

    fn answered(&mut self, id: &str) -> Value {
        self.until(|frame| frame["type"] == "response" && frame["id"] == id)
    }

    /// Sends a command, and waits for its answer.
    fn ask(&mut self, id: &str, kind: &str, more: &Value) -> Value {
        self.command(id, kind, more);
        self.answered(id)
    }

    fn event(&mut self, kind: &str) -> Value {
        self.until(|frame| frame["event"]["type"] == kind)["event"].clone()
    }

    /// Has the session, and hears of it; nothing of that is told.
    fn with_session(mut self) -> Self {
        self.ask("create", "create_session", &json!({}));
        self.until(|frame| frame["type"] == "session_created");
        self.ask("hear", "switch_session", &json!({}));
        self.said.clear();
        self
    }

    /// All that was said, a line each.
    fn told(&self) -> String {
        lines(self.said.iter().cloned())
    }

    /// The same, where commands pass each other: first the events, then each command with what became of it.
    fn told_apart(&self, ids: &[&str]) -> String {
        let is_event = |(_, frame): &&(char, Value)| frame["type"] == "event";
        let mut parts = vec![lines(self.said.iter().filter(is_event).cloned())];
        for id in ids {
            let is_its =
                |(_, frame): &&(char, Value)| frame["id"] == *id || frame["data"]["commandId"] == *id;
            parts.push(lines(self.said.iter().filter(is_its).cloned()));
        }
        parts.join("\n\n")
    }
}

fn lines(said: impl Iterator<Item = (char, Value)>) -> String {
    let mut lines: Vec<(char, Value)> = Vec::new();
    for (way, frame) in said {
        let frame = plain("", &frame);
        // How many pieces a text comes in is the network's to say.
        if let Some((_, last)) = lines.last_mut()
            && is_next_piece(last, &frame)
        {
            let piece =
                |frame: &Value| frame["event"]["assistantMessageEvent"]["delta"].as_str().unwrap().to_owned();
            last["event"]["assistantMessageEvent"]["delta"] = (piece(last) + &piece(&frame)).into();
            continue;
        }
        lines.push((way, frame));
    }
    lines.iter().map(|(way, frame)| format!("{way} {frame}")).collect::<Vec<_>>().join("\n")
}

fn is_next_piece(last: &Value, frame: &Value) -> bool {
    let said = |frame: &Value| {
        let said = &frame["event"]["assistantMessageEvent"];
        (said["type"].clone(), said["contentIndex"].clone())
    };
    said(last) == said(frame) && frame["event"]["assistantMessageEvent"]["delta"].is_string()
}

/// A frame without what differs from run to run.
fn plain(name: &str, value: &Value) -> Value {
    match (name, value) {
        ("createdAt" | "timestamp", _) => "<time>".into(),
        ("baseUrl", _) => "<model>".into(),
        ("serverVersion", _) => "<version>".into(),
        ("sessionFile" | "sessionPath" | "cwd", Value::String(_)) => "<path>".into(),
        (_, Value::Object(fields)) => fields
            .iter()
            .filter(|(name, _)| *name != "seq")
            .map(|(name, value)| (name.clone(), plain(name, value)))
            .collect(),
        (_, Value::Array(items)) => items.iter().map(|item| plain("", item)).collect(),
        ("requestId", Value::String(text)) if text.starts_with("notify-") => "notify-<time>".into(),
        (_, Value::String(text)) if uuid::Uuid::try_parse(text).is_ok() => "<id>".into(),
        (_, other) => other.clone(),
    }
}

#[test]
fn a_session_is_created_and_heard_of() {
    let agents = Agents::new();
    let mut told = Conversation::begin(&agents);
    told.command("c1", "create_session", &json!({}));
    told.until(|frame| frame["type"] == "session_created");
    told.ask("s1", "switch_session", &json!({}));
    told.ask("g1", "get_state", &json!({}));
    insta::assert_snapshot!(told.told());
}

#[test]
fn a_prompt_has_a_tool_read_a_file() {
    let agents = Agents::new();
    std::fs::write(agents.world.work().join("note.txt"), "a note\n").unwrap();
    let mut told = Conversation::begin(&agents).with_session();
    agents.model.will(call("c1", "read", &json!({ "path": "note.txt" })));
    agents.model.will(say(&["It ", "says so."]));
    told.ask("p1", "prompt", &json!({ "message": "Read the note." }));
    insta::assert_snapshot!(told.told());
}

#[test]
fn a_turn_is_steered_followed_up_and_aborted() {
    let agents = Agents::new();
    let mut told = Conversation::begin(&agents).with_session();
    agents.model.will(vec![Step::Text("Well".to_owned()), Step::Hang]);
    told.command("p1", "prompt", &json!({ "message": "Go on." }));
    told.until(|frame| frame["event"]["assistantMessageEvent"]["delta"] == "Well");
    told.ask("s1", "steer", &json!({ "message": "left" }));
    told.ask("f1", "follow_up", &json!({ "message": "then right" }));
    told.command("a1", "abort", &json!({}));
    told.answered("p1");
    told.ask("g1", "get_state", &json!({}));
    // pi says what it was told when it has come to it, which may be once it has been told more.
    let mut is_queued = false;
    told.said.retain(|(_, frame)| {
        let event = &frame["event"];
        let is_whole = event["steering"] == json!(["left"]) && event["followUp"] == json!(["then right"]);
        event["type"] != "queue_update" || is_whole && !std::mem::replace(&mut is_queued, true)
    });
    insta::assert_snapshot!(told.told_apart(&["p1", "s1", "f1", "a1", "g1"]));
}

#[test]
fn a_line_of_a_shell_is_run() {
    let agents = Agents::new();
    let mut told = Conversation::begin(&agents).with_session();
    told.ask("b1", "bash", &json!({ "command": "echo hi" }));
    told.ask("b2", "bash", &json!({ "command": "exit 3" }));
    insta::assert_snapshot!(told.told());
}

#[test]
fn an_extension_asks_and_is_answered() {
    let agents = Agents::new();
    let extensions = agents.world.home().join("pi/extensions");
    std::fs::create_dir_all(&extensions).unwrap();
    let source = r#"
export default function (pi) {
    pi.registerCommand("sure", { description: "asks", handler: async (_args, ctx) => {
        const sure = await ctx.ui.confirm("Sure?", "Really.");
        const which = await ctx.ui.select("Which?", ["a", "b"]);
        ctx.ui.notify(`${sure} ${which}`, "info");
    } });
}
"#;
    std::fs::write(extensions.join("ask.js"), source).unwrap();
    let mut told = Conversation::begin(&agents).with_session();
    told.command("p1", "prompt", &json!({ "message": "/sure" }));
    for (id, response) in [
        ("u1", json!({ "method": "confirm", "confirmed": true })),
        ("u2", json!({ "method": "select", "value": "b" })),
    ] {
        let request = told.event("extension_ui_request")["requestId"].clone();
        told.command(id, "extension_ui_response", &json!({ "requestId": request, "response": response }));
    }
    told.answered("p1");
    told.ask("g1", "get_state", &json!({}));
    insta::assert_snapshot!(told.told_apart(&["p1", "u1", "u2"]));
}

#[test]
fn a_command_is_replayed_refused_and_depended_on() {
    let agents = Agents::new();
    let mut told = Conversation::begin(&agents).with_session();
    let name = |name: &str| json!({ "name": name });
    told.ask("n1", "set_session_name", &name("work"));
    told.ask("n1", "set_session_name", &name("work"));
    told.ask("n1", "set_session_name", &name("other"));
    told.ask("n2", "set_session_name", &json!({ "name": "behind", "dependsOn": ["n1"] }));
    told.ask("n3", "set_session_name", &json!({ "name": "never", "dependsOn": ["nobody"] }));
    told.ask("n4", "set_session_name", &json!({ "name": "never", "ifSessionVersion": 7 }));
    told.ask("k1", "set_session_name", &json!({ "name": "once", "idempotencyKey": "key" }));
    told.ask("k2", "set_session_name", &json!({ "name": "once", "idempotencyKey": "key" }));
    told.ask("g1", "get_state", &json!({}));
    told.ask("v1", "set_session_name", &json!({}));
    told.said.retain(|(_, frame)| frame["type"] != "event");
    insta::assert_snapshot!(told.told());
}

#[test]
fn a_session_is_deleted_and_loaded() {
    let agents = Agents::new();
    let mut told = Conversation::begin(&agents).with_session();
    agents.model.will(say(&["Hello."]));
    told.ask("p1", "prompt", &json!({ "message": "Hello?" }));
    told.said.clear();
    told.command("d1", "delete_session", &json!({}));
    told.until(|frame| frame["type"] == "session_deleted");
    told.ask("d2", "delete_session", &json!({}));
    told.ask("g1", "get_state", &json!({}));
    told.send(&json!({ "id": "l1", "type": "list_stored_sessions" }));
    let stored = told.answered("l1");
    let path = stored["data"]["sessions"][0]["sessionPath"].clone();
    told.command("l2", "load_session", &json!({ "sessionPath": path }));
    told.until(|frame| frame["type"] == "session_created");
    told.ask("m1", "get_messages", &json!({}));
    insta::assert_snapshot!(told.told());
}
