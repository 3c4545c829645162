//! A worker that is started ahead: the next session has it, whatever ends it is noticed, and it outlives nobody.

use std::time::Duration;

use serde_json::Value;

use crate::support::{World, kill, wait_for_end, watch, within};

/// More than anything here takes on a slow machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A worker that stands by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ahead {
    worker: i32,
    shim: i32,
}

fn standby(world: &World) -> Option<Ahead> {
    let status = world.run(["status", "--json"]).json();
    let pid = |name: &str| i32::try_from(status["standby"][name].as_i64()?).ok();
    Some(Ahead { worker: pid("pid")?, shim: pid("shimPid")? })
}

/// Waits until one stands by that is not this one.
fn next_standby(world: &World, before: Option<Ahead>) -> Ahead {
    let mut found = None;
    let is_there = || {
        found = standby(world).filter(|standby| Some(*standby) != before);
        found.is_some()
    };
    assert!(within(PATIENCE, is_there), "none stands by");
    found.unwrap()
}

/// Runs code in a session; gives what `--json` prints.
fn eval_in(world: &World, session: &str, code: &str) -> Value {
    world.run(["eval", "--json", "--session", session, code]).json()
}

fn worker_of(world: &World, session: &str) -> i32 {
    let shown = world.run(["session", "show", session, "--json"]).json();
    i32::try_from(shown["worker"]["pid"].as_i64().unwrap()).unwrap()
}

/// Creates a session and runs code in it; gives its worker.
fn create(world: &World, session: &str) -> i32 {
    let created = world.run(["session", "new", "--name", session]);
    assert_eq!(created.code, 0, "{created:?}");
    assert_eq!(eval_in(world, session, "1 + 1")["value"], "2");
    worker_of(world, session)
}

#[test]
fn a_new_session_a_hard_reset_and_a_fork_take_the_worker_that_stands_by() {
    let world = World::scripted().standing_by();
    assert!(standby_of_a_stopped_daemon(&world).is_none());
    create(&world, "first");
    let first = next_standby(&world, None);
    assert_eq!(create(&world, "second"), first.worker);
    let second = next_standby(&world, Some(first));
    eval_in(&world, "second", "let kept = 41");
    let reset = world.run(["session", "reset", "second", "--hard"]);
    assert_eq!(reset.code, 0, "{reset:?}");
    assert_eq!(eval_in(&world, "second", "1 + 1")["value"], "2");
    assert_eq!(worker_of(&world, "second"), second.worker);
    let third = next_standby(&world, Some(second));
    eval_in(&world, "second", "let forked = 42");
    assert_eq!(world.run(["session", "fork", "second", "--name", "fork"]).code, 0);
    assert_eq!(eval_in(&world, "fork", "forked")["value"], "42");
    assert_eq!(worker_of(&world, "fork"), third.worker);
    // Its shim has the folder of its session, and is adopted like any other.
    let fourth = next_standby(&world, Some(third));
    world.replace_daemon();
    assert_eq!(eval_in(&world, "fork", "forked")["value"], "42");
    assert_eq!(worker_of(&world, "fork"), third.worker, "it is the same worker");
    assert_ne!(standby(&world), Some(fourth));
}

fn standby_of_a_stopped_daemon(world: &World) -> Option<Value> {
    world.run(["doctor", "--json"]).json().get("standby").cloned()
}

#[test]
fn status_and_doctor_tell_of_the_standby_and_its_memory_and_metrics_of_its_takers() {
    let world = World::scripted().standing_by();
    create(&world, "first");
    let ahead = next_standby(&world, None);
    let told = "1 fsharp worker stands by for the next session, which has";
    for command in ["status", "doctor"] {
        let said = world.run([command]);
        assert!(said.stdout.contains(told), "{said:?}");
        let told = world.run([command, "--json"]).json();
        assert_eq!(told["standby"]["pid"].as_i64(), Some(ahead.worker.into()), "{told}");
        assert!(told["standby"]["residentBytes"].as_u64().unwrap() > 1_000_000, "{told}");
    }
    create(&world, "second");
    let (_, metrics) = crate::telemetry::request(&world, "GET", "/metrics", "", "");
    for process in ["new", "standby"] {
        let line = format!("mainstay_runner_starts_total{{kind=\"fsharp\",process=\"{process}\"}} 1");
        assert!(metrics.contains(&line), "{metrics}");
    }
}

#[test]
fn a_session_that_takes_it_has_its_own_folder_and_environment() {
    let world = World::scripted().standing_by();
    create(&world, "first");
    let ahead = next_standby(&world, None);
    let folder = world.work().join("elsewhere");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("here"), "the folder").unwrap();
    let mut command = world.command();
    let code = "System.IO.File.ReadAllText \"here\" + System.Environment.GetEnvironmentVariable \"OWN\"";
    command.args(["eval", "--json", code]).env("OWN", " and the variable").current_dir(&folder);
    let output = command.output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(told["value"].as_str().unwrap().contains("the folder and the variable"), "{told}");
    let sessions = world.run(["session", "list", "--json"]).json();
    let pids = sessions.as_array().unwrap().iter().map(|session| session["worker"]["pid"].as_i64());
    assert!(pids.flatten().any(|pid| pid == i64::from(ahead.worker)), "{sessions}");
}

#[test]
fn what_acts_at_the_start_of_a_process_makes_a_session_start_one_of_its_own() {
    let world = World::scripted().standing_by();
    create(&world, "first");
    let ahead = next_standby(&world, None);
    let mut command = world.command();
    command.args(["session", "new", "--name", "other"]).env("TZ", "Asia/Tokyo");
    assert!(command.output().unwrap().status.success());
    assert_eq!(eval_in(&world, "other", "1 + 1")["value"], "2");
    assert_ne!(worker_of(&world, "other"), ahead.worker);
    // The next one is for sessions as this one is.
    let next = next_standby(&world, Some(ahead));
    let mut command = world.command();
    command.args(["session", "new", "--name", "third"]).env("TZ", "Asia/Tokyo");
    assert!(command.output().unwrap().status.success());
    assert_eq!(eval_in(&world, "third", "1 + 1")["value"], "2");
    assert_eq!(worker_of(&world, "third"), next.worker);
}

#[test]
fn one_that_is_killed_is_noticed_and_costs_nobody_anything() {
    let world = World::scripted().standing_by();
    create(&world, "first");
    let first = next_standby(&world, None);
    let shim = watch(first.shim);
    kill(first.worker);
    wait_for_end(&shim);
    let second = next_standby(&world, Some(first));
    let worker = watch(second.worker);
    kill(second.shim);
    wait_for_end(&worker);
    let third = next_standby(&world, Some(second));
    // This one is dead when it is taken, and nobody can have noticed.
    let processes = [third.worker, third.shim].map(watch);
    for process in &processes {
        rustix::process::pidfd_send_signal(process, rustix::process::Signal::STOP).unwrap();
    }
    rustix::process::pidfd_send_signal(&processes[0], rustix::process::Signal::KILL).unwrap();
    rustix::process::pidfd_send_signal(&processes[1], rustix::process::Signal::CONT).unwrap();
    assert_ne!(create(&world, "second"), third.worker);
}

#[test]
fn it_ends_with_its_daemon() {
    let world = World::scripted().standing_by();
    create(&world, "first");
    let ahead = next_standby(&world, None);
    let processes = [ahead.worker, ahead.shim].map(watch);
    world.kill_daemon();
    processes.iter().for_each(wait_for_end);
    create(&world, "second");
    let ahead = next_standby(&world, None);
    let processes = [ahead.worker, ahead.shim].map(watch);
    // One whose shim cannot notice is found by the next daemon.
    rustix::process::pidfd_send_signal(&processes[1], rustix::process::Signal::STOP).unwrap();
    world.kill_daemon();
    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    processes.iter().for_each(wait_for_end);
    create(&world, "third");
    let ahead = next_standby(&world, None);
    let processes = [ahead.worker, ahead.shim].map(watch);
    assert_eq!(world.run(["stop"]).code, 0);
    processes.iter().for_each(wait_for_end);
    // One that was begun as the daemon stopped ends by itself.
    let left = || std::fs::read_dir(world.home().join("shims")).unwrap().flatten().count();
    assert!(within(PATIENCE, || left() == 0), "{} are left", left());
}

#[test]
fn a_real_worker_that_stood_by_runs_code_as_any_other() {
    let world = World::new().standing_by();
    create(&world, "first");
    let ahead = next_standby(&world, None);
    assert_eq!(create(&world, "second"), ahead.worker);
    let numbered = "type Numbered = Numbered\ntypeof<Numbered>.FullName";
    let first = eval_in(&world, "second", numbered);
    assert_eq!(first["value"], "\"FSI_0002+Numbered\"", "{first}");
    let folder = eval_in(&world, "second", "System.Environment.CurrentDirectory = __SOURCE_DIRECTORY__");
    assert_eq!(folder["value"], "true", "{folder}");
}
