//! The coding agents: how each is configured, how it runs one turn without a person, and how its model reaches a tool of Mainstay's.

mod claude;
mod codex;
mod gemini;
mod opencode;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

pub(crate) use self::claude::Claude;
pub(crate) use self::codex::{CODEX, CODEX_GPT_5, CODEX_GPT_6};
pub(crate) use self::gemini::{GEMINI, QWEN};
pub(crate) use self::opencode::Opencode;

use crate::support;

/// What the agents call the server.
pub(crate) const SERVER: &str = "mainstay";

/// One of the agents.
pub(crate) trait Client: Sync {
    /// What its goldens are called.
    fn name(&self) -> &'static str;

    /// The variable that names its program.
    fn variable(&self) -> &'static str;

    /// Writes its configuration: the model, Mainstay as a server over stdio, nothing that calls home.
    fn configure(&self, place: &Place);

    /// What it is given beside the program's name, to answer a prompt and end.
    fn arguments(&self, place: &Place, turn: Turn, prompt: &str) -> Vec<String>;

    /// What it needs in its environment.
    fn environment(&self, place: &Place) -> Vec<(&'static str, String)>;

    /// How its model reaches a tool that it was not offered.
    fn deferral(&self) -> Deferral {
        Deferral::None
    }
}

/// Which conversation a turn belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    First,
    /// The newest one goes on.
    Resumed,
}

/// Tools of a server that a model does not see at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deferral {
    /// It sees all of them.
    None,
    /// It sees their names, and calls them once it has searched for them with this tool.
    Searched(&'static str),
    /// It sees the server's name, and calls a tool of its once it has found it with this one.
    Found(&'static str),
    /// It sees the server's name, and calls its tools from the JavaScript that it gives this one.
    Scripted(&'static str),
    /// It sees their names, searches for them with the first tool, and calls them through the second.
    Bridged(&'static str, &'static str),
}

/// Where an agent runs.
pub(crate) struct Place {
    /// The home of its user.
    pub(crate) home: PathBuf,
    /// Where the model is.
    pub(crate) model: String,
    /// What Mainstay's bridge finds in its environment.
    pub(crate) environment: BTreeMap<String, String>,
}

impl Place {
    fn file(&self, path: &str) -> PathBuf {
        self.home.join(path)
    }

    /// Writes a file of its user's.
    fn write(&self, path: &str, text: &str) {
        let file = self.file(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    fn write_json(&self, path: &str, value: &Value) {
        self.write(path, &value.to_string());
    }
}

/// The program that is Mainstay.
fn mainstay() -> &'static str {
    env!("CARGO_BIN_EXE_mainstay")
}

/// Mainstay among the servers over stdio, as most agents have them in their settings.
fn servers(place: &Place) -> Value {
    json!({ SERVER: { "command": mainstay(), "args": ["mcp"], "env": place.environment } })
}

/// The agent, ready to answer a prompt in a folder, with nothing of the environment that the tests run in.
pub(crate) fn command(
    client: &dyn Client,
    place: &Place,
    turn: Turn,
    prompt: &str,
    folder: &Path,
) -> Command {
    let mut command = Command::new(support::provided(client.variable()));
    let node = support::node();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", node.parent().unwrap().display());
    command.args(client.arguments(place, turn, prompt)).current_dir(folder).env_clear();
    command
        .env("PATH", path)
        .env("HOME", &place.home)
        .env("LANG", "C.UTF-8")
        .env("TERM", "dumb")
        .env("NO_COLOR", "1");
    for (variable, folder) in [
        ("XDG_CONFIG_HOME", ".config"),
        ("XDG_DATA_HOME", ".local/share"),
        ("XDG_STATE_HOME", ".local/state"),
        ("XDG_CACHE_HOME", ".cache"),
    ] {
        command.env(variable, place.file(folder));
    }
    command.envs(client.environment(place));
    command
}
