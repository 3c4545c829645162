//! The evals that clients ask for.

use serde_json::{Value, json};

use super::{BETWEEN_LOOKS, Client, Definition, Done, REMEMBERED, is_expected};
use crate::soak::book::Promise;
use crate::soak::gate::held;
use crate::soak::rpc::{Connection, Trouble};

impl Client<'_> {
    pub(super) fn eval_pure(&mut self) -> Done {
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

    pub(super) fn define(&mut self) -> Done {
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

    pub(super) fn recall(&mut self) -> Done {
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

    pub(super) fn print(&mut self) -> Done {
        let session = self.session()?;
        let lines = 1 + self.random.below(3000);
        let code = format!("for _ in 1 .. {lines} do printfn \"a line of twenty-six bytes\"");
        self.eval(&session, &code, Promise::Prints(lines * 27), json!({}))?;
        Ok(())
    }

    pub(super) fn throw(&mut self) -> Done {
        let session = self.session()?;
        self.eval(&session, "(failwith \"soak\" : int)", Promise::Raises, json!({}))?;
        Ok(())
    }

    /// One connection waits for the eval, another ends it.
    pub(super) fn loop_until_cancelled(&mut self) -> Done {
        let session = self.session()?;
        let codes = ["while true do ()", "while true do System.Threading.Thread.Sleep 5"];
        let code = self.random.pick(&codes).copied().unwrap_or_default();
        // Should the cancel be lost with the daemon, this ends it.
        let (id, params) = self.prepare(&session, code, Promise::Endless, json!({ "timeoutMs": 30_000 }));
        let request = self.connection()?.send("session/eval", params)?;
        std::thread::sleep(self.random.millis(0, 1000));
        let mut other = Connection::open(&self.stage.installation)?;
        let whose = if self.random.chance(80) { json!(id) } else { Value::Null };
        let mut cancelled = other.call("session/cancel", json!({ "session": session, "target": whose }));
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

    pub(super) fn time_out(&mut self) -> Done {
        let session = self.session()?;
        let limit = 50 + self.random.below(500);
        let more = json!({ "timeoutMs": limit });
        self.eval(&session, "System.Threading.Thread.Sleep 60000", Promise::Endless, more)?;
        Ok(())
    }

    pub(super) fn want_another_version(&mut self) -> Done {
        let session = self.session()?;
        let more = json!({ "ifVersion": 1_000_000_000 });
        self.eval(&session, "1", Promise::Fails("version_mismatch"), more)?;
        Ok(())
    }

    /// Three evals at once on one connection, the last after the others, which may be in other sessions.
    pub(super) fn depend(&mut self) -> Done {
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

    pub(super) fn drop_connection(&mut self) -> Done {
        let session = self.session()?;
        let code = "for i in 1 .. 500 do printfn \"%d\" i\n1";
        let (_, params) = self.prepare(&session, code, Promise::Value("1".to_owned()), json!({}));
        self.connection()?.send("session/eval", params)?;
        std::thread::sleep(self.random.millis(0, 50));
        self.connection = None;
        Ok(())
    }

    /// Through the command line, as a script would: it goes on with the daemon that comes after one that is lost.
    pub(super) fn eval_by_program(&mut self) -> Done {
        let session = self.session()?;
        let (id, _) = self.prepare(&session, "20 + 22", Promise::Value("42".to_owned()), json!({}));
        let arguments = ["eval", "--json", "--id", &id, "--session", &session, "20 + 22"];
        let output = self.stage.installation.run(arguments)?;
        match serde_json::from_slice::<Value>(&output.stdout) {
            Ok(view) => self.note(&id, Ok(view)).map(drop),
            Err(_) => Ok(()),
        }
    }
}
