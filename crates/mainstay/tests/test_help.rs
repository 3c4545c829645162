//! What the command line says of itself.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod support;

use support::World;

#[test]
fn the_first_help_shows_every_command_and_examples() {
    insta::assert_snapshot!(World::new().run(["--help"]).stdout, @r#"
    Keeps interactive sessions alive, durable and shared.

    Without a command it opens a prompt on this folder's most recent session: it connects to the daemon,
    or starts one first. Piped input is run as a script.

    Usage: mainstay [OPTIONS]
           mainstay <COMMAND>

    Commands:
      stop         Stop the daemon; sessions come to rest and are there again when they are next used
      status       Show the daemon and its sessions
      serve        Run the daemon in the foreground
      session      List, create, show, stop, rename and reset sessions
      eval         Run code in a session
      cancel       Stop the code that runs in a session
      events       Show what happened in a session
      kernel       List, install and examine kernels
      mcp          Serve MCP over stdio: a bridge to the daemon
      explain      Explain an error code
      completions  Print a completion script for a shell
      help         Print this message or the help of the given subcommand(s)

    Options:
      -s, --session <SESSION>
              The session: its id, the end of its id, or its name. Without it the most recently active
              one of this folder

      -k, --kind <KIND>
              The kind of session to look for or create: fsharp

      -p, --project <FILE>
              The project to look for or create a session for

      -d, --daemon
              Start the daemon in the background and return

          --port <PORT>
              With --daemon: the port to listen on, 0 for any free one

          --supervised
              With --daemon: start the daemon again after a crash

      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version

    Examples:
      mainstay                              a prompt on this folder's session
      mainstay eval '1 + 1'                 run code, print what comes of it
      echo 'printfn "hi"' | mainstay        run a script
      mainstay session list                 what there is
      mainstay events --follow              what happens
      mainstay mcp                          serve an AI agent over stdio
    "#);
}

#[test]
fn every_command_has_help() {
    let world = World::new();
    for command in [
        "stop",
        "status",
        "serve",
        "session",
        "eval",
        "cancel",
        "events",
        "kernel",
        "mcp",
        "explain",
        "completions",
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

#[test]
fn whoever_reads_no_further_ends_the_output_and_nothing_else() {
    let program = env!("CARGO_BIN_EXE_mainstay");
    let shell = |script: &str| {
        let output = std::process::Command::new("sh").arg("-c").arg(script).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(shell(&format!("'{program}' completions bash | head -n 1")), "");
    assert_eq!(shell(&format!("'{program}' explain > /dev/full")), "");
}
