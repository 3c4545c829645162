//! The daemon, killed at each failpoint of its store while clients change a session. What was acknowledged is there after it, and a
//! command that is sent again, whether or not it had an answer, is carried out once.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use crate::support::World;
use crate::support::rpc::Connection;
use serde_json::{Value, json};

/// Kills at each failpoint; `MAINSTAY_LOG_CRASH_RUNS` says another number.
const RUNS: u64 = 10;
const CLIENTS: u64 = 4;
/// Commands of one client, if nothing kills the daemon before.
const COMMANDS: u64 = 25;

#[test]
fn a_daemon_killed_before_a_commit() {
    kill_at("before-commit");
}

#[test]
fn a_daemon_killed_after_a_commit_and_before_its_answer() {
    kill_at("after-commit");
}

#[test]
fn a_daemon_killed_between_two_appends_of_a_batch() {
    kill_at("during-batch");
}

#[test]
fn a_daemon_killed_between_a_session_and_its_events() {
    kill_at("during-projection");
}

/// Killed before the two renames of a restore, between them and behind them, the store is whole: as it was, or as the backup has
/// it. Restoring again works after each, and what was stored is in a folder beside it.
#[test]
fn a_restore_killed_at_any_of_its_steps() {
    let world = World::scripted();
    assert_eq!(world.eval("let kept = 20")["success"], true);
    assert_eq!(world.run(["backup", "monday"]).code, 0);
    for (time, found) in [(1, "21"), (2, "21"), (3, "20")] {
        assert_eq!(world.eval("let kept = 21")["success"], true);
        assert_eq!(world.run(["stop"]).code, 0);
        let killed = world
            .command()
            .env("MAINSTAY_LOG_FAILPOINT", format!("during-restore:{time}"))
            .args(["restore", "monday", "--yes"])
            .status()
            .unwrap();
        assert_eq!(killed.signal(), Some(9), "step {time}");
        let doctor = world.run(["doctor"]);
        assert_eq!(doctor.code, 0, "{doctor:?}");
        assert_eq!(world.eval("kept")["value"], found, "step {time}");
        assert_eq!(world.run(["stop"]).code, 0);
        let again = world.run(["restore", "monday", "--yes", "--json"]);
        assert_eq!(again.code, 0, "{again:?}");
        assert_eq!(world.eval("kept")["value"], "20", "step {time}");
        let aside = again.json()["setAside"].as_str().unwrap().to_owned();
        assert!(std::path::Path::new(&aside).join("mainstay.db").exists());
    }
    assert!(!world.home().join("store.restoring").exists(), "what was cut off is gone");
}

/// A command as the oracle knows it.
struct Sent {
    name: String,
    was_answered: bool,
}

fn kill_at(failpoint: &str) {
    let world = World::scripted();
    assert_eq!(world.run(["session", "new", "--name", "begun"]).code, 0);
    let session = world.session()["session"].as_str().unwrap().to_owned();
    assert_eq!(world.run(["stop"]).code, 0);
    let runs = std::env::var("MAINSTAY_LOG_CRASH_RUNS").ok().map_or(RUNS, |runs| runs.parse().unwrap());
    let (mut sent, mut killed) = (BTreeMap::new(), 0);
    for run in 0..runs {
        // Spread over the commands of a run, and never twice at the same time of passing.
        let time = 1 + run * 37 % (CLIENTS * COMMANDS);
        start(&world, Some(&format!("{failpoint}:{time}")));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (stream, session) = (Connection::open(&world), session.clone());
                std::thread::spawn(move || change_until_killed(stream, &session, run, client))
            })
            .collect();
        clients.into_iter().for_each(|client| sent.extend(client.join().unwrap()));
        match Connection::open(&world) {
            // It has not come to the failpoint so often.
            Some(_) => world.kill_daemon(),
            None => killed += 1,
        }
        start(&world, None);
        let mut again = Connection::open(&world).expect("a daemon serves");
        for (id, Sent { name, .. }) in sent.range(format!("{run:04}-")..format!("{:04}-", run + 1)) {
            let answer = rename(&mut again, &session, id, name).expect("it is not killed again");
            assert_eq!(answer["error"], Value::Null, "{id}");
        }
        assert_eq!(world.run(["stop"]).code, 0);
    }
    assert!(killed > 0, "it was never killed at {failpoint}");
    assert!(sent.values().any(|sent| sent.was_answered) && sent.values().any(|sent| !sent.was_answered));
    let examined = world.run(["doctor"]);
    assert_eq!(examined.code, 0, "{examined:?}");
    start(&world, None);
    let mut done: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for event in world.events().iter().filter(|event| event["kind"] == "sessionRenamed") {
        let (id, name) = (event["correlation"].as_str().unwrap(), event["body"]["name"].as_str().unwrap());
        done.entry(id.to_owned()).or_default().push(name.to_owned());
    }
    for (id, Sent { name, .. }) in &sent {
        assert_eq!(done.get(id), Some(&vec![name.clone()]), "{id} is done once, as it said");
    }
    assert_eq!(done.len(), sent.len());
}

/// Starts the daemon, which may be killed before it serves.
fn start(world: &World, failpoint: Option<&str>) {
    let mut command = world.command();
    if let Some(failpoint) = failpoint {
        command.env("MAINSTAY_LOG_FAILPOINT", failpoint);
    }
    let status =
        command.args(["-d", "--port", "0"]).stderr(Stdio::null()).stdout(Stdio::null()).status().unwrap();
    assert!(failpoint.is_some() || status.success());
}

fn rename(connection: &mut Connection, session: &str, id: &str, name: &str) -> Option<Value> {
    connection.ask("session/rename", &json!({"session": session, "name": name, "command": id}))
}

/// What was sent, and whether it was answered.
fn change_until_killed(
    connection: Option<Connection>,
    session: &str,
    run: u64,
    client: u64,
) -> BTreeMap<String, Sent> {
    let mut sent = BTreeMap::new();
    let Some(mut connection) = connection else { return sent };
    for command in 0..COMMANDS {
        let (id, name) = (format!("{run:04}-{client}-{command}"), format!("name {run} {client} {command}"));
        let answer = rename(&mut connection, session, &id, &name);
        let was_answered = answer.as_ref().is_some_and(|answer| answer["error"].is_null());
        sent.insert(id, Sent { name, was_answered });
        if answer.is_none() {
            break;
        }
    }
    sent
}
