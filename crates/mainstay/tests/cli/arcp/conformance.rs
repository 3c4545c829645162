//! The conformance runner against the program: what both drafts demand, tried from outside.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::{Value, json};

use super::port;
use crate::support::World;

/// What is skipped of dialect B: the features that this runtime does not have yet, and what takes too long.
const SKIPPED_OF_B: &[&str] = &[
    // The window to resume a session in is a day.
    "b.6.3.window-expired",
    // Leases: expiry and budgets.
    "b.14.no-credentials",
];

/// What is skipped of dialect A: the capabilities that this runtime does not have yet.
const SKIPPED_OF_A: &[&str] = &[
    // Code does not pause: these are tried with an agent.
    "a.10.5.interrupt",
    "a.10.5.not-ended",
    // A kernel asks for no permission: these are tried with an agent.
    "a.15.4.request",
    "a.15.4.grant",
    "a.15.4.deny",
    "a.15.4.unknown",
    "a.15.5.granted",
    "a.15.5.covers",
    "a.15.5.extended",
];

/// The names of the runner's options for one dialect: what does the work, and what it is given.
struct Options {
    dialect: &'static str,
    agent: &'static str,
    input: &'static str,
    /// Settings of the daemon.
    settings: &'static str,
}

#[test]
fn dialect_b_is_served_as_the_draft_wants_it() {
    let passed = tried(&Options { dialect: "b", agent: "agent", input: "input", settings: "" }, SKIPPED_OF_B);
    assert!(passed.len() > 100, "{passed:?}");
}

#[test]
fn dialect_a_is_served_as_the_draft_wants_it() {
    // Each result is large enough to be an artifact.
    let settings = "[arcp]\nchunk-bytes = 1\n";
    let options = Options { dialect: "a", agent: "tool", input: "arguments", settings };
    let passed = tried(&options, SKIPPED_OF_A);
    assert!(passed.len() > 70, "{passed:?}");
    // The conditions of these are met, too.
    for id in ["a.11.2.lossless", "a.11.3.base64", "a.11.3.sidecar", "a.16.1.result"] {
        assert!(passed.iter().any(|passed| passed == id), "{id}: {passed:?}");
    }
}

#[test]
fn permissions_leases_and_interrupts_are_as_the_draft_wants_them() {
    const ONLY: &str = "a.10.5.interrupt,a.10.5.not-ended,15.4,15.5";
    let world = World::new();
    assert_eq!(world.run(["prompt", "--kind", "agent", "say Hello."]).code, 0);
    let token = std::fs::read_to_string(world.home().join("token")).unwrap();
    let task = "do fs.write /work/a\ndo fs.write /work/a\ndo fs.read /work/b";
    let arguments = json!({ "prompt": task, "working_directory": world.work() }).to_string();
    let slow = json!({ "prompt": "wait", "working_directory": world.work() }).to_string();
    let output = Command::new(runner())
        .args(["--url", &format!("ws://127.0.0.1:{}/arcp", port(&world)), "--token", token.trim()])
        .args(["--dialect", "a", "--json", "--only", ONLY, "--tool", "agent"])
        .args([
            "--permission-arguments",
            &arguments,
            "--slow-arguments",
            &slow,
            "--wait",
            "40",
            "--quiet",
            "0.2",
        ])
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let tried = report["scenarios"].as_array().unwrap();
    let others: Vec<_> = tried.iter().filter(|finding| finding["outcome"] != "passed").collect();
    assert!(others.is_empty() && tried.len() == 10, "{others:#?}");
}

/// Tries all scenarios of a dialect, of which none may fail and these alone are skipped; says which passed.
fn tried(options: &Options, skipped: &[&str]) -> Vec<String> {
    let world = World::scripted();
    let (program, principal) = (runner(), world.run(["principal", "new", "ada", "--json"]).json());
    let config = format!(
        "{}[principals.ada]\ntoken-sha256 = \"{}\"\n",
        options.settings,
        principal["tokenSha256"].as_str().unwrap_or_else(|| panic!("{principal}"))
    );
    std::fs::write(world.home().join("config.toml"), config).unwrap();
    assert_eq!(world.run(["-d", "--port", "0"]).code, 0);
    let token = std::fs::read_to_string(world.home().join("token")).unwrap();
    // Two folders, since a session does one thing after the other.
    let input = |folder: &str, code: &str| {
        let folder = world.work().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        json!({ "code": code, "working_directory": folder }).to_string()
    };
    let chatty = "for n in 1 .. 50 do printfn \"%d\" n\n\
        Mainstay.display (Mainstay.image (System.Convert.FromBase64String \"iVBORw0KGgo=\"))";
    let Options { dialect, agent, input: given, .. } = options;
    let output = Command::new(program)
        .args(["--url", &format!("ws://127.0.0.1:{}/arcp", port(&world)), "--token", token.trim()])
        .args(["--other-token", principal["token"].as_str().unwrap(), "--dialect", dialect, "--json"])
        .args([&format!("--{agent}"), "fsharp", &format!("--{given}"), &input("quick", "1 + 1")])
        .args([&format!("--failing-{given}"), &input("quick", "failwith \"oops\"")])
        .args([&format!("--chatty-{given}"), &input("quick", chatty)])
        .args([&format!("--slow-{given}"), &input("slow", "while true do System.Threading.Thread.Sleep 5")])
        .args([&format!("--asking-{given}"), &input("slow", "stdin.ReadLine ()")])
        .args(["--wait", "40", "--quiet", "0.2"])
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let mut outcomes: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for finding in report["scenarios"].as_array().unwrap_or_else(|| panic!("{report}")) {
        outcomes.entry(finding["outcome"].as_str().unwrap()).or_default().push(finding);
    }
    assert_eq!(outcomes.get("failed"), None, "{:#?}", outcomes.get("failed"));
    let left: Vec<_> = outcomes["skipped"].iter().map(|finding| finding["id"].as_str().unwrap()).collect();
    assert_eq!(left, skipped);
    outcomes["passed"].iter().map(|finding| finding["id"].as_str().unwrap().to_owned()).collect()
}

/// The runner, which the build has made beside the tests.
fn runner() -> std::path::PathBuf {
    let mut folder = std::env::current_exe().unwrap();
    while !folder.join("arcp-conformance").is_file() {
        assert!(folder.pop(), "`cargo build -p arcp-conformance` makes the runner");
    }
    folder.join("arcp-conformance")
}
