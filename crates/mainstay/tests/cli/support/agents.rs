//! A daemon whose agents are the real pi, with a scripted model behind it, and a client of the pi protocol over `mainstay pi`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use mainstay_test_support::model::Model;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::{self, World};

/// How long anything may take.
pub(crate) const LONG: Duration = Duration::from_secs(120);

/// A home whose agents ask a model that says what it is told to.
pub(crate) struct Agents {
    pub(crate) world: World,
    pub(crate) model: Model,
    runtime: Runtime,
}

impl Agents {
    pub(crate) fn new() -> Self {
        let world = World::new();
        let runtime = Runtime::new().unwrap();
        let model = runtime.block_on(Model::start());
        let folder = world.home().join("pi");
        std::fs::create_dir(&folder).unwrap();
        let model_of = |id: &str| json!({ "id": id, "contextWindow": 128_000, "maxTokens": 4096, "reasoning": false, "input": ["text", "image"] });
        let models = json!({ "providers": { "local": {
            "baseUrl": model.base_url(), "api": "openai-completions", "apiKey": "hidden",
            "models": [model_of("m"), model_of("other")],
        }}});
        std::fs::write(folder.join("models.json"), models.to_string()).unwrap();
        let settings = format!(
            "[daemon]\nport = 0\n[limits]\nrestart-first-ms = 1\n\
             [pi]\npath = {:?}\nprovider = \"local\"\nmodel = \"m\"\n[pi.environment]\nPI_CODING_AGENT_DIR = {folder:?}\n",
            support::pi()
        );
        std::fs::write(world.home().join("config.toml"), settings).unwrap();
        Self { world, model, runtime }
    }

    /// Adds a line to the settings of pi.
    pub(crate) fn set(&self, line: &str) {
        let file = self.world.home().join("config.toml");
        let settings = std::fs::read_to_string(&file).unwrap().replace("[pi]\n", &format!("[pi]\n{line}\n"));
        std::fs::write(file, settings).unwrap();
    }

    /// Says one more thing of a model.
    pub(crate) fn set_of_model(&self, id: &str, name: &str, value: &Value) {
        let file = self.world.home().join("pi/models.json");
        let mut models: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let listed = models["providers"]["local"]["models"].as_array_mut().unwrap();
        listed.iter_mut().find(|model| model["id"] == id).unwrap()[name] = value.clone();
        std::fs::write(file, models.to_string()).unwrap();
    }

    /// What the model was asked, the so-manieth time.
    pub(crate) fn request(&self, number: usize) -> Value {
        self.runtime
            .block_on(async { tokio::time::timeout(LONG, self.model.request(number)).await })
            .expect("the model is not asked")
    }

    /// The process of the session's pi.
    pub(crate) fn pi_pid(&self) -> i32 {
        let sessions = self.world.run(["session", "list", "--json"]).json();
        let session =
            sessions.as_array().unwrap().iter().find(|session| session["kind"] == "pi").unwrap().clone();
        i32::try_from(session["worker"]["pid"].as_i64().expect("it has a pi")).unwrap()
    }

    /// Waits until a piece of a message of the agent's is in the log.
    pub(crate) fn has_stored(&self, text: &str) {
        let mut events = self.world.follow_with(&["--session", "main", "--since", "0"]);
        events.wait_until(|event| event["kind"] == "messageStreamed" && event["body"]["text"] == text);
    }

    /// A client over `mainstay pi`.
    pub(crate) fn client(&self) -> PiClient {
        PiClient::start(self.world.command())
    }
}

/// A client of the pi protocol.
pub(crate) struct PiClient {
    child: Child,
    stdin: ChildStdin,
    frames: Receiver<Value>,
}

impl PiClient {
    fn start(mut command: Command) -> Self {
        let mut child = command
            .arg("pi")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (heard, frames) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                // The client may have had enough.
                heard.send(serde_json::from_str(&line).unwrap()).ok();
            }
        });
        Self { child, stdin, frames }
    }

    pub(crate) fn send(&mut self, frame: &Value) {
        writeln!(self.stdin, "{frame}").unwrap();
    }

    /// Sends a command, and waits for its answer.
    pub(crate) fn ask(&mut self, command: &Value) -> Value {
        self.send(command);
        self.answer(command["id"].as_str().unwrap())
    }

    /// Waits for the answer to a command.
    pub(crate) fn answer(&mut self, id: &str) -> Value {
        self.until(|frame| frame["type"] == "response" && frame["id"] == id)
    }

    /// Waits for the next frame that fits.
    pub(crate) fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        self.all_until(fits).pop().unwrap()
    }

    /// The frames up to the next one that fits, with it.
    pub(crate) fn all_until(&mut self, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut frames = Vec::new();
        loop {
            let frame = self.frames.recv_timeout(LONG).expect("a frame that fits");
            let is_last = fits(&frame);
            frames.push(frame);
            if is_last {
                return frames;
            }
        }
    }

    /// Waits until the model has said this piece.
    pub(crate) fn says(&mut self, text: &str) {
        self.until(|frame| frame["event"]["assistantMessageEvent"]["delta"] == text);
    }

    /// Waits until the daemon is gone.
    pub(crate) fn ends(&mut self) {
        while self.frames.recv_timeout(LONG).is_ok() {}
        self.child.wait().unwrap();
    }

    /// Has a session, and hears what happens in it.
    pub(crate) fn session(&mut self, id: &str) {
        let created =
            self.ask(&json!({ "id": format!("create-{id}"), "type": "create_session", "sessionId": id }));
        assert_eq!(created["success"], true, "{created}");
        self.hear(id);
    }

    /// Hears what happens in a session.
    pub(crate) fn hear(&mut self, id: &str) {
        let heard = self.ask(&json!({ "id": format!("hear-{}", uuid::Uuid::new_v4()), "type": "switch_session", "sessionId": id }));
        assert_eq!(heard["success"], true, "{heard}");
    }
}

impl Drop for PiClient {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
