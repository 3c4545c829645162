//! A daemon that is told to begin anew twice at once, to stop after that, or as a program that cannot run.

use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{World, wait_for_end, watch};

fn start(world: &World, command: &str) -> Child {
    world.command().arg(command).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// What a command said on standard error, where it succeeded.
fn said(command: Child) -> String {
    let output = command.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    said
}

#[test]
fn of_restarts_at_once_each_says_that_the_daemon_has_begun_anew() {
    let world = World::scripted();
    world.eval("let kept = 41");
    let (daemon, worker) = (world.daemon_pid(), world.worker_pid());
    let restarts = [(); 4].map(|()| start(&world, "restart"));
    for restart in restarts {
        let said = said(restart);
        assert!(said.contains("has begun anew"), "{said}");
    }
    assert_eq!((world.daemon_pid(), world.worker_pid()), (daemon, worker));
    assert_eq!(world.eval("kept + 1")["value"], "42");
}

#[test]
fn a_stop_that_comes_after_a_restart_was_asked_for_stops_the_daemon() {
    for restarts in 0..4 {
        let world = World::scripted();
        world.eval("let kept = 41");
        let (daemon, worker) = (watch(world.daemon_pid().unwrap()), watch(world.worker_pid()));
        let restarts: Vec<Child> = (0..restarts).map(|_| start(&world, "restart")).collect();
        let stopped = said(start(&world, "stop"));
        assert!(stopped.contains("has stopped"), "{stopped}");
        for mut restart in restarts {
            // Those that came too late have started another, which is not what is looked at here.
            restart.wait().unwrap();
        }
        wait_for_end(&daemon);
        wait_for_end(&worker);
    }
}

#[test]
fn who_has_the_daemon_go_on_as_a_program_that_cannot_run_is_told_why_it_does_not() {
    let world = World::scripted();
    world.eval("let kept = 41");
    let worker = world.worker_pid();
    let daemon = Pid::from_raw(world.daemon_pid().unwrap()).unwrap();
    let next = world.work().join("next");
    std::fs::copy(env!("CARGO_BIN_EXE_mainstay"), &next).unwrap();
    // It takes nothing in until the program cannot be run any more.
    kill_process(daemon, Signal::STOP).unwrap();
    let known = world.command();
    let mut upgrade = Command::new(&next);
    upgrade.arg("upgrade").current_dir(world.work()).stderr(Stdio::piped());
    for (name, value) in known.get_envs() {
        match value {
            Some(value) => upgrade.env(name, value),
            None => upgrade.env_remove(name),
        };
    }
    let upgrade = upgrade.spawn().unwrap();
    std::fs::set_permissions(&next, std::fs::Permissions::from_mode(0o644)).unwrap();
    kill_process(daemon, Signal::CONT).unwrap();
    let output = upgrade.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("it cannot begin anew as") && said.contains("[daemon_failed]"), "{said}");
    assert_eq!(world.eval("kept + 1")["value"], "42");
    let log = std::fs::read_to_string(world.home().join("logs/daemon.log")).unwrap();
    assert_eq!(world.worker_pid(), worker, "what ran goes on with the next daemon:\n{log}");
}
