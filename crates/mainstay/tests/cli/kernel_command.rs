//! Tests of `mainstay kernel list`, `install` and `doctor`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::support;
use crate::support::terminal::Terminal;
use crate::support::{Finished, World};

/// Runs a command where nothing of .NET is to be found.
fn without_dotnet(world: &World, arguments: &[&str]) -> Finished {
    let mut command: Command = world.command();
    let output = command
        .env_remove("DOTNET_ROOT")
        .env("PATH", "/nonexistent")
        .env("HOME", world.work())
        .args(arguments)
        .output()
        .unwrap();
    Finished {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap().replace(world.home().to_str().unwrap(), "HOME"),
        stderr: String::from_utf8(output.stderr).unwrap().replace(world.home().to_str().unwrap(), "HOME"),
    }
}

#[test]
fn where_an_sdk_is_there_it_is_listed_and_nothing_is_missing() {
    let world = World::new();
    let list = world.run(["kernel", "list", "--json"]).json();
    assert_eq!(list[0]["origin"], "dotnetRoot", "{list}");
    assert_eq!(list[0]["unusable"], serde_json::Value::Null);
    assert!(world.run(["kernel", "list"]).stdout.contains("usable"));
    let doctor = world.run(["kernel", "doctor"]);
    assert_eq!(doctor.code, 0, "{doctor:?}");
}

#[test]
fn where_none_is_there_the_doctor_names_the_command_that_mends_it() {
    let world = World::new();
    let doctor = without_dotnet(&world, &["kernel", "doctor"]);
    assert_eq!(doctor.code, 1);
    insta::assert_snapshot!(doctor.stdout, @"
    missing: no .NET SDK with F# was found
      run `mainstay kernel install fsharp`, or install one with `apt install dotnet-sdk-10.0`, `brew install dotnet`, `winget install Microsoft.DotNet.SDK.10` or https://dot.net/v1/dotnet-install.sh
    missing: an SDK cannot be installed: neither curl with tar, nor npm, is on the PATH
      install curl and tar (or Node.js, which brings npm) with the system's package manager
    ");
    assert!(!without_dotnet(&world, &["kernel", "list"]).stdout.contains("fsharp"));
}

#[test]
fn where_none_is_there_an_eval_says_what_to_do() {
    let world = World::new();
    let refused = without_dotnet(&world, &["eval", "1"]);
    assert_eq!(refused.code, 1);
    insta::assert_snapshot!(refused.stderr, @"
    error: the kernel cannot be started: no .NET SDK with F# was found, and no Python with ipykernel; `mainstay kernel install fsharp --yes` gets F# (needs curl and tar first), `mainstay kernel install python --yes` gets Python (needs python3 first) [kernel_unavailable]
      `mainstay kernel doctor KIND` says what is missing; `mainstay kernel install fsharp` and `mainstay kernel install python` install what such sessions need.
    ");
}

/// Puts a program into a folder.
fn script(folder: &Path, name: &str, text: &str) {
    fs::create_dir_all(folder).unwrap();
    let program = folder.join(name);
    fs::write(&program, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(program, PermissionsExt::from_mode(0o755)).unwrap();
}

/// A machine without .NET, whose Python makes environments that have the kernel of the tests, and whose pip needs no network.
fn newcomer(world: &World) -> Command {
    let (machine, jupyter) = (world.work().join("machine"), support::jupyter());
    let of_environment = format!(
        "case \"$*\" in *pip*) exit 0;; esac\nexec '{}' \"$@\"",
        jupyter.join("bin/python").display()
    );
    script(&machine.join("environment/bin"), "python", &of_environment);
    std::os::unix::fs::symlink(jupyter.join("share"), machine.join("environment/share")).unwrap();
    let makes = format!(
        "case \"$1 $2\" in '-m venv') /bin/cp -a '{}/.' \"$3\";; esac",
        machine.join("environment").display()
    );
    script(&machine.join("bin"), "python3", &makes);
    let mut command = world.command();
    command.env_remove("DOTNET_ROOT").env("PATH", machine.join("bin")).env("HOME", world.work());
    command
}

#[test]
fn at_a_terminal_one_answer_gets_a_newcomer_a_session() {
    let world = World::new();
    let terminal = Terminal::run(&newcomer(&world));
    terminal.wait_for("n for none]");
    insta::assert_snapshot!(terminal.screen().replace(world.home().to_str().unwrap(), "HOME"), @"
    Nothing here runs code yet: no .NET SDK with F# was found, and no Python with ipykernel.
      1  F#: a .NET SDK from Microsoft, under HOME/dotnet (needs curl and tar first)
      2  Python: ipykernel from PyPI, under HOME/kernels/jupyter
    Install which? [1 or 2, Enter for Python; n for none]
    ");
    terminal.enter("cobol");
    terminal.wait_until("the question again", |screen| screen.matches("n for none]").count() == 2);
    terminal.enter("");
    terminal.wait_for("work>");
    terminal.enter("6 * 7");
    terminal.wait_for("\n42");
    let view = &world.run(["session", "list", "--json"]).json()[0];
    assert_eq!(view["kind"], "python", "{view}");
}

#[test]
fn who_wants_neither_is_told_the_commands() {
    let world = World::new();
    let terminal = Terminal::run(&newcomer(&world));
    terminal.wait_for("n for none]");
    terminal.enter("n");
    terminal.wait_for("`mainstay kernel install python --yes` gets Python");
    assert_eq!(terminal.wait_for_end(), 1);
    assert!(!fs::exists(world.home().join("kernels/jupyter/python")).unwrap());
}

#[test]
fn nothing_is_installed_where_an_sdk_is_there() {
    let world = World::new();
    let root = support::dotnet().canonicalize().unwrap();
    let done = world.run(["kernel", "install", "fsharp"]);
    assert_eq!(done.code, 0, "{done:?}");
    let says = format!("in {}\n", root.display());
    assert!(
        done.stderr.starts_with("F# sessions use the .NET SDK ") && done.stderr.ends_with(&says),
        "{done:?}"
    );
    assert!(!world.home().join("dotnet").exists());
}

#[test]
fn installing_asks_first_and_cannot_ask_without_a_terminal() {
    let world = World::new();
    let refused = without_dotnet(&world, &["kernel", "install", "fsharp"]);
    assert_eq!(refused.code, 1);
    insta::assert_snapshot!(refused.stderr, @"
    error: --yes is not valid: it must be given where there is no terminal to ask on [invalid_argument]
      Correct it and try again.
    ");
    assert!(world.run(["kernel", "install", "cobol", "--yes"]).stderr.contains("[kernel_unknown]"));
}

#[test]
fn a_session_whose_global_json_asks_for_a_missing_sdk_says_what_it_took() {
    let world = World::scripted();
    for (folder, version) in [("nine", "9.0.100"), ("ten", "10.0.300")] {
        let folder = world.work().join(folder);
        std::fs::create_dir(&folder).unwrap();
        let text = format!(
            "{{ // what the build server has\n \"sdk\": {{ \"version\": \"{version}\", \"rollForward\": \"disable\" }} }}"
        );
        std::fs::write(folder.join("global.json"), text).unwrap();
        let run = |arguments: &[&str]| {
            let output = world.command().args(arguments).current_dir(&folder).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        let asks = format!(
            "{}/global.json asks for the .NET SDK {version} (rollForward disable), which is not installed. \
             Until that is mended, the SDK ",
            folder.display()
        );
        assert!(run(&["eval", "1 + 1"]).contains("val it: int = 2"));
        assert!(run(&["session", "show"]).contains(&asks));
        assert!(run(&["kernel", "doctor"]).contains(&asks));
    }
}
