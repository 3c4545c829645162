//! What clients do with sessions besides running code: questions, changes of state, and the words of agents.

use serde_json::json;

use super::{Client, Done};
use crate::soak::agent;
use crate::soak::gate::held;
use crate::soak::stage::SLOTS;

impl Client<'_> {
    pub(super) fn check(&mut self) -> Done {
        let session = self.session()?;
        let found =
            self.call("session/check", json!({ "session": session, "code": "let x : int = \"text\"" }))?;
        if found.as_array().is_none_or(Vec::is_empty) {
            self.stage.fault(format!("a check found nothing wrong with wrong code: {found}"));
        }
        Ok(())
    }

    pub(super) fn complete(&mut self) -> Done {
        let session = self.session()?;
        let cursor = json!({ "line": 1, "column": 12 });
        self.call(
            "session/complete",
            json!({ "session": session, "code": "System.Cons", "cursor": cursor }),
        )?;
        Ok(())
    }

    pub(super) fn read(&mut self) -> Done {
        let session = self.session()?;
        self.call("daemon/status", json!({}))?;
        self.call("session/list", json!({ "limit": 20 }))?;
        let after = self.random.below(200);
        let page = self.call("session/events", json!({ "session": session, "after": after, "limit": 50 }))?;
        page.as_array().into_iter().flatten().for_each(|event| self.stage.see(event));
        Ok(())
    }

    pub(super) fn rename(&mut self) -> Done {
        let session = self.session()?;
        let name = format!("soak {} {}", self.number, self.sent);
        self.call("session/rename", json!({ "session": session, "name": name })).map(drop)
    }

    pub(super) fn reset(&mut self) -> Done {
        let session = self.session()?;
        self.call("session/reset", json!({ "session": session })).map(drop)
    }

    pub(super) fn hard_reset(&mut self) -> Done {
        let session = self.session()?;
        self.call("session/reset", json!({ "session": session, "hard": true })).map(drop)
    }

    pub(super) fn stop(&mut self) -> Done {
        let session = self.session()?;
        self.call("session/stop", json!({ "session": session })).map(drop)
    }

    pub(super) fn start(&mut self) -> Done {
        let session = self.session()?;
        self.call("session/start", json!({ "session": session })).map(drop)
    }

    /// What is stored must not weigh on what runs, so there are always more of them.
    pub(super) fn replace_session(&mut self) -> Done {
        let slot = self.random.below(SLOTS);
        let before = held(&self.stage.slots)[slot].clone();
        self.fill(slot)?;
        match before {
            Some(session) => self.call("session/stop", json!({ "session": session })).map(drop),
            None => Ok(()),
        }
    }

    pub(super) fn speak_mcp(&mut self) -> Done {
        let session = self.session()?;
        agent::speak(self.stage, &session)
    }

    pub(super) fn speak_mcp_over_http(&mut self) -> Done {
        let session = self.session()?;
        agent::speak_over_http(self.stage, &session)
    }
}
