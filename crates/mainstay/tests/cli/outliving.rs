//! Running code does not notice that its daemon is gone: it goes on in its shim, and the next daemon adopts it.

use std::path::Path;

use serde_json::Value;

use crate::support::{World, kill, wait_for_end};

/// The shim of the working folder's session, as the home has it.
fn shim(world: &World) -> Option<Value> {
    let id = world.session()["session"].as_str()?.to_owned();
    let record = world.home().join("shims").join(id).join("shim.json");
    serde_json::from_slice(&std::fs::read(record).ok()?).ok()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["kind"].as_str().unwrap()).collect()
}

/// What a session's code printed.
fn printed(events: &[Value]) -> String {
    events
        .iter()
        .filter(|event| event["kind"] == "outputProduced")
        .filter_map(|event| event["body"]["text"].as_str())
        .collect()
}

fn gone(pid: i32) {
    if let Ok(watch) = rustix::process::pidfd_open(
        rustix::process::Pid::from_raw(pid).unwrap(),
        rustix::process::PidfdFlags::empty(),
    ) {
        wait_for_end(&watch);
    }
}

/// Kills the daemon under code that prints a line, waits for a file and prints another; the client asks the next daemon.
fn goes_on(world: &World, kind: &[&str], code: impl Fn(&Path) -> String, before: &str, looks: &str) {
    let eval = |code: &str| world.run([&["eval", "--json"], kind, &[code]].concat()).json();
    assert_eq!(eval(before)["success"], true);
    let (worker, since) = (world.worker_pid(), world.session()["lastSeq"].as_u64().unwrap());
    let go_on = world.work().join("go-on");
    let running = world.start_eval_with(kind, &code(&go_on));
    world.follow(since).wait_for("outputProduced");
    world.kill_daemon();
    std::fs::write(&go_on, "").unwrap();
    let output = running.wait_with_output().unwrap();
    let ended: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(ended["ending"], "completed", "{ended}");
    assert_eq!(world.worker_pid(), worker, "it is the same worker");
    let events = world.events();
    assert_eq!(printed(&events), "begun\nended\n");
    let since = &events[usize::try_from(since).unwrap()..];
    assert!(
        !kinds(since).iter().any(|kind| kind.starts_with("warmUp") || *kind == "evalInterrupted"),
        "{since:?}"
    );
    // Its definitions are those of the same process.
    assert_eq!(eval(looks)["value"], "42");
}

#[test]
fn an_eval_goes_on_while_its_daemon_is_killed_and_the_next_daemon_tells_its_end() {
    let world = World::scripted();
    let code = |go_on: &Path| {
        format!(
            "printfn \"begun\"; while not (System.IO.File.Exists \"{}\") do System.Threading.Thread.Sleep 5; printfn \"ended\"",
            go_on.display()
        )
    };
    goes_on(&world, &[], code, "let kept = 41", "kept + 1");
}

#[test]
fn f_sharp_goes_on_while_its_daemon_is_killed() {
    let world = World::new();
    let code = |go_on: &Path| {
        format!(
            "printfn \"begun\"\nwhile not (System.IO.File.Exists \"{}\") do System.Threading.Thread.Sleep 5\nprintfn \"ended\"",
            go_on.display()
        )
    };
    goes_on(&world, &[], code, "let kept = 41", "kept + 1");
}

#[test]
fn python_goes_on_while_its_daemon_is_killed() {
    let world = World::with_jupyter();
    let code = |go_on: &Path| {
        format!(
            "import os, time\nprint('begun')\nwhile not os.path.exists({:?}): time.sleep(.005)\nprint('ended')",
            go_on.display().to_string()
        )
    };
    goes_on(&world, &["--kind", "python3"], code, "kept = 41", "kept + 1");
}

#[test]
fn an_idle_session_has_its_worker_after_its_daemon_was_killed() {
    let world = World::scripted();
    world.eval("let kept = 41");
    let worker = world.worker_pid();
    for _ in 0..3 {
        world.kill_daemon();
        assert_eq!(world.eval("kept + 1")["value"], "42");
        assert_eq!(world.worker_pid(), worker);
    }
    assert_eq!(kinds(&world.events()).iter().filter(|kind| **kind == "warmUpCompleted").count(), 1);
}

#[test]
fn a_stop_ends_the_shims_and_their_workers_also_where_the_daemon_was_lost() {
    let world = World::scripted();
    world.eval("let kept = 41");
    let (worker, process) = (world.worker_pid(), shim(&world).unwrap()["pid"].as_i64().unwrap());
    assert_eq!(world.run(["stop"]).code, 0);
    gone(worker);
    gone(i32::try_from(process).unwrap());
    assert_eq!(std::fs::read_dir(world.home().join("shims")).unwrap().count(), 0);

    assert_eq!(world.eval("kept + 1")["value"], "42", "it was replayed");
    let worker = world.worker_pid();
    world.kill_daemon();
    let stopped = world.run(["stop"]);
    assert_eq!((stopped.code, stopped.stderr.as_str()), (0, "no daemon ran; 1 runner ended\n"));
    gone(worker);
    assert_eq!(world.eval("kept + 1")["value"], "42", "it was replayed");
}

#[test]
fn a_shim_that_is_killed_takes_its_worker_along_and_the_session_is_replayed() {
    let world = World::scripted();
    world.eval("let kept = 41");
    let (worker, since) = (world.worker_pid(), world.session()["lastSeq"].as_u64().unwrap());
    kill(i32::try_from(shim(&world).unwrap()["pid"].as_i64().unwrap()).unwrap());
    gone(worker);
    world.follow(since).wait_for("warmUpCompleted");
    assert_eq!(world.eval("kept + 1")["value"], "42");
    assert_ne!(world.worker_pid(), worker);
}

#[test]
fn without_orphans_a_worker_ends_with_its_daemon() {
    let world = World::scripted();
    std::fs::write(world.home().join("config.toml"), "[daemon]\norphan-ms = 0\n").unwrap();
    world.eval("let kept = 41");
    let worker = world.worker_pid();
    assert_eq!(shim(&world), None);
    world.kill_daemon();
    gone(worker);
    assert_eq!(world.eval("kept + 1")["value"], "42");
}

#[test]
fn what_a_shim_said_after_its_time_is_taken_in_by_the_next_daemon() {
    let world = World::scripted();
    std::fs::write(world.home().join("config.toml"), "[daemon]\norphan-ms = 1\n").unwrap();
    world.eval("let kept = 41");
    let since = world.session()["lastSeq"].as_u64().unwrap();
    let process = i32::try_from(shim(&world).unwrap()["pid"].as_i64().unwrap()).unwrap();
    let go_on = world.work().join("go-on");
    let mut running = world.start_eval(&format!(
        "printfn \"begun\"; while not (System.IO.File.Exists \"{}\") do System.Threading.Thread.Sleep 5; printfn \"ended\"",
        go_on.display()
    ));
    world.follow(since).wait_for("outputProduced");
    // Nobody starts the next daemon.
    running.kill().unwrap();
    running.wait().unwrap();
    world.kill_daemon();
    std::fs::write(&go_on, "").unwrap();
    gone(process);
    let events = world.events();
    assert_eq!(printed(&events), "begun\nended\n");
    assert!(
        kinds(&events).contains(&"evalCompleted") && !kinds(&events).contains(&"evalInterrupted"),
        "{events:?}"
    );
    assert_eq!(world.eval("kept + 1")["value"], "42");
}
