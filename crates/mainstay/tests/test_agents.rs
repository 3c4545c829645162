//! Agents: the real pi behind the real daemon, with a scripted model, spoken to over `mainstay pi`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

#[path = "support/agents.rs"]
mod agents;
mod support;

use agents::Agents;
use agents::model::{call, say};
use serde_json::{Value, json};

fn prompt(id: &str, message: &str) -> Value {
    json!({ "id": id, "type": "prompt", "sessionId": "main", "message": message })
}

/// What the model was told of its tool's call, in the last message of a request.
fn result_in(request: &Value) -> String {
    request["messages"].as_array().unwrap().last().unwrap()["content"].to_string()
}

#[test]
fn an_agent_runs_code_in_the_session_of_its_folder_under_its_own_name() {
    let agents = Agents::new();
    assert_eq!(agents.world.eval("let answer = 41")["success"], true);
    let looked_at = agents.world.session()["session"].clone();
    // One that was used later, elsewhere, is not meant.
    let elsewhere = agents.world.command().args(["session", "new"]).current_dir(agents.world.home()).output();
    assert!(elsewhere.unwrap().status.success());
    let mut client = agents.client();
    client.session("main");
    agents.model.will(call("c1", "mainstay_send_fsharp_code", &json!({ "code": "answer + 1" })));
    agents.model.will(call("c2", "mainstay_send_fsharp_code", &json!({ "code": "answer +" })));
    agents.model.will(say(&["It is 42."]));
    let answer = client.ask(&prompt("p1", "what is one more than the answer?"));
    assert_eq!(answer["success"], true, "{answer}");

    let tools = agents.request(1)["tools"].clone();
    let offers = |name: &str| tools.as_array().unwrap().iter().any(|tool| tool["function"]["name"] == name);
    assert!(
        offers("mainstay_send_fsharp_code") && offers("mainstay_list_sessions") && offers("bash"),
        "{tools}"
    );
    let instructions = agents.request(1)["messages"][0]["content"].to_string();
    assert!(
        instructions.contains("begin with mainstay_: Mainstay keeps F# sessions alive"),
        "{instructions}"
    );
    let told = result_in(&agents.request(2));
    assert!(told.contains("42"), "{told}");
    let told = result_in(&agents.request(3));
    assert!(told.contains("FS0010"), "{told}");

    let events = agents.world.run(["events", "--json", "--session", looked_at.as_str().unwrap()]);
    let events: Vec<Value> = events.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let asked = events.iter().find(|event| event["body"]["code"] == "answer + 1").expect("it ran here");
    assert_eq!(asked["source"]["client"]["name"], "mcp:pi · main", "{asked}");
}

#[test]
fn an_agent_that_is_not_to_use_live_sessions_has_no_tools_for_them() {
    let agents = Agents::new();
    agents.set("live-sessions = false");
    let mut client = agents.client();
    client.session("main");
    agents.model.will(say(&["Hello."]));
    assert_eq!(client.ask(&prompt("p1", "hello"))["success"], true);
    let tools = agents.request(1)["tools"].to_string();
    assert!(tools.contains("bash") && !tools.contains("mainstay_"), "{tools}");
}

#[test]
fn what_an_agent_runs_stops_with_its_turn() {
    let agents = Agents::new();
    assert_eq!(agents.world.eval("1")["success"], true);
    let mut events = agents.world.follow(0);
    let mut client = agents.client();
    client.session("main");
    agents.model.will(call("c1", "mainstay_send_fsharp_code", &json!({ "code": "while true do ()" })));
    client.send(&prompt("p1", "go on for ever"));
    events.wait_until(|event| event["body"]["code"] == "while true do ()");
    assert_eq!(client.ask(&json!({ "id": "a1", "type": "abort", "sessionId": "main" }))["success"], true);
    events.wait_for("evalCancelled");
}
