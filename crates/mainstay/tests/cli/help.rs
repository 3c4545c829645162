//! What the command line says of itself.

use crate::support::World;

#[test]
#[allow(clippy::too_many_lines, reason = "one snapshot of the whole text")]
fn the_first_help_shows_every_command_and_examples() {
    insta::assert_snapshot!(World::new().run(["--help"]).stdout, @r#"
    Keeps interactive sessions alive, durable and shared.

    Without a command it opens a prompt on this folder's most recent session: it connects to the daemon,
    or starts one first. Piped input is run as a script.

    Usage: mainstay [OPTIONS]
           mainstay <COMMAND>

    Commands:
      stop         Stop the daemon; its sessions start again when they are next used
      restart      Begin the daemon anew; what runs in its sessions goes on
      upgrade      Have the daemon go on as this version of Mainstay; what runs in its sessions goes on
      status       Show the daemon and its sessions
      serve        Run the daemon in the foreground
      session      List, create, fork, merge, show, stop, rename, reset and delete sessions
      eval         Run code in a session
      run          Run a notebook or a script in a session, cell by cell
      run-app      Run the program of a session's project in the session, such as a web application
      stop-app     Stop the application that runs in a session
      test         Run the tests that a session's code defined, and those of the assemblies it refers to
      coverage     Show which lines of a session's project tests reach, and how these ended
      debug        Attach a debugger to the worker of an F# session
      prompt       Say something to an agent
      command      Show what became of a command
      explore      Show what a session has and refers to: namespaces, types, names, values
      review       Say what in F# code could be written more plainly
      scaffold     Write property-based tests of an F# function from its type
      schedule     Have code or a prompt run later in a session
      search       Find what was said in sessions
      history      Show what you submitted at prompts, newest last, and remove it
      export       Write a session to a file, whole or for people to read
      import       Make a session of an exported one
      cancel       Stop the code that runs in a session
      ask          List, answer and decline what waits for an answer; ask whoever is attached
      events       Show what happened in a session
      kernel       List, install and examine kernels
      agent        List and install coding agents
      doctor       Examine the store for damage
      gc           Remove what deleted sessions have left
      backup       Write all that is stored into a folder, while everything goes on
      restore      Put a backup in the place of what is stored
      prune        Export sessions that were not used for long, and delete them
      principal    List who may come in with a token of their own, and make such tokens
      mcp          Serve MCP over stdio: a bridge to the daemon
      pi           Serves the pi protocol over stdio, one JSON frame a line
      arcp         Submits and follows jobs of ARCP; without a command, serves ARCP over stdio
      web          Open the page in a browser
      demo         Show what Mainstay does, in a minute
      uninstall    Say what of Mainstay is on this machine, and what takes it away
      explain      Explain an error code, or a rule of `review`
      completions  Print a completion script for a shell
      help         Print this message or the help of the given subcommand(s)

    Options:
      -s, --session <SESSION>
              The session: its id, the end of its id, or its name. Without it the most recently active
              one of this folder

      -k, --kind <KIND>
              The kind of session to look for or create: fsharp, python or another Jupyter kernel, or an
              agent: pi. Without it what the project here is written in

      -p, --project <PATH>
              The project to look for or create a session for, or its folder. A new session is for the
              project of this folder, where it has one

          --no-project
              Look for or create a session without a project

      -d, --daemon
              Start the daemon in the background and return

          --port <PORT>
              With --daemon: the port to listen on, 0 for any free one

          --pi-port <PI_PORT>
              With --daemon: a port for the pi protocol alone, 0 for any free one

          --supervised
              With --daemon: start the daemon again after a crash

          --no-watch
              With --daemon: do not watch the files that sessions rest on

      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version

    Examples:
      mainstay                              a prompt on this folder's session
      mainstay eval '1 + 1'                 run code, print what comes of it
      echo 'printfn "hi"' | mainstay        run a script
      mainstay prompt 'Explain this repo'   say something to an agent
      mainstay session list                 what there is
      mainstay events --follow              what happens
      mainstay mcp                          serve an AI agent over stdio
    "#);
}

#[test]
fn the_help_of_events_says_how_to_choose_them() {
    insta::assert_snapshot!(World::new().run(["events", "--help"]).stdout, @"
    Show what happened in a session

    Usage: mainstay events [OPTIONS]

    Options:
      -s, --session <SESSION>    The session: its id, the end of its id, or its name. Without it the
                                 most recently active one of this folder
      -k, --session-kind <KIND>  The kind of session to look for: fsharp, python or another Jupyter
                                 kernel, or an agent: pi
      -p, --project <PATH>       The project whose session to look for, or its folder
          --no-project           Look for a session without a project
      -a, --all                  What happened in all sessions, in the order of the log
          --since <SEQ>          Only what came after this event; with --all, after this position
                                 [default: 0]
          --kind <KIND>          Only events of this kind, as `--json` shows it: evalCompleted,
                                 outputProduced. May be given more than once
          --source <NAME>        Only what this caused: a client (cli, terminal), worker, or system,
                                 which is Mainstay itself
      -c, --command <ID>         Only events of this command
      -f, --follow               Go on with what happens next, until interrupted
          --json                 Print one JSON object a line
      -h, --help                 Print help

    Examples:
      mainstay events --since 10
      mainstay events --follow --json | jq .kind
      mainstay events --kind evalFailed --source cli
      mainstay events --command my-eval-7
      mainstay events --all --follow --kind evalCompleted --kind evalFailed
    ");
}

/// The commands that the help of these words lists, but for `help` itself.
fn commands(world: &World, words: &[String]) -> Vec<String> {
    let help = world.run(words.iter().map(String::as_str).chain(["--help"])).stdout;
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.map(|line| line.split_whitespace().next().unwrap().to_owned());
    names.filter(|name| name != "help").collect()
}

#[test]
fn every_command_has_help_with_an_example() {
    let world = World::new();
    let mut to_ask: Vec<Vec<String>> = vec![Vec::new()];
    let mut asked = 0;
    while let Some(words) = to_ask.pop() {
        let help = world.run(words.iter().map(String::as_str).chain(["--help"]));
        assert_eq!(help.code, 0, "{words:?}");
        assert!(help.stdout.contains("Usage: mainstay"), "{words:?}: {}", help.stdout);
        assert!(help.stdout.contains("\nExample"), "{words:?}: {}", help.stdout);
        asked += 1;
        let further = commands(&world, &words).into_iter();
        to_ask.extend(further.map(|name| words.iter().cloned().chain([name]).collect()));
    }
    assert_eq!(
        asked,
        1 + 42 + 17 + 6 + 5 + 4 + 3 + 1 + 3 + 2 + 2,
        "the first, each command, those of those that have some"
    );
}

#[test]
fn commands_that_create_nothing_do_not_say_that_they_would() {
    let world = World::new();
    for command in ["cancel", "events"] {
        let help = world.run([command, "--help"]).stdout;
        assert!(help.contains("The project whose session to look for"), "{help}");
        assert!(!help.contains("create"), "{help}");
    }
    assert!(
        world
            .run(["eval", "--help"])
            .stdout
            .contains("The kind of session to look for or create: fsharp, python or another")
    );
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
    assert!(world.run(["explain"]).stdout.lines().any(|line| line == "FSR002"));
    assert!(world.run(["explain", "fsr002"]).stdout.starts_with("# FSR002: A comparison"));
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
