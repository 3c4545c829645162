//! Agents: the real pi behind the real daemon, with a scripted model, spoken to over `mainstay pi`.

use std::sync::Arc;

use crate::support::agents::{Agents, LONG, PiClient};
use crate::support::{is_gone, kill, kill_at_once, watch, within};
use mainstay_test_support::model::{Step, call, say};
use serde_json::{Value, json};
use tokio::sync::Notify;

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
    agents.model.will(call("c1", "mainstay_send_code", &json!({ "code": "answer + 1" })));
    agents.model.will(call("c2", "mainstay_send_code", &json!({ "code": "answer +" })));
    agents.model.will(say(&["It is 42."]));
    let answer = client.ask(&prompt("p1", "what is one more than the answer?"));
    assert_eq!(answer["success"], true, "{answer}");

    let tools = agents.request(1)["tools"].clone();
    let offers = |name: &str| tools.as_array().unwrap().iter().any(|tool| tool["function"]["name"] == name);
    assert!(offers("mainstay_send_code") && offers("mainstay_list_sessions") && offers("bash"), "{tools}");
    let instructions = agents.request(1)["messages"][0]["content"].to_string();
    assert!(
        instructions.contains(
            "begin with mainstay_: send_code runs code in a session: a REPL (F#, Python, other languages)"
        ),
        "{instructions}"
    );
    let told = result_in(&agents.request(2));
    assert!(told.contains("42"), "{told}");
    let told = result_in(&agents.request(3));
    assert!(told.contains("FS3156"), "{told}");

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
fn the_model_of_a_session_is_told_before_its_agent_starts() {
    let agents = Agents::new();
    let mut client = agents.client();
    client.session("main");
    let state = client.ask(&json!({ "id": "g1", "type": "get_state", "sessionId": "main" }));
    assert_eq!(
        (&state["data"]["model"]["provider"], &state["data"]["model"]["id"]),
        (&"local".into(), &"m".into())
    );
    assert!(agents.world.run(["session", "show", "main", "--json"]).json()["worker"].is_null());
}

#[test]
fn what_an_agent_runs_stops_with_its_turn() {
    let agents = Agents::new();
    assert_eq!(agents.world.eval("1")["success"], true);
    let mut events = agents.world.follow_with(&["--session", "work", "--since", "0"]);
    let mut client = agents.client();
    client.session("main");
    agents.model.will(call("c1", "mainstay_send_code", &json!({ "code": "while true do ()" })));
    client.send(&prompt("p1", "go on for ever"));
    events.wait_until(|event| event["body"]["code"] == "while true do ()");
    assert_eq!(client.ask(&json!({ "id": "a1", "type": "abort", "sessionId": "main" }))["success"], true);
    events.wait_for("evalCancelled");
}

#[test]
fn a_collection_removes_an_agents_files_of_deleted_sessions_and_of_no_others() {
    let agents = Agents::new();
    let mut client = agents.client();
    for session in ["main", "other"] {
        client.session(session);
        agents.model.will(say(&["Hello."]));
        let greeting = json!({ "id": session, "type": "prompt", "sessionId": session, "message": "hello" });
        assert_eq!(client.ask(&greeting)["success"], true);
    }
    let folders = || {
        let folder = agents.world.home().join("agents/pi/sessions");
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        entries.map(|name| name.into_string().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(folders().len(), 2);
    let kept = agents.world.run(["session", "show", "main", "--json"]).json()["session"].clone();
    assert_eq!(agents.world.run(["session", "delete", "other", "--yes"]).code, 0);
    assert_eq!(agents.world.run(["gc"]).code, 0);
    assert_eq!(folders(), [kept.as_str().unwrap()]);
    agents.model.will(say(&["Still here."]));
    assert_eq!(client.ask(&prompt("p1", "and you?"))["success"], true);
}

/// Which of them are killed in the middle of a turn.
#[derive(Clone, Copy, PartialEq)]
enum Killed {
    Pi,
    PiAndDaemon,
    Everything,
}

#[test]
fn a_turn_whose_pi_was_killed_is_answered_and_the_next_one_goes_on_from_it() {
    kill_in_mid_turn(Killed::Pi);
}

#[test]
fn a_turn_that_a_restart_of_the_machine_cut_off_has_one_outcome_for_ever_and_its_session_goes_on() {
    kill_in_mid_turn(Killed::Everything);
}

#[test]
fn a_turn_whose_pi_and_daemon_were_killed_has_one_outcome_for_ever_and_its_session_goes_on() {
    kill_in_mid_turn(Killed::PiAndDaemon);
}

#[test]
fn a_turn_goes_on_while_daemons_are_killed_and_its_model_is_asked_once() {
    let agents = Agents::new();
    let mut client = agents.client();
    client.session("main");
    agents.model.will(say(&["Good day."]));
    assert_eq!(client.ask(&prompt("p0", "good day"))["success"], true);
    let pi = agents.pi_pid();
    let go_on = Arc::new(Notify::new());
    let (half, wait) = (Step::Text("half of it, ".to_owned()), Step::Wait(Arc::clone(&go_on)));
    let (rest, end) = (Step::Text("and the rest".to_owned()), Step::Finish("stop", 100));
    agents.model.will(vec![half, wait, rest, end]);
    client.send(&prompt("p1", "tell me all"));
    client.says("half of it, ");
    agents.has_stored("half of it, ");
    for _ in 0..2 {
        agents.world.kill_daemon();
        client.ends();
        client = agents.client();
        client.hear("main");
        assert_eq!(agents.pi_pid(), pi);
    }
    client.send(&prompt("p1", "tell me all"));
    go_on.notify_one();
    let outcome = client.answer("p1");
    assert_eq!(outcome["success"], true, "{outcome}");
    assert_eq!(said_in(&mut client), ["good day", "Good day.", "tell me all", "half of it, and the rest"]);
    assert_eq!(agents.model.asked(), 2);
    agents.model.will(say(&["I remember."]));
    assert_eq!(client.ask(&prompt("p2", "where were we?"))["success"], true);
    assert_eq!(agents.pi_pid(), pi);
}

fn kill_in_mid_turn(killed: Killed) {
    let agents = Agents::new();
    let mut client = agents.client();
    client.session("main");
    agents.model.will(say(&["Good day."]));
    assert_eq!(client.ask(&prompt("p0", "good day"))["success"], true);
    agents.model.will(vec![Step::Text("half".to_owned()), Step::Hang]);
    client.send(&prompt("p1", "tell me all"));
    client.says("half");
    agents.has_stored("half");
    match killed {
        Killed::Pi => kill(agents.pi_pid()),
        Killed::PiAndDaemon => kill_at_once([agents.pi_pid(), agents.world.daemon_pid().unwrap()]),
        Killed::Everything => agents.world.kill_everything(),
    }
    let outcome = if killed == Killed::Pi {
        client.answer("p1")
    } else {
        client.ends();
        client = agents.client();
        client.hear("main");
        client.ask(&prompt("p1", "tell me all"))
    };
    assert_eq!(outcome["success"], false, "{outcome}");
    assert_eq!(outcome["error"], "cut off: the agent or the daemon was lost", "{outcome}");
    assert_eq!(agents.model.asked(), 2, "what was cut off is not asked again");

    agents.model.will(say(&["I remember."]));
    let answer = client.ask(&prompt("p2", "where were we?"));
    assert_eq!(answer["success"], true, "{answer}");
    let shown = agents.request(3)["messages"].to_string();
    for said in ["good day", "Good day.", "tell me all", "half", "where were we?"] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    assert_eq!(
        said_in(&mut client),
        ["good day", "Good day.", "tell me all", "half", "where were we?", "I remember."]
    );

    // The command that was cut off has that answer, whoever asks again.
    let again = client.ask(&prompt("p1", "tell me all"));
    assert_eq!((&again["success"], &again["error"]), (&outcome["success"], &outcome["error"]));
    assert_eq!(agents.model.asked(), 3);
}

/// What is lost while an agent has started something.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ends {
    /// Nothing: the daemon is stopped.
    Stopped,
    /// The daemon, and the next one is stopped.
    DaemonKilled,
    /// The daemon and the agent, whose shim ends what that has started.
    KilledWithPi,
    /// The shim as well, so that nobody ends what the agent has started before the next daemon does.
    ShimKilledToo,
}

#[test]
fn what_an_agents_tools_started_ends_when_the_daemon_stops() {
    end_with_servers(Ends::Stopped);
}

#[test]
fn what_an_agents_tools_started_goes_on_while_a_daemon_is_killed_and_ends_when_the_next_one_stops() {
    end_with_servers(Ends::DaemonKilled);
}

#[test]
fn what_an_agents_tools_started_has_ended_under_the_next_daemon_where_pi_was_killed_too() {
    end_with_servers(Ends::KilledWithPi);
}

#[test]
fn what_an_agents_tools_started_is_ended_by_the_next_daemon_where_its_shim_was_killed_too() {
    end_with_servers(Ends::ShimKilledToo);
}

fn end_with_servers(ends: Ends) {
    let agents = Agents::new();
    let mut client = agents.client();
    client.session("main");
    let folder = agents.world.work();
    let file = |name: &str| folder.join(name).display().to_string();
    // A server that is set apart as well as a shell can, and a tool that runs.
    let server = format!(
        "setsid nohup sh -c 'echo $$ > {}; exec sleep 600' > /dev/null 2>&1 & echo started",
        file("server")
    );
    agents.model.will(call("c1", "bash", &json!({ "command": server })));
    agents.model.will(say(&["It runs."]));
    assert_eq!(client.ask(&prompt("p1", "start a server"))["success"], true);
    agents.model.will(call(
        "c2",
        "bash",
        &json!({ "command": format!("echo $$ > {}; exec sleep 600", file("tool")) }),
    ));
    client.send(&prompt("p2", "and wait"));
    let started = ["server", "tool"].map(|name| {
        let pid = || std::fs::read_to_string(file(name)).ok()?.trim().parse::<i32>().ok();
        assert!(within(LONG, || pid().is_some()), "{name} is not started");
        watch(pid().unwrap())
    });
    // Another home's agents are left alone.
    let mut other = std::process::Command::new("sleep")
        .arg("600")
        .env("MAINSTAY_RUNNER", format!("{}/agents/pi/sessions/x#y", folder.display()))
        .spawn()
        .unwrap();
    match ends {
        Ends::Stopped => assert_eq!(agents.world.run(["stop"]).code, 0),
        Ends::DaemonKilled => {
            let pi = agents.pi_pid();
            agents.world.kill_daemon();
            assert_eq!(agents.pi_pid(), pi);
            assert!(started.iter().all(|process| !is_gone(process)), "they go on");
            assert_eq!(agents.world.run(["stop"]).code, 0);
        }
        Ends::KilledWithPi => kill_at_once([agents.pi_pid(), agents.world.daemon_pid().unwrap()]),
        Ends::ShimKilledToo => {
            let pi = agents.pi_pid();
            kill_at_once(
                agents.world.shim_pids().into_iter().chain([pi, agents.world.daemon_pid().unwrap()]),
            );
        }
    }
    if [Ends::KilledWithPi, Ends::ShimKilledToo].contains(&ends) {
        assert_eq!(agents.world.run(["-d"]).code, 0);
    }
    for process in &started {
        assert!(is_gone(process), "{ends:?}");
    }
    assert!(other.try_wait().unwrap().is_none());
    other.kill().unwrap();
    other.wait().unwrap();
    agents.model.forget();
    agents.model.will(say(&["Both are gone."]));
    let mut client = agents.client();
    assert_eq!(client.ask(&prompt("p3", "and now?"))["success"], true);
}

/// The texts of the session's messages.
fn said_in(client: &mut PiClient) -> Vec<String> {
    let answer = client.ask(&json!({ "id": "m1", "type": "get_messages", "sessionId": "main" }));
    let messages = answer["data"]["messages"].as_array().unwrap().clone();
    messages.iter().map(|message| message["content"][0]["text"].as_str().unwrap().to_owned()).collect()
}

/// The least picture there is, one red dot, and the same as everyone writes bytes as text.
const DOT: (&[u8], &str) = (
    b"\x89\x50\x4e\x47\x0d\x0a\x1a\x0a\x00\x00\x00\x0d\x49\x48\x44\x52\x00\x00\x00\x01\x00\x00\x00\x01\
      \x08\x02\x00\x00\x00\x90\x77\x53\xde\x00\x00\x00\x0c\x49\x44\x41\x54\x78\x9c\x63\xf8\xcf\xc0\x00\
      \x00\x03\x01\x01\x00\xc9\xfe\x92\xef\x00\x00\x00\x00\x49\x45\x4e\x44\xae\x42\x60\x82",
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC",
);

#[test]
fn a_picture_reaches_the_model_as_it_is() {
    let agents = Agents::new();
    let (picture, text) = DOT;
    let file = agents.world.home().join("dot.png");
    std::fs::write(&file, picture).unwrap();
    agents.model.will(say(&["A dot."]));
    let file = file.to_str().unwrap();
    let answer = agents.world.run(["prompt", "--kind", "pi", "--image", file, "What is this?"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (0, "A dot.\n"), "{answer:?}");
    let shown = agents.request(1)["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    let parts = json!([
        { "type": "text", "text": "What is this?" },
        { "type": "image_url", "image_url": { "url": format!("data:image/png;base64,{text}") } },
    ]);
    assert_eq!(shown, parts);
}
