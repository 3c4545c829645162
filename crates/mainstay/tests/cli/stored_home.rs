//! What an earlier version has stored, opened by this one: `tests/stored/VERSION` has a backup that a program of that version made, and what it
//! said of it then. A newer program may say more, and nothing else. `writes_what_this_version_stores` makes the folder of a new version:
//! `cargo xtask test -- --workspace --run-ignored only -E 'test(writes_what_this_version_stores)'`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Finished, World};

/// A folder of every machine that is no project's: what is stored names the folders of sessions.
const FOLDER: &str = "/usr";
/// A picture of one pixel, so that something is stored as an object.
const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// The sessions with the formats of their exports.
const SESSIONS: [(&str, &str); 3] = [("lab", "fsx"), ("idea", "fsx"), ("snake", "py")];
/// Commands with names of their own, whose outcomes are stored.
const COMMANDS: [&str; 4] = ["first", "fails", "asks", "deletes"];
/// What is longer is only counted, in bytes.
const LONG: usize = 20_000;
/// The version of a schema that no program knows yet.
const NEVER: u32 = 1000;

fn stored() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stored")
}

/// The program in that folder, of whose environment nothing else is stored.
fn command(world: &World) -> Command {
    let of_world = world.command();
    let mut command = Command::new(of_world.get_program());
    command.env_clear().envs(of_world.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", world.work()).current_dir(FOLDER);
    command
}

fn run(world: &World, arguments: &[&str]) -> Finished {
    let output = command(world).args(arguments).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Finished {
        code: output.status.code().unwrap_or(-1),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

fn ok(world: &World, arguments: &[&str]) -> String {
    let finished = run(world, arguments);
    assert_eq!(finished.code, 0, "{arguments:?}: {finished:?}");
    finished.stdout
}

fn json_of(world: &World, arguments: &[&str]) -> Value {
    serde_json::from_str(&ok(world, arguments)).unwrap()
}

fn lines_of(text: &str) -> Value {
    text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect()
}

/// All that the program says of what is stored.
fn told(world: &World) -> Value {
    let mut sessions = BTreeMap::new();
    for (name, script) in SESSIONS {
        let export = |format| ok(world, &["export", name, "--format", format]);
        let told = json!({
            "view": json_of(world, &["session", "show", name, "--json"]),
            "events": lines_of(&ok(world, &["events", "--session", name, "--json"])),
            "transcript": lines_of(&ok(world, &["session", "transcript", name, "--json"])),
            "lineage": json_of(world, &["session", "lineage", name, "--json"]),
            "jsonl": lines_of(&export("jsonl")),
            "markdown": export("markdown"),
            "ipynb": serde_json::from_str::<Value>(&export("ipynb")).unwrap(),
            "script": export(script),
        });
        sessions.insert(name, told);
    }
    let outcomes: BTreeMap<_, _> =
        COMMANDS.map(|id| (id, json_of(world, &["command", "show", id, "--json"]))).into();
    let asks = json_of(world, &["ask", "list", "--json"]);
    abridged(json!({ "sessions": sessions, "commands": outcomes, "asks": asks }))
}

/// The same with the beginnings and lengths of long texts.
fn abridged(value: Value) -> Value {
    match value {
        Value::String(text) if text.len() > LONG => {
            let beginning: String = text.chars().take(100).collect();
            format!("{beginning}… ({} bytes)", text.len()).into()
        }
        Value::Array(values) => values.into_iter().map(abridged).collect(),
        Value::Object(fields) => fields.into_iter().map(|(key, value)| (key, abridged(value))).collect(),
        other => other,
    }
}

/// Makes sessions of every kind of history.
fn live(world: &World) {
    let eval = |session: &str, code: &str| run(world, &["eval", "--session", session, code]);
    ok(world, &["session", "new", "--kind", "fsharp", "--name", "lab"]);
    ok(world, &["eval", "--session", "lab", "--id", "first", "let kept = 20"]);
    eval("lab", "printfn \"hello\"; kept + 1");
    run(world, &["eval", "--session", "lab", "--id", "fails", "failwith \"no\""]);
    eval(
        "lab",
        &format!("Mainstay.display (Mainstay.image (System.Convert.FromBase64String \"{PICTURE}\"))"),
    );
    ok(world, &["session", "fork", "lab", "--name", "idea"]);
    eval("idea", "let more = kept * 2");
    ok(world, &["session", "merge", "idea", "1", "--into", "lab"]);
    answered(world);
    ok(world, &["session", "new", "--kind", "python", "--name", "snake"]);
    eval("snake", "x = [n * n for n in range(4)]");
    eval("snake", "print(x); x");
    // So much is stored in a file of its own.
    eval("snake", "print('-' * 70_000)");
    ok(world, &["session", "new", "--kind", "fsharp", "--name", "gone"]);
    eval("gone", "let a = 1");
    ok(world, &["session", "delete", "gone", "--yes", "--id", "deletes"]);
    asked(world, "Who answers this?", "waits");
    ok(world, &["stop"]);
}

/// Has something asked in the session `lab` by a client that is gone; gives the id of the ask.
fn asked(world: &World, prompt: &str, id: &str) -> String {
    let mut asks = command(world)
        .args(["ask", "raise", "--session", "lab", prompt, "--id", id])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let ask = loop {
        let list = json_of(world, &["ask", "list", "--json"]);
        if let Some(ask) = list[0]["ask"].as_str() {
            break ask.to_owned();
        }
    };
    asks.kill().unwrap();
    asks.wait().unwrap();
    ask
}

fn answered(world: &World) {
    let ask = asked(world, "What is it called?", "asks");
    ok(world, &["ask", "answer", &ask, "seven"]);
}

/// Whether all that was told is told still.
fn contains(now: &Value, then: &Value, place: &str) {
    match (now, then) {
        (Value::Object(now), Value::Object(then)) => {
            for (key, value) in then {
                contains(now.get(key).unwrap_or(&Value::Null), value, &format!("{place}.{key}"));
            }
        }
        (Value::Array(now), Value::Array(then)) => {
            assert_eq!(now.len(), then.len(), "{place}");
            for (index, (now, then)) in now.iter().zip(then).enumerate() {
                contains(now, then, &format!("{place}[{index}]"));
            }
        }
        _ => assert_eq!(now, then, "{place}"),
    }
}

#[test]
#[ignore = "it writes tests/stored"]
fn writes_what_this_version_stores() {
    let folder = stored().join(env!("CARGO_PKG_VERSION"));
    fs::remove_dir_all(&folder).ok();
    fs::create_dir_all(&folder).unwrap();
    let world = World::scripted_with_jupyter();
    live(&world);
    let backup = world.work().join("backup");
    ok(&world, &["backup", backup.to_str().unwrap()]);
    let told = told(&world);
    ok(&world, &["stop"]);
    fs::write(folder.join("told.json"), format!("{told:#}\n")).unwrap();
    let packed = Command::new("tar")
        .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "-czf"])
        .arg(folder.join("backup.tar.gz"))
        .args(["-C", backup.to_str().unwrap(), "."])
        .status();
    assert!(packed.unwrap().success());
}

/// Every version whose store is kept.
fn versions() -> Vec<PathBuf> {
    let mut folders: Vec<_> = fs::read_dir(stored())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders
}

/// Unpacks what a version has stored.
fn unpacked(world: &World, version: &Path) -> PathBuf {
    let backup = world.work().join("backup");
    fs::create_dir(&backup).unwrap();
    let unpacked =
        Command::new("tar").arg("-xzf").arg(version.join("backup.tar.gz")).arg("-C").arg(&backup).status();
    assert!(unpacked.unwrap().success());
    backup
}

#[test]
fn what_earlier_versions_stored_is_opened_and_goes_on() {
    assert!(!versions().is_empty());
    for version in versions() {
        let world = World::scripted_with_jupyter();
        let backup = unpacked(&world, &version);
        ok(&world, &["restore", backup.to_str().unwrap(), "--yes"]);
        let then: Value =
            serde_json::from_str(&fs::read_to_string(version.join("told.json")).unwrap()).unwrap();
        contains(&told(&world), &then, version.file_name().unwrap().to_str().unwrap());
        assert_eq!(json_of(&world, &["session", "stats", "--json"])["deleted"], 1);
        assert_eq!(run(&world, &["session", "show", "gone"]).code, 1);
        assert!(ok(&world, &["search", "kept", "--json"]).contains("\"name\": \"idea\""));

        // Sent again, a command is answered as then and not carried out; code goes on with what was defined.
        let first = run(&world, &["eval", "--session", "lab", "--id", "first", "let kept = 20"]);
        assert_eq!((first.code, first.stdout.as_str()), (0, "val kept: int = 20\n"));
        let ask = then["asks"][0]["ask"].as_str().unwrap();
        ok(&world, &["ask", "answer", ask, "I do"]);
        assert_eq!(ok(&world, &["eval", "--session", "lab", "kept + 2"]), "val it: int = 22\n");
        assert_eq!(ok(&world, &["eval", "--session", "idea", "more + 2"]), "val it: int = 42\n");
        assert_eq!(ok(&world, &["eval", "--session", "snake", "sum(x)"]), "14\n");
        ok(&world, &["stop"]);
        ok(&world, &["doctor"]);
    }
}

#[test]
fn a_store_of_a_newer_version_is_refused_with_what_to_do_and_left_as_it_is() {
    let world = World::scripted_with_jupyter();
    let backup = unpacked(&world, versions().last().unwrap());
    let home = world.home();
    // The header of the file has the version of the schema in these bytes.
    let file = backup.join("mainstay.db");
    let mut bytes = fs::read(&file).unwrap();
    bytes[60..64].copy_from_slice(&NEVER.to_be_bytes());
    // It has a write-ahead log, as every store that a daemon has had.
    bytes[18..20].fill(2);
    fs::create_dir_all(home.join("store")).unwrap();
    fs::write(home.join("store/mainstay.db"), &bytes).unwrap();
    for arguments in [&["session", "list"][..], &["eval", "1"], &["upgrade"], &["doctor"]] {
        let refused = run(&world, arguments);
        assert!(refused.code == 1 && refused.stderr.contains("[store_newer]"), "{arguments:?}: {refused:?}");
    }
    let refused = run(&world, &["session", "list"]).stderr;
    insta::assert_snapshot!(refused, @"
    error: the store has schema version 1000, newer than 13, the newest this program knows [store_newer]
      Update Mainstay, or set MAINSTAY_HOME to another folder.
    ");
    assert_eq!(fs::read(home.join("store/mainstay.db")).unwrap(), bytes);
}
