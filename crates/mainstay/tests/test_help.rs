//! What the command line says of itself.

mod support;

use support::World;

#[test]
fn the_first_help_shows_every_command_and_examples() {
    insta::assert_snapshot!(World::new().run(["--help"]).stdout, @"");
}

#[test]
fn every_command_has_help() {
    let world = World::new();
    for command in [
        "stop", "status", "serve", "session", "eval", "cancel", "events", "kernel", "mcp", "explain", "completions",
    ] {
        let help = world.run([command, "--help"]);
        assert_eq!(help.code, 0, "{command}");
        assert!(help.stdout.contains("Usage: mainstay"), "{command}: {}", help.stdout);
    }
}

#[test]
fn a_wrong_command_line_exits_with_2() {
    let world = World::new();
    for arguments in [vec!["evil"], vec!["eval"], vec!["--no-such-flag"], vec!["completions", "tcl"]] {
        assert_eq!(world.run(arguments).code, 2);
    }
}

#[test]
fn errors_are_explained() {
    let world = World::new();
    let page = world.run(["explain", "not_offered"]);
    assert_eq!((page.code, page.stdout.starts_with("# not_offered\n")), (0, true));
    assert_eq!(world.run(["explain", "no_such_code"]).code, 1);
    assert!(world.run(["explain"]).stdout.lines().any(|line| line == "store_locked"));
}

#[test]
fn shells_get_completions() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(world.run(["completions", shell]).stdout.contains("mainstay"), "{shell}");
    }
}
