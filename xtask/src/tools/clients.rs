//! The coding agents that people use with Mainstay over MCP, pinned, from npm. `cargo xtask test` runs the stories of `crates/mainstay/tests/cli/agent_clients`
//! in those of [`IN_EVERY_RUN`], `cargo xtask clients` in all or in those that it names.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Shelf;
use crate::command::run;
use crate::failure::Failure;

const NPM_REMEDY: &str =
    "install Node.js 20 or newer, which brings npm; the tests run the coding agents from there";

/// One client that npm installs.
pub(crate) struct Client {
    /// What the command line and the tests call it.
    pub(crate) name: &'static str,
    /// The package that npm installs.
    package: &'static str,
    /// Names its program, for the tests.
    pub(crate) variable: &'static str,
    /// Where its program is.
    program: Program,
}

/// Where a package has its program, below `node_modules`.
enum Program {
    /// A program at this path.
    At(&'static str),
    /// In the package for this machine, which begins with `prefix`. The package's own script would link it, but no script of a package is run.
    OfMachine { scope: &'static str, prefix: &'static str, file: &'static str },
}

/// All clients that the tests use.
pub(crate) const CLIENTS: [Client; 5] = [
    Client {
        name: "codex",
        package: "@openai/codex@0.169.0",
        variable: "MAINSTAY_TEST_CODEX",
        program: Program::At(".bin/codex"),
    },
    Client {
        name: "claude",
        package: "@anthropic-ai/claude-code@2.1.332",
        variable: "MAINSTAY_TEST_CLAUDE",
        program: Program::OfMachine { scope: "@anthropic-ai", prefix: "claude-code-", file: "claude" },
    },
    Client {
        name: "opencode",
        package: "opencode-ai@1.18.33",
        variable: "MAINSTAY_TEST_OPENCODE",
        program: Program::OfMachine { scope: "", prefix: "opencode-", file: "bin/opencode" },
    },
    Client {
        name: "gemini",
        package: "@google/gemini-cli@0.61.0",
        variable: "MAINSTAY_TEST_GEMINI",
        program: Program::At(".bin/gemini"),
    },
    Client {
        name: "qwen",
        package: "@qwen-code/qwen-code@0.24.4",
        variable: "MAINSTAY_TEST_QWEN",
        program: Program::At(".bin/qwen"),
    },
];

/// Those that every run of the tests runs.
pub(crate) const IN_EVERY_RUN: [&str; 3] = ["codex", "opencode", "gemini"];

/// The one of this name.
pub(crate) fn named(name: &str) -> Option<&'static Client> {
    CLIENTS.iter().find(|client| client.name == name)
}

/// Provides the program of a client.
pub(super) fn provide(shelf: &Shelf, client: &Client) -> Result<PathBuf, Failure> {
    let Client { name, package, program, .. } = client;
    let folder = shelf.provide(&format!("client-{name}"), package, |folder| {
        eprintln!("installing {package} from npm (once)");
        let mut npm = Command::new("npm");
        npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]);
        run(npm.arg(folder).arg(package), NPM_REMEDY)
    })?;
    let packages = folder.join("node_modules");
    match program {
        Program::At(path) => Ok(packages.join(path)),
        Program::OfMachine { scope, prefix, file } => of_machine(&packages.join(scope), prefix, file),
    }
}

/// The program in the package that begins with `prefix` and has it. Of several it is that of the longest name: the one for older processors too.
fn of_machine(packages: &Path, prefix: &str, file: &str) -> Result<PathBuf, Failure> {
    let entries = fs::read_dir(packages).map_err(Failure::at(packages))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(prefix)).collect();
    names.sort_by_key(String::len);
    let programs = names.iter().rev().map(|name| packages.join(name).join(file));
    let found = programs.into_iter().find(|program| program.is_file());
    found.ok_or_else(|| {
        Failure::Usage(format!(
            "there is no {prefix}… with {file} for this machine under {}",
            packages.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_that_of_the_package_for_this_machine() {
        let place = tempfile::tempdir().unwrap();
        for (package, file) in [
            ("it-x64", "bin/it"),
            ("it-x64-baseline", "bin/it"),
            ("it-x64-other-thing", "readme"),
            ("zz-longest-of-all", "bin/it"),
        ] {
            let file = place.path().join(package).join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        let found = of_machine(place.path(), "it-", "bin/it").unwrap();
        assert_eq!(found, place.path().join("it-x64-baseline/bin/it"));
        assert!(of_machine(place.path(), "it-", "bin/none").is_err());
    }

    #[test]
    fn those_of_every_run_are_known() {
        for name in IN_EVERY_RUN {
            assert!(named(name).is_some(), "{name}");
        }
    }
}
