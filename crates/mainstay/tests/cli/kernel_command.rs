//! Tests of `mainstay kernel list`, `install` and `doctor`.

use std::process::Command;

use crate::support;
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
    error: the kernel cannot be started: no .NET SDK with F# was found; run `mainstay kernel install fsharp`, or install one with `apt install dotnet-sdk-10.0`, `brew install dotnet`, `winget install Microsoft.DotNet.SDK.10` or https://dot.net/v1/dotnet-install.sh [kernel_unavailable]
      `mainstay kernel doctor KIND` says what is missing; `mainstay kernel install fsharp` and `mainstay kernel install python` install what such sessions need.
    ");
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
