//! An agent's whole task on a real project, over MCP, with the public client, the real compiler and a real test framework.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support;
use crate::support::World;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A call, and what it was answered.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Step {
    tool: String,
    arguments: Map<String, Value>,
    is_error: bool,
    said: String,
}

fn manifest() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The example's project, where it may be changed.
fn shop(world: &World) -> PathBuf {
    let folder = world.work().join("shop");
    std::fs::create_dir(&folder).unwrap();
    for file in std::fs::read_dir(manifest().join("../../examples/shop")).unwrap() {
        let file = file.unwrap();
        if file.file_type().unwrap().is_file() {
            std::fs::copy(file.path(), folder.join(file.file_name())).unwrap();
        }
    }
    folder
}

fn carry_out(world: &World, shop: &Path) -> Vec<Step> {
    let mut command = Command::new(support::python());
    command
        .arg(manifest().join("tests/clients/agent_task.py"))
        .args([env!("CARGO_BIN_EXE_mainstay"), shop.to_str().unwrap()])
        .current_dir(world.work())
        .env("MAINSTAY_HOME", world.home())
        .env("DOTNET_ROOT", support::dotnet())
        // The daemon that this starts has .NET and workers as users have them (see `xtask/src/test.rs`).
        .env_remove("MAINSTAY_TEST_WARM_UP")
        .env_remove("DOTNET_TC_CallCounting")
        .env_remove("DOTNET_TieredPGO");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The conversation as it is read: a call, then what it was answered.
fn told(steps: &[Step]) -> String {
    let mut text = String::new();
    for Step { tool, arguments, is_error, said } in steps {
        let arguments: Vec<String> =
            arguments.iter().map(|(name, value)| format!("{name}={}", words(value))).collect();
        text.push_str(&format!("› {tool} {}\n", arguments.join(" ")));
        let mark = if *is_error { "✗" } else { "‹" };
        for (number, line) in said.trim_end().lines().enumerate() {
            text.push_str(&format!("{} {line}\n", if number == 0 { mark } else { " " }));
        }
        text.push('\n');
    }
    text
}

fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.replace('\n', "⏎"),
        other => other.to_string(),
    }
}

#[test]
fn an_agent_explores_tests_breaks_repairs_forks_and_exports() {
    let world = World::new();
    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    let folder = shop(&world);
    std::fs::copy(support::nunit(), folder.join("nunit.framework.dll")).unwrap();
    let steps = carry_out(&world, &folder);
    let told = told(&steps)
        .replace(&folder.display().to_string(), "/shop")
        .replace(&support::dotnet().join("dotnet").display().to_string(), "dotnet");
    insta::assert_snapshot!(steady(&told));
}

/// Without what is another each time: ids of sessions, moments, durations, numbers of events.
fn steady(told: &str) -> String {
    // How long a build takes is said each second.
    let is_time = |line: &&str| line.trim_start().starts_with("compiling") && line.ends_with(" s)");
    told.lines().filter(|line| !is_time(line)).map(steady_line).collect::<Vec<_>>().join("\n")
}

fn steady_line(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let near = |index: Option<usize>| index.and_then(|index| words.get(index)).copied().unwrap_or_default();
    let steady_word = |(index, word): (usize, &&str)| {
        let core = core_of(word);
        let (before, after) = (near(index.checked_sub(1)), near(Some(index + 1)));
        let is_number = !core.is_empty() && core.bytes().all(|byte| byte.is_ascii_digit());
        match () {
            () if core.len() == 8 && core.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                word.replace(core, "SESSION")
            }
            () if is_moment(core) => word.replace(core, "MOMENT"),
            () if is_number && (before == "in" && after == "ms" || is_moment(core_of(after))) => {
                "N".to_owned()
            }
            () if is_number && ["seq", "cursor"].contains(&before) => word.replace(core, "N"),
            () => (*word).to_owned(),
        }
    };
    words.iter().enumerate().map(steady_word).collect::<Vec<_>>().join(" ")
}

/// A word without what surrounds it.
fn core_of(word: &str) -> &str {
    let word = word.rsplit('=').next().unwrap_or(word);
    word.trim_matches(|c: char| !c.is_ascii_alphanumeric())
}

fn is_moment(word: &str) -> bool {
    word.len() > 18 && word.as_bytes()[4] == b'-' && word.contains('T') && word.ends_with('Z')
}
