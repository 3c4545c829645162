//! What a session says of results whose library or script has changed, and how it is brought up to date, with the real compiler.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Finished, World, dotnet};
use serde_json::Value;

fn ok(finished: Finished) -> Finished {
    assert_eq!(finished.code, 0, "{finished:?}");
    finished
}

fn eval(world: &World, code: &str) -> Value {
    let evaluated = world.eval(code);
    assert_eq!(evaluated["success"], true, "{code}: {evaluated}");
    evaluated["value"].clone()
}

/// Builds `lib.dll` in the working folder with the SDK's own compiler, and puts it in the place of the former.
fn build(world: &World, source: &str) {
    let root = dotnet();
    let sdk = only(&root.join("sdk")).join("FSharp");
    let compiler = ["fsc.dll", "fsc.exe"].map(|name| sdk.join(name)).into_iter().find(|path| path.exists());
    let built = world.work().join("built.dll");
    std::fs::write(world.work().join("lib.fs"), source).unwrap();
    let mut command = Command::new(root.join("dotnet"));
    command.env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1").arg("exec").arg(compiler.unwrap());
    command.args(["--target:library", "--nologo", "--targetprofile:netcore", "--noframework", "--debug-"]);
    command.args(["--nocopyfsharpcore".to_owned(), format!("-o:{}", built.display())]);
    let runtime = only(&root.join("shared/Microsoft.NETCore.App"));
    let assemblies = std::fs::read_dir(runtime).unwrap().map(|entry| entry.unwrap().path());
    for path in assemblies.filter(|path| path.extension().is_some_and(|end| end == "dll")) {
        command.arg(format!("-r:{}", path.display()));
    }
    command.arg(format!("-r:{}", sdk.join("FSharp.Core.dll").display())).arg(world.work().join("lib.fs"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    std::fs::rename(built, world.work().join("lib.dll")).unwrap();
}

fn only(folder: &Path) -> PathBuf {
    std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path()
}

fn script(world: &World, text: &str) {
    std::fs::write(world.work().join("new.fsx"), text).unwrap();
    std::fs::rename(world.work().join("new.fsx"), world.work().join("helpers.fsx")).unwrap();
}

/// How many evals the session says are stale.
fn stale(world: &World) -> Value {
    ok(world.run(["session", "show", "--json"])).json()["validity"]["stale"].clone()
}

/// How far each output of the session still holds.
fn validities(world: &World) -> Vec<String> {
    let transcript = ok(world.run(["session", "transcript", "--json"])).stdout;
    let entries = transcript.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let outputs = entries.filter(|entry| entry["entry"]["role"] == "output");
    outputs.map(|entry| entry["validity"].as_str().unwrap_or("-").to_owned()).collect()
}

#[test]
fn what_used_a_library_or_a_script_is_stale_once_it_has_changed_and_a_refresh_brings_it_up_to_date() {
    let world = World::new();
    build(&world, "module Lib\nlet rate () = 1");
    script(&world, "let help x = x + 10");
    eval(&world, "let plain = 5");
    assert_eq!(validities(&world), ["-"], "it rests on nothing that could change");
    assert_eq!(ok(world.run(["session", "refresh"])).stderr, "nothing is out of date\n");
    eval(&world, "#r \"lib.dll\"\nlet a = Lib.rate ()");
    eval(&world, "#load \"helpers.fsx\"");
    assert_eq!(eval(&world, "Helpers.help a"), "11");
    assert_eq!(eval(&world, "plain + 1"), "6");
    assert_eq!(validities(&world), ["valid"; 5]);

    build(&world, "module Lib\nlet rate () = 2");
    assert_eq!(validities(&world), ["valid", "stale", "valid", "stale", "valid"]);
    let status = ok(world.run(["status"])).stdout;
    assert!(status.contains("    2 stale evals: what they used has changed\n"), "{status}");
    assert_eq!(stale(&world), 2);
    assert_eq!(eval(&world, "Lib.rate ()"), "1", "the worker goes on with what it has");
    let dry = ok(world.run(["session", "refresh", "--dry-run"]));
    let would =
        "6 of 6 submissions would run again, in a new worker: lib.dll cannot be exchanged in a worker\n";
    assert_eq!(dry.stderr, format!("lib.dll changed\n{would}"));
    assert_eq!(dry.stdout.matches("stale: something it used has changed since").count(), 3, "{dry:?}");
    assert_eq!(eval(&world, "a"), "1", "a dry run runs nothing");

    let refreshed = ok(world.run(["session", "refresh"]));
    assert!(refreshed.stdout.contains("a is 2 (was 1)"), "{refreshed:?}");
    assert_eq!(stale(&world), 0);
    assert_eq!((eval(&world, "Helpers.help a"), eval(&world, "plain")), ("12".into(), "5".into()));
    assert_eq!(validities(&world)[..2], ["valid", "stale"], "what was said of `a` is no longer so");
    assert_eq!(validities(&world)[7..], ["valid", "valid"]);
    let pid = world.worker_pid();
    assert_eq!(ok(world.run(["session", "refresh"])).stderr, "nothing is out of date\n");
    assert_eq!(world.worker_pid(), pid, "nothing runs where nothing is stale");

    script(&world, "let help x = x + 20");
    ok(world.run(["session", "refresh"]));
    assert_eq!(eval(&world, "Helpers.help a"), "22");
    let changes = |event: &&Value| event["kind"] == "assembliesChanged";
    let changed: Vec<_> =
        world.events().iter().filter(changes).map(|event| event["body"]["changed"].clone()).collect();
    assert_eq!(changed, [serde_json::json!(["lib.dll"]), serde_json::json!(["helpers.fsx"])]);

    std::fs::remove_file(world.work().join("lib.dll")).unwrap();
    assert!(validities(&world).contains(&"invalid".to_owned()));
    let refused = world.run(["session", "refresh"]);
    assert_eq!((refused.code, refused.stderr.contains("lib.dll is gone")), (1, true), "{refused:?}");
    assert_eq!(eval(&world, "a"), "2", "the session keeps what it has");
}
