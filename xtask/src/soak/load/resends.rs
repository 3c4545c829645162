//! Commands that are sent again, or looked at.

use serde_json::json;

use super::{Client, Done};
use crate::soak::book::{Answer, Sent};
use crate::soak::gate::held;
use crate::soak::rpc::Trouble;

impl Client<'_> {
    pub(super) fn resend(&mut self) -> Done {
        let Some((id, Sent { params, .. })) = self.any_command() else { return Ok(()) };
        self.submit(&id, params)?;
        self.stage.count("replays checked");
        Ok(())
    }

    /// Under a new id it has the answer of the first.
    pub(super) fn resend_key(&mut self) -> Done {
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

    pub(super) fn conflict(&mut self) -> Done {
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

    pub(super) fn look_at_command(&mut self) -> Done {
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

    pub(super) fn any_command(&mut self) -> Option<(String, Sent)> {
        held(&self.stage.book).any(&mut self.random)
    }
}
