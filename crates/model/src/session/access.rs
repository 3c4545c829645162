//! Who may see and drive a session.

use super::Session;
use crate::access::{Access, Rights};

impl Access {
    /// Whether it may see the session: read it, and follow its events.
    pub fn sees(&self, session: &Session) -> bool {
        match &self.rights {
            Rights::All => true,
            Rights::Some { see, .. } | Rights::ReadOnly { see } => {
                self.drives(session) || see.iter().any(|pattern| pattern.matches(&session.name))
            }
        }
    }

    /// Whether it may drive the session: change it, and ask its worker.
    pub fn drives(&self, session: &Session) -> bool {
        match &self.rights {
            Rights::All => true,
            Rights::Some { drive, .. } => {
                session.owner == self.principal || drive.iter().any(|pattern| pattern.matches(&session.name))
            }
            Rights::ReadOnly { .. } => false,
        }
    }
}
