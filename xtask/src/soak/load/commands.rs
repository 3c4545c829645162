//! Evals on their way: noted in the book, sent, and their answers held against it.

use serde_json::{Value, json};

use super::{Client, Done, is_expected};
use crate::soak::book::{Answer, Promise};
use crate::soak::gate::held;
use crate::soak::rpc::Trouble;

impl Client<'_> {
    /// An eval's parameters, noted in the book.
    pub(super) fn prepare(
        &mut self,
        session: &str,
        code: &str,
        promise: Promise,
        more: Value,
    ) -> (String, Value) {
        let id = self.new_id();
        // Agents refuse to wait, people do; most do here, or stopped sessions would stay idle.
        let admission = if self.random.chance(20) { "now" } else { "queue" };
        let mut params = json!({ "session": session, "command": id, "code": code, "admission": admission });
        if let (Some(params), Value::Object(more)) = (params.as_object_mut(), more) {
            params.extend(more);
        }
        held(&self.stage.book).send(&id, params.clone(), promise);
        (id, params)
    }

    pub(super) fn eval(
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
    pub(super) fn submit(&mut self, id: &str, params: Value) -> Result<Option<Value>, Trouble> {
        let answered = self.call("session/eval", params);
        self.note(id, answered)
    }

    pub(super) fn note(
        &mut self,
        id: &str,
        answered: Result<Value, Trouble>,
    ) -> Result<Option<Value>, Trouble> {
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
    pub(super) fn note_error(&mut self, id: &str, code: &str, error: &Value) -> Done {
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
    pub(super) fn rescue(&mut self, id: &str, code: &str) -> Done {
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
}
