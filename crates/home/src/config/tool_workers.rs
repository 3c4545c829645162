//! Programs of users that offer tools.

use std::collections::BTreeMap;

use mainstay_model::SessionKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A tool worker: a program that offers tools over ARCP on its standard input and output. See [Tool workers](../how-to/tool-workers.md).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ToolWorkerConfig {
    /// The program and its arguments: `["python3", "/home/me/tools.py"]`. A program without a slash is looked for on the `PATH`.
    pub command: Vec<String>,
    /// Variables that are added to its environment.
    pub environment: BTreeMap<String, String>,
}

/// Rejects workers that could not be started or reached, and says which.
pub(super) fn check(workers: &BTreeMap<SessionKind, ToolWorkerConfig>) -> Result<(), String> {
    for (kind, worker) in workers {
        if kind.is_fsharp() || kind.is_agent() {
            return Err(format!("`{kind}` is a kind of session already; give the tool worker another name"));
        }
        let name = kind.as_str();
        let can_be_called = name.starts_with(|c: char| c.is_ascii_alphanumeric()) && !name.contains(':');
        if !can_be_called {
            return Err(format!(
                "the tool worker `{kind}` must have a name of letters, digits, `.`, `_` and `-`"
            ));
        }
        if worker.command.first().is_none_or(String::is_empty) {
            return Err(format!("the tool worker `{kind}` needs a `command`: its program and arguments"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> Result<(), String> {
        check(&toml::from_str(text).unwrap())
    }

    #[test]
    fn a_worker_needs_a_command_and_a_name_of_its_own() {
        assert_eq!(checked("[pricing]\ncommand = ['python3', 'tools.py']"), Ok(()));
        for (wrong, says) in [
            ("[pricing]", "needs a `command`"),
            ("[pricing]\ncommand = ['']", "needs a `command`"),
            ("[fsharp]\ncommand = ['x']", "another name"),
            ("[pi]\ncommand = ['x']", "another name"),
            ("['a:b']\ncommand = ['x']", "must have a name"),
        ] {
            assert!(checked(wrong).unwrap_err().contains(says), "{wrong}");
        }
    }
}
