//! Who may see and drive a session.

use super::Session;
use crate::access::{Access, Rights};

impl Access {
    /// Whether it may see the session: read it, and follow its events.
    pub fn sees(&self, session: &Session) -> bool {
        let Rights::Some { see, .. } = &self.rights else { return true };
        self.drives(session) || see.iter().any(|pattern| pattern.matches(&session.name))
    }

    /// Whether it may drive the session: change it, and ask its worker.
    pub fn drives(&self, session: &Session) -> bool {
        let Rights::Some { drive, .. } = &self.rights else { return true };
        session.owner == self.principal || drive.iter().any(|pattern| pattern.matches(&session.name))
    }
}
