//! A daemon whose program is removed while it runs, as package managers do it with an older version: all goes on, and the newer takes over.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use crate::daemon::Ended;
use crate::support::{OTHER_VERSION, World};

#[test]
#[cfg(target_os = "linux")]
fn a_daemon_whose_program_is_removed_starts_sessions_and_comes_back_until_the_newer_takes_over() {
    let world = World::scripted();
    let older = world.other_version();
    let store = world.work().join("store").join(OTHER_VERSION);
    fs::create_dir_all(&store).unwrap();
    let installed = store.join("mainstay");
    fs::copy(&older, &installed).unwrap();
    let mut daemon = world.command_of(&installed);
    daemon.args(["serve", "--supervised", "--announce", "--port", "0"]);
    let mut supervisor = Ended(daemon.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let mut announced = BufReader::new(supervisor.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(announced.next().unwrap().contains("ready"));
    // A client of the older version, as a prompt is that was left open.
    let run = |arguments: &[&str]| {
        let output = world.command_of(&older).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    run(&["session", "new", "--name", "early"]);
    run(&["eval", "--session", "early", "let kept = 41"]);

    fs::remove_dir_all(store.parent().unwrap()).unwrap();
    run(&["session", "new", "--name", "later"]);
    assert_eq!(run(&["eval", "--session", "later", "6 * 7"]), "val it: int = 42\n");
    world.kill_daemon();
    assert!(announced.next().unwrap().contains("ready"), "the supervisor starts it again");
    assert_eq!(run(&["eval", "--session", "early", "kept + 1"]), "val it: int = 42\n");
    run(&["restart"]);
    assert_eq!(run(&["eval", "--session", "early", "kept + 2"]), "val it: int = 43\n");

    let (daemon, refused) = (world.daemon_pid(), world.run(["eval", "1"]));
    assert!(refused.stderr.contains("[daemon_version_mismatch]"), "{refused:?}");
    let upgraded = world.run(["upgrade"]);
    let says = format!("from version {OTHER_VERSION} to {}", env!("CARGO_PKG_VERSION"));
    assert!(upgraded.code == 0 && upgraded.stderr.contains(&says), "{upgraded:?}");
    assert_eq!(world.daemon_pid(), daemon);
    let program = fs::read_link(format!("/proc/{}/exe", daemon.unwrap())).unwrap();
    assert_eq!(program, Path::new(env!("CARGO_BIN_EXE_mainstay")).canonicalize().unwrap());
    let last = world.run(["eval", "--session", "early", "kept + 3"]);
    assert_eq!(last.stdout, "val it: int = 44\n", "{last:?}");
    assert_eq!(world.run(["stop"]).code, 0);
    assert!(supervisor.0.wait().unwrap().success());
}

#[test]
#[cfg(target_os = "linux")]
fn a_program_that_was_removed_learns_the_environment_of_the_login_shell() {
    let world = World::scripted();
    let installed = world.work().join("mainstay");
    fs::copy(env!("CARGO_BIN_EXE_mainstay"), &installed).unwrap();
    let mut shell = world.command_of(Path::new("/bin/sh"));
    let removed = "exec 9< \"$0\"; rm \"$0\"; exec /proc/self/fd/9 environment --check 60000";
    shell.args(["-c", removed]).arg(&installed).env("SHELL", "/bin/sh").env("HOME", world.work());
    let asked = shell.output().unwrap();
    assert!(!installed.exists() && asked.status.success(), "{asked:?}");
}
