//! `mainstay mcp` while daemons come and go: kill what you like, its client goes on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

#[path = "support/bridged.rs"]
mod bridged;
mod support;

use bridged::Bridged;
use serde_json::{Value, json};
use support::World;

/// Starts code that never ends, and waits until it runs.
fn endless(world: &World, client: &mut Bridged) -> u64 {
    let before = world.events().len() as u64;
    let code = "printfn \"begun\"; System.Threading.Thread.Sleep -1";
    let id = client.begin_call("send_fsharp_code", json!({ "code": code }));
    world.follow(before).wait_for("outputProduced");
    id
}

fn count(world: &World, kind: &str) -> usize {
    world.events().iter().filter(|event| event["kind"] == kind).count()
}

#[test]
fn a_call_under_which_the_daemon_is_killed_is_answered_and_the_session_goes_on() {
    let world = World::new();
    let mut client = Bridged::begin(&world);
    assert!(client.eval("let kept = 20").1.contains("val kept: int = 20"));
    let session = world.session()["session"].clone();
    for evals in [2, 4] {
        let running = endless(&world, &mut client);
        world.kill_daemon();
        let (is_failure, text) = client.called(running);
        assert!(is_failure && text.contains("Interrupted") && text.contains("begun"), "{text}");
        assert!(text.contains("then send it again"), "{text}");
        assert_eq!(count(&world, "evalRequested"), evals, "it ran once");
        let (is_failure, text) = client.eval("kept + 1");
        assert!(!is_failure && text.contains("21"), "{text}");
    }
    assert!(session.is_string());
    assert_eq!(world.session()["session"], session);
    assert!(client.end().success());
}

#[test]
fn a_daemon_that_is_killed_between_calls_is_replaced_for_the_next_one() {
    let world = World::new();
    let mut client = Bridged::begin(&world);
    client.call("create_session", json!({ "name": "mine" }));
    client.eval("let kept = 20");
    // Another that a call without a session would take, were the client new.
    let later = world.run(["session", "new", "--name", "later"]);
    assert_eq!(later.code, 0, "{later:?}");
    world.kill_daemon();
    let (is_failure, text) = client.eval("kept + 1");
    assert!(!is_failure && text.contains("21"), "{text}");
}

#[test]
fn a_daemon_that_was_stopped_stays_stopped_until_it_is_needed() {
    let world = World::new();
    let mut client = Bridged::begin(&world);
    client.eval("let kept = 20");
    assert_eq!(world.run(["stop"]).code, 0);
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    assert_eq!(world.run(["status"]).code, 1, "nobody needs it");
    let (is_failure, text) = client.eval("kept + 1");
    assert!(!is_failure && text.contains("21"), "{text}");
}

#[test]
fn a_daemon_that_is_stopped_under_a_call_answers_it() {
    let world = World::new();
    std::fs::write(world.home().join("config.toml"), "[limits]\ndrain-ms = 100\n").unwrap();
    let mut client = Bridged::begin(&world);
    client.eval("let kept = 20");
    let running = endless(&world, &mut client);
    let waiting = client.begin_call("send_fsharp_code", json!({ "code": "kept + 2" }));
    world.follow(0).wait_for("commandQueued");
    assert_eq!(world.run(["stop"]).code, 0);
    let (is_failure, text) = client.called(running);
    assert!(is_failure, "{text}");
    let (is_failure, text) = client.called(waiting);
    assert!(!is_failure && text.contains("22") || text.contains("daemon_stopping"), "{text}");
    let (is_failure, text) = client.eval("kept + 1");
    assert!(!is_failure && text.contains("21"), "{text}");
}

#[test]
fn what_a_client_follows_it_follows_in_the_next_daemon() {
    let world = World::new();
    let mut client = Bridged::begin(&world);
    client.eval("let kept = 20");
    let uri = format!("mainstay://session/{}/transcript", world.session()["session"].as_str().unwrap());
    let followed = client.ask("resources/subscribe", json!({ "uri": uri }));
    assert!(followed["error"].is_null(), "{followed}");
    world.kill_daemon();
    let is_word = |message: &Value| message["method"] == "notifications/resources/updated";
    // Somebody else starts the next daemon.
    world.eval("kept + 1");
    assert_eq!(client.wait_until(is_word)["params"]["uri"], json!(uri));
    world.eval("kept + 2");
    client.wait_until(is_word);
}

#[test]
fn what_a_dead_daemon_asked_is_taken_back() {
    let world = World::new();
    let mut client = Bridged::begin(&world);
    client.eval("let kept = 20");
    let code = json!({ "code": "System.Console.ReadLine()" });
    let running = client.begin_call("send_fsharp_code", code.clone());
    let is_ask = |message: &Value| message["method"] == "elicitation/create";
    let first = client.wait_until(is_ask);
    world.kill_daemon();
    let taken_back = client.wait_until(|message| message["method"] == "notifications/cancelled");
    assert_eq!(taken_back["params"]["requestId"], first["id"]);
    client.called(running);

    let running = client.begin_call("send_fsharp_code", code);
    let second = client.wait_until(is_ask);
    assert_ne!(second["id"], first["id"]);
    let reply = |to: &Value, answer: &str| {
        let content = json!({ "answer": answer });
        json!({ "jsonrpc": "2.0", "id": to["id"], "result": { "action": "accept", "content": content } })
    };
    client.say(&reply(&first, "late"));
    client.say(&reply(&second, "in time"));
    let (is_failure, text) = client.called(running);
    assert!(!is_failure && text.contains("in time"), "{text}");
}

#[test]
fn where_no_daemon_can_be_had_every_request_says_why_and_the_next_one_tries_again() {
    let world = World::new();
    let config = world.home().join("config.toml");
    std::fs::write(&config, "[limits]\ncode-byte = 1\n").unwrap();
    let mut client = Bridged::silent(&world, &[]);
    let refused = client.ask("tools/list", json!({}));
    assert!(refused["error"]["message"].as_str().unwrap().contains("code-byte"), "{refused}");
    let (is_failure, text) = client.eval("1 + 1");
    assert!(is_failure && text.contains("code-byte"), "{text}");
    std::fs::remove_file(config).unwrap();
    client.introduce();
    assert!(client.eval("1 + 1").1.contains('2'));
}

#[test]
fn a_wrong_token_is_said_and_is_not_the_end() {
    let world = World::new();
    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    let mut command = world.command();
    command.arg("mcp").env("MAINSTAY_TOKEN", "wrong");
    let mut client = Bridged::started(command);
    for _ in 0..2 {
        let (is_failure, text) = client.eval("1");
        assert!(is_failure && text.starts_with("unauthorized: "), "{text}");
    }
}

#[test]
fn a_bridge_ends_with_its_client() {
    let world = World::new();
    let mut client = Bridged::begin(&world);
    client.eval("let kept = 20");
    let running = endless(&world, &mut client);
    support::interrupt(&client.child);
    client.child.wait().unwrap();
    assert_eq!(world.run(["cancel"]).code, 0, "what it had begun goes on: {running}");
    let client = Bridged::begin(&world);
    assert!(client.end().success());
}
