//! A conversation with a coding agent whose model is the test.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use serde_json::{Value, json};

use crate::agent_clients::clients::{self, Client, Deferral, Place, SERVER, Turn};
use crate::agent_clients::golden::Golden;
use crate::agent_clients::model::{Asked, Model};
use crate::agent_clients::stage::behind;
use crate::agent_clients::wire::{Move, Offered, Shown};
use crate::support::World;

/// How long anything may take.
const LONG: Duration = Duration::from_secs(180);

/// What no model is ever to read: the words of agents whose server is gone, late or without the tool.
const NEVER: [&str; 14] = [
    "Request timed out",
    "timed out after",
    "timed out awaiting",
    "idle timeout",
    "Not connected",
    "Transport closed",
    "Connection closed",
    "connection failed",
    "unavailable tool",
    "No such tool",
    "unsupported call",
    "not found in registry",
    "is not registered",
    // codex of a script that has not ended after 30 s: nothing of what its calls are answered.
    "Script running with cell ID",
];

/// An agent of a user's of its own.
pub(crate) struct Conversation {
    client: &'static dyn Client,
    model: Model,
    place: Place,
    folder: std::path::PathBuf,
    turns: usize,
}

impl Conversation {
    /// One in the working folder of a world.
    pub(crate) fn new(client: &'static dyn Client, world: &World, user: &str) -> Self {
        Self::with_environment(client, world, user, Self::environment_of(world))
    }

    /// What Mainstay's bridge finds in its environment in a world, where nothing else is said.
    pub(crate) fn environment_of(world: &World) -> BTreeMap<String, String> {
        let text = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
        let command = world.command();
        command.get_envs().filter_map(|(name, value)| Some((text(name), text(value?)))).collect()
    }

    /// One whose agent gives Mainstay's bridge these variables.
    pub(crate) fn with_environment(
        client: &'static dyn Client,
        world: &World,
        user: &str,
        environment: BTreeMap<String, String>,
    ) -> Self {
        let home = world.home().parent().unwrap().join(user);
        std::fs::create_dir(&home).unwrap();
        let model = Model::start();
        let place = Place { home, model: model.address(), environment };
        client.configure(&place);
        Self { client, model, place, folder: world.work(), turns: 0 }
    }

    /// The home of its user.
    pub(crate) fn home(&self) -> &Path {
        &self.place.home
    }

    /// Has the agent answer a prompt; gives the turn once the model is asked.
    pub(crate) fn turn<'a>(&'a mut self, turn: Turn, golden: &'a mut Golden) -> Running<'a> {
        let mut command =
            clients::command(self.client, &self.place, turn, "work with the session", &self.folder);
        let printed = |name: &str| File::create(self.place.home.join(name)).unwrap();
        command.stdin(Stdio::null()).stdout(printed("printed")).stderr(printed("said"));
        let child = command.process_group(0).spawn().unwrap();
        self.turns += 1;
        let mut running =
            Running { conversation: self, child, asked: None, golden, calls: 0, found: Vec::new() };
        running.await_request();
        running
    }

    fn call_id(&self, number: usize) -> String {
        format!("call_{}_{number}", self.turns)
    }
}

/// A turn that goes on.
pub(crate) struct Running<'a> {
    conversation: &'a mut Conversation,
    child: Child,
    /// The request that waits for the model's next move.
    asked: Option<Asked>,
    golden: &'a mut Golden,
    calls: usize,
    /// What the model has searched for.
    found: Vec<String>,
}

impl Running<'_> {
    /// The tools of Mainstay's that the model is offered now.
    pub(crate) fn tools(&self) -> Vec<Offered> {
        let asked = self.asked.as_ref().unwrap();
        let offered = asked.format.offered(&asked.body);
        offered.into_iter().filter(|tool| is_of_mainstay(tool, "")).collect()
    }

    /// All that the model is asked now, as text.
    pub(crate) fn request(&self) -> String {
        self.asked.as_ref().unwrap().body.to_string()
    }

    /// Has the model call a tool; gives what it is shown of the result.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Shown {
        self.begin(tool, arguments);
        self.result()
    }

    /// Has the model call a tool, and wait on with `get_result` until what it is shown fits. That is the one answer that is noted: how many come
    /// before depends on the machine.
    pub(crate) fn call_until(
        &mut self,
        tool: &str,
        arguments: &Value,
        fits: impl Fn(&str) -> bool,
    ) -> String {
        self.golden.called(tool, arguments);
        let (mut tool, mut arguments) = (tool, arguments.clone());
        loop {
            let (target, sent) = self.reach(tool, &arguments);
            self.say_call(target, sent);
            let shown = self.result_of_any();
            let text = shown.text();
            if fits(&text) {
                self.golden.shown(&shown);
                return text;
            }
            assert!(text.contains("still running") && text.contains("Call get_result"), "{text}");
            (tool, arguments) = ("get_result", json!({ "id": behind(&text, "[id "), "wait": 1 }));
        }
    }

    /// Has the model call a tool.
    pub(crate) fn begin(&mut self, tool: &str, arguments: &Value) {
        let (target, sent) = self.reach(tool, arguments);
        self.golden.called(tool, arguments);
        self.say_call(target, sent);
    }

    /// Waits until the model is shown the result of the call.
    pub(crate) fn result(&mut self) -> Shown {
        let shown = self.result_of_any();
        self.golden.shown(&shown);
        shown
    }

    /// Has the model say that it is done, and waits for the agent's end.
    pub(crate) fn end(mut self) {
        self.asked.take().unwrap().answer(Move::Say("done".to_owned()));
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}\n{}", self.printed());
    }

    /// Kills the agent with all that it started, as a crash would.
    pub(crate) fn kill(mut self) {
        self.kill_group();
    }

    /// What to call for a tool of Mainstay's, and with what.
    fn reach(&mut self, tool: &str, arguments: &Value) -> (Offered, Value) {
        let asked = self.asked.as_ref().unwrap();
        let offered = asked.format.offered(&asked.body);
        let direct = offered.iter().find(|offered| is_of_mainstay(offered, tool));
        if let Some(direct) = direct {
            return (direct.clone(), arguments.clone());
        }
        let long_name = format!("mcp__{SERVER}__{tool}");
        let own = |name: &str| offered.iter().find(|offered| offered.name == name).cloned().unwrap();
        match self.conversation.client.deferral() {
            Deferral::None => panic!("the model has no tool {tool}, but {offered:?}"),
            Deferral::Searched(search) => {
                let search = own(search);
                self.search(search, &format!("select:{long_name}"), &long_name);
                (Offered { namespace: None, name: long_name, bytes: 0 }, arguments.clone())
            }
            Deferral::Found(search) => {
                let search = own(search);
                self.search(search, tool, tool);
                let namespace = Some(format!("mcp__{SERVER}"));
                (Offered { namespace, name: tool.to_owned(), bytes: 0 }, arguments.clone())
            }
            Deferral::Scripted(run) => {
                let script = format!(
                    "const result = await tools.{long_name}({arguments});\n\
                     for (const part of result.content) part.type === 'image' ? image(part) : text(part.text);"
                );
                (own(run), Value::String(script))
            }
            Deferral::Bridged(search, call) => {
                let (search, call) = (own(search), own(call));
                self.search(search, &format!("select:{long_name}"), &long_name);
                (call, json!({ "name": long_name, "arguments": arguments }))
            }
        }
    }

    /// Has the model search for a tool, once.
    fn search(&mut self, search: Offered, query: &str, tool: &str) {
        if self.found.iter().any(|found| found == tool) {
            return;
        }
        self.say_call(search, json!({ "query": query }));
        let shown = self.result_of_any().text();
        assert!(shown.contains(tool), "{tool} is not found: {shown}");
        self.found.push(tool.to_owned());
    }

    fn say_call(&mut self, tool: Offered, arguments: Value) {
        self.calls += 1;
        let id = self.conversation.call_id(self.calls);
        self.asked.take().unwrap().answer(Move::Call { id, tool, arguments });
    }

    fn result_of_any(&mut self) -> Shown {
        self.await_request();
        let asked = self.asked.as_ref().unwrap();
        let id = self.conversation.call_id(self.calls);
        let shown = asked.format.result(&asked.body, &id);
        let shown = shown.unwrap_or_else(|| panic!("no result of {id}: {}", asked.body));
        let text = shown.text();
        for words in NEVER {
            assert!(!text.contains(words), "the model reads: {text}");
        }
        shown
    }

    fn await_request(&mut self) {
        let mut waited = Duration::ZERO;
        loop {
            let step = Duration::from_secs(1);
            match self.conversation.model.next(step) {
                Ok(asked) => {
                    self.asked = Some(asked);
                    return;
                }
                Err(RecvTimeoutError::Timeout) if waited < LONG => waited += step,
                Err(error) => panic!("the model is not asked: {error}\n{}", self.printed()),
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("the agent has ended: {status}\n{}", self.printed());
            }
        }
    }

    /// The end of what the agent printed.
    fn printed(&self) -> String {
        let of = |name: &str| {
            let bytes = std::fs::read(self.conversation.place.home.join(name)).unwrap_or_default();
            String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(4000)..]).into_owned()
        };
        format!("{}\n{}", of("printed"), of("said"))
    }

    fn kill_group(&mut self) {
        let group = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        // It may have ended.
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
        self.child.wait().ok();
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.kill_group();
    }
}

/// Whether a tool is Mainstay's, of this name where one is given. Each agent has a prefix of its own.
fn is_of_mainstay(offered: &Offered, tool: &str) -> bool {
    match &offered.namespace {
        Some(namespace) => namespace.contains(SERVER) && (tool.is_empty() || offered.name == tool),
        None => offered
            .name
            .split_once(SERVER)
            .is_some_and(|(_, rest)| tool.is_empty() || rest.trim_start_matches('_') == tool),
    }
}
