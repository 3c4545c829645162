//! Clients that send again what has no answer, under the same id, to whichever daemon serves.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::World;
use crate::support::rpc::Connection;

/// How long a daemon may be away.
const AWAY: Duration = Duration::from_secs(60);
/// How often something is looked for that nothing announces over the death of daemons.
pub(super) const BETWEEN_LOOKS: Duration = Duration::from_millis(4);
/// How many events are read at once.
const PAGE: usize = 1000;

/// Whoever speaks with the daemons of a home.
pub(super) struct Clients<'a> {
    pub(super) world: &'a World,
}

impl Clients<'_> {
    /// The answer of a daemon that lives to give it; the error as clients see it.
    pub(super) fn call(&self, method: &str, params: &Value) -> Result<Value, Value> {
        let mut daemon_seen = Instant::now();
        loop {
            if let Some(mut connection) = Connection::open(self.world) {
                daemon_seen = Instant::now();
                if let Some(mut answer) = connection.ask(method, params) {
                    return match answer.get_mut("error") {
                        Some(error) => Err(error["data"].take()),
                        None => Ok(answer["result"].take()),
                    };
                }
            }
            assert!(daemon_seen.elapsed() < AWAY, "no daemon serves for {AWAY:?}");
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }

    /// The same where it must be done.
    pub(super) fn done(&self, method: &str, params: &Value) -> Result<Value, String> {
        self.call(method, params).map_err(|error| format!("{method} {params} was refused: {error}"))
    }

    /// Runs code, which waits for its turn.
    pub(super) fn eval(&self, session: &str, id: &str, code: &str) -> Result<Value, String> {
        let params = json!({ "session": session, "command": id, "code": code, "admission": "queue" });
        self.done("session/eval", &params)
    }

    /// The value that an expression has.
    pub(super) fn value(&self, session: &str, id: &str, code: &str) -> Result<String, String> {
        let view = self.eval(session, id, code)?;
        view["value"].as_str().map(str::to_owned).ok_or_else(|| format!("`{code}` has no value: {view}"))
    }

    /// The session's events after one.
    pub(super) fn events(&self, session: &str, after: u64) -> Result<Vec<Value>, String> {
        let mut events = Vec::new();
        loop {
            let last = events.last().map_or(after, |event: &Value| event["seq"].as_u64().unwrap());
            let page =
                self.done("session/events", &json!({ "session": session, "after": last, "limit": PAGE }))?;
            match page.as_array() {
                Some(page) if !page.is_empty() => events.extend(page.iter().cloned()),
                _ => return Ok(events),
            }
        }
    }

    /// Waits until something is so that can be asked of a daemon; looks whether it still can come, and says why not.
    pub(super) fn wait_for<T>(
        &self,
        mut look: impl FnMut(&Self) -> Result<Option<T>, String>,
    ) -> Result<T, String> {
        let began = Instant::now();
        loop {
            if let Some(found) = look(self)? {
                return Ok(found);
            }
            if began.elapsed() > AWAY {
                return Err(format!("what was waited for does not come within {AWAY:?}"));
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }
}
