//! Where a story happens: a folder, the home of a daemon, and the record of what the model did and was shown.

use std::fmt::Write;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::agent_clients::clients::Client;
use crate::agent_clients::conversation::Conversation;
use crate::agent_clients::golden::Golden;
use crate::support::{World, dotnet};

/// The variables through which .NET finds its packages and is kept quiet, beside `DOTNET_ROOT`.
const OF_DOTNET: [&str; 6] = [
    "RestoreConfigFile",
    "NUGET_PACKAGES",
    "DOTNET_CLI_TELEMETRY_OPTOUT",
    "DOTNET_NOLOGO",
    "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT",
    "DOTNET_SYSTEM_GLOBALIZATION_PREDEFINED_CULTURES_ONLY",
];

/// The folder in which a story happens, and the record of it.
pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) golden: Golden,
    story: String,
}

impl Stage {
    /// A folder whose daemon runs, which has Jupyter's kernels.
    pub(crate) fn new(client: &dyn Client, story: &str) -> Self {
        let stage = Self::with(World::with_jupyter(), client, story);
        assert_eq!(stage.world.run(["-d"]).code, 0);
        stage
    }

    /// A folder with these files, and no daemon: the agent's server starts it.
    pub(crate) fn with_files(client: &dyn Client, story: &str, files: &[(&str, &str)]) -> Self {
        let stage = Self::with(World::new(), client, story);
        for (name, text) in files {
            std::fs::write(stage.world.work().join(name), text).unwrap();
        }
        stage
    }

    fn with(world: World, client: &dyn Client, story: &str) -> Self {
        std::fs::write(world.home().join("config.toml"), "[daemon]\nport = 0\n").unwrap();
        let golden = Golden::new(&world);
        Self { world, golden, story: format!("{}_{story}", client.name()) }
    }

    /// The name of its golden.
    pub(crate) fn name(&self) -> &str {
        &self.story
    }

    /// A conversation of a user whose login shell alone says where .NET is, as it is where it was installed into the user's home.
    pub(crate) fn conversation_of_login_shell(&self, client: &'static dyn Client) -> Conversation {
        let mut profile = format!("export DOTNET_ROOT='{}'\n", dotnet().display());
        for name in OF_DOTNET {
            if let Ok(value) = std::env::var(name) {
                writeln!(profile, "export {name}='{value}'").unwrap();
            }
        }
        let mut environment = Conversation::environment_of(&self.world);
        environment.retain(|name, _| !["DOTNET_ROOT", "MAINSTAY_ENVIRONMENT"].contains(&name.as_str()));
        // Whatever the shell of the account is that the tests run in.
        environment.insert("SHELL".to_owned(), "/bin/sh".to_owned());
        let conversation = Conversation::with_environment(client, &self.world, "user", environment);
        std::fs::write(conversation.home().join(".profile"), profile).unwrap();
        conversation
    }

    /// Python that says that it has begun, and ends once there is the file of [`Stage::gate`].
    pub(crate) fn waiting(&self) -> String {
        let gate = self.gate();
        format!(
            "import os, time\nprint('begun', flush=True)\nwhile not os.path.exists({gate:?}):\n    time.sleep(0.01)\nrested = 42\nrested"
        )
    }

    /// The same in F#.
    pub(crate) fn waiting_in_fsharp(&self) -> String {
        let gate = self.gate();
        format!(
            "printfn \"begun\"\nwhile not (System.IO.File.Exists {gate:?}) do System.Threading.Thread.Sleep 10\nlet rested = 42"
        )
    }

    /// The file that code waits for.
    pub(crate) fn gate(&self) -> PathBuf {
        self.world.work().join("gate")
    }
}

/// Waits until the code of [`Stage::waiting`] has begun.
pub(crate) fn has_begun(world: &World) {
    let mut events = world.follow_with(&["--session", "main", "--since", "0"]);
    events.wait_until(|event| {
        event["kind"] == "outputProduced" && event["body"]["text"].to_string().contains("begun")
    });
}

/// The arguments of a tool that takes code.
pub(crate) fn code(code: &str) -> Value {
    json!({ "code": code })
}

/// What stands behind a word, up to a mark.
pub(crate) fn behind(text: &str, word: &str) -> String {
    let (_, rest) = text.split_once(word).unwrap_or_else(|| panic!("there is no {word:?} in {text}"));
    rest.split([',', ']', ' ', '\n']).next().unwrap_or_default().to_owned()
}
