//! The clients: each does one thing after another, chosen at random, and holds what it is answered against what it knows.

use std::time::Duration;

use serde_json::{Value, json};

use super::agent;
use super::book::{Answer, Promise, Sent};
use super::gate::held;
use super::random::Random;
use super::rpc::{Connection, Trouble};
use super::stage::{SLOTS, Stage};

/// How long to wait for a daemon that is not there before it is looked for again.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
/// How many of its definitions a client remembers.
const REMEMBERED: usize = 40;

/// What a client does.
type Action = fn(&mut Client<'_>) -> Done;

/// Everything that clients do, with how often in a thousand times.
const ACTIONS: &[(usize, &str, Action)] = &[
    (251, "eval: pure", |client| client.eval_pure()),
    (150, "eval: define", |client| client.define()),
    (150, "eval: recall", |client| client.recall()),
    (50, "eval: print a lot", |client| client.print()),
    (40, "eval: throw", |client| client.throw()),
    (5, "eval: loop, cancelled", |client| client.loop_until_cancelled()),
    (7, "eval: too slow for its timeout", |client| client.time_out()),
    (15, "eval: wrong version", |client| client.want_another_version()),
    (30, "eval: after two others", |client| client.depend()),
    (15, "eval: connection dropped", |client| client.drop_connection()),
    (10, "eval: program", |client| client.eval_by_program()),
    (80, "resend: same id", |client| client.resend()),
    (30, "resend: same key", |client| client.resend_key()),
    (30, "resend: conflict", |client| client.conflict()),
    (30, "look at a command", |client| client.look_at_command()),
    (20, "check", |client| client.check()),
    (20, "complete", |client| client.complete()),
    (20, "read", |client| client.read()),
    (15, "rename", |client| client.rename()),
    (4, "reset", |client| client.reset()),
    (2, "hard reset", |client| client.hard_reset()),
    (2, "stop", |client| client.stop()),
    (4, "start", |client| client.start()),
    (2, "new session", |client| client.replace_session()),
    (9, "MCP: socket", |client| client.speak_mcp()),
    (9, "MCP: HTTP", |client| client.speak_mcp_over_http()),
];

/// What comes of an action: trouble that it has not dealt with ends the connection.
pub(super) type Done = Result<(), Trouble>;

/// A definition that ran to its end.
struct Definition {
    session: String,
    command: String,
    name: String,
    value: String,
}

/// One client that loads the daemon.
pub(super) struct Client<'a> {
    pub(super) stage: &'a Stage,
    pub(super) random: Random,
    number: u64,
    sent: u64,
    connection: Option<Connection>,
    definitions: Vec<Definition>,
}

/// Works while the gate of the load lets it.
pub(super) fn work(stage: &Stage, number: u64) {
    let random = Random::stream(stage.seed, number);
    let mut client = Client { stage, random, number, sent: 0, connection: None, definitions: Vec::new() };
    loop {
        stage.note(number, "waits");
        if !stage.load.is_open() {
            client.connection = None;
        }
        if !stage.load.pass() {
            return;
        }
        client.act();
    }
}

impl Client<'_> {
    fn act(&mut self) {
        let total = ACTIONS.iter().map(|(weight, ..)| weight).sum();
        let mut chosen = self.random.below(total);
        for (weight, name, action) in ACTIONS {
            if chosen < *weight {
                self.stage.note(self.number, name);
                match action(self) {
                    Ok(()) => self.stage.count(name),
                    Err(trouble) => self.meet(name, trouble),
                }
                break;
            }
            chosen -= weight;
        }
        std::thread::sleep(self.random.millis(0, 60));
    }

    /// What an action could not deal with.
    fn meet(&mut self, action: &'static str, trouble: Trouble) {
        match trouble {
            Trouble::Lost => {
                if self.connection.take().is_some() {
                    self.stage.count("connections lost");
                }
                std::thread::sleep(BETWEEN_LOOKS);
            }
            Trouble::Silent => {
                self.connection = None;
                self.stage.fault(format!("{action}: no answer came"));
            }
            Trouble::Refused { code, .. } if is_expected(&code) => self.stage.count("refused"),
            Trouble::Refused { code, error } => {
                self.stage.fault(format!("{action}: refused with {code}: {error}"));
            }
        }
    }

    fn connection(&mut self) -> Result<&mut Connection, Trouble> {
        if self.connection.is_none() {
            self.connection = Some(Connection::open(&self.stage.installation)?);
        }
        self.connection.as_mut().ok_or(Trouble::Lost)
    }

    fn call(&mut self, method: &str, params: Value) -> Result<Value, Trouble> {
        self.connection()?.call(method, params)
    }

    /// One of the sessions in use; a new one where the place is empty.
    pub(super) fn session(&mut self) -> Result<String, Trouble> {
        let slot = self.random.below(SLOTS);
        let taken = held(&self.stage.slots)[slot].clone();
        match taken {
            Some(session) => Ok(session),
            None => self.fill(slot),
        }
    }

    /// Creates a session, twice under the same id, which is once.
    fn fill(&mut self, slot: usize) -> Result<String, Trouble> {
        let create = json!({
            "command": self.new_id(), "kind": "fsharp", "workingDirectory": self.stage.installation.work(),
        });
        let first = self.call("session/create", create.clone())?["session"].take();
        let again = self.call("session/create", create)?["session"].take();
        if first != again {
            self.stage.fault(format!("a session was created twice under one id: {first} and {again}"));
        }
        let session = first.as_str().ok_or(Trouble::Lost)?.to_owned();
        held(&self.stage.slots)[slot] = Some(session.clone());
        Ok(session)
    }

    fn new_id(&mut self) -> String {
        self.sent += 1;
        format!("soak-{}-{}", self.number, self.sent)
    }

    /// An eval's parameters, noted in the book.
    fn prepare(&mut self, session: &str, code: &str, promise: Promise, more: Value) -> (String, Value) {
        let id = self.new_id();
        // Agents refuse to wait, people do; most do here, or stopped sessions would stay at rest.
        let admission = if self.random.chance(20) { "now" } else { "queue" };
        let mut params = json!({ "session": session, "command": id, "code": code, "admission": admission });
        if let (Some(params), Value::Object(more)) = (params.as_object_mut(), more) {
            params.extend(more);
        }
        held(&self.stage.book).send(&id, params.clone(), promise);
        (id, params)
    }

    fn eval(
        &mut self,
        session: &str,
        code: &str,
        promise: Promise,
        more: Value,
    ) -> Result<Option<Value>, Trouble> {
        let (id, params) = self.prepare(session, code, promise, more);
        self.submit(&id, params)
    }

    /// Sends a command that is in the book, and notes what is answered.
    fn submit(&mut self, id: &str, params: Value) -> Result<Option<Value>, Trouble> {
        let answered = self.call("session/eval", params);
        self.note(id, answered)
    }

    fn note(&mut self, id: &str, answered: Result<Value, Trouble>) -> Result<Option<Value>, Trouble> {
        match answered {
            Ok(view) => {
                let checked = held(&self.stage.book).answer(id, Answer::of_eval(&view), Some(&view));
                self.stage.check(checked);
                Ok(Some(view))
            }
            Err(Trouble::Refused { code, error }) => {
                self.note_error(id, &code, &error)?;
                Ok(None)
            }
            Err(trouble) => Err(trouble),
        }
    }

    /// An error is either the command's outcome, or it was refused before it was accepted; the daemon knows which.
    fn note_error(&mut self, id: &str, code: &str, error: &Value) -> Done {
        if !is_expected(code) {
            self.stage.fault(format!("`{id}` was refused with {code}: {error}"));
        }
        let was_answered = held(&self.stage.book).is_answered(id);
        match self.call("command/get", json!({ "command": id })) {
            Ok(view) if view["state"] == "ended" => {
                let mut book = held(&self.stage.book);
                // What is refused while the daemon goes down may have been accepted before, and ended since.
                let is_outcome = view["outcome"]["error"]["error"] == code;
                let checked =
                    if is_outcome { book.answer(id, Answer::of_error(code, error), None) } else { Ok(()) };
                let stored = book.outcome(id, &view["outcome"]);
                drop(book);
                self.stage.check(checked);
                self.stage.check(stored);
            }
            Ok(_) => {}
            Err(Trouble::Refused { code, .. }) if code == "command_not_found" => {
                self.stage.count("refused");
                if was_answered {
                    self.stage.fault(format!("`{id}` was answered, and is not known any more"));
                } else {
                    held(&self.stage.book).forget(id);
                }
            }
            Err(trouble) => return Err(trouble),
        }
        self.rescue(id, code)
    }

    /// A session that has lost too many workers takes no evals: it is reset, or stopped and started again.
    fn rescue(&mut self, id: &str, code: &str) -> Done {
        if code != "not_offered" {
            return Ok(());
        }
        let session = held(&self.stage.book).get(id).map(|sent| sent.params["session"].clone());
        let slots = held(&self.stage.slots).clone();
        for session in session.into_iter().chain(slots.into_iter().flatten().map(Value::from)) {
            let view = self.call("session/get", json!({ "session": session }))?;
            if view["state"] != "Faulted" {
                continue;
            }
            self.stage.count("faulted sessions rescued");
            if self.random.chance(50) {
                self.call("session/reset", json!({ "session": session, "hard": true }))?;
            } else {
                self.call("session/stop", json!({ "session": session }))?;
            }
        }
        Ok(())
    }

    fn eval_pure(&mut self) -> Done {
        let session = self.session()?;
        let (one, other) = (self.random.below(1000), self.random.below(1000));
        let more = if self.random.chance(30) {
            json!({ "key": format!("key-{}-{}", self.number, self.sent) })
        } else {
            json!({})
        };
        self.eval(&session, &format!("{one} + {other}"), Promise::Value((one + other).to_string()), more)?;
        Ok(())
    }

    fn define(&mut self) -> Done {
        let session = self.session()?;
        let value = self.random.below(1_000_000).to_string();
        let name = format!("soak_{}_{}", self.number, self.sent);
        let code = format!("let {name} = {value}");
        let (command, params) = self.prepare(&session, &code, Promise::Defines, json!({}));
        let view = self.submit(&command, params)?;
        if view.is_some_and(|view| view["ending"] == "completed") {
            if self.definitions.len() == REMEMBERED {
                let forgotten = self.random.below(REMEMBERED);
                self.definitions.swap_remove(forgotten);
            }
            self.definitions.push(Definition { session, command, name, value });
        }
        Ok(())
    }

    fn recall(&mut self) -> Done {
        let Some(Definition { session, command, name, value }) = self.random.pick(&self.definitions) else {
            return self.define();
        };
        let promise = Promise::Recalls { defined_by: command.clone(), value: value.clone() };
        let (session, name) = (session.clone(), name.clone());
        // A session that was replaced is used again now and then, but not always: each one has a worker.
        let is_in_use = held(&self.stage.slots).iter().flatten().any(|used| *used == session);
        if !is_in_use && self.random.chance(95) {
            self.definitions.retain(|definition| definition.session != session);
            return self.define();
        }
        self.eval(&session, &name, promise, json!({}))?;
        Ok(())
    }

    fn print(&mut self) -> Done {
        let session = self.session()?;
        let lines = 1 + self.random.below(3000);
        let code = format!("for _ in 1 .. {lines} do printfn \"a line of twenty-six bytes\"");
        self.eval(&session, &code, Promise::Prints(lines * 27), json!({}))?;
        Ok(())
    }

    fn throw(&mut self) -> Done {
        let session = self.session()?;
        self.eval(&session, "(failwith \"soak\" : int)", Promise::Raises, json!({}))?;
        Ok(())
    }

    /// One connection waits for the eval, another ends it.
    fn loop_until_cancelled(&mut self) -> Done {
        let session = self.session()?;
        let codes = ["while true do ()", "while true do System.Threading.Thread.Sleep 5"];
        let code = self.random.pick(&codes).copied().unwrap_or_default();
        // Should the cancel be lost with the daemon, this ends it.
        let (id, params) = self.prepare(&session, code, Promise::Endless, json!({ "timeoutMs": 30_000 }));
        let request = self.connection()?.send("session/eval", params)?;
        std::thread::sleep(self.random.millis(0, 1000));
        let mut other = Connection::open(&self.stage.installation)?;
        let whose = if self.random.chance(80) { json!(id) } else { Value::Null };
        let mut cancelled = other.call("session/cancel", json!({ "session": session, "command": whose }));
        if !whose.is_null()
            && matches!(&cancelled, Err(Trouble::Refused { code, .. }) if code == "not_running")
        {
            std::thread::sleep(BETWEEN_LOOKS);
            cancelled = other.call("session/cancel", json!({ "session": session, "command": whose }));
        }
        match cancelled {
            Ok(_) => self.stage.count("cancels"),
            Err(Trouble::Refused { code, .. }) if is_expected(&code) => {}
            Err(trouble) => return Err(trouble),
        }
        let answered = self.connection()?.answer(request);
        self.note(&id, answered)?;
        Ok(())
    }

    fn time_out(&mut self) -> Done {
        let session = self.session()?;
        let limit = 50 + self.random.below(500);
        let more = json!({ "timeoutMs": limit });
        self.eval(&session, "System.Threading.Thread.Sleep 60000", Promise::Endless, more)?;
        Ok(())
    }

    fn want_another_version(&mut self) -> Done {
        let session = self.session()?;
        let more = json!({ "ifVersion": 1_000_000_000 });
        self.eval(&session, "1", Promise::Fails("version_mismatch"), more)?;
        Ok(())
    }

    /// Three evals at once on one connection, the last after the others, which may be in other sessions.
    fn depend(&mut self) -> Done {
        let mut sent = Vec::new();
        let mut depends_on: Vec<String> = Vec::new();
        for is_last in [false, false, true] {
            let session = self.session()?;
            let more = if is_last { json!({ "dependsOn": depends_on }) } else { json!({}) };
            let (id, params) = self.prepare(&session, "7 * 6", Promise::Value("42".to_owned()), more);
            let request = self.connection()?.send("session/eval", params)?;
            depends_on.push(id.clone());
            sent.push((id, request));
        }
        for (id, request) in sent {
            let answered = self.connection()?.answer(request);
            self.note(&id, answered)?;
        }
        Ok(())
    }

    fn drop_connection(&mut self) -> Done {
        let session = self.session()?;
        let code = "for i in 1 .. 500 do printfn \"%d\" i\n1";
        let (_, params) = self.prepare(&session, code, Promise::Value("1".to_owned()), json!({}));
        self.connection()?.send("session/eval", params)?;
        std::thread::sleep(self.random.millis(0, 50));
        self.connection = None;
        Ok(())
    }

    /// Through the command line, as a script would: it goes on with the daemon that comes after one that is lost.
    fn eval_by_program(&mut self) -> Done {
        let session = self.session()?;
        let (id, _) = self.prepare(&session, "20 + 22", Promise::Value("42".to_owned()), json!({}));
        let arguments = ["eval", "--json", "--id", &id, "--session", &session, "20 + 22"];
        let output = self.stage.installation.run(arguments)?;
        match serde_json::from_slice::<Value>(&output.stdout) {
            Ok(view) => self.note(&id, Ok(view)).map(drop),
            Err(_) => Ok(()),
        }
    }

    fn resend(&mut self) -> Done {
        let Some((id, Sent { params, .. })) = self.any_command() else { return Ok(()) };
        self.submit(&id, params)?;
        self.stage.count("replays checked");
        Ok(())
    }

    /// Under a new id it has the answer of the first.
    fn resend_key(&mut self) -> Done {
        let has_key = |(_, sent): &(String, Sent)| !sent.params["key"].is_null();
        let any = (0..20).find_map(|_| self.any_command().filter(has_key));
        let Some((first, Sent { params, answer: Some(answer), promise, .. })) = any else { return Ok(()) };
        let id = self.new_id();
        let mut params = params;
        params["command"] = json!(id);
        held(&self.stage.book).send(&id, params.clone(), promise);
        let view = self.submit(&id, params)?;
        let now = view.map(|view| Answer::of_eval(&view));
        if now.is_some_and(|now| now != answer) {
            self.stage.fault(format!("`{id}` has the key of `{first}`, and another answer"));
        }
        self.stage.count("replays checked");
        Ok(())
    }

    fn conflict(&mut self) -> Done {
        let Some((id, Sent { params, answer: Some(_), .. })) = self.any_command() else { return Ok(()) };
        let mut params = params;
        params["code"] = json!("printfn \"this must not run\"");
        match self.call("session/eval", params) {
            Err(Trouble::Refused { code, .. }) if code == "command_conflict" => Ok(()),
            Err(Trouble::Refused { code, .. }) if code == "daemon_stopping" => Ok(()),
            Err(Trouble::Refused { code, error }) => {
                self.stage.fault(format!("`{id}` with other code was refused with {code}: {error}"));
                Ok(())
            }
            Err(trouble) => Err(trouble),
            Ok(view) => {
                self.stage.fault(format!("`{id}` with other code was answered {view}"));
                Ok(())
            }
        }
    }

    fn look_at_command(&mut self) -> Done {
        let Some((id, sent)) = self.any_command() else { return Ok(()) };
        match self.call("command/get", json!({ "command": id })) {
            Ok(view) if view["state"] == "ended" => {
                let checked = held(&self.stage.book).outcome(&id, &view["outcome"]);
                self.stage.check(checked);
            }
            Ok(view) if sent.answer.is_some() => {
                self.stage.fault(format!("`{id}` was answered, and is said to be {}", view["state"]));
            }
            Err(Trouble::Refused { code, .. }) if code == "command_not_found" && sent.answer.is_some() => {
                self.stage.fault(format!("`{id}` was answered, and is not known any more"));
            }
            Ok(_) | Err(Trouble::Refused { .. }) => {}
            Err(trouble) => return Err(trouble),
        }
        Ok(())
    }

    fn any_command(&mut self) -> Option<(String, Sent)> {
        held(&self.stage.book).any(&mut self.random)
    }

    fn check(&mut self) -> Done {
        let session = self.session()?;
        let found =
            self.call("session/check", json!({ "session": session, "code": "let x : int = \"text\"" }))?;
        if found.as_array().is_none_or(Vec::is_empty) {
            self.stage.fault(format!("a check found nothing wrong with wrong code: {found}"));
        }
        Ok(())
    }

    fn complete(&mut self) -> Done {
        let session = self.session()?;
        let cursor = json!({ "line": 1, "column": 12 });
        self.call(
            "session/complete",
            json!({ "session": session, "code": "System.Cons", "cursor": cursor }),
        )?;
        Ok(())
    }

    fn read(&mut self) -> Done {
        let session = self.session()?;
        self.call("daemon/status", json!({}))?;
        self.call("session/list", json!({ "limit": 20 }))?;
        let after = self.random.below(200);
        let page = self.call("session/events", json!({ "session": session, "after": after, "limit": 50 }))?;
        page.as_array().into_iter().flatten().for_each(|event| self.stage.see(event));
        Ok(())
    }

    fn rename(&mut self) -> Done {
        let session = self.session()?;
        let name = format!("soak {} {}", self.number, self.sent);
        self.call("session/rename", json!({ "session": session, "name": name })).map(drop)
    }

    fn reset(&mut self) -> Done {
        let session = self.session()?;
        self.call("session/reset", json!({ "session": session })).map(drop)
    }

    fn hard_reset(&mut self) -> Done {
        let session = self.session()?;
        self.call("session/reset", json!({ "session": session, "hard": true })).map(drop)
    }

    fn stop(&mut self) -> Done {
        let session = self.session()?;
        self.call("session/stop", json!({ "session": session })).map(drop)
    }

    fn start(&mut self) -> Done {
        let session = self.session()?;
        self.call("session/start", json!({ "session": session })).map(drop)
    }

    /// What is stored must not weigh on what runs, so there are always more of them.
    fn replace_session(&mut self) -> Done {
        let slot = self.random.below(SLOTS);
        let before = held(&self.stage.slots)[slot].clone();
        self.fill(slot)?;
        match before {
            Some(session) => self.call("session/stop", json!({ "session": session })).map(drop),
            None => Ok(()),
        }
    }

    fn speak_mcp(&mut self) -> Done {
        let session = self.session()?;
        agent::speak(self.stage, &session)
    }

    fn speak_mcp_over_http(&mut self) -> Done {
        let session = self.session()?;
        agent::speak_over_http(self.stage, &session)
    }
}

/// Errors that belong to a load like this: others change the sessions at the same time, and the daemon comes and goes.
fn is_expected(code: &str) -> bool {
    [
        "not_offered",
        "not_running",
        "lane_full",
        "cancelled",
        "session_stopped",
        "timed_out",
        "timeout",
        "version_mismatch",
        "dependency_failed",
        "dependency_unknown",
        "dependency_pending",
        "dependency_in_lane",
        "dependency_cycle",
        "worker_failed",
        "daemon_stopping",
    ]
    .contains(&code)
}
