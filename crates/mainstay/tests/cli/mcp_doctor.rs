//! What agents would see of Mainstay, in a home of the test's own.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::support::{Finished, World};
use serde_json::{Value, json};

/// Where the user's configurations lie.
fn user(world: &World) -> PathBuf {
    world.home().join("user")
}

/// `mainstay mcp`, as a user whose home is empty at first and who has no agents on the path.
fn mcp(world: &World, arguments: &[&str]) -> Command {
    let mut command = world.command();
    // Clients pass on what stands here, so it is what this test says.
    command
        .env_clear()
        .env("HOME", user(world))
        .env("MAINSTAY_HOME", world.home())
        .env("PATH", "/usr/bin:/bin");
    command.arg("mcp").args(arguments);
    command.stdin(Stdio::null());
    command
}

fn finished(command: &mut Command) -> Finished {
    let output = command.output().unwrap();
    Finished {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn run(world: &World, arguments: &[&str]) -> Finished {
    finished(&mut mcp(world, arguments))
}

fn install(world: &World, arguments: &[&str]) {
    let installed = run(world, &[&["install", "--yes"], arguments].concat());
    assert_eq!(installed.code, 0, "{installed:?}");
}

fn write(world: &World, file: &str, text: &str) {
    let file = user(world).join(file);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

/// What was found of the user's own configuration of the only client that was examined.
fn of_user(examined: &Finished) -> Value {
    let report = examined.json();
    assert_eq!(report["clients"].as_array().unwrap().len(), 1, "{report}");
    assert_eq!(report["ok"], examined.code == 0, "{examined:?}");
    report["clients"][0]["configurations"][0].clone()
}

/// The words of findings.
fn words(findings: &Value) -> Vec<&str> {
    findings.as_array().unwrap().iter().map(|finding| finding["what"].as_str().unwrap()).collect()
}

#[test]
fn without_agents_there_is_nothing_to_examine() {
    let world = World::new();
    let examined = run(&world, &["doctor"]);
    assert_eq!((examined.code, examined.stdout.as_str()), (0, ""), "{examined:?}");
    assert!(examined.stderr.contains("mainstay mcp install --help"), "{examined:?}");
    assert_eq!(run(&world, &["doctor", "--json"]).json(), json!({ "ok": true, "clients": [] }));
}

#[test]
fn each_agent_that_was_told_of_mainstay_sees_its_tools() {
    let world = World::new();
    let work = world.work().canonicalize().unwrap().display().to_string();
    write(&world, ".gemini/trustedFolders.json", &json!({ &work: "TRUST_FOLDER" }).to_string());
    let clients = ["claude-code", "codex", "gemini", "opencode", "qwen-code"];
    clients.iter().for_each(|client| install(&world, &[client]));
    let examined = run(&world, &["doctor", "--json"]);
    assert_eq!(examined.code, 0, "{examined:?}");
    let report = examined.json();
    let found: Vec<&Value> = report["clients"].as_array().unwrap().iter().collect();
    assert_eq!(found.iter().map(|found| found["client"].as_str().unwrap()).collect::<Vec<_>>(), clients);
    for client in found {
        let [user, project] = client["configurations"].as_array().unwrap().as_slice() else {
            panic!("{client}")
        };
        assert_eq!((&user["scope"], &user["state"]), (&json!("user"), &json!("named")), "{client}");
        assert_eq!(
            (&project["scope"], &project["state"]),
            (&json!("project"), &json!("missing")),
            "{client}"
        );
        let seen = &user["seen"];
        assert!(seen["tools"].as_array().unwrap().iter().any(|tool| tool == "answer_ask"), "{client}");
        assert_eq!(seen["server"], concat!("mainstay ", env!("CARGO_PKG_VERSION")), "{client}");
        assert!(seen["status"].as_str().unwrap().contains("[no session yet]"), "{client}");
    }
    let protocol = |index: usize| {
        report["clients"][index]["configurations"][0]["seen"]["protocol"].as_str().unwrap().to_owned()
    };
    assert_eq!((protocol(0).as_str(), protocol(1).as_str()), ("2026-07-28", "2025-06-18"));
}

#[test]
fn what_codex_withholds_and_refuses_is_said() {
    let world = World::new();
    let program = env!("CARGO_BIN_EXE_mainstay");
    let home = world.home().display().to_string();
    write(
        &world,
        ".codex/config.toml",
        &format!(
            "[mcp_servers.mainstay]\ncommand = \"{program}\"\nargs = [\"mcp\"]\nenv = {{ MAINSTAY_HOME = \"{home}\" }}\ntool_timeout_sec = 60\n"
        ),
    );
    let doctor = || {
        let mut command = mcp(&world, &["doctor", "codex", "--json"]);
        command.env("NUGET_PACKAGES", "/somewhere");
        command
    };
    let examined = finished(&mut doctor());
    assert_eq!(examined.code, 0, "{examined:?}");
    let found = of_user(&examined);
    let warnings = words(&found["warnings"]);
    assert_eq!(warnings[0], "Codex does not pass on NUGET_PACKAGES");
    assert_eq!(
        warnings[1],
        "Codex gives calls up after 60 s, as if you had cancelled them: their code is stopped"
    );
    assert!(warnings[2].starts_with("`codex exec` refuses "), "{warnings:?}");
    assert_eq!(found["warnings"][0]["nextStep"], "`mainstay mcp install codex` has them passed on.");

    install(&world, &["codex"]);
    let found = of_user(&finished(&mut doctor()));
    assert!(
        matches!(words(&found["warnings"]).as_slice(), [only] if only.starts_with("`codex exec`")),
        "{found}"
    );
    install(&world, &["codex", "--approve"]);
    assert_eq!(of_user(&finished(&mut doctor()))["warnings"], json!([]));
}

#[test]
fn folders_that_a_client_does_not_trust_are_named() {
    let world = World::new();
    install(&world, &["gemini"]);
    let examined = run(&world, &["doctor", "gemini", "--json"]);
    assert_eq!(examined.code, 1, "it would start no server here");
    let found = of_user(&examined);
    assert!(words(&found["problems"])[0].contains("does not trust"), "{found}");
    let work = world.work().canonicalize().unwrap().display().to_string();
    write(&world, ".gemini/trustedFolders.json", &json!({ &work: "TRUST_FOLDER" }).to_string());
    assert_eq!(of_user(&run(&world, &["doctor", "gemini", "--json"]))["problems"], json!([]));

    install(&world, &["codex", "--scope", "project"]);
    let report = run(&world, &["doctor", "codex", "--json"]).json();
    let project = &report["clients"][0]["configurations"][1];
    assert!(words(&project["warnings"]).iter().any(|words| words.contains("does not trust")), "{project}");
    assert_eq!(words(&project["problems"]), ["there is no program `mainstay`"]);
}

#[test]
fn what_keeps_an_agent_from_mainstay_is_a_problem_with_a_next_step() {
    let world = World::new();
    let examined = run(&world, &["doctor", "cursor"]);
    assert_eq!(examined.code, 1, "{examined:?}");
    let shown = examined.stdout.replace(&user(&world).display().to_string(), "~");
    let shown = shown.replace(&world.work().canonicalize().unwrap().display().to_string(), "WORK");
    insta::assert_snapshot!(shown, @"
    Cursor
      user: ~/.cursor/mcp.json does not name Mainstay
      project: WORK/.cursor/mcp.json does not name Mainstay
      problem: no configuration of Cursor names Mainstay
        `mainstay mcp install cursor` adds it.
    ");
    let problem = |entry: &str| {
        write(&world, ".cursor/mcp.json", &format!("{{\"mcpServers\": {{\"mainstay\": {entry}}}}}"));
        let examined = run(&world, &["doctor", "cursor", "--json"]);
        assert_eq!(examined.code, 1, "{examined:?}");
        let found = of_user(&examined)["problems"][0].clone();
        format!("{}\n  {}", found["what"].as_str().unwrap(), found["nextStep"].as_str().unwrap())
            .replace(&user(&world).display().to_string(), "~")
    };
    let problems = [
        problem("{ \"command\": \"/gone/mainstay\", \"args\": [\"mcp\"] }"),
        problem("{ \"command\": \"sh\", \"args\": [\"-c\", \"echo no home >&2; exit 3\"] }"),
        problem("{ \"command\": \"mainstay\", \"disabled\": true }"),
        problem("{}"),
        problem("{"),
    ];
    insta::assert_snapshot!(problems.join("\n"), @"
    there is no program `/gone/mainstay`
      `mainstay mcp install cursor` names the program that you have now.
    it ended without an answer: no home
      Run `sh -c echo no home >&2; exit 3` in a terminal to see what it says; `mainstay doctor` examines the store.
    Mainstay is switched off in it
      `mainstay mcp install cursor` switches it on.
    Mainstay's entry names no program
      `mainstay mcp install cursor` writes it anew.
    it cannot be read: Unterminated object on line 1 column 1
      Mend ~/.cursor/mcp.json, or take it away and run `mainstay mcp install cursor`.
    ");
}
