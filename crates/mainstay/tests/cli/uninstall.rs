//! `mainstay uninstall`: what is there, and that it stays.

use crate::support::World;
use serde_json::Value;

#[test]
fn what_is_on_the_machine_is_said_with_what_takes_it_away() {
    let world = World::scripted();
    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    let user = world.home().join("user");
    let run = |arguments: &[&str]| {
        let output = world
            .command()
            .args(arguments)
            .env("HOME", &user)
            .env_remove("XDG_CONFIG_HOME")
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    run(&["mcp", "install", "claude-code", "--yes"]);
    let all: Vec<Value> = serde_json::from_str(&run(&["uninstall", "--json"])).unwrap();
    let removals: Vec<_> = all.iter().map(|one| one["removal"].as_str().unwrap()).collect();
    assert_eq!(removals[..2], ["mainstay stop", "mainstay mcp uninstall claude-code"]);
    assert!(removals[2].starts_with(&format!("rm -r {}", world.home().display())), "{removals:?}");
    assert_eq!(removals[3], format!("rm {}", env!("CARGO_BIN_EXE_mainstay")));

    // Each of them does what it is said for.
    run(&["mcp", "uninstall", "claude-code", "--yes"]);
    run(&["stop"]);
    let text = run(&["uninstall"]);
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(world.home().exists());
}
