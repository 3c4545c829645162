//! `mainstay mcp` while daemons come and go: kill what you like, its client goes on.

use std::os::fd::OwnedFd;

use crate::support;
use crate::support::bridged::Bridged;
use crate::support::{OTHER_VERSION, World};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

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
fn a_call_under_which_daemons_are_killed_is_answered_with_what_its_code_gave() {
    let (world, mut client, running) = waiting_for_go();
    let worker = world.worker_pid();
    for _ in 0..2 {
        world.kill_daemon();
        assert_eq!(world.worker_pid(), worker);
    }
    std::fs::write(world.work().join("go"), "").unwrap();
    let (is_failure, text) = client.called(running);
    assert!(!is_failure && text.contains("begun") && text.contains("40"), "{text}");
    assert_eq!((count(&world, "evalRequested"), count(&world, "evalCompleted")), (2, 2));
    let (is_failure, text) = client.eval("kept + 1");
    assert!(!is_failure && text.contains("21"), "{text}");
    assert_eq!(world.worker_pid(), worker);
}

#[test]
fn a_call_under_which_the_machine_restarts_is_answered_and_the_session_goes_on() {
    let world = World::scripted();
    let mut client = Bridged::begin(&world);
    assert!(client.eval("let kept = 20").1.contains("val kept: int = 20"));
    let session = world.session()["session"].clone();
    for evals in [2, 4] {
        let running = endless(&world, &mut client);
        world.kill_everything();
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
    let world = World::scripted();
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
    let world = World::scripted();
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
    let world = World::scripted();
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

/// A daemon that is suspended, as one that hangs; it goes on when this goes.
struct Suspended(Pid);

impl Suspended {
    fn daemon_of(world: &World) -> Self {
        let pid = Pid::from_raw(world.daemon_pid().unwrap()).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
        Self(pid)
    }
}

impl Drop for Suspended {
    fn drop(&mut self) {
        // It may have been killed.
        kill_process(self.0, Signal::CONT).ok();
    }
}

/// A world in which the patience with a daemon that hangs is short, and a client in it that runs code until the file `go` is there.
fn waiting_for_go() -> (World, Bridged, u64) {
    let world = World::scripted();
    std::fs::write(world.home().join("config.toml"), "[daemon]\nanswer-ms = 2000\n").unwrap();
    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    let mut client = Bridged::begin(&world);
    client.eval("let kept = 20");
    let before = world.events().len() as u64;
    let go = world.work().join("go");
    let code = format!(
        "printfn \"begun\"\nwhile not (System.IO.File.Exists \"{}\") do System.Threading.Thread.Sleep 10\nkept * 2",
        go.display()
    );
    let running = client.begin_call("send_fsharp_code", json!({ "code": code }));
    world.follow(before).wait_for("outputProduced");
    (world, client, running)
}

/// The id by which an answer says that its result is found.
fn id_in(text: &str) -> String {
    let at = text.find("mcp:").unwrap_or_else(|| panic!("{text}"));
    text[at..].chars().take_while(|c| !c.is_whitespace()).collect()
}

#[test]
fn a_daemon_that_hangs_is_told_of_and_used_again_once_it_goes_on() {
    let (world, mut client, running) = waiting_for_go();
    let suspended = Suspended::daemon_of(&world);
    let (is_failure, text) = client.called(running);
    assert!(is_failure && text.starts_with("daemon_silent: "), "{text}");
    assert!(text.contains(&format!("process {}", world.daemon_pid().unwrap())), "{text}");
    assert!(text.contains("`mainstay stop --force`"), "{text}");
    let id = id_in(&text);
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}), "the bridge is there");
    let (is_failure, text) = client.eval("kept + 100");
    assert!(is_failure && text.starts_with("daemon_silent: ") && !text.contains("get_result"), "{text}");

    drop(suspended);
    std::fs::write(world.work().join("go"), "").unwrap();
    let (is_failure, text) = client.call("get_result", json!({ "id": id, "wait": 50 }));
    assert!(!is_failure && text.contains("40"), "{text}");
    assert!(client.eval("kept + 1").1.contains("21"));
    assert_eq!(count(&world, "evalRequested"), 3, "what was not sent has not run");
}

#[test]
fn a_daemon_that_hangs_is_ended_by_force_and_the_next_one_has_its_sessions() {
    let (world, mut client, running) = waiting_for_go();
    let suspended = Suspended::daemon_of(&world);
    for command in ["status", "stop", "-d"] {
        let refused = world.run([command]);
        assert_eq!(refused.code, 1, "{command}: {refused:?}");
        assert!(refused.stderr.contains("[daemon_silent]"), "{command}: {refused:?}");
    }
    let id = id_in(&client.called(running).1);
    let killed = world.run(["stop", "--force"]);
    assert!(killed.code == 0 && killed.stderr.contains("was killed"), "{killed:?}");
    drop(suspended);
    assert_eq!(world.run(["status"]).code, 1, "no daemon runs");

    let (is_failure, text) = client.call("get_result", json!({ "id": id, "wait": 50 }));
    assert!(is_failure && text.contains("Interrupted") && text.contains("begun"), "{text}");
    assert!(client.eval("kept + 1").1.contains("21"));
    let nobody = World::new();
    let refused = nobody.run(["stop", "--force"]);
    assert!(refused.code == 1 && refused.stderr.contains("[daemon_not_running]"), "{refused:?}");
}

#[test]
fn force_asks_first_and_ends_a_daemon_that_takes_no_connections_either() {
    let world = World::new();
    std::fs::write(world.home().join("config.toml"), "[daemon]\nanswer-ms = 1000\n").unwrap();
    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    let stopped = world.run(["stop", "--force"]);
    assert!(stopped.code == 0 && stopped.stderr.contains("has stopped"), "{stopped:?}");

    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    let suspended = Suspended::daemon_of(&world);
    let record = std::fs::read(world.home().join("daemon.json")).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    let clients = fill(record["socket"].as_str().unwrap());
    for command in ["status", "-d"] {
        let refused = world.run([command]);
        assert!(refused.code == 1 && refused.stderr.contains("[daemon_silent]"), "{command}: {refused:?}");
    }
    let killed = world.run(["stop", "--force"]);
    assert!(killed.code == 0 && killed.stderr.contains("was killed"), "{killed:?}");
    drop((suspended, clients));
    assert_eq!(world.run(["status"]).code, 1, "no daemon runs");
}

/// Connects clients to a local socket until it lets no more wait.
fn fill(socket: &str) -> Vec<OwnedFd> {
    let address = SocketAddrUnix::new(socket).unwrap();
    let mut clients = Vec::new();
    loop {
        let client =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None).unwrap();
        match connect(&client, &address) {
            Ok(()) => clients.push(client),
            Err(Errno::AGAIN) => return clients,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn calls_go_on_with_a_daemon_of_another_version_and_commands_say_which_it_is() {
    let world = World::scripted();
    let other = world.other_version();
    let mut client = Bridged::begin(&world);
    client.eval("let kept = 20");
    assert_eq!(world.run(["stop"]).code, 0);
    let mut start = world.command_of(&other);
    start.args(["-d", "--port", "0"]);
    assert!(start.status().unwrap().success());
    client.wait_until(|message| message["method"] == "notifications/tools/list_changed");
    let (is_failure, text) = client.eval("kept + 1");
    assert!(!is_failure && text.contains("21"), "{text}");

    let own = env!("CARGO_PKG_VERSION");
    let refused = world.run(["eval", "kept + 2"]);
    let said =
        format!("the daemon is version {OTHER_VERSION}, this program is {own} [daemon_version_mismatch]");
    assert!(refused.code == 1 && refused.stderr.contains(&said), "{refused:?}");
    assert!(refused.stderr.contains("`mainstay upgrade`"), "{refused:?}");
    assert_eq!(world.run(["stop"]).code, 0, "it stops a daemon of any version");
    assert!(client.eval("kept + 3").1.contains("23"));
}

#[test]
fn what_a_client_follows_it_follows_in_the_next_daemon() {
    let world = World::scripted();
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
fn what_a_dead_daemon_asked_is_taken_back_and_asked_by_the_next_one() {
    let world = World::scripted();
    let mut client = Bridged::begin(&world);
    client.eval("let kept = 20");
    let code = json!({ "code": "System.Console.ReadLine()" });
    let running = client.begin_call("send_fsharp_code", code);
    let is_ask = |message: &Value| message["method"] == "elicitation/create";
    let first = client.wait_until(is_ask);
    world.kill_daemon();
    let taken_back = client.wait_until(|message| message["method"] == "notifications/cancelled");
    assert_eq!(taken_back["params"]["requestId"], first["id"]);

    let second = client.wait_until(is_ask);
    assert_ne!(second["id"], first["id"]);
    client.say(&reply(&first, "late"));
    client.say(&reply(&second, "in time"));
    let (is_failure, text) = client.called(running);
    assert!(!is_failure && text.contains("in time"), "{text}");
    assert_eq!((count(&world, "askRaised"), count(&world, "evalRequested")), (1, 2), "the code asked once");
}

#[test]
fn what_is_asked_by_code_that_a_restart_of_the_machine_cut_off_is_taken_back() {
    let world = World::scripted();
    let mut client = Bridged::begin(&world);
    client.eval("let kept = 20");
    let code = json!({ "code": "System.Console.ReadLine()" });
    let running = client.begin_call("send_fsharp_code", code.clone());
    let is_ask = |message: &Value| message["method"] == "elicitation/create";
    let first = client.wait_until(is_ask);
    world.kill_everything();
    let taken_back = client.wait_until(|message| message["method"] == "notifications/cancelled");
    assert_eq!(taken_back["params"]["requestId"], first["id"]);
    client.called(running);

    let running = client.begin_call("send_fsharp_code", code);
    let second = client.wait_until(is_ask);
    assert_ne!(second["id"], first["id"]);
    client.say(&reply(&first, "late"));
    client.say(&reply(&second, "in time"));
    let (is_failure, text) = client.called(running);
    assert!(!is_failure && text.contains("in time"), "{text}");
}

/// The answer of a person to what an elicitation asks.
fn reply(to: &Value, answer: &str) -> Value {
    let content = json!({ "answer": answer });
    json!({ "jsonrpc": "2.0", "id": to["id"], "result": { "action": "accept", "content": content } })
}

#[test]
fn where_no_daemon_can_be_had_every_request_says_why_and_the_next_one_tries_again() {
    let world = World::scripted();
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
    let world = World::scripted();
    let mut client = Bridged::begin(&world);
    client.eval("let kept = 20");
    let running = endless(&world, &mut client);
    support::interrupt(&client.child);
    client.child.wait().unwrap();
    assert_eq!(world.run(["cancel"]).code, 0, "what it had begun goes on: {running}");
    let client = Bridged::begin(&world);
    assert!(client.end().success());
}
