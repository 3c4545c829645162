//! `cargo xtask clients`: the stories of `crates/mainstay/tests/cli/agent_clients` in the real coding agents, all of them or those that are named.

use std::ffi::OsString;

use crate::command::{run as run_command, step};
use crate::failure::Failure;
use crate::test;
use crate::tools::{self, clients};

/// Runs the stories in the clients that the arguments name, in all where there are none.
pub(crate) fn run(arguments: &[OsString]) -> Result<(), Failure> {
    let chosen = chosen(arguments)?;
    let names: Vec<&str> = chosen.iter().map(|client| client.name).collect();
    let tools = step("what the tests need", || tools::provide(&chosen))?;
    let selection: Vec<OsString> =
        ["-p", "mainstay", "--test", "cli", "--no-fail-fast", "--run-ignored", "all", "-E", &filter(&names)]
            .iter()
            .map(OsString::from)
            .collect();
    step(&format!("stories in {}", names.join(", ")), || {
        run_command(&mut test::runner(&tools, &selection), test::CARGO_REMEDY)
    })
}

/// Selects the tests of these clients, each in a module of its name; where that depends on its model, one of each.
fn filter(names: &[&str]) -> String {
    let tests: Vec<String> =
        names.iter().map(|name| format!("test(/^agent_clients::{name}(_gpt_.)?::/)")).collect();
    tests.join(" | ")
}

fn chosen(arguments: &[OsString]) -> Result<Vec<&'static clients::Client>, Failure> {
    if arguments.is_empty() {
        return Ok(clients::CLIENTS.iter().collect());
    }
    let known = || clients::CLIENTS.map(|client| client.name).join(", ");
    let named = |name: &OsString| {
        let found = name.to_str().and_then(clients::named);
        found.ok_or_else(|| {
            Failure::Usage(format!("there is no client `{}`; there are {}", name.display(), known()))
        })
    };
    arguments.iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_chosen_or_those_that_are_named() {
        let names = |arguments: &[&str]| {
            let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            chosen(&arguments).map(|chosen| chosen.iter().map(|client| client.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&[]).unwrap(), ["codex", "claude", "opencode", "gemini", "qwen"]);
        assert_eq!(names(&["gemini", "codex"]).unwrap(), ["gemini", "codex"]);
        assert!(matches!(names(&["emacs"]), Err(Failure::Usage(_))));
    }

    #[test]
    fn each_client_selects_the_tests_in_its_module() {
        assert_eq!(
            filter(&["codex", "qwen"]),
            "test(/^agent_clients::codex(_gpt_.)?::/) | test(/^agent_clients::qwen(_gpt_.)?::/)"
        );
    }
}
