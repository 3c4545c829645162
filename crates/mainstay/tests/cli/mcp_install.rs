//! Telling agents of Mainstay, in a home of the test's own.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;

use crate::support::{Finished, World};
use serde_json::{Value, json};

/// Where the user's configurations lie.
fn user(world: &World) -> PathBuf {
    world.home().join("user")
}

/// Runs it as a user whose home is empty at first, with nobody to ask.
fn run(world: &World, arguments: &[&str]) -> Finished {
    let output = world
        .command()
        .arg("mcp")
        .args(arguments)
        .env("HOME", user(world))
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("CODEX_HOME")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Finished {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn ok(finished: Finished) -> Finished {
    assert_eq!(finished.code, 0, "{finished:?}");
    finished
}

/// What a configuration of plain JSON says.
fn read(file: &PathBuf) -> Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

#[test]
fn each_agent_is_told_where_it_looks() {
    let world = World::new();
    for (client, scope, expected) in [
        ("claude-code", "user", user(&world).join(".claude.json")),
        ("claude-code", "project", world.work().join(".mcp.json")),
        #[cfg(not(target_os = "macos"))]
        ("claude-desktop", "user", user(&world).join(".config/Claude/claude_desktop_config.json")),
        #[cfg(not(target_os = "macos"))]
        ("vscode", "user", user(&world).join(".config/Code/User/mcp.json")),
        ("vscode", "project", world.work().join(".vscode/mcp.json")),
        ("cursor", "user", user(&world).join(".cursor/mcp.json")),
        ("cursor", "project", world.work().join(".cursor/mcp.json")),
        ("zed", "user", user(&world).join(".config/zed/settings.json")),
        ("zed", "project", world.work().join(".zed/settings.json")),
        ("codex", "user", user(&world).join(".codex/config.toml")),
        ("codex", "project", world.work().join(".codex/config.toml")),
        ("gemini", "user", user(&world).join(".gemini/settings.json")),
        ("gemini", "project", world.work().join(".gemini/settings.json")),
        ("opencode", "user", user(&world).join(".config/opencode/opencode.json")),
        ("opencode", "project", world.work().join("opencode.json")),
        ("qwen-code", "user", user(&world).join(".qwen/settings.json")),
        ("qwen-code", "project", world.work().join(".qwen/settings.json")),
    ] {
        let install = ["install", client, "--scope", scope, "--yes", "--json"];
        let mut told = ok(run(&world, &install)).json();
        let next = told.as_object_mut().unwrap().remove("next").unwrap();
        assert!(!next.as_array().unwrap().is_empty(), "{client} says what to do next");
        assert_eq!(
            told,
            json!({ "client": client, "file": expected, "changed": true, "dryRun": false, "backup": null })
        );
        let text = std::fs::read_to_string(&expected).unwrap();
        let is_own = scope == "user";
        assert_eq!(text.contains(env!("CARGO_BIN_EXE_mainstay")), is_own, "{text}");
        assert_eq!(text.contains(&world.home().display().to_string()), is_own, "{text}");
        assert!(is_own || text.contains("\"mainstay\""), "{text}");
        let mode = |file: &PathBuf| std::fs::metadata(file).unwrap().permissions().mode() & 0o777;
        let beside = world.work().join("beside");
        std::fs::write(&beside, "").unwrap();
        assert_eq!(mode(&expected), if is_own { 0o600 } else { mode(&beside) }, "{client} {scope}");
        assert_eq!(ok(run(&world, &install)).json()["changed"], false);
        let printed = ok(run(&world, &["install", client, "--scope", scope, "--print"]));
        assert_eq!(printed.stdout, text);
    }
}

#[test]
fn the_file_with_comments_is_changed_where_opencode_has_one() {
    let world = World::new();
    let file = world.work().join("opencode.jsonc");
    std::fs::write(&file, "// mine\n{}\n").unwrap();
    let told = ok(run(&world, &["install", "opencode", "--scope", "project", "--yes", "--json"])).json();
    assert_eq!(told["file"], json!(file));
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("// mine\n"));
    assert!(!world.work().join("opencode.json").exists());
}

#[test]
fn codex_is_told_what_to_pass_on_and_approves_tools_only_where_it_is_asked_to() {
    let world = World::new();
    let text = || std::fs::read_to_string(user(&world).join(".codex/config.toml")).unwrap();
    let shown = ok(run(&world, &["install", "codex", "--yes"]));
    assert!(shown.stderr.contains("--approve"), "it says what `codex exec` refuses: {shown:?}");
    assert!(text().contains("\"NUGET_PACKAGES\"") && text().contains("\"JUPYTER_PATH\""), "{}", text());
    assert!(!text().contains("default_tools_approval_mode"), "{}", text());

    let shown = ok(run(&world, &["install", "codex", "--yes", "--approve"]));
    assert!(!shown.stderr.contains("--approve"), "{shown:?}");
    assert!(text().contains("default_tools_approval_mode = \"approve\""), "{}", text());
    let again = ok(run(&world, &["install", "codex", "--yes", "--json"])).json();
    assert_eq!(again["changed"], false, "what was approved stays approved");

    let refused = run(&world, &["install", "zed", "--yes", "--approve"]);
    assert!(refused.code == 1 && refused.stderr.contains("--approve"), "{refused:?}");
    let gemini = ok(run(&world, &["install", "gemini", "--yes"]));
    assert!(gemini.stderr.contains("trust your folder"), "{gemini:?}");
}

#[test]
fn what_an_agent_is_told_starts_mainstay() {
    let world = World::new();
    ok(run(&world, &["install", "cursor", "--yes"]));
    let entry = read(&user(&world).join(".cursor/mcp.json"))["mcpServers"]["mainstay"].clone();
    let mut command = std::process::Command::new(entry["command"].as_str().unwrap());
    command.args(entry["args"].as_array().unwrap().iter().map(|argument| argument.as_str().unwrap()));
    for (name, value) in entry["env"].as_object().unwrap() {
        command.env(name, value.as_str().unwrap());
    }
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).current_dir(world.work()).spawn().unwrap();
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "it", "version": "1" } } });
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), format!("{hello}\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["result"]["serverInfo"]["name"], "mainstay", "{answer}");
    assert_eq!(world.run(["status", "--json"]).code, 0, "its daemon has this home");
}

#[test]
fn a_change_is_shown_and_made_only_by_who_agrees() {
    let world = World::new();
    let file = world.work().join(".mcp.json");
    let before = "{\n  \"mcpServers\": {\n    \"other\": { \"command\": \"npx\" }\n  }\n}\n";
    std::fs::write(&file, before).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let project = ["install", "claude-code", "--scope", "project"];

    let shown = ok(run(&world, &[project.as_slice(), &["--dry-run"]].concat()));
    let change: Vec<&str> = shown.stdout.lines().skip(1).collect();
    insta::assert_snapshot!(change.join("\n"), @r#"
      {
        "mcpServers": {
    -     "other": { "command": "npx" }
    +     "other": { "command": "npx" },
    +     "mainstay": {
    +       "type": "stdio",
    +       "command": "mainstay",
    +       "args": ["mcp"]
    +     }
        }
      }
    "#);

    let refused = run(&world, &project);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("--yes"), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);

    let told = ok(run(&world, &[project.as_slice(), &["--yes", "--json"]].concat())).json();
    let backup = PathBuf::from(told["backup"].as_str().unwrap());
    assert_eq!(backup, world.work().join(".mcp.json.backup-1"));
    assert_eq!(std::fs::read_to_string(&backup).unwrap(), before);
    for file in [&file, &backup] {
        assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o640);
    }
    assert_eq!(read(&file)["mcpServers"]["other"], json!({ "command": "npx" }));

    ok(run(&world, &["uninstall", "claude-code", "--scope", "project", "--yes"]));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
    assert!(world.work().join(".mcp.json.backup-2").exists());
    assert_eq!(std::fs::read_dir(world.work()).unwrap().count(), 3, "nothing else is left");
}

#[test]
fn a_link_stays_one_and_the_file_it_leads_to_is_changed() {
    let world = World::new();
    let kept = world.work().join("kept.json");
    std::fs::write(&kept, "{}\n").unwrap();
    std::os::unix::fs::symlink(&kept, world.work().join(".mcp.json")).unwrap();
    ok(run(&world, &["install", "claude-code", "--scope", "project", "--yes"]));
    assert!(world.work().join(".mcp.json").is_symlink());
    assert!(read(&kept)["mcpServers"]["mainstay"].is_object());
}

#[test]
fn what_cannot_be_read_is_left_alone() {
    let world = World::new();
    let file = world.work().join(".mcp.json");
    for broken in [b"{ \"mcpServers\": ".as_slice(), b"\xff\xfe{}"] {
        std::fs::write(&file, broken).unwrap();
        let refused = run(&world, &["install", "claude-code", "--scope", "project", "--yes"]);
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.stderr.contains(".mcp.json is not valid"), "{refused:?}");
        assert_eq!(std::fs::read(&file).unwrap(), broken);
    }
    let refused = run(&world, &["install", "claude-desktop", "--scope", "project", "--yes"]);
    assert!(refused.code == 1 && refused.stderr.contains("leave the scope out"), "{refused:?}");
    assert_eq!(run(&world, &["install", "netscape"]).code, 2);
}
